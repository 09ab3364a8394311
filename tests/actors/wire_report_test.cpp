#include "actors/message_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/actors/wire_parts.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::TimePoint;
using telemetry::ActorSample;
using telemetry::LinkSample;
using testing::HasSubstr;

NodeReport example() {
  NodeReport report;
  report.request = 7;
  report.sent = TimePoint(-5);
  report.wants = Probe::Wants::kWaits;
  report.answered = TimePoint::max();
  report.sample = {"member.1", 12.25, 1 << 20, 300, 400, {}, {}, {}};
  report.sample.devices = {{"cuda:0", "card", 5, -1, 9, 0.5, -1.0, 40.0}};
  report.sample.actors = {{"replica.1", "running", 12}, {"reducer.1", "waiting", -1}};
  report.sample.links = {{"replica.1", "reducer.1", "contributions", 9, 1, 8, 0, 2}};
  return report;
}

// A node may have more than a report has room for: the others are not told.
TEST(WireReport, NodesOfAnySizeAreToldAsFarAsThereIsRoom) {
  NodeReport report = example();
  report.sample.node = std::string(1000, 'n');
  report.sample.actors.assign(2 * telemetry::kMostSampleActors, ActorSample{"a", "waiting", 1});
  LinkSample link = report.sample.links.front();
  link.port = std::string(1000, 'p');
  report.sample.links.assign(2 * telemetry::kMostSampleLinks, link);
  const NodeReport back = round_trip(report);
  EXPECT_EQ(back.sample.node.size(), telemetry::kMostActorName);
  EXPECT_EQ(back.sample.actors.size(), telemetry::kMostSampleActors);
  ASSERT_EQ(back.sample.links.size(), telemetry::kMostSampleLinks);
  EXPECT_EQ(back.sample.links.front().port.size(), telemetry::kMostActorName);
}

TEST(WireReport, WhatNobodyAskedForIsRefused) {
  EXPECT_EQ(problem_of(parts_of(example(), {Buffer::zeroed(8)})), "");
  EXPECT_THAT(problem_of(parts_of(example(), {Buffer::zeroed(8), Buffer::zeroed(8)})),
              HasSubstr("more than was wanted"));
  EXPECT_THAT(problem_of(parts_of(example(), {Buffer::zeroed(NodeReport::kMostContents + 1)})),
              HasSubstr("more than was wanted"));
  EXPECT_NE(problem_of(parts_of(Probe{1, TimePoint(0), static_cast<Probe::Wants>(3)})), "");
}

TEST(WireReport, TimeThatIsNoNumberIsRefused) {
  for (const double wrong :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    NodeReport report = example();
    report.sample.cpu_seconds = wrong;
    EXPECT_THAT(problem_of(parts_of(report)), HasSubstr("no number"));
    report = example();
    report.sample.devices[0].watts = wrong;
    EXPECT_THAT(problem_of(parts_of(report)), HasSubstr("no number"));
  }
}

}  // namespace
}  // namespace troupe::actors
