// What a Reducer makes of halts, Views, and messages of other Views than its own.

#include <gmock/gmock.h>
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
namespace {

using pipeline::View;
using pipeline::ViewId;
using runtime::Buffer;
using runtime::Context;
using runtime::ErrorKind;
using runtime::Message;
using runtime::Script;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ViewId kSecond{1, 2}, kThird{1, 3};

// The reducer of member 1, its replica 1, and everyone else as scripts that say their lines one
// second after another.
class Scene {
 public:
  // The coordinator's words to the reducer.
  Scene& root(Message line) { return say("coordinator", std::move(line)); }
  Scene& replica(Message line) { return say("replica.1", std::move(line)); }
  // For a member in the ring.
  Scene& other(Message line) { return say("other", std::move(line)); }
  // Member 3 looks at what it is sent from now on; before, it keeps the first of it.
  Scene& newcomer_wakes() { return say("newcomer", Message::of(StopTraining{})); }

  // What the coordinator and the replica heard: "halted 1.2 at 3", "view 1.1", "sum 3.0: 7",
  // "header 3.0", "too slow: 3", "share with 3".
  std::vector<std::string> run() {
    Play play;
    play.actor("coordinator", speaker("", true));
    ReducerOptions options;
    options.first_replica = 1;
    options.member = 1;
    options.micro_batches = 3;
    options.events = 0;
    options.replay_bytes = 0;
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

  // To the members: "on 1.1: bucket 3.0", "gives 1.2: header 3.0", of parts and sums.
  std::vector<std::string> passed_on;
  std::vector<std::string> taught;  // to the newcomer, so too, and "lesson from 3"
  std::uint64_t kept_bytes = 0;     // as it told when it halted last
  runtime::NodeEnd end;

 private:
  Scene& say(const std::string& who, Message line) {
    cues_[who].emplace_back(++time_, std::make_shared<Message>(std::move(line)));
    return *this;
  }

  Script speaker(const std::string& port, bool is_root) {
    Script script;
    script.start = [this, is_root](Context& context) {
      for (const auto& [second, line] : cues_[std::string(context.name())]) {
        context.after(std::chrono::seconds(second));
      }
      if (is_root) context.after(std::chrono::seconds(time_ + 1));
    };
    script.timer = [this, port, next = std::size_t{0}](Context& context, runtime::TimerId) mutable {
      const auto& cues = cues_[std::string(context.name())];
      if (next == cues.size()) return context.finish();
      Message line = std::move(*cues[next++].second);
      if (port.empty()) {
        context.send_control("reducer", std::move(line));
      } else {
        EXPECT_TRUE(context.send(port, line));
      }
    };
    script.receive = [this](Context& context, const Message& message) {
      (context.name() == "other" ? passed_on : heard_).push_back(text_of(message));
    };
    return script;
  }

  Script newcomer() {
    Script script;
    script.start = [this](Context& context) {
      for (const auto& [second, line] : cues_["newcomer"]) {
        context.after(std::chrono::seconds(second));
      }
    };
    const auto kept = std::make_shared<std::optional<std::vector<Message>>>(std::in_place);
    script.receive = [this, kept](Context&, Message message) {
      taught.push_back(text_of(message));
      if (*kept) (*kept)->push_back(std::move(message));
    };
    script.timer = [kept](Context&, runtime::TimerId) { kept->reset(); };
    return script;
  }

  std::string text_of(const Message& message) {
    if (const auto* halted = message.as<Halted>()) {
      kept_bytes = halted->kept_bytes;
      return fmt::format("halted {} at {}", pipeline::text_of(halted->change), halted->next_step);
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
      return fmt::format("sum {}.{}: {}", bucket->step, bucket->attempt,
                         message.payloads().front().as<std::int64_t>()[0]);
    }
    if (const auto* header = message.as<HeaderMessage>()) {
      return fmt::format("header {}.{}", header->header.step, header->header.attempt);
    }
    if (const auto* bucket = message.as<RingBucket>()) {
      return fmt::format("{} {}: bucket {}.{}", bucket->summed ? "gives" : "on",
                         pipeline::text_of(bucket->bucket.view), bucket->bucket.step,
                         bucket->bucket.attempt);
    }
    const auto* header = message.as<RingHeader>();
    CHECK(header != nullptr, "nobody says anything else");
    return fmt::format("{} {}: header {}.{}", header->combined ? "gives" : "on",
                       pipeline::text_of(header->view), header->header.step,
                       header->header.attempt);
  }

  std::map<std::string, std::vector<std::pair<int, std::shared_ptr<Message>>>> cues_;
  int time_ = 0;
  std::vector<std::string> heard_;
};

Message view(ViewId id, std::vector<std::uint32_t> ring, std::uint64_t first_step = 3,
             std::vector<std::uint64_t> reached = {}) {
  View view = *view_of(std::move(ring), 3, 1, first_step);
  view.id = id;
  if (!reached.empty()) view.reached = std::move(reached);
  return Message::of(ViewMessage{std::make_shared<const View>(std::move(view))});
}

Message halt(ViewId change) { return Message::of(Halt{change}); }

// Steps have one bucket of one element; the home of it and of the header is position 0.
Message own_bucket(ViewId view, std::int64_t value, std::uint64_t step = 3) {
  return Message::of(BucketMessage{step, 0, 0, 0, 1, pipeline::SumKind::kInt64, view},
                     {Buffer::copy_of(std::as_bytes(std::span(&value, 1)))});
}

Message own_header(ViewId view, std::uint32_t micro_batches, std::uint64_t step = 3) {
  HeaderMessage message;
  message.view = view;
  message.header.step = step;
  message.header.micro_batches = micro_batches;
  return Message::of(std::move(message));
}

Message ring_bucket(ViewId view, std::int64_t value, std::uint64_t step = 3, bool summed = true) {
  return Message::of(
      RingBucket{{step, 0, 0, 0, 1, pipeline::SumKind::kInt64, view}, summed, std::nullopt},
      {Buffer::copy_of(std::as_bytes(std::span(&value, 1)))});
}

Message ring_header(ViewId view, std::uint64_t step = 3, bool combined = true) {
  RingHeader message;
  message.view = view;
  message.header.step = step;
  message.header.micro_batches = 3;
  message.combined = combined;
  return Message::of(std::move(message));
}

// As far as step 3 is made, of which the sums are 42.
void make_step(Scene& scene) {
  ASSERT_TRUE(pipeline::BucketRoutes(3).role(0, 1).begins());
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5));
  scene.replica(own_header(kFirstView, 1));
  scene.other(ring_bucket(kFirstView, 42)).other(ring_header(kFirstView));
}

const std::vector<std::string> kHeardOfIt{"view 1.1", "sum 3.0: 42", "header 3.0"};
const std::vector<std::string> kPassedOn{"on 1.1: bucket 3.0", "on 1.1: header 3.0",
                                         "gives 1.1: bucket 3.0", "gives 1.1: header 3.0"};

// As vectors: `first` and these.
std::vector<std::string> then(std::vector<std::string> first,
                              const std::vector<std::string>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

TEST(ReducerChange, WhatIsSaidOfALaterViewWaitsForIt) {
  Scene scene;
  // It is the second of two in this View, where the home is the first; member 0 begins.
  scene.other(ring_bucket(kSecond, 40, 3, false)).other(ring_header(kSecond, 3, false));
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond)).root(view(kSecond, {1, 0}));
  scene.replica(own_bucket(kSecond, 2)).replica(own_header(kSecond, 0));
  EXPECT_THAT(scene.run(),
              ElementsAre("view 1.1", "halted 1.2 at 3", "view 1.2", "sum 3.0: 42", "header 3.0"));
  EXPECT_THAT(scene.passed_on, ElementsAre("gives 1.2: bucket 3.0", "gives 1.2: header 3.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// That keeps its only credit; of the sums of step 3 nothing has left yet.
Scene with_newcomer() {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(Message::of(NeighbourMet{"member.3"}));
  scene.root(Message::of(Teach{3, true}))
      .replica(own_bucket(kFirstView, 5))
      .replica(own_header(kFirstView, 1));
  scene.other(ring_bucket(kFirstView, 42)).other(ring_header(kFirstView));
  return scene;
}

const std::vector<std::string> kHeardWithNewcomer{"view 1.1", "share with 3", "sum 3.0: 42",
                                                  "header 3.0"};

TEST(ReducerChange, NewcomerThatTooMuchWaitsForIsTaughtNoMore) {
  Scene scene = with_newcomer();
  scene.replica(own_bucket(kFirstView, 5, 4)).replica(own_header(kFirstView, 1, 4));
  scene.other(ring_bucket(kFirstView, 43, 4)).other(ring_header(kFirstView, 4));
  scene.newcomer_wakes();
  // The coordinator hears of it before or after the replica has what came first.
  EXPECT_THAT(scene.run(), testing::UnorderedElementsAreArray(then(
                               kHeardWithNewcomer, {"sum 4.0: 43", "header 4.0", "too slow: 3"})));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 3")) << "what waited is let go of";
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Nothing waits for it, and it learns from the step on that is next when it is met.
TEST(ReducerChange, NewcomerThatCannotBeReachedIsTaughtNothingUntilItIs) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(Message::of(NeighbourMet{"member.2"}));
  scene.root(Message::of(Teach{3, true}));
  for (const std::uint64_t step : {3, 4}) {
    scene.replica(own_bucket(kFirstView, 5, step)).replica(own_header(kFirstView, 1, step));
    scene.other(ring_bucket(kFirstView, 42, step)).other(ring_header(kFirstView, step));
  }
  scene.root(halt(kSecond)).root(Message::of(NeighbourMet{"member.3"})).newcomer_wakes();
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "sum 3.0: 42", "header 3.0", "sum 4.0: 42",
                                       "header 4.0", "halted 1.2 at 5", "share with 3"));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 5"));
  EXPECT_EQ(scene.kept_bytes, 8U) << "the sums of the newest step, and no lessons";
}

TEST(ReducerChange, AnotherProcessOfAMemberThatIsTaughtLearnsFromTheBeginning) {
  Scene scene = with_newcomer();
  scene.root(Message::of(Teach{3, false, 1})).root(Message::of(NeighbourMet{"member.3.2"}));
  scene.root(Message::of(Teach{3, true, 2})).newcomer_wakes();
  EXPECT_THAT(scene.run(), Contains("share with 3 as 2"));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 3", "lesson from 4"))
      << "what waited for the one before it is let go of";
}

// Too few are left for a View without the lost member.
TEST(ReducerChange, AnotherProcessOfALostMemberLearnsWhileTheOthersWait) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 3})).root(halt(kSecond));
  scene.root(Message::of(NeighbourMet{"member.3.2"})).root(Message::of(Teach{3, true, 2}));
  scene.newcomer_wakes();
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "share with 3 as 2"));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 3"));
}

TEST(ReducerChange, NewcomerThatIsGoneBeforeItIsMetIsNotTaught) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(Message::of(Teach{3, true}));
  scene.root(Message::of(Teach{3, false})).root(Message::of(NeighbourMet{"member.3"}));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1"));
  EXPECT_THAT(scene.taught, testing::IsEmpty());
}

// Its teacher lacks the step before the View, and passes it on as soon as it has it.
TEST(ReducerChange, NewcomerThatIsInAViewIsNotCutOffByItsTeacher) {
  Scene scene = with_newcomer();
  View second = *view_of({0, 1, 2, 3}, 3, 1, 5);
  second.id = kSecond;
  second.reached = {5, 4, 5, 3};
  second.newcomers = {3};
  scene.root(halt(kSecond));
  scene.root(Message::of(ViewMessage{std::make_shared<const View>(std::move(second))}));
  scene.other(ring_bucket(kSecond, 43, 4)).other(ring_header(kSecond, 4)).newcomer_wakes();
  EXPECT_EQ(scene.run(),
            then(kHeardWithNewcomer, {"halted 1.2 at 4", "sum 4.0: 43", "header 4.0", "view 1.2"}));
  EXPECT_GE(scene.kept_bytes, 16U) << "step 3 for those that lack it, and once more on its way";
  EXPECT_THAT(scene.taught,
              ElementsAre("lesson from 3", "gives 0.1: bucket 3.0", "gives 0.1: header 3.0",
                          "gives 0.1: bucket 4.0", "gives 0.1: header 4.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Each of these would be refused if it were of this View.
TEST(ReducerChange, WhatIsSaidOfAnEarlierViewChangesNothing) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond)).root(view(kSecond, {1, 0}));
  scene.replica(own_bucket(kFirstView, 1, 99)).replica(own_header(kFirstView, 1, 99));
  scene.other(ring_bucket(kFirstView, 1, 99)).other(ring_header(kFirstView, 99));
  scene.other(ring_bucket(kFirstView, 1, 2)).other(ring_header(kFirstView, 2));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "view 1.2"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerChange, WhoHaltsTellsHowMuchItKeepsForOthers) {
  Scene nothing;
  nothing.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5)).root(halt(kSecond));
  nothing.run();
  EXPECT_EQ(nothing.kept_bytes, 0U) << "what is under way is let go of";
  Scene a_step;
  make_step(a_step);
  a_step.root(halt(kSecond)).run();
  EXPECT_EQ(a_step.kept_bytes, 8U);
}

TEST(ReducerChange, HaltedItReducesNothing) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5)).root(halt(kSecond));
  scene.replica(own_header(kFirstView, 1)).other(ring_bucket(kFirstView, 42));
  scene.other(ring_header(kFirstView, 99));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3"));
  EXPECT_THAT(scene.passed_on, ElementsAre("on 1.1: bucket 3.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerChange, OvertakenHaltsAndViewsAreLetGo) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kThird)).root(halt(kSecond));
  scene.root(view(kSecond, {1, 0})).root(view(kThird, {1, 2})).root(view(kThird, {1, 2}));
  scene.root(halt(kThird)).root(view(kFirstView, {0, 1, 2}));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.3 at 3", "view 1.3"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerChange, WhoHasTheNewestStepGivesItToTheNextThatLacksIt) {
  Scene scene;
  make_step(scene);
  scene.root(halt(kSecond)).root(view(kSecond, {1, 2, 0}, 4, {4, 3, 3}));
  EXPECT_EQ(scene.run(), then(kHeardOfIt, {"halted 1.2 at 4", "view 1.2"}));
  EXPECT_EQ(scene.passed_on, then(kPassedOn, {"gives 1.2: bucket 3.0", "gives 1.2: header 3.0"}));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerChange, WhoIsNotTheFirstThatHasItGivesNothing) {
  Scene scene;
  make_step(scene);
  scene.root(halt(kSecond)).root(view(kSecond, {0, 1, 2}, 4, {4, 4, 3}));
  EXPECT_EQ(scene.run(), then(kHeardOfIt, {"halted 1.2 at 4", "view 1.2"}));
  EXPECT_EQ(scene.passed_on, kPassedOn);
}

TEST(ReducerChange, WhoLacksTheNewestStepGetsItBeforeTheView) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5)).root(halt(kSecond));
  scene.root(view(kSecond, {1, 0}, 4, {3, 4}));
  // The other one is in the next step already.
  scene.other(ring_bucket(kSecond, 10, 4, false));
  scene.other(ring_bucket(kSecond, 42)).other(ring_header(kSecond));
  scene.replica(own_bucket(kSecond, 7, 4));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "sum 3.0: 42", "header 3.0",
                                       "view 1.2", "sum 4.0: 17"));
  EXPECT_THAT(scene.passed_on, ElementsAre("on 1.1: bucket 3.0", "gives 1.2: bucket 4.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Member 0 gives it to member 1, and is not connected to the others that lack it.
TEST(ReducerChange, WhoIsGivenTheNewestStepPassesItOnToTheNextThatLacksIt) {
  for (const bool is_last : {false, true}) {
    Scene scene;
    scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond));
    scene.root(is_last ? view(kSecond, {2, 1, 0}, 4, {3, 3, 4})
                       : view(kSecond, {1, 2, 0}, 4, {3, 3, 4}));
    scene.other(ring_bucket(kSecond, 42)).other(ring_header(kSecond));
    EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "sum 3.0: 42", "header 3.0",
                                         "view 1.2"));
    EXPECT_EQ(scene.passed_on.size(), is_last ? 0U : 2U);
    EXPECT_FALSE(scene.end.error) << scene.end.error->message;
  }
}

// The giver is lost before all is given; it counts as not given.
TEST(ReducerChange, WhoIsHaltedWhileItGetsAStepStillLacksIt) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond));
  scene.root(view(kSecond, {0, 2, 1}, 4, {4, 4, 3})).other(ring_bucket(kSecond, 42));
  scene.root(halt(kThird)).root(view(kThird, {2, 1}, 4, {4, 3}));
  scene.other(ring_header(kSecond)).other(ring_bucket(kThird, 42)).other(ring_header(kThird));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "sum 3.0: 42",
                                       "halted 1.3 at 3", "sum 3.0: 42", "header 3.0", "view 1.3"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Another newcomer came at the same time: what this one lacked came between its word and the View.
TEST(ReducerChange, WhoLearnedWhatItLackedSinceItWasHaltedTakesTheNextView) {
  const auto with_newcomer = [](ViewId id) {
    View view = *view_of({0, 1, 2}, 3, 1, 4);
    view.id = id;
    view.reached = {4, 3, 4};
    view.newcomers = {1};
    return Message::of(ViewMessage{std::make_shared<const View>(std::move(view))});
  };
  constexpr ViewId kLessons{0, 1};
  Scene scene;
  scene.other(Message::of(Lesson{3})).root(with_newcomer(kSecond)).root(halt(kThird));
  scene.other(ring_bucket(kLessons, 42)).other(ring_header(kLessons));
  scene.root(with_newcomer(kThird));
  const std::vector<std::string> heard = scene.run();
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard.back(), "view 1.3");
  EXPECT_THAT(heard, testing::Contains("halted 1.3 at 3"));
  EXPECT_THAT(heard, testing::Contains("header 3.0"));
}

void expect_fails(Scene& scene, const std::string& what) {
  scene.run();
  ASSERT_TRUE(scene.end.error) << what;
  EXPECT_EQ(scene.end.error->kind, ErrorKind::kLostPeers);
  EXPECT_THAT(scene.end.error->message, HasSubstr(what));
}

TEST(ReducerChange, FirstViewInWhichThisNodeLacksAStepIsRefused) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2}, 4, {3, 3, 4}));
  expect_fails(scene, "for which it should have made a step before");
}

TEST(ReducerChange, ViewThatIsNotForThisNodeIsRefused) {
  const auto refused = [](Message second, const std::string& what) {
    Scene scene;
    scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond)).root(std::move(second));
    expect_fails(scene, "coordinator told of View 1.2, " + what);
  };
  refused(view(kSecond, {0, 2}), "that it is no member of");
  refused(view(kSecond, {0, 1}, 4), "for which it should be at another step than 3");
  refused(view(kSecond, {0, 1}, 3, {3, 2}), "for which it should be at another step than 3");
  refused(view(kSecond, {0, 1}, 3, {2, 3}), "for which it should have the sums of step 2");
  View strange = *view_of({0, 1}, 3, 1, 3);
  strange.id = kSecond;
  strange.owners[1] = 2;
  refused(Message::of(ViewMessage{std::make_shared<const View>(strange)}),
          "whose micro-batches are not those of its members");
  strange.owners = {0, 1};
  refused(Message::of(ViewMessage{std::make_shared<const View>(strange)}),
          "whose micro-batches are not those of its members");
}

TEST(ReducerChange, SumsThatNobodyLacksOrThatAreNoneAreRefused) {
  const auto lagging = [] {
    Scene scene;
    scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond));
    return scene.root(view(kSecond, {1, 0}, 4, {3, 4}));
  };
  Scene nothing_lacks;
  nothing_lacks.root(view(kFirstView, {0, 1, 2})).other(ring_bucket(kFirstView, 42, 2));
  expect_fails(nothing_lacks, "other contributed step 2");
  Scene part = lagging();
  expect_fails(part.other(ring_bucket(kSecond, 42, 3, false)), "other contributed step 3");
  Scene header = lagging();
  expect_fails(header.other(ring_header(kSecond, 3, false)), "other contributed step 3");
  Scene twice = lagging();
  twice.other(ring_bucket(kSecond, 42));
  expect_fails(twice.other(ring_bucket(kSecond, 42)), "bucket 0 of step 3 wrongly");
}

}  // namespace
}  // namespace troupe::actors
