#include "actors/reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/steps/buckets.h"
#include "pipeline/steps/ring_schedule.h"
#include "runtime/base/random.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Context;
using runtime::ErrorKind;
using runtime::Message;
using runtime::NodeEnd;
using runtime::Script;
using testing::HasSubstr;

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

using Lines = std::vector<std::function<Message()>>;

Message ring_bucket(std::uint64_t step, std::uint32_t number, bool summed, std::int64_t end = 4) {
  return Message::of(RingBucket{{step, 0, number, 0, end, false, kFirstView}, summed, std::nullopt},
                     {Buffer::zeroed(static_cast<std::size_t>(end) * 8)});
}

Message ring_header(std::size_t tensors, bool combined, std::uint32_t micro_batches = 1,
                    std::uint64_t events = 0) {
  RingHeader message;
  message.header.events = events;
  message.header.exponents.resize(tensors);
  message.header.micro_batches = micro_batches;
  message.combined = combined;
  message.view = kFirstView;
  return Message::of(std::move(message));
}

Message own_bucket(std::uint32_t number) {
  return Message::of(BucketMessage{0, 0, number, 0, 4, false, kFirstView}, {Buffer::zeroed(32)});
}

Message own_header() {
  HeaderMessage message;
  message.view = kFirstView;
  message.header.exponents.resize(2);
  message.header.micro_batches = 1;
  return Message::of(std::move(message));
}

// A root that tells the only reducer that it is one of 3.
Script root_of_three(std::uint32_t micro_batches) {
  Script root;
  root.start = [micro_batches](Context& context) {
    context.send_control("reducer", Message::of(ViewMessage{view_of(3, micro_batches)}));
  };
  return root;
}

// The reducer at `position` of 3, when its replica says `own` and the one before it `ring`.
NodeEnd hear(std::uint32_t position, const Lines& own, const Lines& ring) {
  Play play;
  play.actor("coordinator", root_of_three(2));
  ReducerOptions options;
  options.first_replica = position;
  options.micro_batches = 2;
  options.events = 0;
  options.member = position;
  play.actor("reducer", [options] { return std::make_unique<Reducer>(options); });
  Script replica;
  replica.receive = [own](Context& context, const Message& message) {
    if (message.as<ViewMessage>() == nullptr) return;
    for (const auto& line : own) context.send("contributions", line());
  };
  Script before;
  // After the replica has spoken.
  before.start = [](Context& context) { context.after(std::chrono::seconds(1)); };
  before.timer = [ring](Context& context, runtime::TimerId) {
    for (const auto& line : ring) context.send("ring", line());
    context.after(std::chrono::seconds(1));
  };
  play.actor("replica", replica);
  play.actor("before", before);
  play.link("replica", "contributions", "reducer", "contributions");
  play.link("reducer", name("reduced", position), "replica", "reduced", runtime::Lane::kData, 8, 1);
  play.link("before", "ring", "reducer", "ring", runtime::Lane::kData, 8, 1);
  play.link("reducer", name("ring", (position + 1) % 3), "before", "ring", runtime::Lane::kData, 8,
            1);
  return play.run(1);
}

constexpr std::int64_t kLargeElements = 3 * static_cast<std::int64_t>(kMostUnderWay) / 8 / 5;

// Which buckets, of three fifths of kMostUnderWay, a member sends on that begins three of them,
// when so many of the sums come back.
std::vector<std::uint32_t> sent_buckets(int sums_back) {
  std::vector<std::uint32_t> sent;
  Play play;
  play.actor("coordinator", root_of_three(1));
  ReducerOptions options;
  options.member = 1;
  play.actor("reducer", [options] { return std::make_unique<Reducer>(options); });
  // One at a time fits the link.
  auto next = std::make_shared<std::uint32_t>(0);
  const auto contribute = [next](Context& context) {
    const auto part = [next] {
      return Message::of(BucketMessage{0, 0, *next, 0, kLargeElements, false, kFirstView},
                         {Buffer::zeroed(static_cast<std::size_t>(kLargeElements) * 8)});
    };
    while (*next <= 6 && context.send("contributions", part())) *next += 3;
  };
  Script replica;
  replica.receive = [contribute](Context& context, const Message& message) {
    if (message.as<ViewMessage>() != nullptr) contribute(context);
  };
  replica.credit_returned = [contribute](Context& context, std::string_view) {
    contribute(context);
  };
  Script others;
  others.receive = [&sent, sums_back](Context& context, const Message& message) {
    const auto* bucket = message.as<RingBucket>();
    if (bucket == nullptr || bucket->summed) return;
    sent.push_back(bucket->bucket.bucket);
    if (static_cast<int>(sent.size()) > sums_back) return;
    context.send("ring", ring_bucket(0, sent.back(), true, kLargeElements));
  };
  play.actor("replica.0", replica);
  play.actor("others", others);
  play.link("replica.0", "contributions", "reducer", "contributions");
  play.link("reducer", "reduced.0", "replica.0", "reduced", runtime::Lane::kData, 8, 1);
  play.link("others", "ring", "reducer", "ring", runtime::Lane::kData, 8, 1);
  play.link("reducer", "ring.2", "others", "ring", runtime::Lane::kData, 8, 1);
  // Ends stuck, as there is no header.
  (void)play.run(1);
  return sent;
}

TEST(Reducer, BucketsBeyondWhatMayBeUnderWaySetOutAsSumsComeBack) {
  EXPECT_THAT(sent_buckets(0), testing::ElementsAre(0U));
  EXPECT_THAT(sent_buckets(1), testing::ElementsAre(0U, 3U));
  EXPECT_THAT(sent_buckets(3), testing::ElementsAre(0U, 3U, 6U));
}

void expect_refused(const NodeEnd& end, const std::string& what) {
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->kind, ErrorKind::kLostPeers) << end.error->message;
  EXPECT_THAT(end.error->message, HasSubstr("before contributed " + what));
}

TEST(Reducer, PartForTheOneThatBeginsIsRefused) {
  ASSERT_TRUE(pipeline::ring_role(0, 1, 3).begins);
  expect_refused(hear(1, {}, {[] { return ring_bucket(0, 0, false); }}), "bucket 0 out of turn");
}

TEST(Reducer, PartThatCameAlreadyIsRefused) {
  const auto part = [] { return ring_bucket(0, 0, false); };
  expect_refused(hear(2, {}, {part, part}), "bucket 0 out of turn");
}

TEST(Reducer, SumBeforeTheOwnPartHasGoneIntoItIsRefused) {
  expect_refused(hear(2, {}, {[] { return ring_bucket(0, 0, true); }}), "bucket 0 out of turn");
}

TEST(Reducer, SumForItsHomeIsRefused) {
  const Lines own{[] { return own_bucket(0); }};
  expect_refused(
      hear(0, own,
           {[] { return ring_bucket(0, 0, false); }, [] { return ring_bucket(0, 0, true); }}),
      "bucket 0 out of turn");
}

TEST(Reducer, BucketThatNoReplicaHereHasIsRefusedInsteadOfAwaited) {
  const Lines own{[] { return own_bucket(0); }, own_header};
  expect_refused(hear(1, own, {[] { return ring_bucket(0, 4, false); }}), "bucket 4 of 1");
}

TEST(Reducer, BucketCutOtherwiseIsRefused) {
  const Lines own{[] { return own_bucket(0); }};
  expect_refused(hear(0, own, {[] { return ring_bucket(0, 0, false, 3); }}),
                 "bucket 0 cut otherwise");
}

TEST(Reducer, HeadersOutOfTurnOrOfOtherTensorsAreRefused) {
  const Lines own{own_header};
  expect_refused(hear(1, own, {[] { return ring_header(2, false); }}), "a header out of turn");
  expect_refused(hear(0, own, {[] { return ring_header(2, true); }}), "a header out of turn");
  expect_refused(hear(0, own, {[] { return ring_header(3, false); }}),
                 "a header of 3 tensors beside one of 2");
}

TEST(Reducer, CombinedHeaderOfOtherTensorsOrEventsIsRefused) {
  const Lines own{own_header};
  ASSERT_TRUE(pipeline::ring_role(pipeline::kHeaderBucket, 1, 3).begins);
  expect_refused(hear(1, own, {[] { return ring_header(3, true, 2); }}),
                 "a header of 3 tensors beside one of 2");
  expect_refused(hear(1, own, {[] { return ring_header(2, true, 2, 1); }}),
                 "the last of 2 micro-batches of 1 events");
}

TEST(Reducer, StepsThatAreNotDueAreRefused) {
  const Lines own{[] { return own_bucket(0); }};
  expect_refused(hear(1, own, {[] { return ring_bucket(2, 1, false); }}), "step 2 attempt 0");
  expect_refused(
      hear(1, own,
           {[] { return ring_bucket(1, 1, false); }, [] { return ring_bucket(2, 1, false); }}),
      "step 2 attempt 0");
}

TEST(Reducer, HeaderOfOtherMicroBatchesThanAnIterationHasEndsTheRun) {
  const Lines own{own_header};
  expect_refused(hear(0, own, {[] { return ring_header(2, false, 2); }}),
                 "the last of 3 micro-batches of 0 events, where an iteration has 2 of 0");
}

}  // namespace
}  // namespace troupe::actors
