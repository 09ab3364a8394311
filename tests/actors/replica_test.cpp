#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "actors/replica.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Script;

// Begins training, of two members of which this one's replica has so many micro-batches.
void begin(Context& context, Toy& toy, std::size_t micro_batches) {
  pipeline::View view = *view_of(2, 1);
  view.owners.assign(micro_batches, 0);
  view.owners.push_back(1);
  context.send_control("replica.0", Message::of(BeginTraining{toy.state(0)}));
  context.send_control("reducer", Message::of(ViewMessage{std::make_shared<pipeline::View>(view)}));
}

// Passes the View on.
void pass_view(Context& context, Message message) {
  if (message.as<ViewMessage>() != nullptr) context.send("reduced", message);
}

void link_reducer(Play& play) {
  play.link("replica.0", "contributions", "reducer", "contributions");
  play.link("reducer", "reduced", "replica.0", "reduced", runtime::Lane::kData, 8, 1);
}

// It would contribute to an iteration that the others do not make, if the end came late.
TEST(Replica, WithoutMicroBatchesBeginsNothingBeforeItKnowsTheEnd) {
  Toy toy;
  int contributions = 0, feeds = 0;
  Play play;
  Script root;
  root.start = [&](Context& context) {
    begin(context, toy, 0);
    context.after(std::chrono::seconds(1));
  };
  root.timer = [](Context& context, runtime::TimerId) { context.finish(); };
  Script reducer, loader;
  reducer.receive = [&](Context& context, Message message) {
    if (message.as<ViewMessage>() == nullptr) ++contributions;
    pass_view(context, std::move(message));
  };
  loader.receive = [&](Context&, const Message& message) {
    feeds += message.as<Feed>() != nullptr ? 1 : 0;
  };
  play.actor("coordinator", root).actor("reducer", reducer).actor("loader", loader);
  play.actor("replica.0",
             [&] { return std::make_unique<Replica>(ReplicaOptions{}, toy.context()); });
  link_reducer(play);
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  EXPECT_EQ(feeds, 1);
  EXPECT_EQ(contributions, 0);
}

// As long as others still train, or the last state is saved, its loader would take their
// processors.
TEST(Replica, ThatHasEndedLetsItsLoaderReadNoMoreThanAnIteration) {
  constexpr std::int64_t kCredits = 8;        // of the play's links
  constexpr std::int64_t kMicroBatches = 40;  // more than come before its end
  Toy toy;
  std::int64_t batches = 0, in_the_end = 0;
  bool ended = false;
  Play play;
  Script root;
  root.start = [&](Context& context) {
    begin(context, toy, kMicroBatches);
    context.after(std::chrono::seconds(1));
    context.after(std::chrono::seconds(20));
  };
  root.timer = [&, first = true](Context& context, runtime::TimerId) mutable {
    if (!std::exchange(first, false)) {
      in_the_end = batches;
      return context.finish();
    }
    context.send_control("replica.0", Message::of(StopTraining{}));
  };
  root.receive = [&](Context&, const Message& message) {
    ended |= message.as<ReplicaEnd>() != nullptr;
  };
  Script loader;
  loader.receive = [](Context& context, const Message&) {
    context.after(std::chrono::milliseconds(100));
  };
  loader.timer = [&](Context& context, runtime::TimerId) {
    if (context.send("batches", Message::of(BatchMessage{0, 0, 0, 1}))) ++batches;
    context.after(std::chrono::milliseconds(100));
  };
  Script reducer;
  reducer.receive = pass_view;
  play.actor("coordinator", root).actor("reducer", reducer).actor("loader", loader);
  play.actor("replica.0",
             [&] { return std::make_unique<Replica>(ReplicaOptions{}, toy.context()); });
  link_reducer(play);
  play.link("loader", "batches", "replica.0", "batches");
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  EXPECT_TRUE(ended);
  // And one that it could be to compare.
  EXPECT_EQ(in_the_end, kMicroBatches + 1 + kCredits);
}

// For a loader that sends this: how the replica ends.
std::string error_when_fed(Toy& toy, const BatchMessage& body, std::size_t image_bytes) {
  const std::size_t events = toy.context().options.micro_batch;
  Play play;
  Script root, loader, reducer;
  root.start = [&](Context& context) {
    begin(context, toy, 1);
    context.after(std::chrono::seconds(1));
  };
  root.timer = [](Context& context, runtime::TimerId) { context.finish(); };
  loader.receive = [&](Context& context, const Message&) {
    context.send("batches", Message::of(EndOfData{9}));
    context.send("batches", Message::of(BatchMessage(body),
                                        {runtime::Buffer::zeroed(image_bytes),
                                         runtime::Buffer::zeroed(events * 3 * sizeof(float)),
                                         runtime::Buffer::zeroed(events * sizeof(std::uint64_t))}));
  };
  reducer.receive = pass_view;
  play.actor("coordinator", root).actor("reducer", reducer).actor("loader", loader);
  play.actor("replica.0",
             [&] { return std::make_unique<Replica>(ReplicaOptions{}, toy.context()); });
  link_reducer(play);
  play.link("loader", "batches", "replica.0", "batches");
  const runtime::NodeEnd end = play.run(1);
  return end.error ? end.error->message : "";
}

// Its loader may be on another node. What is wrong with a batch is in iteration_feed_test.cpp.
TEST(Replica, ThatIsFedWronglyFailsByName) {
  Toy toy;
  const std::uint32_t events = toy.context().options.micro_batch;
  const auto cells =
      static_cast<std::size_t>(toy.context().gan.discriminator().input_shape().elements());
  const std::size_t bytes = events * cells * sizeof(float);
  EXPECT_EQ(error_when_fed(toy, {0, 0, events, 1, 0}, bytes), "");
  EXPECT_THAT(error_when_fed(toy, {0, 0, events, 1, 0}, bytes - 4),
              testing::HasSubstr("of another model"));
}

}  // namespace
}  // namespace troupe::actors
