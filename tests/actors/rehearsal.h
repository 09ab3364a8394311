#pragma once

// A run of one replica between scripted neighbours: a reducer that gives buckets back at once and
// headers later, a loader, a coordinator and a Validator.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/replica.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {

inline constexpr runtime::Duration kReduction = std::chrono::milliseconds(10);

struct Setting {
  std::vector<model::SlotKind> schedule;  // empty: the toy's own: d_real, d_fake, g, g
  std::uint64_t iterations = 3;
  std::int64_t batch_credits = 16;
  bool overlap = true;
  bool idle = false;  // the replica has no micro-batches; others make up the whole
  std::optional<pipeline::ReductionFormat> lossy;
  std::uint64_t seed = 1;  // of the play
  // What the Validator finds of the states after the iterations, 30 ms after it is asked. None:
  // nothing stops training early. Else a figure of 1 or less does.
  std::vector<double> figures;
};

// One run of one replica between scripted neighbours.
class Rehearsal {
 public:
  explicit Rehearsal(Setting setting) : setting_(std::move(setting)) {
    options_ = toy_.context().options;
    if (!setting_.schedule.empty()) options_.schedule = setting_.schedule;
    options_.lossy = setting_.lossy;
    if (!setting_.figures.empty()) {
      options_.stop = pipeline::StoppingOptions{.figure = "merit", .target = 1.0};
    }
    state_ = std::make_shared<const pipeline::TrainingState>(
        pipeline::initial_state(toy_.context().gan, options_, "test", {}));
  }

  // Told of every header before it is given back; false keeps it.
  std::function<bool(runtime::Context&, pipeline::StepHeader&)> on_header;
  // May change a bucket's sums before they are given back.
  std::function<void(const BucketMessage&, runtime::Buffer&)> on_sums;
  // Told of every line of the log when it is new.
  std::function<void(runtime::Context&, const std::string&)> on_line;
  // False: the loader does not send this iteration yet.
  std::function<bool(std::uint64_t)> may_load;

  void run() {
    play_.actor("coordinator", coordinator()).actor("loader", loader());
    play_.actor("validator", validator());
    play_.actor("reducer", reducer()).actor("replica.0", [this] {
      ReplicaOptions options;
      options.section.threads = 2;
      options.section.overlap = setting_.overlap;
      options.validator.every = {config::Every::Unit::kIterations, 1};
      return std::make_unique<Replica>(
          options, TrainingContext{toy_.context().gan, toy_.context().backend, options_});
    });
    constexpr auto kData = runtime::Lane::kData;
    play_.link("loader", "batches", "replica.0", "batches", kData, setting_.batch_credits);
    play_.link("replica.0", "contributions", "reducer", "contributions");
    play_.link("reducer", "reduced", "replica.0", "reduced", kData, 8, 1);
    end = play_.run(setting_.seed);
  }

  std::uint64_t steps() const { return setting_.iterations * options_.schedule.size(); }
  // Where this line stands in the log; behind all when it does not.
  std::ptrdiff_t place(const std::string& line) const {
    return std::find(log.begin(), log.end(), line) - log.begin();
  }
  bool in_order(const std::string& first, const std::string& second) const {
    return place(first) < place(second) && place(second) < std::ssize(log);
  }
  // Whether all of step `next` was contributed before the step in front of it was reduced.
  bool went_ahead(std::uint64_t next) const {
    return in_order(fmt::format("bucket {}.0", next), answer(next - 1));
  }
  // When the step was reduced for good.
  std::string answer(std::uint64_t step) const {
    const std::string second = fmt::format("answer {}.1", step);
    return place(second) < std::ssize(log) ? second : fmt::format("answer {}.0", step);
  }
  // Spans of that name and step, from the trace.
  std::vector<runtime::TraceRecord> spans(const std::string& name, std::uint64_t step) const {
    std::vector<runtime::TraceRecord> found;
    for (const runtime::TraceRecord& record : trace.records) {
      if (trace.names[record.name] == name && record.argument == static_cast<std::int64_t>(step)) {
        found.push_back(record);
      }
    }
    return found;
  }
  // Whether a span of one name lies in one of the other, and ends before that does.
  bool overlaps(const std::string& inner, std::uint64_t inner_step, const std::string& outer,
                std::uint64_t outer_step) const {
    for (const auto& a : spans(inner, inner_step)) {
      for (const auto& b : spans(outer, outer_step)) {
        if (a.start >= b.start && a.end < b.end) return true;
      }
    }
    return false;
  }

  runtime::NodeEnd end;
  std::vector<std::string> log;  // "bucket 3.0", "header 3.0", "answer 3.0": step and attempt
  std::map<std::uint64_t, runtime::Hash128> hashes;  // of the state before the step
  std::optional<ReplicaEnd> report;
  runtime::TraceSnapshot trace;  // of the replica, when it reported
  std::int64_t batches_sent = 0;
  const pipeline::TrainingOptions& options() const { return options_; }
  StatePointer initial() const { return state_; }
  void stop(runtime::Context& context) {
    context.send_control("replica.0", runtime::Message::of(StopTraining{}));
  }

 private:
  // For two members when the other one has all micro-batches.
  ViewPointer view() const {
    pipeline::View view = *view_of(setting_.idle ? 2 : 1, options_.micro_batches);
    if (setting_.idle) view.owners.assign(view.owners.size(), 1);
    return std::make_shared<const pipeline::View>(std::move(view));
  }

  void note(runtime::Context& context, const std::string& line) {
    log.push_back(line);
    if (on_line) on_line(context, line);
  }

  runtime::Script coordinator() {
    runtime::Script script;
    script.start = [this](runtime::Context& context) {
      context.send_control("replica.0", runtime::Message::of(BeginTraining{state_}));
      context.send_control("reducer", runtime::Message::of(ViewMessage{view()}));
      context.after(std::chrono::seconds(60));
    };
    script.timer = [](runtime::Context& context, runtime::TimerId) { context.finish(); };
    script.receive = [this](runtime::Context& context, const runtime::Message& message) {
      const auto* body = message.as<ReplicaEnd>();
      if (body == nullptr) return;
      report = *body;
      for (const runtime::ActorTrace& actor : play_.node().traces()) {
        if (actor.name == "replica.0") trace = actor.trace;
      }
      context.finish();
    };
    return script;
  }

  runtime::Script validator() {
    runtime::Script script;
    script.receive = [this](runtime::Context& context, const runtime::Message& message) {
      const auto* asked = message.as<FigureAsked>();
      ASSERT_NE(asked, nullptr);
      note(context, fmt::format("asked {}", asked->step));
      asked_ = asked->step;
      context.after(std::chrono::milliseconds(30));
    };
    script.timer = [this](runtime::Context& context, runtime::TimerId) {
      note(context, fmt::format("found {}", asked_));
      const double distance = setting_.figures.at(asked_ / options_.schedule.size() - 1);
      context.send_control("replica.0", runtime::Message::of(FigureFound{asked_, distance}));
    };
    return script;
  }

  runtime::Message next_batch() {
    const std::uint64_t iteration = next_batch_ / options_.micro_batches;
    const auto micro_batch = static_cast<std::uint32_t>(next_batch_ % options_.micro_batches);
    const std::size_t events = options_.micro_batch;
    runtime::Buffer images = runtime::Buffer::allocate(events * 64 * sizeof(float));
    runtime::Buffer conditions = runtime::Buffer::allocate(3 * events * sizeof(float));
    runtime::Buffer ids = runtime::Buffer::zeroed(events * sizeof(std::uint64_t));
    const runtime::RandomPosition where{
        .seed = 5, .micro_batch = micro_batch, .iteration = static_cast<std::uint32_t>(iteration)};
    std::uint32_t number = 0;
    for (float& cell : images.mutable_as<float>()) {
      cell = static_cast<float>(runtime::random_uniform(where, number++));
    }
    for (float& value : conditions.mutable_as<float>()) {
      value = static_cast<float>(1.0 + runtime::random_uniform(where, number++));
    }
    return runtime::Message::of(BatchMessage{iteration, micro_batch, options_.micro_batch, feed_},
                                {images, conditions, ids});
  }

  void load(runtime::Context& context) {
    while (feed_ > 0 && !loaded_) {
      if (!told_end_) {
        told_end_ = context.send("batches", runtime::Message::of(EndOfData{setting_.iterations}));
        loaded_ = told_end_ && setting_.idle;
        if (!told_end_) return;
        continue;
      }
      if (may_load && !may_load(next_batch_ / options_.micro_batches)) {
        context.after(std::chrono::milliseconds(1));
        return;
      }
      runtime::Message message = next_batch();
      if (!context.send("batches", message)) return;
      ++batches_sent;
      loaded_ = ++next_batch_ == setting_.iterations * options_.micro_batches;
    }
  }

  runtime::Script loader() {
    runtime::Script script;
    script.receive = [this](runtime::Context& context, const runtime::Message& message) {
      const auto* feed = message.as<Feed>();
      ASSERT_NE(feed, nullptr);
      EXPECT_EQ(feed->iteration, 0U);
      EXPECT_TRUE(feed->missing.empty());
      feed_ = feed->number;
      load(context);
    };
    script.credit_returned = [this](runtime::Context& context, std::string_view) { load(context); };
    script.timer = [this](runtime::Context& context, runtime::TimerId) { load(context); };
    return script;
  }

  void contribution(runtime::Context& context, runtime::Message message) {
    if (const auto* bucket = message.as<BucketMessage>()) {
      EXPECT_EQ(bucket->view, kFirstView);
      note(context, fmt::format("bucket {}.{}", bucket->step, bucket->attempt));
      if (on_sums) {
        runtime::Buffer sums = runtime::Buffer::copy_of(message.payloads().front().bytes());
        on_sums(*bucket, sums);
        message = runtime::Message::of(BucketMessage(*bucket), {std::move(sums)});
      }
      context.send("reduced", message);
    } else if (message.as<ViewMessage>() != nullptr) {
      context.send("reduced", message);
    } else if (const auto* body = message.as<HeaderMessage>()) {
      EXPECT_EQ(body->view, kFirstView);
      pipeline::StepHeader header = body->header;
      note(context, fmt::format("header {}.{}", header.step, header.attempt));
      hashes[header.step] = header.state_minimum;
      EXPECT_EQ(header.state_minimum, header.state_maximum);
      if (on_header && !on_header(context, header)) return;
      headers_.push_back(std::move(header));
      context.after(kReduction);
    }
  }

  runtime::Script reducer() {
    runtime::Script script;
    script.receive = [this](runtime::Context& context, runtime::Message message) {
      contribution(context, std::move(message));
    };
    script.timer = [this](runtime::Context& context, runtime::TimerId) {
      const pipeline::StepHeader header = headers_.front();
      headers_.pop_front();
      note(context, fmt::format("answer {}.{}", header.step, header.attempt));
      context.send("reduced", runtime::Message::of(HeaderMessage{header}));
    };
    return script;
  }

  Setting setting_;
  Toy toy_;
  pipeline::TrainingOptions options_;
  StatePointer state_;
  std::uint32_t feed_ = 0;  // 0: none was asked for
  std::uint64_t next_batch_ = 0;
  bool told_end_ = false, loaded_ = false;
  std::deque<pipeline::StepHeader> headers_;
  std::uint64_t asked_ = 0;  // for the figure before this step
  Play play_;
};

}  // namespace troupe::actors
