#include "launch/run/judgement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "telemetry/sinks/publisher.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::launch {
namespace {

using runtime::ErrorKind;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class JudgementTest : public testing::Test {
 protected:
  // The toy on toy.h5 of this folder, validated with some of it; `more` are further sections.
  config::LoadedTopology topology(const std::string& more,
                                  const std::vector<std::string>& overrides = {}) {
    auto loaded = config::parse_topology(
        "model: {zoo: toy}\ndata: {train: toy.h5}\ntrain: {micro_batch: 2, micro_batches: 2}\n" +
            more,
        "t.yaml", folder_.path(), overrides);
    CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().message);
    return *std::move(loaded);
  }
  // Images of 4 x 4 x 4 cells.
  void write_data(std::size_t events, hsize_t width = 4) {
    pipeline::Hdf5Scribe file(folder_ / "toy.h5");
    file.add("ECAL", {events, width, 4, 4}, std::vector<float>(events * width * 16, 0.1f));
    file.add("target", {events, 2}, std::vector<float>(events * 2, 50.0f));
  }
  runtime::Result<Judgement> opened(const config::LoadedTopology& loaded, bool with_data) {
    ASSIGN_OR_RETURN(Judgement judgement, judge_run(loaded, std::nullopt));
    runtime::LogOptions lines;
    lines.to_stderr = false;
    lines.also = [this](runtime::LogLevel, std::string_view line) {
      said_ += std::string(line) + "\n";
    };
    ASSIGN_OR_RETURN(runtime::Log log, runtime::Log::open(lines));
    RETURN_IF_ERROR(judge_by_opening(loaded, with_data, log, judgement));
    return judgement;
  }
  void expect_refused(const runtime::Result<Judgement>& judged, ErrorKind kind,
                      const testing::Matcher<std::string>& message) {
    ASSERT_FALSE(judged.ok());
    EXPECT_EQ(judged.error().kind, kind);
    EXPECT_THAT(judged.error().message, message);
  }

  const TemporaryFolder folder_;
  std::string said_;  // in the log
};

TEST_F(JudgementTest, GoodRunIsJudgedWithoutAWordAndNothingStaysBehind) {
  write_data(40);
  const auto judged = opened(topology("actors: {monitor: {publish: \"tcp://127.0.0.1:*\"}}\n"
                                      "cluster: {hosts: [{address: localhost, workers: 2}]}\n"),
                             true);
  ASSERT_TRUE(judged.ok()) << judged.error().message;
  EXPECT_EQ(judged->placement.members, 2);
  EXPECT_GT(judged->bounds.message_bytes, 0);
  EXPECT_THAT(judged->here, IsEmpty());
  EXPECT_THAT(judged->warnings, IsEmpty());
  EXPECT_THAT(folder_.names(), ElementsAre("toy.h5"));
}

TEST_F(JudgementTest, KeysAndAddressesThatNoMachineTakesAreToldTogetherAtTheirPlaces) {
  const auto judged =
      judge_run(topology("actors:\n  monitor: {publish: \"tcp://10.1.2.3:8500\"}\n"
                         "cluster: {hosts: [{address: localhost}], keys: nowhere}\n"),
                std::nullopt);
  expect_refused(judged, ErrorKind::kTopology,
                 AllOf(StartsWith("t.yaml:6:48: cluster.keys: there are no keys in "),
                       HasSubstr("\nt.yaml:5:22: actors.monitor.publish: cannot publish at "
                                 "tcp://10.1.2.3:8500: nothing is encrypted")));
}

TEST_F(JudgementTest, TokenForChangesThatIsNoneOrLetsPeopleLookLeavesTheRunWithoutAPage) {
  const auto warnings = [&] {
    const auto judged = opened(topology("actors: {monitor: {listen: \"127.0.0.1:0\", token: look, "
                                        "control: control}}\n"),
                               false);
    return judged.ok() ? judged->warnings : std::vector<std::string>{judged.error().message};
  };
  pipeline::write_file(folder_ / "look", {std::byte{'a'}});
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("actors.monitor.control: " + folder_ / "control" +
                                                " cannot be read")));
  pipeline::write_file(folder_ / "control", {std::byte{'a'}});
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("changes need another one")));
  pipeline::write_file(folder_ / "control", {std::byte{'b'}});
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(JudgementTest, KeysAreOfNoConcernToARunInOneProcess) {
  EXPECT_TRUE(judge_run(topology("cluster: {keys: nowhere}\n"), std::nullopt).ok());
}

TEST_F(JudgementTest, DataThatARunRefusesAreRefusedUnlessLeftOut) {
  const auto refused = [&](const testing::Matcher<std::string>& message,
                           const std::vector<std::string>& overrides = {}) {
    expect_refused(opened(topology("", overrides), true), ErrorKind::kData, message);
    EXPECT_TRUE(opened(topology("", overrides), false).ok());
  };
  refused(HasSubstr("toy.h5: no such file"));
  refused(HasSubstr("*.hdf: no file matches the pattern"), {"data.train=none*.hdf"});
  write_data(40, 5);
  refused(HasSubstr("expected images of 4 x 4 x 4"));
  write_data(40);
  refused(HasSubstr("none of 40 events is for testing"), {"data.test_one_in=41"});
  write_data(4);
  refused(HasSubstr("4 events"), {"train.micro_batches=8", "actors.validator.every=none"});
}

TEST_F(JudgementTest, BinsThatNoEventForTestingFillsAreToldWithTheirPlace) {
  write_data(40);  // all of 50 GeV
  const auto said = [&](const std::string& bins) {
    said_.clear();
    EXPECT_TRUE(opened(topology("actors: {validator: {energy_bins: " + bins + "}}\n"), true).ok());
    return said_;
  };
  EXPECT_THAT(said("[[0, 1000], [2000, 3000]]"),
              testing::ContainsRegex("t.yaml:4:[0-9]+: actors.validator.energy_bins.1: no event of "
                                     "those for testing has 2000 to 3000 GeV; they have 50 to 50"));
  EXPECT_THAT(said("[[0, 1000]]"), testing::Not(HasSubstr("energy_bins")));
}

TEST_F(JudgementTest, HitThresholdThatNoCellOrEveryCellPassesIsToldWithItsPlace) {
  write_data(40);
  const auto said = [&](const std::string& threshold) {
    said_.clear();
    EXPECT_TRUE(
        opened(topology("actors: {validator: {hit_threshold: " + threshold + "}}\n"), true).ok());
    return said_;
  };
  EXPECT_THAT(said("1e5"),
              testing::ContainsRegex("t.yaml:4:[0-9]+: actors.validator.hit_threshold: "
                                     "no cell of the first [0-9]+ events"));
  EXPECT_THAT(said("1e-30"), HasSubstr("every cell of the first"));
}

TEST_F(JudgementTest, MadeShowersAreNotMade) {
  const auto made =
      topology("", {"data.train=synthetic", "data.synthetic.folder=" + folder_ / "made"});
  EXPECT_TRUE(opened(made, true).ok());
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(JudgementTest, FoldersThatCannotBeAreToldOf) {
  pipeline::write_file(folder_ / "file", {});
  const auto made = opened(
      topology("", {"data.train=synthetic", "data.synthetic.folder=" + folder_ / "file/made"}),
      true);
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->here.size(), 1);
  EXPECT_THAT(made->here[0].message,
              AllOf(HasSubstr("data.synthetic.folder: nothing can be written"),
                    HasSubstr("file is no folder")));
  write_data(40);
  const auto indexed = opened(topology("", {"data.index_folder=" + folder_ / "file/index"}), true);
  ASSERT_TRUE(indexed.ok());
  EXPECT_THAT(indexed->warnings,
              ElementsAre(HasSubstr("data.index_folder: nothing can be written")));
}

// A run would not begin at the first, and go on without the others.
TEST_F(JudgementTest, AddressesInUseAreToldOfThisMachine) {
  const auto publisher = telemetry::Publisher::open({.address = "tcp://127.0.0.1:*"});
  ASSERT_TRUE(publisher.ok());
  const std::string taken = (*publisher)->address();
  const auto judged =
      opened(topology(fmt::format("actors: {{monitor: {{publish: \"{}\", token: none}}}}\n"
                                  "cluster: {{hosts: [{{address: localhost}}], listen: \"{}\"}}\n",
                                  taken, taken.substr(6))),
             false);
  ASSERT_TRUE(judged.ok()) << judged.error().message;
  ASSERT_EQ(judged->here.size(), 1);
  EXPECT_THAT(judged->here[0].message,
              AllOf(StartsWith("t.yaml:5:50: cluster.listen: "), HasSubstr("in use")));
  EXPECT_THAT(judged->warnings, ElementsAre(HasSubstr("there is no page: "),
                                            HasSubstr("cannot publish at " + taken)));
}

}  // namespace
}  // namespace troupe::launch
