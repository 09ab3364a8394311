#include "telemetry/page/run_questions.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace troupe::telemetry {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using Time = RunQuestions::Time;

struct Desk {
  void ask(Time now) { questions.ask(question, waiter, now); }
  void ask_alone(Time now) { questions.ask_alone(question, waiter, now); }
  void work() {
    io->restart();
    io->run();
  }

  std::shared_ptr<boost::asio::io_context> io = std::make_shared<boost::asio::io_context>(1);
  std::vector<RunSource::Answer> asked;
  std::vector<std::string> heard;
  const RunQuestions::Waiter waiter = [this](const Result<RunQuestions::Text>& text) {
    heard.push_back(text.ok() ? **text : text.error().message);
  };
  const RunSource::Question question = [this](RunSource::Answer answer) {
    asked.push_back(std::move(answer));
  };
  RunQuestions questions{io, std::chrono::seconds(30)};
};

TEST(RunQuestions, RunIsAskedOnceHoweverManyAsk) {
  Desk desk;
  const Time now = runtime::steady_now();
  for (int i = 0; i < 5; ++i) desk.ask(now);
  ASSERT_EQ(desk.asked.size(), 1u);
  desk.asked[0](std::string("trace"));
  EXPECT_TRUE(desk.heard.empty());
  desk.work();
  EXPECT_EQ(desk.heard, std::vector<std::string>(5, "trace"));
  desk.ask(now);
  EXPECT_EQ(desk.asked.size(), 2u);
}

TEST(RunQuestions, SecondAnswerIsLeftOut) {
  Desk desk;
  desk.ask({});
  desk.asked[0](std::string("one"));
  desk.asked[0](std::string("two"));
  desk.work();
  EXPECT_EQ(desk.heard, std::vector<std::string>{"one"});
}

TEST(RunQuestions, ErrorIsToldAndTheNextOneAsksAgain) {
  Desk desk;
  desk.ask({});
  desk.asked[0](Error{ErrorKind::kLostPeers, "nobody there"});
  desk.work();
  EXPECT_EQ(desk.heard, std::vector<std::string>{"nobody there"});
  desk.ask({});
  EXPECT_EQ(desk.asked.size(), 2u);
}

TEST(RunQuestions, WhoAsksAloneHearsItsOwnAnswer) {
  Desk desk;
  const Time now = runtime::steady_now();
  desk.ask_alone(now);
  desk.ask_alone(now + std::chrono::seconds(10));
  desk.ask(now);
  ASSERT_EQ(desk.asked.size(), 3u);
  desk.asked[1](std::string("second"));
  desk.work();
  EXPECT_EQ(desk.heard, std::vector<std::string>{"second"});
  desk.questions.give_up(now + std::chrono::seconds(30));
  EXPECT_EQ(desk.heard.size(), 3u);
  desk.asked[0](std::string("late"));
  desk.asked[1](std::string("again"));
  desk.work();
  EXPECT_EQ(desk.heard.size(), 3u);
}

TEST(RunQuestions, LostQuestionIsGivenUpWhenItsTimeIsOver) {
  Desk desk;
  const Time now = runtime::steady_now();
  desk.ask(now);
  desk.ask(now + std::chrono::seconds(29));
  desk.questions.give_up(now + std::chrono::seconds(29));
  EXPECT_TRUE(desk.heard.empty());
  desk.questions.give_up(now + std::chrono::seconds(30));
  EXPECT_EQ(desk.heard, std::vector<std::string>(2, "the run has not answered in time"));
  EXPECT_EQ(desk.asked.size(), 1u);
  desk.ask(now + std::chrono::seconds(31));
  ASSERT_EQ(desk.asked.size(), 2u);
  desk.asked[0](std::string("late"));
  desk.work();
  EXPECT_EQ(desk.heard.size(), 2u);
  desk.asked[1](std::string("trace"));
  desk.work();
  EXPECT_EQ(desk.heard.back(), "trace");
}

}  // namespace
}  // namespace troupe::telemetry
