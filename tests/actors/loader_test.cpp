#include "actors/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/messages.h"
#include "launch/run/training_data.h"
#include "pipeline/data/hdf5_handle.h"
#include "tests/actors/theatre.h"
#include "tests/actors/whole_run.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/support/process.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Script;
using testing::ElementsAre;

constexpr std::uint32_t kMicroBatches = 2;
constexpr std::uint64_t kIterations = 3;

using Owners = std::vector<std::uint32_t>;

// For members 0 and 1 with one replica each.
ViewPointer view_with(const Owners& owners) {
  pipeline::View view = *view_of(2, kMicroBatches);
  view.owners = owners;
  return std::make_shared<const pipeline::View>(std::move(view));
}

LoaderOptions options(std::uint64_t check_every = 0) {
  LoaderOptions options;
  options.iterations = kIterations;
  options.checks.every = check_every;
  options.checks.seed = 1;
  options.checks.slots = 4;
  return options;
}

pipeline::SpotChecks checks(const Owners& owners, std::uint64_t every) {
  return view_with(owners)->checks(options(every).checks, 0);
}

// For replica 1, after so many messages of the feeds before.
struct Order {
  Feed feed;
  std::size_t after = 0;
};

Feed feed(const Owners& owners, std::uint32_t number = 1, std::uint64_t iteration = 0) {
  Feed feed;
  feed.replica = 1;
  feed.number = number;
  feed.view = view_with(owners);
  feed.iteration = iteration;
  return feed;
}

std::string text_of(const Message& message) {
  if (message.as<EndOfData>() != nullptr) {
    EXPECT_EQ(message.as<EndOfData>()->iterations, kIterations);
    return "end";
  }
  const auto* batch = message.as<BatchMessage>();
  CHECK(batch != nullptr, "a loader sends nothing else");
  EXPECT_EQ(batch->events, 2U);
  EXPECT_EQ(batch->replica, 1U);
  return fmt::format("{}:{}/{}", batch->feed, batch->iteration, batch->micro_batch);
}

// The toy's events, two of them a micro-batch.
struct ToyData {
  // With so many bytes of a shard; 0: all events are in memory.
  explicit ToyData(std::uint64_t shard_bytes = 0) {
    write_toy_data(folder / "toy.h5");
    config::Topology topology = Toy().topology();
    topology.train.options.micro_batch = 2;
    topology.train.options.micro_batches = kMicroBatches;
    topology.data.synthetic = false;
    topology.data.dataset.paths = {folder / "toy.h5"};
    topology.data.dataset.cache =
        shard_bytes > 0 ? pipeline::CacheMode::kShard : pipeline::CacheMode::kMemory;
    topology.data.dataset.shard_bytes = shard_bytes;
    runtime::ThreadTeam team(1);
    runtime::Log log = runtime::Log::silent();
    auto opened = launch::open_training_data(topology, folder.path(), false, team, log);
    CHECK(opened.ok(), opened.ok() ? "" : opened.error().message);
    data.emplace(std::move(opened).value());
  }

  TemporaryFolder folder;
  std::optional<launch::TrainingData> data;
};

// What a Loader feeds to replica 1 when that orders this, as text: "feed:iteration/micro-batch",
// "end". The link holds one message; replica 0 asks for nothing. `images` are added to.
std::vector<std::string> fed(const LoaderOptions& options, const std::vector<Order>& orders,
                             std::uint64_t shard_bytes = 0, std::vector<float>* images = nullptr) {
  ToyData toy(shard_bytes);
  std::vector<std::string> fed;
  Play play;
  Script root;
  root.start = [](Context& context) { context.after(std::chrono::seconds(5)); };
  root.timer = [](Context& context, runtime::TimerId) { context.finish(); };
  play.actor("coordinator", root);
  play.actor("loader",
             [&] { return std::make_unique<Loader>(options, toy.data->train, toy.data->sampler); });
  Script idle, replica;
  idle.receive = [](Context&, const Message&) { FAIL() << "it ordered nothing"; };
  const auto order = [&, next = std::size_t{0}](Context& context) mutable {
    for (; next < orders.size() && orders[next].after <= fed.size(); ++next) {
      context.send_control("loader", Message::of(Feed(orders[next].feed)));
    }
  };
  const auto shared = std::make_shared<std::function<void(Context&)>>(order);
  replica.start = [shared](Context& context) { (*shared)(context); };
  replica.receive = [&fed, images, shared](Context& context, const Message& message) {
    fed.push_back(text_of(message));
    if (images != nullptr && message.as<BatchMessage>() != nullptr) {
      const auto cells = message.payloads()[0].as<float>();
      images->insert(images->end(), cells.begin(), cells.end());
    }
    (*shared)(context);
  };
  play.actor("replica.0", idle);
  play.actor("replica.1", replica);
  for (const std::string number : {"0", "1"}) {
    play.link("loader", "batches." + number, "replica." + number, "batches", runtime::Lane::kData,
              1);
  }
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  return fed;
}

TEST(Loader, SendsNothingThatNobodyOrdered) { EXPECT_THAT(fed(options(), {}), ElementsAre()); }

TEST(Loader, FeedsAReplicaTheEndAndThenItsOwn) {
  EXPECT_THAT(fed(options(), {{feed({0, 1})}}), ElementsAre("end", "1:0/1", "1:1/1", "1:2/1"));
  EXPECT_THAT(fed(options(), {{feed({0, 1}, 4, 2)}}), ElementsAre("end", "4:2/1"));
  EXPECT_THAT(fed(options(), {{feed({0, 1}, 4, 3)}}), ElementsAre("end"));
}

TEST(Loader, FeedsAReplicaWithoutMicroBatchesTheEndAtOnce) {
  EXPECT_THAT(fed(options(), {{feed({0, 0})}}), ElementsAre("end"));
}

// Every iteration has a check, of which this replica is the witness: nobody else could be.
TEST(Loader, FeedsAWitnessWhatItIsToCompare) {
  const Owners all_first{0, 0};
  std::vector<std::string> expected{"end"};
  for (std::uint64_t i = 0; i < kIterations; ++i) {
    expected.push_back(fmt::format("1:{}/{}", i, checks(all_first, 4).of(i)->micro_batch));
  }
  EXPECT_EQ(fed(options(4), {{feed(all_first)}}), expected);
}

TEST(Loader, FeedsAWitnessBehindItsOwn) {
  const Owners both{0, 1};
  std::vector<std::string> expected{"end"};
  int witnessed = 0;
  for (std::uint64_t i = 0; i < kIterations; ++i) {
    expected.push_back(fmt::format("1:{}/1", i));
    if (checks(both, 4).of(i)->witness != 1) continue;
    expected.push_back(fmt::format("1:{}/0", i));
    ++witnessed;
  }
  ASSERT_GT(witnessed, 0);
  EXPECT_EQ(fed(options(4), {{feed(both)}}), expected);
}

TEST(Loader, FeedsWhatIsMissingBeforeAllElse) {
  Feed more = feed({1, 1}, 2, 2);
  more.missing = {{0, {0}}, {1, {0}}};
  EXPECT_THAT(fed(options(), {{more}}), ElementsAre("end", "2:0/0", "2:1/0", "2:2/0", "2:2/1"));
  Feed last = feed({1, 1}, 2, 3);
  last.missing = {{2, {0}}};
  EXPECT_THAT(fed(options(), {{last}}), ElementsAre("end", "2:2/0"));
}

// What it has read, or sent already, says of which feed it is.
TEST(Loader, AnotherFeedTakesTheFirstOnesPlace) {
  Feed more = feed({1, 1}, 2, 1);
  more.missing = {{0, {0}}};
  const std::vector<std::string> all = fed(options(), {{feed({0, 1})}, {more, 2}});
  const auto second = std::find(all.begin() + 1, all.end(), "end");
  const std::vector<std::string> first(all.begin(), second), rest(second, all.end());
  EXPECT_THAT(rest, ElementsAre("end", "2:0/0", "2:1/0", "2:1/1", "2:2/0", "2:2/1"));
  ASSERT_GE(first.size(), 2U);
  EXPECT_EQ(first[1], "1:0/1");
  EXPECT_LE(first.size(), 4U) << "no more than was on its way";
}

// From no room at all to room for all events.
TEST(Loader, FeedsTheSameEventsFromAShardOfAnySize) {
  Feed more = feed({1, 1}, 2, 1);
  more.missing = {{0, {0}}};
  for (const std::vector<Order>& orders :
       {std::vector<Order>{{feed({1, 1})}}, {{feed({0, 1})}, {more, 2}}}) {
    // The second feed may come while one or two messages of the first are on their way.
    const auto last_of = [&](std::uint64_t shard_bytes) {
      std::vector<float> images;
      fed(options(), orders, shard_bytes, &images);
      const std::size_t own = (orders.size() == 1 ? 6 : 5) * 2 * 64;
      EXPECT_GE(images.size(), own);
      return std::vector<float>(images.end() - static_cast<std::ptrdiff_t>(own), images.end());
    };
    const std::vector<float> memory = last_of(0);
    for (const std::uint64_t shard_bytes : {1U, 1000U, 3000U, 1U << 20}) {
      EXPECT_EQ(last_of(shard_bytes), memory) << shard_bytes;
    }
  }
}

// The end was told, and there is something before it again.
TEST(Loader, FeedAfterTheEndHasAnEndOfItsOwn) {
  Feed more = feed({1, 1}, 2, 3);
  more.missing = {{2, {0}}};
  EXPECT_THAT(fed(options(), {{feed({0, 1}, 1, 2)}, {more, 2}}),
              ElementsAre("end", "1:2/1", "end", "2:2/0"));
}

// A replica may be on another node, and may send anything.
TEST(Loader, FollowsNoFeedThatNoReplicaOfTheRunHas) {
  const auto refuses = [](const std::function<void(Feed&, pipeline::View&)>& change) {
    pipeline::View view = *view_with({0, 1});
    Feed wrong = feed({0, 1});
    change(wrong, view);
    wrong.view = std::make_shared<const pipeline::View>(view);
    return fed(options(4), {{wrong}}).empty();
  };
  EXPECT_FALSE(refuses([](Feed&, pipeline::View&) {}));
  EXPECT_TRUE(refuses([](Feed& feed, pipeline::View&) { feed.replica = 0; }));
  EXPECT_TRUE(refuses([](Feed&, pipeline::View& view) { view.ring = {0, 2}; }));
  EXPECT_TRUE(refuses([](Feed&, pipeline::View& view) { view.owners = {0}; }));
  EXPECT_TRUE(refuses([](Feed&, pipeline::View& view) { view.owners = {0, 2}; }));
  EXPECT_TRUE(refuses([](Feed&, pipeline::View& view) { view.owners = {0, 1, 1}; }));
  EXPECT_TRUE(refuses([](Feed&, pipeline::View& view) { view.later = {{1, {1, 7}}}; }));
  EXPECT_TRUE(refuses([](Feed& feed, pipeline::View&) { feed.missing = {{0, {2}}}; }));
  EXPECT_TRUE(refuses([](Feed& feed, pipeline::View&) { feed.missing = {{kIterations, {0}}}; }));
}

// A replica keeps all that it gets. The links have room for 64 messages.
TEST(Loader, ReadsAheadAsFarAsIsNeededOrAsThereIsRoom) {
  ToyData toy;
  for (const auto& [measures, expected] : {std::pair{true, 4}, {false, 64}}) {
    LoaderOptions endless = options();
    endless.iterations = 1'000'000;
    endless.most_ahead = measures ? 64 : 0;
    Play play;
    std::vector<Message> kept;
    Script root, replica;
    root.start = [](Context& context) { context.after(std::chrono::seconds(5)); };
    std::size_t count = 0;
    root.timer = [&](Context& context, runtime::TimerId) {
      count = kept.size();
      kept.clear();  // while there are links that their credit goes back to
      context.finish();
    };
    play.actor("coordinator", root);
    play.actor("loader", [&] {
      return std::make_unique<Loader>(endless, toy.data->train, toy.data->sampler);
    });
    replica.start = [](Context& context) {
      context.send_control("loader", Message::of(feed({0, 1})));
    };
    replica.receive = [&](Context&, Message message) {
      if (count == 0) kept.push_back(std::move(message));
    };
    play.actor("replica.1", replica);
    play.link("loader", "batches.1", "replica.1", "batches", runtime::Lane::kData, 64);
    const runtime::NodeEnd end = play.run(1);
    EXPECT_FALSE(end.error) << end.error->message;
    EXPECT_EQ(count, static_cast<std::size_t>(expected));
  }
}

// A replica that keeps what comes, or lets go of it at once.
struct Keeper {
  void receive(Message message) {
    const std::scoped_lock lock(mutex);
    if (keeps) kept.push_back(std::move(message));
  }
  std::int64_t count() {
    const std::scoped_lock lock(mutex);
    return std::ssize(kept);
  }
  void let_one_go() {
    const std::scoped_lock lock(mutex);
    kept.pop_back();
  }
  void keep(bool from_now_on) {
    const std::scoped_lock lock(mutex);
    keeps = from_now_on;
    if (!keeps) kept.clear();
  }

  std::mutex mutex;
  bool keeps = true;
  std::vector<Message> kept;
};

// While the test has the lock of the HDF5 library, no reading ends, and replica 1 lets go of all
// that was ready. Nobody tells whether the reading was under way by then, so this is done until the
// loader has noticed.
TEST(Loader, ReadsTwiceAsFarAheadOfAReplicaThatHasUsedUpAllDuringAReading) {
  ToyData toy(1);  // a shard with room for nothing: every micro-batch is read from the file
  LoaderOptions endless = options();
  endless.iterations = 1'000'000;
  endless.most_ahead = 64;
  Play play;
  Keeper keepers[2];
  const auto link = [&](std::size_t replica) { return play.node().link_stats().at(replica); };
  const auto credits = [&](std::size_t replica) { return link(replica).plan.message_credits; };
  const auto is_full = [&](std::size_t replica) {
    return wait_for([&] { return keepers[replica].count() == credits(replica); });
  };
  Script root;
  root.start = [](Context& context) { context.after(runtime::Duration{0}); };
  root.timer = [&](Context& context, runtime::TimerId) {
    EXPECT_TRUE(is_full(0));
    for (int tries = 0; tries < 200 && is_full(1) && credits(1) == 4; ++tries) {
      const pipeline::Hdf5Lock lock;
      keepers[1].let_one_go();  // so that the next reading begins
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      keepers[1].keep(false);
      EXPECT_TRUE(wait_for([&] { return link(1).in_use_messages == 0; }));
      keepers[1].keep(true);
    }
    EXPECT_EQ(credits(1), 8);
    EXPECT_EQ(keepers[1].count(), 8);
    EXPECT_EQ(credits(0), 4) << "what is ready for it was not used up";
    for (Keeper& keeper : keepers) keeper.keep(false);
    context.finish();
  };
  play.actor("coordinator", root);
  play.actor("loader",
             [&] { return std::make_unique<Loader>(endless, toy.data->train, toy.data->sampler); });
  for (const std::uint32_t number : {0U, 1U}) {
    Script replica;
    replica.start = [number](Context& context) {
      Feed own = feed({0, 1});
      own.replica = number;
      context.send_control("loader", Message::of(std::move(own)));
    };
    replica.receive = [&keeper = keepers[number]](Context&, Message message) {
      keeper.receive(std::move(message));
    };
    play.actor(fmt::format("replica.{}", number), replica);
    play.link("loader", fmt::format("batches.{}", number), fmt::format("replica.{}", number),
              "batches", runtime::Lane::kData, 64);
  }
  const runtime::NodeEnd end = play.run_on_threads();
  EXPECT_FALSE(end.error) << end.error->message;
}

// In steps no reading lasts: the replica that has kept all it may lets go of it between readings.
TEST(Loader, ReadsNoFurtherAheadOfAReplicaThatTakesAllBetweenReadings) {
  ToyData toy;
  LoaderOptions long_run = options();
  long_run.iterations = 500;
  long_run.most_ahead = 64;
  for (const std::uint64_t seed : {1, 2, 3}) {
    Play play;
    Keeper keeper;
    Script root, replica;
    root.start = [](Context& context) { context.after(std::chrono::seconds(5)); };
    root.timer = [&, times = 0](Context& context, runtime::TimerId) mutable {
      EXPECT_EQ(play.node().link_stats().front().plan.message_credits, 4);
      if (times++ > 0) return context.finish();
      EXPECT_EQ(keeper.count(), 4);
      keeper.keep(false);
      context.after(std::chrono::seconds(5));
    };
    play.actor("coordinator", root);
    play.actor("loader", [&] {
      return std::make_unique<Loader>(long_run, toy.data->train, toy.data->sampler);
    });
    replica.start = [](Context& context) {
      context.send_control("loader", Message::of(feed({0, 1})));
    };
    replica.receive = [&](Context&, Message message) { keeper.receive(std::move(message)); };
    play.actor("replica.1", replica);
    play.link("loader", "batches.1", "replica.1", "batches", runtime::Lane::kData, 64);
    const runtime::NodeEnd end = play.run(seed);
    EXPECT_FALSE(end.error) << end.error->message;
  }
}

// In steps no reading lasts, so that it stays with the least.
TEST(Loader, OfARunMeasuresHowFarAheadItReads) {
  std::vector<std::int64_t> credits;
  const auto as_it_is = [](const std::string&, std::unique_ptr<runtime::Actor> actor) {
    return actor;
  };
  for (const runtime::LinkStats& link : run_whole(1, as_it_is).links) {
    if (link.plan.to_port == "batches") credits.push_back(link.plan.message_credits);
  }
  EXPECT_THAT(credits, ElementsAre(4, 4));
}

// What comes back has its credit: it would read all there is for nobody.
TEST(Loader, ForgetsAReplicaThatHasEnded) {
  ToyData toy;
  LoaderOptions endless = options();
  endless.iterations = 1'000'000;
  Play play;
  Script root, replica;
  std::int64_t undelivered = -1, sent = 0;
  root.start = [](Context& context) { context.after(std::chrono::seconds(5)); };
  root.timer = [&](Context& context, runtime::TimerId) {
    const runtime::LinkStats stats = play.node().link_stats().front();
    undelivered = stats.undelivered;
    sent = stats.sent;
    context.finish();
  };
  root.child_ended = [](Context&, const runtime::ChildEnd&) {
    return runtime::ChildDecision::kIgnore;
  };
  play.actor("coordinator", root);
  play.actor("loader",
             [&] { return std::make_unique<Loader>(endless, toy.data->train, toy.data->sampler); });
  replica.start = [](Context& context) {
    context.send_control("loader", Message::of(feed({0, 1})));
  };
  replica.receive = [count = 0](Context& context, const Message&) mutable {
    if (++count == 10) context.finish();
  };
  play.actor("replica.1", replica);
  play.link("loader", "batches.1", "replica.1", "batches", runtime::Lane::kData, 3);
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  EXPECT_GE(undelivered, 1);
  EXPECT_LE(undelivered, 6);
  EXPECT_EQ(sent, 10 + undelivered);
}

}  // namespace
}  // namespace troupe::actors
