#pragma once

// The reducer of one member among scripts, for tests of changes of the View.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/reducer.h"
#include "pipeline/steps/ring_schedule.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {

inline constexpr pipeline::ViewId kSecond{1, 2}, kThird{1, 3};

// The reducer of member 1, its replica 1, and everyone else as scripts that say their lines one
// second after another.
class Scene {
 public:
  // The coordinator's words to the reducer.
  Scene& root(runtime::Message line) { return say("coordinator", std::move(line)); }
  Scene& replica(runtime::Message line) { return say("replica.1", std::move(line)); }
  // For a member in the ring.
  Scene& other(runtime::Message line) { return say("other", std::move(line)); }
  // Member 3 looks at what it is sent from now on; before, it keeps the first of it.
  Scene& newcomer_wakes() { return say("newcomer", runtime::Message::of(StopTraining{})); }

  // What the coordinator and the replica heard: "halted 1.2 at 3", "view 1.1", "sum 3.0: 7",
  // "header 3.0", "too slow: 3", "share with 3"; behind a step of a worker "of worker 0".
  std::vector<std::string> run() {
    Play play;
    play.actor("coordinator", speaker("", true));
    ReducerOptions options;
    options.first_replica = 1;
    options.member = 1;
    options.micro_batches = 3;
    options.events = 0;
    options.replay_bytes = 0;
    options.sites = sites;
    options.learns_first = learns_first;
    play.actor("reducer", [options] { return std::make_unique<Reducer>(options); });
    play.actor("replica.1", speaker("contributions", false));
    play.actor("other", speaker("ring", false));
    play.actor("newcomer", newcomer());
    play.link("replica.1", "contributions", "reducer", "contributions");
    play.link("reducer", "reduced.1", "replica.1", "reduced", runtime::Lane::kData, 8, 1);
    play.link("other", "ring", "reducer", "ring", runtime::Lane::kData, 8, 1);
    for (const char* port : {"ring.0", "ring.2"}) {
      play.link("reducer", port, "other", port, runtime::Lane::kData, 8, 1);
    }
    play.link("reducer", "ring.3", "newcomer", "ring", runtime::Lane::kData, 1, 1);
    end = play.run(1);
    return std::exchange(heard_, {});
  }

  SiteOptions sites;  // none by itself
  bool learns_first = false;

  // To the members: "on 1.1: bucket 3.0", "gives 1.2: header 3.0", of parts and sums.
  std::vector<std::string> passed_on;
  std::vector<std::string> taught;  // to the newcomer, so too, and "lesson from 3"
  std::uint64_t kept_bytes = 0;     // as it told when it halted last
  runtime::NodeEnd end;

 private:
  Scene& say(const std::string& who, runtime::Message line) {
    cues_[who].emplace_back(++time_, std::make_shared<runtime::Message>(std::move(line)));
    return *this;
  }

  runtime::Script speaker(const std::string& port, bool is_root) {
    runtime::Script script;
    script.start = [this, is_root](runtime::Context& context) {
      for (const auto& [second, line] : cues_[std::string(context.name())]) {
        context.after(std::chrono::seconds(second));
      }
      if (is_root) context.after(std::chrono::seconds(time_ + 1));
    };
    script.timer = [this, port, next = std::size_t{0}](runtime::Context& context,
                                                       runtime::TimerId) mutable {
      const auto& cues = cues_[std::string(context.name())];
      if (next == cues.size()) return context.finish();
      runtime::Message line = std::move(*cues[next++].second);
      if (port.empty()) {
        context.send_control("reducer", std::move(line));
      } else {
        EXPECT_TRUE(context.send(port, line));
      }
    };
    script.receive = [this](runtime::Context& context, const runtime::Message& message) {
      (context.name() == "other" ? passed_on : heard_).push_back(text_of(message));
    };
    return script;
  }

  runtime::Script newcomer() {
    runtime::Script script;
    script.start = [this](runtime::Context& context) {
      for (const auto& [second, line] : cues_["newcomer"]) {
        context.after(std::chrono::seconds(second));
      }
    };
    const auto kept = std::make_shared<std::optional<std::vector<runtime::Message>>>(std::in_place);
    script.receive = [this, kept](runtime::Context&, runtime::Message message) {
      taught.push_back(text_of(message));
      if (*kept) (*kept)->push_back(std::move(message));
    };
    script.timer = [kept](runtime::Context&, runtime::TimerId) { kept->reset(); };
    return script;
  }

  std::string text_of(const runtime::Message& message) {
    if (const auto* halted = message.as<Halted>()) {
      kept_bytes = halted->kept_bytes;
      const bool begins = halted->unbegun > halted->next_step;
      return fmt::format("halted {} at {}{}", pipeline::text_of(halted->change), halted->next_step,
                         begins ? fmt::format(", before {}", halted->unbegun) : "");
    }
    if (const auto* slow = message.as<TooSlow>()) return fmt::format("too slow: {}", slow->member);
    if (const auto* share = message.as<ShareState>()) {
      return fmt::format("share with {}{}", share->member,
                         share->process == 1 ? "" : fmt::format(" as {}", share->process));
    }
    if (const auto* lesson = message.as<Lesson>()) {
      return fmt::format("lesson from {}", lesson->next_step);
    }
    if (const auto* told = message.as<ViewMessage>()) {
      return "view " + pipeline::text_of(told->view->id);
    }
    if (const auto* bucket = message.as<BucketMessage>()) {
      return fmt::format("sum {}.{}{}: {}", bucket->step, bucket->attempt, of(bucket->worker),
                         message.payloads().front().as<std::int64_t>()[0]);
    }
    if (const auto* header = message.as<HeaderMessage>()) {
      return fmt::format("header {}.{}{}", header->header.step, header->header.attempt,
                         of(header->worker));
    }
    if (const auto* bucket = message.as<RingBucket>()) {
      return fmt::format("{} {}: bucket {}.{}{}", bucket->summed ? "gives" : "on",
                         pipeline::text_of(bucket->bucket.view), bucket->bucket.step,
                         bucket->bucket.attempt, of(bucket->bucket.worker));
    }
    if (const auto* entered = message.as<Entered>()) {
      return "entered " + pipeline::text_of(entered->view);
    }
    const auto* header = message.as<RingHeader>();
    CHECK(header != nullptr, "nobody says anything else");
    return fmt::format("{} {}: header {}.{}{}", header->combined ? "gives" : "on",
                       pipeline::text_of(header->view), header->header.step, header->header.attempt,
                       of(header->worker));
  }

  static std::string of(std::uint32_t worker) {
    return worker == kOfAll ? "" : fmt::format(" of worker {}", worker);
  }

  std::map<std::string, std::vector<std::pair<int, std::shared_ptr<runtime::Message>>>> cues_;
  int time_ = 0;
  std::vector<std::string> heard_;
};

inline runtime::Message view(pipeline::ViewId id, std::vector<std::uint32_t> ring,
                             std::uint64_t first_step = 3,
                             std::vector<std::uint64_t> reached = {}) {
  pipeline::View view = *view_of(std::move(ring), 3, 1, first_step);
  view.id = id;
  if (!reached.empty()) view.reached = std::move(reached);
  return runtime::Message::of(ViewMessage{std::make_shared<const pipeline::View>(std::move(view))});
}

inline runtime::Message halt(pipeline::ViewId change, bool planned = false) {
  return runtime::Message::of(Halt{change, planned});
}

// Steps have one bucket of one element; the home of it and of the header is position 0.
inline runtime::Message own_bucket(pipeline::ViewId view, std::int64_t value,
                                   std::uint64_t step = 3, std::uint32_t worker = kOfAll) {
  return runtime::Message::of(
      BucketMessage{step, 0, 0, 0, 1, pipeline::SumKind::kInt64, view, worker},
      {runtime::Buffer::copy_of(std::as_bytes(std::span(&value, 1)))});
}

inline runtime::Message own_header(pipeline::ViewId view, std::uint32_t micro_batches,
                                   std::uint64_t step = 3, std::uint32_t worker = kOfAll) {
  HeaderMessage message;
  message.view = view;
  message.worker = worker;
  message.header.step = step;
  message.header.micro_batches = micro_batches;
  return runtime::Message::of(std::move(message));
}

inline runtime::Message ring_bucket(pipeline::ViewId view, std::int64_t value,
                                    std::uint64_t step = 3, bool summed = true,
                                    std::uint32_t worker = kOfAll) {
  return runtime::Message::of(
      RingBucket{{step, 0, 0, 0, 1, pipeline::SumKind::kInt64, view, worker}, summed, std::nullopt},
      {runtime::Buffer::copy_of(std::as_bytes(std::span(&value, 1)))});
}

inline runtime::Message ring_header(pipeline::ViewId view, std::uint64_t step = 3,
                                    bool combined = true, std::uint32_t worker = kOfAll) {
  RingHeader message;
  message.view = view;
  message.worker = worker;
  message.header.step = step;
  message.header.micro_batches = 3;
  message.combined = combined;
  return runtime::Message::of(std::move(message));
}

// As far as step 3 is made, of which the sums are 42.
inline void make_step(Scene& scene) {
  ASSERT_TRUE(pipeline::BucketRoutes(3).role(0, 1).begins());
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5));
  scene.replica(own_header(kFirstView, 1));
  scene.other(ring_bucket(kFirstView, 42)).other(ring_header(kFirstView));
}

inline const std::vector<std::string> kHeardOfIt{"view 1.1", "sum 3.0: 42", "header 3.0"};
inline const std::vector<std::string> kPassedOn{"on 1.1: bucket 3.0", "on 1.1: header 3.0",
                                                "gives 1.1: bucket 3.0", "gives 1.1: header 3.0"};

// As vectors: `first` and these.
inline std::vector<std::string> then(std::vector<std::string> first,
                                     const std::vector<std::string>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

}  // namespace troupe::actors
