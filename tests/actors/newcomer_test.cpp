#include "actors/newcomer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/steps/sum_layout.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using testing::HasSubstr;

// A newcomer with the toy's state at iteration 3, whose next step is 12.
class NewcomerOfToy : public testing::Test {
 protected:
  NewcomerOfToy() { engine.begin(*toy.state(3)); }

  bool take(std::uint64_t step, std::int64_t begin, std::int64_t end) {
    const BucketMessage body{step, 0, 0, begin, end, pipeline::SumKind::kInt64, {}};
    return newcomer.take_bucket(
        body, Buffer::zeroed(static_cast<std::size_t>(end - begin) * sizeof(std::int64_t)), engine);
  }
  pipeline::StepHeader header(std::uint64_t step) const {
    pipeline::StepHeader header;
    header.step = step;
    header.micro_batches = toy.context().options.micro_batches;
    header.events = toy.context().options.events_in(0);
    header.state_minimum = header.state_maximum = engine.state_hash();
    return header;
  }

  Toy toy;
  StepEngine engine{{}, toy.context()};
  Newcomer newcomer{toy.context()};
  const std::int64_t elements =
      pipeline::sum_layout(toy.context().gan.contributions(toy.context().options.schedule[0]),
                           pipeline::SumKind::kInt64)
          .elements;
};

TEST_F(NewcomerOfToy, MakesARecordOfTheSumsThatItIsGiven) {
  EXPECT_FALSE(newcomer.expects(header(12), engine)) << "before any sums";
  EXPECT_TRUE(take(12, 0, 2));
  EXPECT_TRUE(take(12, 2, elements));
  ASSERT_TRUE(newcomer.expects(header(12), engine));
  const auto record = newcomer.complete(header(12), engine);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->header, header(12));
  EXPECT_EQ(record->scales, engine.state().scales[0]);
  EXPECT_EQ(newcomer.steps(), 1U);
  EXPECT_FALSE(newcomer.expects(header(12), engine)) << "another step begins without sums";
}

TEST_F(NewcomerOfToy, RefusesWhatIsNotOfItsNextStep) {
  EXPECT_FALSE(take(13, 0, 2));
  EXPECT_FALSE(take(12, 0, elements + 1));
  EXPECT_TRUE(take(12, 0, elements));
  EXPECT_FALSE(newcomer.expects(header(13), engine));
  pipeline::StepHeader flagged = header(12), of_others = header(12), of_more = header(12);
  flagged.flagged = true;
  ++of_others.micro_batches;
  ++of_more.events;
  EXPECT_FALSE(newcomer.expects(flagged, engine));
  EXPECT_FALSE(newcomer.expects(of_others, engine));
  EXPECT_FALSE(newcomer.expects(of_more, engine));
  EXPECT_TRUE(newcomer.expects(header(12), engine));
}

TEST_F(NewcomerOfToy, StateThatIsNotThatOfTheOthersIsNoticedBeforeAnythingIsApplied) {
  EXPECT_TRUE(take(12, 0, elements));
  pipeline::StepHeader other = header(12);
  other.state_maximum = {1, 2};
  const auto record = newcomer.complete(other, engine);
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.error().kind, runtime::ErrorKind::kDiverged);
  EXPECT_THAT(record.error().message, HasSubstr("the state before step 12 is"));
  EXPECT_EQ(newcomer.steps(), 0U);
}

}  // namespace
}  // namespace troupe::actors
