// Which handler of an actor gets which message.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/actor.h"
#include "tests/runtime/stage.h"

namespace troupe::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Word {
  static constexpr std::string_view kName = "word";
  std::string text;
};

struct Unknown {
  static constexpr std::string_view kName = "unknown";
};

// Takes numbers and words, and ends at number 0.
class Listener final : public Actor {
 public:
  explicit Listener(std::vector<std::string>& heard) : heard_(heard) {}
  void start(Context&) override {
    on<Number>(&Listener::receive_number);
    on<Word>(&Listener::receive_word);
  }

 private:
  void receive_number(Context& context, const Number& number) {
    heard_.push_back(std::to_string(number.value));
    if (number.value == 0) context.finish();
  }
  void receive_word(Context&, const Word& word, Message& message) {
    heard_.push_back(word.text + " from " + std::string(message.sender_name()));
  }

  std::vector<std::string>& heard_;
};

TEST(Handlers, EachGetsTheBodiesOfItsTypeAndAMessageWithoutOneIsDroppedAndNamed) {
  std::vector<std::string> heard;
  Plan plan;
  plan.actors = {{"root", "", "", false}, {"listener", "", "root", false}};
  std::string lines;
  LogOptions log_options;
  log_options.to_stderr = false;
  log_options.also = [&](LogLevel, std::string_view line) { lines += std::string(line) + "\n"; };
  Log log = Log::open(log_options).value();
  const auto factory = [&](const ActorPlan& actor) -> std::unique_ptr<Actor> {
    if (actor.name == "listener") return std::make_unique<Listener>(heard);
    Script root;
    root.start = [](Context& context) {
      context.send_control("listener", Message::of(Number{7}));
      context.send_control("listener", Message::of(Unknown{}));
      context.send_control("listener", Message::of(Word{"hello"}));
      context.send_control("listener", Message::of(Number{0}));
    };
    root.child_ended = [](Context& context, const ChildEnd& end) {
      EXPECT_FALSE(end.error);
      context.finish();
      return ChildDecision::kIgnore;
    };
    return std::make_unique<ScriptedActor>(root);
  };
  ManualClock clock;
  StepScheduler scheduler(1, clock);
  Node node(plan, factory, {}, clock, log, scheduler);
  EXPECT_FALSE(node.run().error);
  EXPECT_THAT(heard, ElementsAre("7", "hello from root", "0"));
  EXPECT_THAT(lines, HasSubstr("listener: drops 'unknown' of root"));
}

}  // namespace
}  // namespace troupe::runtime
