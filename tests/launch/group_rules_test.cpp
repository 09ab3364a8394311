#include "launch/processes/group_rules.h"

#include <gmock/gmock.h>

#include <csignal>

namespace troupe::launch {
namespace {

using std::chrono::seconds;

constexpr std::size_t kGroup = 3;  // a head and two members
constexpr auto kAskAfter = seconds(2);
constexpr auto kGrace = seconds(10);

std::string text(const std::vector<GroupAction>& actions) {
  std::string text;
  for (const GroupAction& action : actions) {
    text += std::to_string(action.process) + ":" + std::to_string(action.signal) + " ";
  }
  return text;
}

// An event, and the answer of the rules: "0:15 " is SIGTERM to the head.
struct Event {
  enum Kind { kSignal, kExit, kKilled, kTime } kind;
  int number = 0;  // the signal, the process, or the second
  int value = 0;   // exit code or signal of the process
  const char* answer = "";
};

struct Course {
  const char* what;
  std::vector<Event> events;
  int exit_code;
  const char* error = nullptr;  // a part of it
};

// Processes that end.
const std::vector<Course>& courses_without_signals() {
  using enum Event::Kind;
  static const std::vector<Course> kCourses = {
      {"all end by themselves", {{kExit, 1}, {kExit, 0}, {kExit, 2}}, 0},
      {"the head's exit code counts", {{kExit, 1, 5}, {kExit, 0, 4}, {kExit, 2, 9}}, 4},
      {"a member that is lost changes nothing",
       {{kKilled, 2, SIGKILL}, {kTime, 1000}, {kExit, 0}, {kExit, 1}},
       0},
      {"members that stay are asked once, and killed after the grace",
       {{kExit, 0, 3},
        {kTime, 1},
        {kTime, 2, 0, "1:15 2:15 "},
        {kTime, 9},
        {kExit, 1},
        {kTime, 10, 0, "2:9 "},
        {kTime, 99},
        {kKilled, 2, SIGKILL}},
       3},
      {"members that end when they are asked",
       {{kExit, 0, 3}, {kExit, 2}, {kTime, 2, 0, "1:15 "}, {kExit, 1, 143}},
       3},
      {"a head that was killed",
       {{kKilled, 0, SIGSEGV, "1:15 2:15 "},
        {kTime, 10, 0, "1:9 2:9 "},
        {kKilled, 1, SIGKILL},
        {kKilled, 2, SIGKILL}},
       139,
       "the head was killed by signal 11 (Segmentation fault)"},
  };
  return kCourses;
}

// The run is asked to end, and does.
const std::vector<Course>& courses_with_one_request() {
  using enum Event::Kind;
  static const std::vector<Course> kCourses = {
      {"the first signal goes to the head alone",
       {{kSignal, SIGINT, 0, "0:2 "}, {kTime, 1000}, {kExit, 0, 130}, {kExit, 1}, {kExit, 2}},
       130},
      {"a SIGTERM that is answered",
       {{kSignal, SIGTERM, 0, "0:15 "}, {kExit, 0, 143}, {kExit, 1}, {kExit, 2}},
       143},
      {"a hang-up that is answered",
       {{kSignal, SIGHUP, 0, "0:1 "}, {kExit, 0, 129}, {kExit, 1}, {kExit, 2}},
       129},
      {"a signal too early for the head to take",
       {{kSignal, SIGINT, 0, "0:2 "}, {kKilled, 0, SIGINT, "1:15 2:15 "}, {kExit, 1}, {kExit, 2}},
       130,
       "ended by signal 2"},
      {"a head that fails while it ends",
       {{kSignal, SIGINT, 0, "0:2 "}, {kExit, 0, 4}, {kExit, 1}, {kExit, 2}},
       4},
      {"143 without a signal is the head's own", {{kExit, 0, 143}, {kExit, 1}, {kExit, 2}}, 143},
      {"a head that was killed by others while it ended",
       {{kSignal, SIGINT, 0, "0:2 "}, {kKilled, 0, SIGKILL, "1:15 2:15 "}, {kExit, 1}, {kExit, 2}},
       137,
       "the head was killed by signal 9 (Killed)"},
  };
  return kCourses;
}

// More than that is asked, or something else.
const std::vector<Course>& courses_with_later_signals() {
  using enum Event::Kind;
  static const std::vector<Course> kCourses = {
      {"the second signal kills all that run, once",
       {{kExit, 1},
        {kSignal, SIGINT, 0, "0:2 "},
        {kSignal, SIGTERM, 0, "0:9 2:9 "},
        {kSignal, SIGTERM},
        {kKilled, 0, SIGKILL},
        {kKilled, 2, SIGKILL}},
       143},
      {"a head that ends before the second signal reaches it",
       {{kSignal, SIGINT, 0, "0:2 "},
        {kSignal, SIGINT, 0, "0:9 1:9 2:9 "},
        {kExit, 0, 0},
        {kKilled, 1, SIGKILL},
        {kKilled, 2, SIGKILL}},
       0},
      {"a signal once the head has ended kills the members",
       {{kExit, 0, 0},
        {kSignal, SIGINT, 0, "1:9 2:9 "},
        {kKilled, 1, SIGKILL},
        {kKilled, 2, SIGKILL}},
       0},
      {"a checkpoint is asked of the head and is no reason to end",
       {{kSignal, SIGUSR1, 0, "0:10 "},
        {kSignal, SIGUSR1, 0, "0:10 "},
        {kSignal, SIGINT, 0, "0:2 "},
        {kExit, 0, 130},
        {kSignal, SIGUSR1},
        {kExit, 1},
        {kExit, 2}},
       130},
  };
  return kCourses;
}

std::vector<GroupAction> happen(GroupRules& rules, const Event& event, seconds& now) {
  const auto process = static_cast<std::size_t>(event.number);
  switch (event.kind) {
    case Event::kSignal:
      return rules.on_signal(event.number);
    case Event::kExit:
      return rules.on_end(process, {event.value, 0}, now);
    case Event::kKilled:
      return rules.on_end(process, {0, event.value}, now);
    case Event::kTime:
      now = seconds(event.number);
      return rules.on_time(now);
  }
  return {};
}

TEST(GroupRules, DoWhatEachCourseAsksFor) {
  std::vector<Course> all;
  for (const auto* some :
       {&courses_without_signals(), &courses_with_one_request(), &courses_with_later_signals()}) {
    all.insert(all.end(), some->begin(), some->end());
  }
  for (const Course& course : all) {
    SCOPED_TRACE(course.what);
    GroupRules rules(kGroup, kAskAfter, kGrace);
    seconds now{0};
    for (std::size_t i = 0; i < course.events.size(); ++i) {
      EXPECT_FALSE(rules.finished()) << i;
      EXPECT_EQ(text(happen(rules, course.events[i], now)), course.events[i].answer) << i;
    }
    ASSERT_TRUE(rules.finished());
    EXPECT_FALSE(rules.deadline().has_value());
    const GroupEnd end = rules.end();
    EXPECT_EQ(end.exit_code, course.exit_code);
    ASSERT_EQ(end.error.has_value(), course.error != nullptr);
    if (course.error == nullptr) continue;
    EXPECT_THAT(end.error->message, testing::HasSubstr(course.error));
  }
}

TEST(GroupRules, TheDeadlineBeginsWithTheEndOfTheHead) {
  GroupRules rules(kGroup, kAskAfter, kGrace);
  EXPECT_FALSE(rules.deadline().has_value());
  rules.on_end(1, {0, 0}, seconds(5));
  EXPECT_FALSE(rules.deadline().has_value());
  rules.on_end(kHeadProcess, {0, 0}, seconds(7));
  EXPECT_EQ(rules.deadline(), runtime::TimePoint(seconds(9)));
  rules.on_time(seconds(9));
  EXPECT_EQ(rules.deadline(), runtime::TimePoint(seconds(17)));
  rules.on_time(seconds(17));
  EXPECT_FALSE(rules.deadline().has_value()) << "a member that cannot be killed must not spin";
  EXPECT_TRUE(rules.was_killed(2));
  EXPECT_FALSE(rules.was_killed(1));
}

TEST(GroupRules, AHeadAloneIsAGroup) {
  GroupRules rules(1, kAskAfter, kGrace);
  rules.on_end(kHeadProcess, {6, 0}, seconds(0));
  EXPECT_TRUE(rules.finished());
  EXPECT_EQ(rules.end().exit_code, 6);
}

}  // namespace
}  // namespace troupe::launch
