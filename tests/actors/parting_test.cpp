// How a run goes on when members are lost, leave, or lose each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/coordinator.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;
using runtime::PeerJoined;
using runtime::PeerLost;
using runtime::Script;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const Error kDeath{ErrorKind::kLostPeers, "its connection closed"};

std::string name(const char* kind, std::uint32_t number) {
  return fmt::format("{}.{}", kind, number);
}

// A Coordinator and members of one replica each, all scripts, until their replicas end at 20 s.
class Company {
 public:
  explicit Company(std::uint32_t members) : next_step(members, 5), members_(members) {}

  // What the member's root says then.
  void cue(std::uint32_t member, milliseconds at, std::function<Message()> line) {
    cues_[member].emplace(at, std::move(line));
  }
  // As the head's gate says it.
  void lose(std::uint32_t member, milliseconds at) {
    cue((member + 1) % members_, at, [member] {
      return Message::of(PeerLost{name("member", member), kDeath});
    });
    lost_.push_back(member);
  }
  void quarrel(std::uint32_t from, std::uint32_t about, milliseconds at) {
    cue(from, at, [about] { return Message::of(FellowLost{name("member", about), kDeath}); });
  }

  // As the head's gate passes on what somebody asks for; answers as they come, "left" or why not.
  void drain(const std::string& node, milliseconds at) {
    cue(0, at, [this, node, at] {
      const runtime::ConnectionId asker{static_cast<std::uint64_t>(at.count())};
      return Message::of(runtime::DrainAsked{
          node, "somebody", std::make_shared<runtime::DrainReply>(answers_, asker)});
    });
  }
  std::vector<std::string> drained() {
    for (const auto& [asker, answer] : answers_->take()) {
      drained_.push_back(answer.ok() ? "left" : answer.error().message);
    }
    return drained_;
  }

  void run(std::uint64_t seed = 1) {
    Play play;
    play.actor("coordinator", [this] { return std::make_unique<Coordinator>(options(), outcome); });
    for (std::uint32_t i = 0; i < members_; ++i) {
      play.actor(name("member", i), member(i));
      play.actor(name("reducer", i), reducer(i));
      play.actor(name("replica", i), replica(i));
    }
    play.actor("checkpointer", checkpointer()).actor("monitor", monitor());
    end = play.run(seed);
  }

  // Of the actor, in order: "halt 1.2", "view 1.2 of 0 2 from 5", "release", "expelled: why",
  // "stop".
  std::map<std::string, std::vector<std::string>> heard;
  std::map<std::string, runtime::TimePoint> expelled_at;
  std::vector<std::string> changes;  // that the monitor was told
  std::vector<std::uint64_t> next_step;
  runtime::TimePoint saving_from{0}, flushing_from{0};  // for 3 s each
  std::uint32_t absent = UINT32_MAX;                    // this member never comes
  std::uint32_t min_members = 1;
  bool shares_anew = true;
  std::shared_ptr<RunOutcome> outcome = std::make_shared<RunOutcome>();
  runtime::NodeEnd end;

 private:
  CoordinatorOptions options() {
    CoordinatorOptions options;
    options.state = toy_.state(0);
    options.first_step = 5;
    options.validate = false;
    options.parting_grace = milliseconds(2000);
    options.membership.ring.clear();
    options.places.clear();
    for (std::uint32_t i = 0; i < members_; ++i) {
      options.membership.ring.push_back(i);
      options.places.push_back({name("member", i), name("reducer", i)});
    }
    options.membership.weights.assign(members_, 1);
    options.membership.micro_batches = 6;
    options.membership.min_members = min_members;
    options.shares_anew = shares_anew;
    return options;
  }

  void note(Context& context, const std::string& what) {
    heard[std::string(context.name())].push_back(what);
  }

  Script member(std::uint32_t number) {
    Script script;
    script.start = [this, number](Context& context) {
      for (const auto& [at, line] : cues_[number]) context.after(at);
      if (number == absent) return;
      context.send_control("coordinator",
                           Message::of(PeerJoined{name("member", number), "", "", 1}));
    };
    script.timer = [this, number](Context& context, runtime::TimerId) {
      auto& cues = cues_[number];
      context.send_control("coordinator", cues.begin()->second());
      cues.erase(cues.begin());
    };
    script.receive = [this](Context& context, const Message& message) {
      if (const auto* release = message.as<Release>()) {
        note(context, release->why.empty() ? "release" : "release: " + release->why);
      }
      if (const auto* expelled = message.as<Expelled>()) {
        note(context, "expelled: " + expelled->error.message);
        expelled_at[std::string(context.name())] = context.now();
      }
    };
    return script;
  }

  Script reducer(std::uint32_t number) {
    Script script;
    script.receive = [this, number](Context& context, const Message& message) {
      if (const auto* halt = message.as<Halt>()) {
        note(context, "halt " + pipeline::text_of(halt->change));
        context.send_control("coordinator", Message::of(Halted{halt->change, next_step[number]}));
      } else if (const auto* told = message.as<ViewMessage>()) {
        const pipeline::View& view = *told->view;
        note(context, fmt::format("view {} of {} from {}", text_of(view.id),
                                  fmt::join(view.ring, " "), view.first_step));
      }
    };
    return script;
  }

  Script replica(std::uint32_t number) {
    Script script;
    const auto end = [this, number, ended = false](Context& context) mutable {
      if (std::ranges::count(lost_, number) > 0 || std::exchange(ended, true)) return;
      ReplicaEnd body;
      body.replica = number;
      body.state = toy_.state(number == 0 ? 2 : 3);
      context.send_control("coordinator", Message::of(std::move(body)));
    };
    const auto shared = std::make_shared<std::function<void(Context&)>>(end);
    script.start = [](Context& context) { context.after(std::chrono::seconds(20)); };
    script.timer = [shared](Context& context, runtime::TimerId) { (*shared)(context); };
    script.receive = [this, shared](Context& context, const Message& message) {
      if (message.as<StopTraining>() == nullptr) return;
      note(context, "stop");
      (*shared)(context);
    };
    return script;
  }

  Script checkpointer() {
    Script script;
    script.receive = [this](Context& context, Message message) {
      if (message.as<LastState>() != nullptr) {
        saving_from = context.now();
        context.after(std::chrono::seconds(3));
      } else if (message.as<FinishMetrics>() != nullptr) {
        context.send_control("monitor", std::move(message));
      }
    };
    script.timer = [](Context& context, runtime::TimerId) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
    };
    return script;
  }

  Script monitor() {
    Script script;
    script.receive = [this](Context& context, const Message& message) {
      if (message.as<FinishMetrics>() != nullptr) {
        flushing_from = context.now();
        context.after(std::chrono::seconds(3));
      } else if (const auto* change = message.as<NodeChange>()) {
        if (change->state == "dead") changes.push_back(change->node + " dead: " + change->cause);
      } else if (const auto* event = message.as<EventMetrics>()) {
        changes.push_back(fmt::format("{} {}: {}", event->kind, event->step, event->json));
      }
    };
    script.timer = [](Context& context, runtime::TimerId) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
    };
    return script;
  }

  Toy toy_;
  const std::uint32_t members_;
  std::vector<std::uint32_t> lost_;
  std::shared_ptr<runtime::DrainAnswers> answers_ = std::make_shared<runtime::DrainAnswers>([] {});
  std::vector<std::string> drained_;
  std::map<std::uint32_t, std::multimap<milliseconds, std::function<Message()>>> cues_;
};

void expect_good_end(const Company& company) {
  EXPECT_FALSE(company.end.error) << company.end.error->message;
  EXPECT_FALSE(company.outcome->stopped);
  EXPECT_TRUE(company.outcome->saved);
}

TEST(Parting, LostMemberLeavesTheOthersInANewViewFromTheFurthestStepOn) {
  Company company(3);
  company.lose(1, milliseconds(1000));
  company.next_step = {8, 5, 9};
  company.run();
  expect_good_end(company);
  for (const char* reducer : {"reducer.0", "reducer.2"}) {
    EXPECT_THAT(company.heard[reducer],
                ElementsAre("view 1.1 of 0 1 2 from 5", "halt 1.2", "view 1.2 of 0 2 from 9"));
  }
  EXPECT_THAT(company.heard["reducer.1"], ElementsAre("view 1.1 of 0 1 2 from 5"));
  EXPECT_THAT(company.heard["member.1"], IsEmpty());
  ASSERT_EQ(company.changes.size(), 2U);
  EXPECT_EQ(company.changes[0], "member.1 dead: its connection closed");
  EXPECT_THAT(
      company.changes[1],
      StartsWith(
          R"(view 9: {"view":"1.2","first_step":9,"members":["member.0","member.2"],)"
          R"("joined":[],"causes":["its connection closed"],"shared_anew":"","halted_seconds":)"));
}

TEST(Parting, OneAfterAnotherMayBeLostUntilOneIsLeft) {
  Company company(4);
  for (const std::uint32_t member : {0, 3, 1}) company.lose(member, milliseconds(1000 + member));
  company.run();
  expect_good_end(company);
  EXPECT_EQ(company.heard["reducer.2"].back(), "view 1.4 of 2 from 5");
  EXPECT_EQ(company.outcome->state->iteration, 3U);
}

TEST(Parting, MemberThatIsToldToEndIsReleasedAndTheOthersGoOn) {
  Company company(2);
  company.cue(1, milliseconds(1000), [] { return Message::of(Leaving{}); });
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.heard["member.1"], ElementsAre("release"));
  EXPECT_EQ(company.heard["reducer.0"].back(), "view 1.2 of 0 from 5");
  EXPECT_THAT(company.heard["reducer.1"], Not(testing::Contains("halt 1.2")));
}

TEST(Parting, LastMemberThatIsToldToEndStopsTheRunWithItsStateSaved) {
  Company company(2);
  company.lose(0, milliseconds(500));
  company.cue(1, milliseconds(1000), [] { return Message::of(Leaving{}); });
  company.run();
  ASSERT_TRUE(company.end.error);
  EXPECT_THAT(company.end.error->message, HasSubstr("member.1 has left the run: it was told"));
  EXPECT_TRUE(company.outcome->stopped);
  EXPECT_TRUE(company.outcome->saved);
  EXPECT_EQ(company.outcome->state->iteration, 3U);
}

TEST(Parting, LastMemberThatIsLostEndsTheRunWithTheCause) {
  Company company(2);
  company.lose(0, milliseconds(500));
  company.lose(1, milliseconds(1000));
  company.run();
  ASSERT_TRUE(company.end.error);
  EXPECT_EQ(company.end.error->kind, ErrorKind::kLostPeers);
  EXPECT_THAT(company.end.error->message, HasSubstr(kDeath.message));
  EXPECT_TRUE(company.outcome->stopped);
  EXPECT_EQ(company.outcome->state, nullptr);
}

// Who of two that lost each other is alive shows within the grace, or does not matter.
TEST(Parting, TheLaterOfTwoThatHaveLostEachOtherIsExpelledAfterTheGrace) {
  Company company(3);
  company.quarrel(0, 2, milliseconds(1000));
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.heard["member.2"],
              ElementsAre("expelled: member.0 has lost member.2: its connection closed"));
  EXPECT_GE(company.expelled_at["member.2"], runtime::TimePoint(milliseconds(3000)));
  EXPECT_LT(company.expelled_at["member.2"], runtime::TimePoint(milliseconds(3200)));
  EXPECT_EQ(company.heard["reducer.0"].back(), "view 1.2 of 0 1 from 5");
}

TEST(Parting, OneThatMoreHaveLostIsExpelledAlthoughOthersAreLater) {
  Company company(3);
  company.quarrel(1, 2, milliseconds(1000));
  company.quarrel(1, 0, milliseconds(1100));
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.heard["member.1"], ElementsAre(StartsWith("expelled: member.1 has lost")));
  EXPECT_EQ(company.heard["reducer.2"].back(), "view 1.2 of 0 2 from 5");
  EXPECT_TRUE(company.expelled_at.size() == 1) << "one is enough";
}

// Speeds of 8, 24 and 8 micro-batches per second, and two for each so far.
void tell_speeds(Company& company) {
  for (std::uint32_t replica = 0; replica < 3; ++replica) {
    company.cue(replica, milliseconds(1000), [replica] {
      return Message::of(Pace{replica, replica == 1 ? 240U : 80U, 10.0});
    });
  }
}

TEST(Parting, WorkIsSharedOutByMeasuredSpeedFromAnIterationThatNobodyHasBegun) {
  Company company(3);
  tell_speeds(company);
  company.run();
  expect_good_end(company);
  ASSERT_EQ(company.outcome->changes.size(), 1U) << "the second time nothing would be gained";
  const RunOutcome::ViewChange& change = company.outcome->changes[0];
  EXPECT_EQ(change.shared_anew, "an iteration takes 0.25 s and would take 0.167 s");
  EXPECT_THAT(change.causes, IsEmpty());
  EXPECT_THAT(change.view.owners, ElementsAre(0, 0, 1, 1, 2, 2));
  ASSERT_EQ(change.view.later.size(), 1U);
  EXPECT_THAT(change.view.later[0].owners, ElementsAre(0, 1, 1, 1, 1, 2));
  EXPECT_EQ(company.heard["reducer.1"].back(), "view 1.2 of 0 1 2 from 5");
}

TEST(Parting, SpeedsChangeNothingWhereTheyAreNotWanted) {
  Company company(3);
  company.shares_anew = false;
  tell_speeds(company);
  company.run();
  expect_good_end(company);
  EXPECT_TRUE(company.outcome->changes.empty());
}

TEST(Parting, TooFewThatAreLeftWaitOrEndTheRunWhereNobodyCanJoin) {
  Company company(3);
  company.min_members = 3;
  company.lose(1, milliseconds(1000));
  company.run();
  ASSERT_TRUE(company.end.error);
  EXPECT_EQ(company.end.error->kind, ErrorKind::kLostPeers);
  EXPECT_THAT(company.end.error->message,
              AllOf(HasSubstr("2 of at least 3 members"), HasSubstr("cluster.joiners")));
  EXPECT_THAT(company.heard["reducer.0"], ElementsAre("view 1.1 of 0 1 2 from 5", "halt 1.2"));
  EXPECT_TRUE(company.outcome->saved);
}

TEST(Parting, NobodyIsExpelledWhenOneOfTheTwoIsLostHere) {
  Company company(3);
  company.quarrel(0, 2, milliseconds(1000));
  company.lose(0, milliseconds(2000));
  company.run();
  expect_good_end(company);
  EXPECT_TRUE(company.expelled_at.empty());
  EXPECT_EQ(company.heard["reducer.2"].back(), "view 1.2 of 1 2 from 5");
}

TEST(Parting, MemberThatLacksMoreThanAStepIsExpelledAndTheOthersGoOn) {
  Company company(3);
  company.lose(2, milliseconds(1000));
  company.next_step = {7, 9, 7};
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.heard["member.0"], ElementsAre(StartsWith("expelled: member.0 lacks more")));
  EXPECT_EQ(company.heard["reducer.1"].back(), "view 1.3 of 1 from 9");
}

TEST(Parting, AnswerThatCannotBeRightEndsTheRunAndNamesItsMember) {
  Company company(3);
  company.lose(2, milliseconds(1000));
  company.next_step = {3, 7, 7};
  company.run();
  ASSERT_TRUE(company.end.error);
  EXPECT_EQ(company.end.error->kind, ErrorKind::kLostPeers);
  EXPECT_THAT(company.end.error->message, HasSubstr("although it has made those before 5"));
  EXPECT_THAT(company.heard["replica.0"], ElementsAre("stop"));
  EXPECT_TRUE(company.outcome->saved);
}

TEST(Parting, MemberThatIsLostBeforeAllHaveComeEndsTheRun) {
  Company company(3);
  company.absent = 2;
  company.lose(1, milliseconds(1000));
  company.run();
  ASSERT_TRUE(company.end.error);
  EXPECT_THAT(company.end.error->message, HasSubstr(kDeath.message));
  EXPECT_THAT(company.heard["reducer.0"], IsEmpty()) << "training never began";
}

TEST(Parting, WhoIsAskedToLeaveIsReleasedAndTheAskersAreToldWhenItHasLeft) {
  Company company(3);
  company.drain("member.1", milliseconds(1000));
  company.drain("member.1", milliseconds(1100));
  std::size_t told_before = 1;
  company.cue(2, milliseconds(1500), [&] {
    told_before = company.drained().size();
    return Message::of(runtime::PeerLeft{"member.1"});
  });
  company.run();
  expect_good_end(company);
  EXPECT_EQ(told_before, 0U) << "it has not left yet";
  EXPECT_THAT(company.drained(), ElementsAre("left", "left"));
  EXPECT_THAT(company.heard["member.1"],
              ElementsAre("release: somebody has asked for it (troupe drain)"));
  EXPECT_EQ(company.heard["reducer.0"].back(), "view 1.2 of 0 2 from 5");
}

TEST(Parting, WhoIsLostWhileItLeavesIsToldAsLost) {
  Company company(3);
  company.drain("member.1", milliseconds(1000));
  company.lose(1, milliseconds(1500));
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.drained(),
              ElementsAre(AllOf(StartsWith("member.1 was lost while it left: its connection"),
                                HasSubstr("go on without it"))));
}

TEST(Parting, WhoCannotLeaveIsNotLetGoAndTheAskerHearsWhy) {
  Company company(2);
  company.drain("member.2", milliseconds(1000));
  company.drain("", milliseconds(1001));
  company.drain("head", milliseconds(1002));
  company.drain("member.1", milliseconds(1003));
  company.cue(1, milliseconds(1500), [] { return Message::of(runtime::PeerLeft{"member.1"}); });
  company.drain("member.1", milliseconds(2000));
  company.drain("member.0", milliseconds(2001));
  company.drain("member.0", milliseconds(20'500));
  company.run();
  expect_good_end(company);
  EXPECT_THAT(
      company.drained(),
      ElementsAre(HasSubstr("no member of the run has the name 'member.2'; those that make its "
                            "steps are member.0, member.1"),
                  HasSubstr("has the name ''"), HasSubstr("head leads the run"), "left",
                  HasSubstr("member.1 has already left the run"),
                  HasSubstr("member.0 is the last member that makes steps"),
                  HasSubstr("the run is ending")));
  EXPECT_THAT(company.heard["member.0"], Not(Contains(HasSubstr("somebody"))));
}

TEST(Parting, NobodyIsLetGoBeforeAllHaveComeAndAnAskerWhoWaitsHearsOfTheEnd) {
  Company waiting(3);
  waiting.absent = 2;
  waiting.drain("member.1", milliseconds(1000));
  waiting.lose(1, milliseconds(2000));
  waiting.run();
  EXPECT_THAT(waiting.drained(), ElementsAre(HasSubstr("the run has not begun")));
  // It never says goodbye.
  Company company(3);
  company.drain("member.1", milliseconds(1000));
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.drained(), ElementsAre("the run has ended, and its members with it"));
}

// By then nobody needs the members any more, and they may end in any order.
TEST(Parting, TroubleOfMembersWhileTheLastStateIsSavedChangesNothing) {
  for (const bool while_metrics_are_written : {false, true}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Company company(3);
      const milliseconds at(while_metrics_are_written ? 23'500 : 20'500);
      company.quarrel(0, 2, at);
      company.cue(1, at, [] { return Message::of(Leaving{}); });
      company.cue(1, at + milliseconds(1), [] {
        return Message::of(PeerLost{"member.2", kDeath});
      });
      company.run(seed);
      EXPECT_EQ(company.saving_from, runtime::TimePoint(milliseconds(20'000)));
      EXPECT_EQ(company.flushing_from, runtime::TimePoint(milliseconds(23'000)));
      expect_good_end(company);
      EXPECT_THAT(company.heard["reducer.0"], ElementsAre("view 1.1 of 0 1 2 from 5"));
      EXPECT_TRUE(company.expelled_at.empty());
    }
  }
}

}  // namespace
}  // namespace troupe::actors
