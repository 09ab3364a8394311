#include "actors/reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/steps/buckets.h"
#include "runtime/base/random.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::NodeEnd;
using runtime::Script;

constexpr std::uint64_t kFirstStep = 7;

// What all contributors of a ring agree upon.
struct Drama {
  std::uint32_t members = 1;
  std::uint32_t replicas = 1;  // of each member
  std::uint64_t steps = 5;
  bool ahead = false;  // contribute a step's buckets before the one before is summed

  std::uint32_t all() const { return members * replicas; }
  std::int64_t elements(std::uint64_t step) const {
    // Some steps have fewer buckets than there are members.
    return std::vector<std::int64_t>{5000, 100, 9001}[step % 3];
  }
  bool repeated(std::uint64_t step) const { return step % 4 == 1; }
  std::int64_t value(std::uint64_t step, std::uint32_t attempt, std::uint32_t replica,
                     std::int64_t element) const {
    using runtime::mix64;
    const std::uint64_t drawn =
        mix64(mix64(mix64(step * 2 + attempt) ^ replica) ^ static_cast<std::uint64_t>(element));
    return static_cast<std::int64_t>(drawn) >> 8;
  }
  // Over all replicas.
  std::vector<std::int64_t> sums(std::uint64_t step, std::uint32_t attempt) const {
    std::vector<std::int64_t> sums(static_cast<std::size_t>(elements(step)));
    for (std::uint32_t replica = 0; replica < all(); ++replica) {
      for (std::int64_t i = 0; i < elements(step); ++i) {
        sums[static_cast<std::size_t>(i)] += value(step, attempt, replica, i);
      }
    }
    return sums;
  }
};

using Sums = std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::int64_t>>;

// Of every step and attempt.
Sums all_sums(const Drama& drama) {
  Sums sums;
  for (std::uint64_t step = kFirstStep; step < kFirstStep + drama.steps; ++step) {
    for (const std::uint32_t attempt : {0U, 1U}) sums[{step, attempt}] = drama.sums(step, attempt);
  }
  return sums;
}

// Plays a replica, and counts what it was given wrongly.
class Contributor final : public runtime::Actor {
 public:
  Contributor(const Drama& drama, const Sums& expected, std::uint32_t number, int& faults)
      : drama_(drama), expected_(expected), number_(number), faults_(faults) {}

  void receive(Context& context, Message message) override {
    if (message.as<ViewMessage>() != nullptr) {
      contribute(step_, 0);
      say_header(0);
      go_ahead();
    } else if (const auto* bucket = message.as<BucketMessage>()) {
      auto& sums = sums_[bucket->step];
      sums.resize(static_cast<std::size_t>(drama_.elements(bucket->step)));
      std::ranges::copy(message.payloads().front().as<std::int64_t>(),
                        sums.begin() + bucket->begin);
    } else if (const auto* header = message.as<HeaderMessage>()) {
      take(context, header->header);
    }
    flush(context);
  }

  void credit_returned(Context& context, std::string_view) override { flush(context); }

 private:
  void contribute(std::uint64_t step, std::uint32_t attempt) {
    std::uint32_t number = 0;
    for (const pipeline::Bucket& bucket :
         pipeline::make_buckets(drama_.elements(step), 8 << 10, drama_.members)) {
      const std::int64_t end = bucket.offset + bucket.size;
      Buffer part = Buffer::allocate(static_cast<std::size_t>(bucket.size) * 8);
      const auto values = part.mutable_as<std::int64_t>();
      for (std::int64_t i = bucket.offset; i < end; ++i) {
        values[static_cast<std::size_t>(i - bucket.offset)] =
            drama_.value(step, attempt, number_, i);
      }
      out_.push_back(Message::of(
          BucketMessage{step, attempt, number++, bucket.offset, end, false, kFirstView}, {part}));
    }
  }

  void say_header(std::uint32_t attempt) {
    HeaderMessage message;
    message.view = kFirstView;
    message.header.step = step_;
    message.header.attempt = attempt;
    message.header.exponents = {static_cast<std::int16_t>(number_)};
    message.header.flagged = attempt == 0 && drama_.repeated(step_) && number_ == 0;
    message.header.micro_batches = 1;
    message.header.events = number_;
    out_.push_back(Message::of(std::move(message)));
  }

  void go_ahead() {
    ahead_ = drama_.ahead && step_ + 1 < kFirstStep + drama_.steps;
    if (ahead_) contribute(step_ + 1, 0);
  }

  void take(Context& context, const pipeline::StepHeader& header) {
    const std::uint32_t all = drama_.all();
    if (header.step != step_ || header.exponents.at(0) != static_cast<int>(all) - 1) ++faults_;
    if (header.events != std::uint64_t{all} * (all - 1) / 2) ++faults_;
    if (sums_[step_] != expected_.at({step_, header.attempt})) ++faults_;
    sums_.erase(step_);
    if (header.flagged) {
      contribute(step_, 1);
      return say_header(1);
    }
    if (++step_ == kFirstStep + drama_.steps) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
      return;
    }
    if (!ahead_) contribute(step_, 0);
    say_header(0);
    go_ahead();
  }

  void flush(Context& context) {
    while (!out_.empty() && context.send("contributions", out_.front())) out_.pop_front();
  }

  const Drama drama_;
  const Sums& expected_;
  const std::uint32_t number_;
  int& faults_;
  std::uint64_t step_ = kFirstStep;
  bool ahead_ = false;  // the buckets of the next step are out
  std::map<std::uint64_t, std::vector<std::int64_t>> sums_;
  std::deque<Message> out_;
};

std::string name(const char* kind, std::uint32_t number) {
  return std::string(kind) + "." + std::to_string(number);
}

void add_reducer(Play& play, const Drama& drama, std::uint32_t member) {
  ReducerOptions options;
  options.first_replica = member * drama.replicas;
  options.replicas = drama.replicas;
  options.micro_batches = drama.all();
  options.events = std::uint64_t{drama.all()} * (drama.all() - 1) / 2;
  options.member = member;
  play.actor(name("reducer", member), [options] { return std::make_unique<Reducer>(options); });
}

// Wires replica `number` to its reducer.
void link_replica(Play& play, const Drama& drama, std::uint32_t number) {
  const std::string reducer = name("reducer", number / drama.replicas);
  play.link(name("replica", number), "contributions", reducer, "contributions");
  play.link(reducer, name("reduced", number), name("replica", number), "reduced",
            runtime::Lane::kData, 8, 1);
}

NodeEnd play_ring(const Drama& drama, std::uint64_t seed, int& faults) {
  const Sums sums = all_sums(drama);
  Play play;
  Script root;
  root.start = [&drama](Context& context) {
    const ViewPointer view = view_of(drama.members, drama.all(), drama.replicas, kFirstStep);
    for (std::uint32_t member = 0; member < drama.members; ++member) {
      context.send_control(name("reducer", member), Message::of(ViewMessage{view}));
    }
  };
  auto done = std::make_shared<std::uint32_t>(0);
  root.receive = [done, all = drama.all()](Context& context, const Message&) {
    if (++*done == all) context.finish();
  };
  play.actor("coordinator", root);
  for (std::uint32_t member = 0; member < drama.members; ++member) add_reducer(play, drama, member);
  for (std::uint32_t number = 0; number < drama.all(); ++number) {
    play.actor(name("replica", number), [&drama, &sums, number, &faults] {
      return std::make_unique<Contributor>(drama, sums, number, faults);
    });
    link_replica(play, drama, number);
  }
  play.link_reducers(drama.members);
  return play.run(seed);
}

TEST(Reducer, EveryReplicaOfARingGetsTheSumOfAll) {
  for (const bool ahead : {false, true}) {
    for (const std::uint32_t members : {1U, 2U, 3U, 5U}) {
      for (const std::uint32_t replicas : {1U, 2U, 3U}) {
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          int faults = 0;
          const NodeEnd end = play_ring({members, replicas, 6, ahead}, seed, faults);
          ASSERT_FALSE(end.error) << end.error->message;
          ASSERT_EQ(faults, 0) << members << " members, " << replicas << " replicas, seed " << seed;
        }
      }
    }
  }
}

TEST(Reducer, RingOf64MembersReduces) {
  int faults = 0;
  const NodeEnd end = play_ring({64, 1, 3, true}, 1, faults);
  EXPECT_FALSE(end.error) << end.error->message;
  EXPECT_EQ(faults, 0);
}

}  // namespace
}  // namespace troupe::actors
