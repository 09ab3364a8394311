#include "actors/flight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "tests/training/alone.h"

namespace troupe::actors {
namespace {

using pipeline::IterationShare;
using pipeline::StepShare;
using runtime::Buffer;
using runtime::Message;
using training_test::Alone;
using training_test::zoo_topology;

constexpr runtime::TimePoint kNow = std::chrono::seconds(3);

using Messages = std::deque<Message>;

Flight::Post into(Messages& out) {
  return [&out](Message message) { out.push_back(std::move(message)); };
}

// One step of the toy, by one thread, in buckets of 256 bytes, for two members.
class FlightRehearsal {
 public:
  explicit FlightRehearsal(const std::string& reduction)
      : alone_(zoo_topology("toy", {"actors.reducer.reduction=" + reduction}),
               model::make_cpu_backend()),
        team_(1),
        computer_(alone_.gan(), alone_.options(), team_),
        state_(alone_.initial_state()) {}

  // For all micro-batches; as a witness, for all but the last, which is compared.
  Flight flight(bool witness = false) const {
    std::vector<pipeline::MicroBatch> micro_batches;
    for (std::uint32_t i = 0; i < alone_.options().micro_batches; ++i) {
      micro_batches.push_back(alone_.micro_batch(i, i));
    }
    std::optional<pipeline::SpotCheck> check;
    if (witness) check = pipeline::SpotCheck{0, micro_batches.back().index};
    return {
        StepShare(alone_.gan(), alone_.options(),
                  std::make_shared<IterationShare>(0, std::move(micro_batches), check, witness), 0),
        256, view()};
  }
  // One turn, as compute() but for that.
  bool compute_once(Flight& flight, Messages& out) {
    return computer_.compute(state_, flight.share(), [&](std::int64_t element) {
      flight.begin(0, state_.scales[0], kNow);
      flight.add_buckets(element, into(out));
    });
  }
  // Computes all of it; what is final goes out at once.
  Messages compute(Flight& flight) {
    Messages out;
    while (compute_once(flight, out)) {
    }
    EXPECT_FALSE(out.empty());
    flight.add_buckets(0, into(out));
    return out;
  }
  const std::vector<std::int16_t>& scales() const { return state_.scales[0]; }
  static pipeline::View view(std::uint32_t members = 2, std::uint32_t number = 1) {
    pipeline::View view;
    view.id = {1, number};
    for (std::uint32_t i = 0; i < members; ++i) view.ring.push_back(i);
    return view;
  }

 private:
  Alone alone_;
  runtime::ThreadTeam team_;
  pipeline::StepComputer computer_;
  pipeline::TrainingState state_;
};

const BucketMessage& body_of(const Message& message) { return *message.as<BucketMessage>(); }

// The reducer of one replica gives back what it gets.
bool give_back(Flight& flight, const Message& message) {
  return flight.take(body_of(message), message.payloads().front());
}

class FlightOf : public testing::TestWithParam<const char*> {};

TEST_P(FlightOf, BucketsThatLeaveEarlyHoldWhatOnesThatLeaveAtTheEndDo) {
  FlightRehearsal rehearsal(GetParam());
  Flight early = rehearsal.flight(), late = rehearsal.flight();
  const Messages some = rehearsal.compute(early);
  ASSERT_GT(some.size(), 1U);
  EXPECT_TRUE(early.contributed());
  rehearsal.compute(late);
  Messages all;
  late.begin(1, rehearsal.scales(), kNow);
  late.add_buckets(0, into(all));
  ASSERT_EQ(some.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const BucketMessage &one = body_of(some[i]), &other = body_of(all[i]);
    EXPECT_EQ(one.bucket, i);
    EXPECT_EQ(one.begin, other.begin);
    EXPECT_EQ(one.kind, other.kind);
    EXPECT_TRUE(std::ranges::equal(some[i].payloads()[0].bytes(), all[i].payloads()[0].bytes()));
    EXPECT_TRUE(give_back(early, some[i])) << i;
    EXPECT_FALSE(give_back(early, all[i])) << "of an attempt that was not begun";
  }
  early.add_header({1, 2}, {}, {}, into(all));
  late.add_header({1, 2}, {}, {}, into(all));
  pipeline::StepHeader one = early.record().header;
  EXPECT_EQ(one.attempt, 0U);
  one.attempt = 1;
  EXPECT_EQ(one, late.record().header);
  EXPECT_GT(one.events, 0U);
}

INSTANTIATE_TEST_SUITE_P(Formats, FlightOf, testing::Values("exact", "fp32", "int8"));

TEST(Flight, OfAWitnessIsContributedWhenWhatIsComparedIsComputed) {
  FlightRehearsal rehearsal("exact");
  Flight flight = rehearsal.flight(true);
  Messages out;
  while (flight.share().computed() < flight.share().own()) rehearsal.compute_once(flight, out);
  const std::size_t buckets = out.size();
  ASSERT_GT(buckets, 0U);
  flight.add_buckets(0, into(out));
  EXPECT_EQ(out.size(), buckets) << "all are out";
  EXPECT_FALSE(flight.contributed()) << "and its part of the comparison is missing";
  EXPECT_TRUE(rehearsal.compute_once(flight, out));
  flight.add_buckets(0, into(out));
  EXPECT_TRUE(flight.contributed());
  EXPECT_EQ(out.size(), buckets);
  flight.add_header({1, 2}, {}, {}, into(out));
  EXPECT_LE(flight.record().header.check_minimum, flight.record().header.check_maximum);
}

TEST(Flight, TakesBucketsBackBeforeAllAreOut) {
  FlightRehearsal rehearsal("exact");
  Flight flight = rehearsal.flight();
  rehearsal.compute(flight);
  flight.begin(1, rehearsal.scales(), kNow);
  Messages out;
  flight.add_buckets(flight.share().sums().elements - 1, into(out));
  ASSERT_TRUE(out.empty()) << "no bucket is so small";
  flight.add_buckets(1, into(out));
  EXPECT_FALSE(flight.contributed());
  ASSERT_FALSE(out.empty());
  EXPECT_TRUE(give_back(flight, out.front()));
  EXPECT_EQ(flight.attempt(), 1U);
  const std::size_t before = out.size();
  flight.add_buckets(0, into(out));
  EXPECT_EQ(out.size(), before + 1);
  EXPECT_TRUE(flight.contributed());
}

TEST_P(FlightOf, AnotherViewGoesOutAgainAsItIsCutForThatOne) {
  FlightRehearsal rehearsal(GetParam());
  Flight flight = rehearsal.flight(), fresh = rehearsal.flight();
  const Messages before = rehearsal.compute(flight);
  Messages headers;
  flight.add_header({1, 2}, {}, {}, into(headers));
  EXPECT_EQ(headers.front().as<HeaderMessage>()->view, FlightRehearsal::view().id);
  for (const Message& message : before)
    EXPECT_EQ(body_of(message).view, FlightRehearsal::view().id);
  const pipeline::View later = FlightRehearsal::view(1, 2);
  flight.restart(later);
  EXPECT_FALSE(flight.contributed());
  EXPECT_FALSE(flight.announced());
  EXPECT_FALSE(give_back(flight, before.front())) << "nothing was asked for in this View";
  fresh.restart(later);
  rehearsal.compute(fresh);
  Messages again, expected;
  flight.begin(0, rehearsal.scales(), kNow);
  flight.add_buckets(0, into(again));
  EXPECT_TRUE(flight.contributed()) << "nothing is computed anew";
  flight.add_header({1, 2}, {}, {}, into(again));
  fresh.begin(1, rehearsal.scales(), kNow);
  fresh.add_buckets(0, into(expected));
  ASSERT_EQ(again.size(), expected.size() + 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const BucketMessage &one = body_of(again[i]), &other = body_of(expected[i]);
    EXPECT_EQ(one.view, later.id);
    EXPECT_EQ(one.bucket, i);
    EXPECT_EQ(one.begin, other.begin);
    EXPECT_EQ(one.end, other.end);
    EXPECT_TRUE(
        std::ranges::equal(again[i].payloads()[0].bytes(), expected[i].payloads()[0].bytes()));
  }
  EXPECT_EQ(again.back().as<HeaderMessage>()->view, later.id);
}

TEST(Flight, RefusesWhatIsNoneOfItsBuckets) {
  FlightRehearsal rehearsal("exact");
  Flight flight = rehearsal.flight();
  const Messages out = rehearsal.compute(flight);
  const Buffer& sums = out.front().payloads().front();
  BucketMessage body = body_of(out.front());
  ++body.step;
  EXPECT_FALSE(flight.take(body, sums));
  body = body_of(out.front());
  EXPECT_FALSE(flight.take(body, sums.slice(0, sums.size() - 8))) << "too short";
  body.kind = pipeline::SumKind::kFloat32;
  EXPECT_FALSE(flight.take(body, sums));
  body = body_of(out.front());
  ++body.begin;
  ++body.end;
  EXPECT_FALSE(flight.take(body, sums)) << "beyond the end";
}

TEST(Flight, SendsNothingThatIsNotComputed) {
  FlightRehearsal rehearsal("exact");
  Flight flight = rehearsal.flight();
  flight.begin(0, rehearsal.scales(), kNow);
  Messages out;
  EXPECT_DEATH(flight.add_buckets(0, into(out)), "the step is not computed");
  EXPECT_DEATH(flight.add_header({}, {}, {}, into(out)), "the header goes last");
}

}  // namespace
}  // namespace troupe::actors
