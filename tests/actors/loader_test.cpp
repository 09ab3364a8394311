#include "actors/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "launch/training_data.h"
#include "tests/actors/theatre.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Script;
using testing::ElementsAre;

// What a Loader of two replicas feeds to the second one, as text: "iteration/micro-batch", "end".
std::vector<std::string> fed_to_second(LoaderOptions options) {
  const pipeline::TemporaryFolder folder;
  write_toy_data(folder / "toy.h5");
  Toy toy;
  config::Topology topology = toy.topology();
  topology.train.options.micro_batch = 2;
  topology.train.options.micro_batches = 2;
  topology.data.synthetic = false;
  topology.data.dataset.paths = {folder / "toy.h5"};
  runtime::ThreadTeam team(1);
  runtime::Log log = runtime::Log::silent();
  auto data = launch::open_training_data(topology, folder.path(), false, team, log);
  CHECK(data.ok(), data.ok() ? "" : data.error().message);
  options.replicas = 2;
  std::vector<std::string> fed;
  Play play;
  Script root;
  root.start = [](Context& context) {
    context.send_control("loader", Message::of(BeginLoading{0}));
    context.after(std::chrono::seconds(5));
  };
  root.timer = [](Context& context, runtime::TimerId) { context.finish(); };
  play.actor("coordinator", root);
  play.actor("loader",
             [&] { return std::make_unique<Loader>(options, data->train, data->sampler); });
  Script second;
  second.receive = [&fed](Context&, const Message& message) {
    if (const auto* batch = message.as<BatchMessage>()) {
      fed.push_back(std::to_string(batch->iteration) + "/" + std::to_string(batch->micro_batch));
    } else if (message.as<EndOfData>() != nullptr) {
      fed.emplace_back("end");
    }
  };
  play.actor("replica.0", Script{});
  play.actor("replica.1", second);
  for (const char* number : {"0", "1"}) {
    play.link("loader", std::string("batches.") + number, std::string("replica.") + number,
              "batches");
  }
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  return fed;
}

LoaderOptions options(std::vector<std::uint32_t> owners, std::uint64_t check_every) {
  LoaderOptions options;
  options.iterations = 3;
  options.owners = std::move(owners);
  options.checks = {check_every, 1, 4, 1, 2, options.owners};
  return options;
}

TEST(Loader, FeedsAReplicaItsOwnAndThenTheEnd) {
  EXPECT_THAT(fed_to_second(options({0, 1}, 0)), ElementsAre("0/1", "1/1", "2/1", "end"));
}

TEST(Loader, FeedsAReplicaWithoutMicroBatchesTheEndAtOnce) {
  EXPECT_THAT(fed_to_second(options({0, 0}, 0)), ElementsAre("end"));
}

// Every iteration has a check, of which this replica is the witness: nobody else could be.
TEST(Loader, FeedsAWitnessWhatItIsToCompare) {
  const LoaderOptions all_first = options({0, 0}, 4);
  std::vector<std::string> expected{"end"};
  for (std::uint64_t i = 0; i < 3; ++i) {
    expected.push_back(std::to_string(i) + "/" +
                       std::to_string(all_first.checks.of(i)->micro_batch));
  }
  EXPECT_EQ(fed_to_second(all_first), expected);
}

TEST(Loader, FeedsAWitnessBehindItsOwn) {
  const LoaderOptions both = options({0, 1}, 4);
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::string iteration = std::to_string(i) + "/";
    expected.push_back(iteration + "1");
    if (both.checks.of(i)->witness == 1) expected.push_back(iteration + "0");
  }
  expected.emplace_back("end");
  EXPECT_EQ(fed_to_second(both), expected);
}

}  // namespace
}  // namespace troupe::actors
