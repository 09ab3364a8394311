// Rings that lose members: what those that are left get of every step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/reducer.h"
#include "pipeline/steps/buckets.h"
#include "pipeline/steps/membership.h"
#include "runtime/base/random.h"
#include "tests/actors/theatre.h"
#include "tests/support/stride.h"

namespace troupe::actors {
namespace {

using pipeline::View;
using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::NodeEnd;

constexpr std::uint64_t kFirstStep = 3;

// What all contributors agree upon.
struct Drama {
  std::uint32_t members = 2;
  std::uint32_t replicas = 1;  // of each member
  bool ahead = false;          // contribute a step's buckets before the one before is summed
  std::uint64_t seed = 0;
  std::uint64_t steps = 8;
  std::uint32_t micro_batches = 7;

  std::uint64_t end() const { return kFirstStep + steps; }
  static std::int64_t elements(std::uint64_t step) {
    // Some steps have fewer buckets than there are members.
    return std::vector<std::int64_t>{900, 30, 1700}[step % 3];
  }
  static bool repeated(std::uint64_t step) { return step % 4 == 1; }
  static std::int64_t value(std::uint64_t step, std::uint32_t attempt, std::uint32_t micro_batch,
                            std::int64_t element) {
    using runtime::mix64;
    const std::uint64_t drawn =
        mix64(mix64(mix64(step * 2 + attempt) ^ micro_batch) ^ static_cast<std::uint64_t>(element));
    return static_cast<std::int64_t>(drawn) >> 8;
  }
  std::int64_t sum(std::uint64_t step, std::uint32_t attempt, std::int64_t element) const {
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < micro_batches; ++i) sum += value(step, attempt, i, element);
    return sum;
  }
};

// What became of a play.
struct Told {
  NodeEnd end;
  std::vector<std::string> faults;
  int views = 0;     // after the first
  int laggards = 0;  // members that lacked the newest step
};

// Plays a replica, and notes what it was given wrongly.
class Contributor final : public runtime::Actor {
 public:
  Contributor(const Drama& drama, std::uint32_t number, Told& told)
      : drama_(drama), number_(number), told_(told) {}

  void receive(Context& context, Message message) override {
    if (const auto* view = message.as<ViewMessage>()) {
      begin(*view->view);
    } else if (const auto* bucket = message.as<BucketMessage>()) {
      take(*bucket, message.payloads().front());
    } else if (const auto* header = message.as<HeaderMessage>()) {
      take(header->header);
    }
    flush(context);
    // The moment at which something may happen.
    context.send_control("coordinator", Message::of(CheckpointRequest{}));
    if (step_ == drama_.end() && !std::exchange(done_, true)) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
    }
  }

  void credit_returned(Context& context, std::string_view) override { flush(context); }

 private:
  void fault(const std::string& what) {
    told_.faults.push_back(fmt::format("replica.{} at step {}: {}", number_, step_, what));
  }

  void begin(const View& view) {
    if (view.first_step != step_) fault(fmt::format("a View from step {} on", view.first_step));
    if (view_ != nullptr && view.id <= view_->id) fault("a View once more");
    view_ = std::make_shared<const View>(view);
    sums_.clear();
    out_.clear();
    attempt_ = 0;
    contribute(step_, 0);
    say_header();
    go_ahead();
  }

  void contribute(std::uint64_t step, std::uint32_t attempt) {
    if (step >= drama_.end()) return;
    std::uint32_t number = 0;
    const auto members = static_cast<std::uint32_t>(view_->ring.size());
    for (const pipeline::Bucket& bucket :
         pipeline::make_buckets(Drama::elements(step), 2 << 10, members)) {
      Buffer part = Buffer::zeroed(bucket.bytes());
      const auto values = part.mutable_as<std::int64_t>();
      for (std::uint32_t i = 0; i < drama_.micro_batches; ++i) {
        if (view_->owners[i] != number_) continue;
        for (std::size_t k = 0; k < values.size(); ++k) {
          const auto element = bucket.offset + static_cast<std::int64_t>(k);
          values[k] += Drama::value(step, attempt, i, element);
        }
      }
      const BucketMessage body{step,         attempt, number++, bucket.offset,
                               bucket.end(), false,   view_->id};
      out_.push_back(Message::of(BucketMessage(body), {part}));
    }
  }

  void say_header() {
    if (step_ >= drama_.end()) return;
    HeaderMessage message;
    message.view = view_->id;
    message.header.step = step_;
    message.header.attempt = attempt_;
    message.header.exponents = {0};
    for (std::uint32_t i = 0; i < drama_.micro_batches; ++i) {
      if (view_->owners[i] != number_) continue;
      ++message.header.micro_batches;
      message.header.events += i;
      message.header.flagged |= attempt_ == 0 && Drama::repeated(step_) && i == 0;
    }
    out_.push_back(Message::of(std::move(message)));
  }

  void go_ahead() {
    ahead_ = drama_.ahead;
    if (ahead_) contribute(step_ + 1, 0);
  }

  void take(const BucketMessage& body, const Buffer& sums) {
    if (body.step < step_) return fault(fmt::format("a sum of step {}", body.step));
    auto& got = sums_[{body.step, body.attempt}];
    const auto values = sums.as<std::int64_t>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      got[body.begin + static_cast<std::int64_t>(i)] = values[i];
    }
  }

  void take(const pipeline::StepHeader& header) {
    if (header.step != step_) return fault(fmt::format("the header of step {}", header.step));
    if (header.attempt != attempt_) fault(fmt::format("of attempt {}", header.attempt));
    const auto got = std::exchange(sums_[{step_, header.attempt}], {});
    bool right = std::ssize(got) == Drama::elements(step_);
    for (const auto& [element, sum] : got) {
      right &= sum == drama_.sum(step_, header.attempt, element);
    }
    if (!right) fault("other sums than there are");
    if (header.flagged != (attempt_ == 0 && Drama::repeated(step_))) fault("flagged wrongly");
    if (header.flagged) {
      attempt_ = 1;
      contribute(step_, 1);
      return say_header();
    }
    ++step_;
    attempt_ = 0;
    if (!ahead_) contribute(step_, 0);
    say_header();
    go_ahead();
  }

  void flush(Context& context) {
    while (!out_.empty() && context.send("contributions", out_.front())) out_.pop_front();
  }

  const Drama drama_;
  const std::uint32_t number_;
  Told& told_;
  ViewPointer view_;
  std::uint64_t step_ = kFirstStep;
  std::uint32_t attempt_ = 0;
  bool ahead_ = false;  // the buckets of the next step are out
  bool done_ = false;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::map<std::int64_t, std::int64_t>> sums_;
  std::deque<Message> out_;
};

// Its node is lost when it is told to stop: what is said to it then goes nowhere.
class MortalReducer final : public runtime::Actor {
 public:
  explicit MortalReducer(const ReducerOptions& options) : reducer_(options) {}

  void start(Context& context) override { reducer_.start(context); }
  void receive(Context& context, Message message) override {
    dead_ |= message.as<StopTraining>() != nullptr;
    if (!dead_) reducer_.receive(context, std::move(message));
  }
  void credit_returned(Context& context, std::string_view port) override {
    if (!dead_) reducer_.credit_returned(context, port);
  }
  std::string waiting_for() const override { return dead_ ? "nothing" : reducer_.waiting_for(); }

 private:
  Reducer reducer_;
  bool dead_ = false;
};

std::string name(const char* kind, std::uint32_t number) {
  return fmt::format("{}.{}", kind, number);
}

// Loses all members but one, each at a moment that the seed draws.
class Director final : public runtime::Actor {
 public:
  Director(const Drama& drama, Told& told)
      : drama_(drama), told_(told), membership_(options_of(drama)) {
    std::vector<std::uint32_t> members(drama.members);
    for (std::uint32_t i = 0; i < drama.members; ++i) members[i] = i;
    for (std::uint32_t left = drama.members; left > 1; --left) {
      const auto victim = members.begin() + below(left);
      // About as many moments as all steps have.
      victims_.emplace(below(drama.members * drama.replicas * 45), *victim);
      members.erase(victim);
    }
  }

  void start(Context& context) override { tell(context, membership_.begin(kFirstStep)); }

  void receive(Context& context, Message message) override {
    if (const auto* halted = message.as<Halted>()) {
      take(context, *halted, message.sender_name());
    } else if (message.as<LastStateDone>() != nullptr) {
      done_.insert(std::string(message.sender_name()));
    } else if (message.as<CheckpointRequest>() != nullptr) {
      ++moment_;
    }
    for (; !victims_.empty() && victims_.begin()->first <= moment_;
         victims_.erase(victims_.begin())) {
      lose(context, victims_.begin()->second);
    }
    if (all_done() && !std::exchange(finished_, true)) context.finish();
  }

  std::string waiting_for() const override { return "contributors"; }

 private:
  static pipeline::MembershipOptions options_of(const Drama& drama) {
    pipeline::MembershipOptions options;
    options.replicas_per_member = drama.replicas;
    options.weights.assign(std::size_t{drama.members} * drama.replicas, 1);
    options.micro_batches = drama.micro_batches;
    options.ring.clear();
    for (std::uint32_t i = 0; i < drama.members; ++i) options.ring.push_back(i);
    if (drama.seed % 2 == 1) std::ranges::reverse(options.ring);
    return options;
  }
  std::uint32_t below(std::uint32_t bound) {
    return runtime::random_word({.seed = drama_.seed, .micro_batch = drama_.members}, drawn_++) %
           bound;
  }

  void tell(Context& context, const View& view) const {
    const auto shared = std::make_shared<const View>(view);
    for (const std::uint32_t member : view.ring) {
      context.send_control(name("reducer", member), Message::of(ViewMessage{shared}));
    }
  }

  void lose(Context& context, std::uint32_t member) {
    if (all_done()) return;
    context.send_control(name("reducer", member), Message::of(StopTraining{}));
    membership_.lose(member);
    for (const std::uint32_t other : membership_.present()) {
      context.send_control(name("reducer", other), Message::of(Halt{*membership_.change()}));
    }
  }

  void take(Context& context, const Halted& halted, std::string_view reducer) {
    const auto member =
        static_cast<std::uint32_t>(std::stoul(std::string(reducer.substr(reducer.find('.') + 1))));
    const auto answer = membership_.halted(member, halted.change, halted.next_step);
    if (!answer.ok()) return context.fail(answer.error());
    if (!answer->view) return;
    ++told_.views;
    for (const std::uint32_t each : answer->view->ring) {
      told_.laggards += answer->view->lags(each) ? 1 : 0;
    }
    tell(context, *answer->view);
  }

  bool all_done() const {
    const auto is_done = [&](std::uint32_t member) {
      for (std::uint32_t i = 0; i < drama_.replicas; ++i) {
        if (!done_.contains(name("replica", member * drama_.replicas + i))) return false;
      }
      return true;
    };
    return std::ranges::all_of(membership_.present(), is_done);
  }

  const Drama drama_;
  Told& told_;
  std::uint32_t drawn_ = 0;
  pipeline::Membership membership_;
  std::multimap<std::uint32_t, std::uint32_t> victims_;  // by their moments
  std::uint32_t moment_ = 0;
  std::set<std::string> done_;
  bool finished_ = false;
};

Told play(const Drama& drama) {
  Told told;
  Play play;
  play.actor("coordinator", [&] { return std::make_unique<Director>(drama, told); });
  for (std::uint32_t member = 0; member < drama.members; ++member) {
    ReducerOptions options;
    options.first_replica = member * drama.replicas;
    options.replicas = drama.replicas;
    options.member = member;
    options.micro_batches = drama.micro_batches;
    options.events = std::uint64_t{drama.micro_batches} * (drama.micro_batches - 1) / 2;
    play.actor(name("reducer", member),
               [options] { return std::make_unique<MortalReducer>(options); });
    for (std::uint32_t i = 0; i < drama.replicas; ++i) {
      const std::uint32_t number = options.first_replica + i;
      play.actor(name("replica", number),
                 [&, number] { return std::make_unique<Contributor>(drama, number, told); });
      play.link(name("replica", number), "contributions", name("reducer", member), "contributions");
      play.link(name("reducer", member), name("reduced", number), name("replica", number),
                "reduced", runtime::Lane::kData, 8, 1);
    }
  }
  play.link_reducers(drama.members);
  told.end = play.run(drama.seed);
  return told;
}

TEST(ReducerView, SurvivorsGetEveryStepsSumOnceAndInOrderWhoeverIsLostWhenever) {
  std::size_t views = 0, laggards = 0;
  for (const bool ahead : {false, true}) {
    for (std::uint32_t members = 2; members <= 5; ++members) {
      for (const std::uint32_t replicas : {1U, 2U}) {
        for (std::uint64_t seed = 0; seed < 40; seed += stride(5)) {
          const Told told = play({members, replicas, ahead, seed});
          const std::string which = fmt::format("{} members of {} replicas, seed {}{}", members,
                                                replicas, seed, ahead ? ", ahead" : "");
          ASSERT_FALSE(told.end.error) << which << ": " << told.end.error->message;
          ASSERT_THAT(told.faults, testing::IsEmpty()) << which;
          views += told.views;
          laggards += told.laggards;
        }
      }
    }
  }
  EXPECT_GT(views, 600 / stride(5));
  EXPECT_GT(laggards, 50 / stride(5));
}

}  // namespace
}  // namespace troupe::actors
