#include "actors/node_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/member.h"
#include "telemetry/trace/trace_bytes.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using runtime::ActorTrace;
using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::Script;
using runtime::TimePoint;
using runtime::TraceRecord;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Wants = Probe::Wants;

NodeChange change(const std::string& node, const std::string& state) {
  NodeChange change;
  change.name = node;
  change.state = state;
  return change;
}

std::vector<Buffer> text(const std::string& words) {
  return {Buffer::copy_of(std::as_bytes(std::span(words)))};
}

NodeReport answer_to(const Probe& probe, TimePoint answered = TimePoint{0}) {
  return {probe.request, probe.sent, probe.wants, answered, {}};
}

std::vector<std::string> names(const NodeAnswers& answers) {
  std::vector<std::string> all;
  for (const auto& answer : answers.answers) all.push_back(answer.node);
  return all;
}

// With two members, and a head that waits for bread.
class Reports : public testing::Test {
 protected:
  Reports() {
    NodeReportsOptions options;
    options.waits = [] { return std::string("  coordinator: waits for bread"); };
    reports_.emplace(std::move(options));
    for (const char* node : {"member.1", "member.0"})
      reports_->take_change(change(node, "running"));
  }
  std::optional<Probe> ask(Wants wants, TimePoint now) {
    return reports_->ask(wants, now, [this](NodeAnswers answers) {
      EXPECT_FALSE(answers_.has_value()) << "answered twice";
      answers_ = std::move(answers);
    });
  }

  std::optional<NodeAnswers> answers_;
  std::optional<NodeReports> reports_;  // answers what is open when it ends
};

TEST_F(Reports, AreCompleteWhenAllMembersHaveAnswered) {
  const auto probe = ask(Wants::kWaits, 10s);
  ASSERT_TRUE(probe.has_value());
  EXPECT_THAT(reports_->members(), ElementsAre("member.0", "member.1"));
  reports_->take("member.1", answer_to(*probe), text("  one"), 10s);
  reports_->take("member.1", answer_to(*probe), text("  again"), 10s);
  EXPECT_FALSE(answers_.has_value());
  reports_->take("member.0", answer_to(*probe), text("  zero"), 10s);
  ASSERT_TRUE(answers_.has_value());
  EXPECT_EQ(text_of(*answers_),
            "head\n  coordinator: waits for bread\nmember.0\n  zero\nmember.1\n  one\n");
}

TEST_F(Reports, NameThoseThatHaveNotAnsweredInTime) {
  const auto probe = ask(Wants::kWaits, 10s);
  reports_->take("member.1", answer_to(*probe), text("  one"), 10s);
  reports_->tend(11999ms);
  EXPECT_FALSE(answers_.has_value());
  reports_->tend(12s);
  ASSERT_TRUE(answers_.has_value());
  EXPECT_THAT(names(*answers_), ElementsAre("head", "member.1"));
  EXPECT_THAT(answers_->missing, ElementsAre("member.0"));
  EXPECT_THAT(text_of(*answers_), HasSubstr("member.0\n  has not answered"));
  reports_->take("member.0", answer_to(*probe), text("late"), 13s);
}

TEST_F(Reports, DoNotWaitForMembersThatAreGone) {
  const auto probe = ask(Wants::kWaits, 10s);
  reports_->take("member.1", answer_to(*probe), text("  one"), 10s);
  reports_->take_change(change("member.0", "dead"));
  ASSERT_TRUE(answers_.has_value());
  EXPECT_THAT(answers_->missing, ElementsAre("member.0"));
  EXPECT_THAT(reports_->members(), ElementsAre("member.1"));
}

TEST_F(Reports, WhoCannotTellIsMissing) {
  const auto probe = ask(Wants::kTrace, 10s);
  reports_->take("member.0", answer_to(*probe), {}, 10s);
  reports_->take("member.1", answer_to(*probe), text("no trace"), 10s);
  ASSERT_TRUE(answers_.has_value());
  EXPECT_THAT(answers_->missing, ElementsAre("member.0"));
  EXPECT_THAT(text_of(*answers_), HasSubstr(R"("missing":["member.0","member.1"])"));
}

TEST_F(Reports, ThoseForWhomThereIsNoRoomAreMissing) {
  NodeReportsOptions options;
  options.most_bytes = 10;
  reports_.emplace(std::move(options));
  for (const char* node : {"member.0", "member.1", "member.2"})
    reports_->take_change(change(node, "running"));
  const auto probe = ask(Wants::kWaits, 10s);
  reports_->take("member.2", answer_to(*probe), text("sixsix"), 10s);
  reports_->take("member.0", answer_to(*probe), text("five5"), 10s);
  reports_->take("member.1", answer_to(*probe), text("four"), 10s);
  ASSERT_TRUE(answers_.has_value());
  EXPECT_THAT(names(*answers_), ElementsAre("head", "member.1", "member.2"));
  EXPECT_THAT(answers_->missing, ElementsAre("member.0"));
  // It has all been handed over.
  answers_.reset();
  const auto again = ask(Wants::kWaits, 11s);
  reports_->take("member.0", answer_to(*again), text("ten bytes."), 11s);
  reports_->tend(13s);
  EXPECT_THAT(names(*answers_), ElementsAre("head", "member.0"));
}

TEST_F(Reports, LeaveNobodyWaitingWhenTheyGo) {
  ask(Wants::kWaits, 10s);
  reports_.reset();
  ASSERT_TRUE(answers_.has_value());
  EXPECT_THAT(answers_->missing, ElementsAre("member.0", "member.1"));
}

TEST_F(Reports, RefuseMoreQuestionsThanTheyKeep) {
  int done = 0;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(reports_->ask(Wants::kWaits, 1s, [&](const NodeAnswers&) { ++done; }).has_value());
  }
  EXPECT_FALSE(ask(Wants::kWaits, 1s).has_value());
  EXPECT_FALSE(answers_.has_value());
  reports_->tend(3s);
  EXPECT_EQ(done, 8);
  EXPECT_TRUE(ask(Wants::kWaits, 3s).has_value());
}

TEST_F(Reports, WithoutMembersAreCompleteAtOnce) {
  reports_.emplace();
  ASSERT_TRUE(ask(Wants::kTrace, 1s).has_value());
  ASSERT_TRUE(answers_.has_value());
  EXPECT_THAT(names(*answers_), ElementsAre("head"));
  EXPECT_THAT(text_of(*answers_), HasSubstr("\"traceEvents\""));
}

TEST_F(Reports, UnknownPeersAndAnswersToOtherQuestionsAreNotHeard) {
  const auto probe = ask(Wants::kWaits, 10s);
  reports_->take("member.7", answer_to(*probe), text("x"), 10s);
  NodeReport other = answer_to(*probe);
  other.wants = Wants::kTrace;
  reports_->take("member.0", other, text("x"), 10s);
  other = answer_to(*probe);
  other.request = 99;
  reports_->take("member.0", other, text("x"), 10s);
  EXPECT_FALSE(answers_.has_value());
  EXPECT_FALSE(reports_->clock("member.7").has_value());
}

TEST_F(Reports, TellHowFarClocksAreApart) {
  EXPECT_FALSE(reports_->clock("member.0").has_value());
  reports_->take("member.0", answer_to(reports_->beat(10s), 500s), {}, 10s + 4ms);
  reports_->take("member.0", answer_to(reports_->beat(11s), 501s), {}, 11s + 2ms);
  EXPECT_EQ(reports_->clock("member.0")->offset, 490s - 1ms);
  EXPECT_EQ(reports_->clock("member.0")->error, 1ms);
  NodeReport invented = answer_to(reports_->beat(12s), 900s);
  invented.sent += 1ns;
  reports_->take("member.0", invented, {}, 12s + 1us);
  EXPECT_EQ(reports_->clock("member.0")->error, 1ms) << "of a question that nobody asked";
  reports_->take_change(change("member.0", "dead"));
  EXPECT_FALSE(reports_->clock("member.0").has_value());
}

TEST_F(Reports, SomeOfManyMembersAreAskedAtATimeAndAllInTurn) {
  for (int i = 0; i < 99; ++i)
    reports_->take_change(change(fmt::format("member.{}", i), "running"));
  std::multiset<std::string> asked;
  for (int turn = 0; turn < 99; ++turn) {
    const std::vector<std::string> some = reports_->take_turn();
    EXPECT_EQ(some.size(), NodeReports::kAskedAtOnce);
    EXPECT_EQ(std::set(some.begin(), some.end()).size(), some.size());
    asked.insert(some.begin(), some.end());
  }
  for (int i = 0; i < 99; ++i) EXPECT_EQ(asked.count(fmt::format("member.{}", i)), 32U) << i;
  reports_->take_change(change("member.98", "dead"));
  for (int i = 3; i < 98; ++i) reports_->take_change(change(fmt::format("member.{}", i), "dead"));
  EXPECT_THAT(reports_->take_turn(), ElementsAre("member.0", "member.1", "member.2"));
}

TEST_F(Reports, TracesAreOnTheHeadsClock) {
  reports_->take_change(change("member.1", "dead"));
  const auto probe = ask(Wants::kTrace, 10s);
  ActorTrace replica{"replica.0", {{"batch"}, {}, 1}};
  replica.trace.records = {{.start = 500s, .end = 501s}};
  reports_->take("member.0", answer_to(*probe, 500s),
                 std::vector{Buffer::copy_of(telemetry::pack_actors({replica}))}, 10s);
  ASSERT_TRUE(answers_.has_value());
  EXPECT_EQ(answers_->answers[1].clock.offset, 490s);
  EXPECT_THAT(text_of(*answers_), HasSubstr("\"ts\":10000000.000,\"dur\":1000000.000"));
}

// The Member's side, and the link between.
TEST(NodeReports, MembersTellWhatTheirNodeDoes) {
  std::vector<NodeReport> reports;
  std::vector<std::string> contents;
  Script monitor;
  monitor.start = [](Context& context) {
    context.send_control("member.0", Message::of(Probe{0, 5ns, Wants::kNothing}));
    context.send_control("member.0", Message::of(Probe{8, 6ns, Wants::kTrace}));
    context.send_control("member.0", Message::of(Probe{9, 7ns, Wants::kWaits}));
  };
  monitor.receive = [&](Context& context, const Message& message) {
    const auto* report = message.as<NodeReport>();
    ASSERT_NE(report, nullptr);
    EXPECT_EQ(message.sender_name(), "member.0");
    reports.push_back(*report);
    ASSERT_LE(message.payloads().size(), 1U);
    std::string text;
    for (const Buffer& buffer : message.payloads()) {
      text.assign(reinterpret_cast<const char*>(buffer.data()), buffer.size());
    }
    contents.push_back(text);
    if (reports.size() == 3) context.send_control("member.0", Message::of(Release{}));
  };
  monitor.child_ended = [](Context& context, const runtime::ChildEnd&) {
    context.finish();
    return runtime::ChildDecision::kIgnore;
  };
  for (const bool tells : {true, false}) {
    reports.clear();
    contents.clear();
    MemberOptions options;
    if (tells) {
      options.sample = [] { return telemetry::NodeSample{"member.0", 1.5, 2, 3, 4, {}, {}, {}}; };
      options.trace = [] { return std::vector<ActorTrace>{{"replica.0", {}}}; };
      options.waits = [] { return std::string("for bread"); };
    }
    Play play;
    play.actor("monitor", monitor);
    play.actor("member.0", [&] { return std::make_unique<Member>(options); });
    play.link("member.0", "metrics", "monitor", "reports", runtime::Lane::kMetrics);
    const runtime::NodeEnd end = play.run(1);
    ASSERT_FALSE(end.error) << end.error->message;
    ASSERT_EQ(reports.size(), 3U);
    EXPECT_EQ(reports[0].sent, 5ns);
    EXPECT_EQ(reports[1].request, 8U);
    EXPECT_EQ(reports[2].wants, Wants::kWaits);
    EXPECT_EQ(reports[0].sample.cpu_seconds, tells ? 1.5 : 0.0);
    EXPECT_EQ(contents[0], "");
    EXPECT_EQ(contents[2], tells ? "for bread" : "");
    const auto trace = telemetry::unpack_actors(std::as_bytes(std::span(contents[1])));
    ASSERT_EQ(trace.ok(), tells);
    EXPECT_TRUE(!tells || trace->front().name == "replica.0");
  }
}

// Without a way to tell they say nothing.
TEST(NodeReports, MembersWithoutAMonitorAnswerNobody) {
  Script root;
  root.start = [](Context& context) {
    context.send_control("member.0", Message::of(Probe{1, 5ns, Wants::kTrace}));
    context.send_control("member.0", Message::of(Release{}));
  };
  root.receive = [](Context&, const Message& message) { ADD_FAILURE() << message.name(); };
  root.child_ended = [](Context& context, const runtime::ChildEnd&) {
    context.finish();
    return runtime::ChildDecision::kIgnore;
  };
  Play play;
  play.actor("root", root);
  play.actor("member.0", [] { return std::make_unique<Member>(); });
  EXPECT_FALSE(play.run(1).error);
}

}  // namespace
}  // namespace troupe::actors
