// The other verbs, and how the binary is talked to.

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Verbs, HelpOfEachShowsUsageAndAnExample) {
  const std::vector<Words> verbs{{"run"},          {"check"},    {"data", "make"},
                                 {"data", "info"}, {"generate"}, {"inspect"}};
  for (Words verb : verbs) {
    const std::string name = verb.size() == 1 ? verb[0] : verb[0] + " " + verb[1];
    verb.push_back("--help");
    const ProcessEnd end = call(verb);
    EXPECT_EQ(end.exit_code, 0) << name;
    EXPECT_THAT(end.out, StartsWith("usage: troupe " + name));
    EXPECT_THAT(end.out, HasSubstr("Example:\n  troupe " + name));
    EXPECT_EQ(end.err, "");
  }
}

TEST(Verbs, BinaryListsItsVerbsAndItsVersion) {
  const ProcessEnd help = call({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* verb : {"run", "check", "data", "generate", "inspect"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + verb + " "));
  }
  const ProcessEnd version = call({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("troupe [0-9]+\\.[0-9]+\\.[0-9]+\n.*\n"));
}

TEST(Verbs, UsageErrorsExitWithTwoAndSayNothingOnStandardOutput) {
  const std::vector<Words> wrong{
      {},
      {"frobnicate"},
      {"run"},
      {"run", "--bogus"},
      {"run", "a.yaml", "b.yaml"},
      {"run", "a.yaml", "--seed", "x"},
      {"run", "a.yaml", "--seed", "-1"},
      {"run", "a.yaml", "--out", "a", "--resume", "b"},
      {"check"},
      {"data"},
      {"data", "frobnicate"},
      {"data", "make"},
      {"data", "make", "x.h5", "--detector", "cms"},
      {"data", "make", "x.h5", "--events", "0"},
      {"data", "make", "x.h5", "--events", "-5"},
      {"data", "make", "x.h5", "--threads", "0"},
      {"data", "make", "x.h5", "--min-energy", "500", "--max-energy", "10"},
      {"data", "info"},
      {"generate"},
      {"generate", "x.h5"},
      {"generate", "x.h5", "--out", "y.h5", "--energy", "0"},
      {"inspect"},
  };
  const pipeline::TemporaryFolder folder;
  for (const Words& words : wrong) {
    const ProcessEnd end = call(words, {.folder = folder.path()});
    EXPECT_EQ(end.exit_code, 2) << testing::PrintToString(words) << end.err;
    EXPECT_EQ(end.out, "");
    EXPECT_NE(end.err, "");
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(Verbs, MadeShowersDependOnTheSeedAndNotOnThreadsOrFiles) {
  const pipeline::TemporaryFolder folder;
  const auto make = [&](const std::string& name, const Words& more) {
    Words words{"data", "make", folder / name, "--detector", "lcd-fixed-12", "--events", "60"};
    words.insert(words.end(), more.begin(), more.end());
    const ProcessEnd end = call(words);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return read_text(folder / name);
  };
  const std::string bytes = make("a.h5", {"--seed", "7", "--threads", "1"});
  EXPECT_EQ(make("b.h5", {"--seed", "7", "--threads", "3"}), bytes);
  EXPECT_NE(make("c.h5", {"--seed", "8"}), bytes);

  const ProcessEnd made = call({"data", "make", folder / "part.h5", "--detector", "lcd-fixed-12",
                                "--events", "60", "--files", "3", "--seed", "7", "--json"});
  EXPECT_EQ(last_line(made)["files"].list().size(), 3);
  EXPECT_EQ(last_line(made)["events"].integer(), 60);
  const JsonValue parts = last_line(call({"data", "info", folder / "part_*.h5", "--json"}));
  const JsonValue whole = last_line(call({"data", "info", folder / "a.h5", "--json"}));
  EXPECT_EQ(parts["files"].list().size(), 3);
  for (const char* field : {"ecal", "energy_gev", "occupied_cells"}) {
    EXPECT_EQ(parts[field]["min"].number(), whole[field]["min"].number()) << field;
    EXPECT_EQ(parts[field]["max"].number(), whole[field]["max"].number()) << field;
  }
  EXPECT_EQ(whole["schema"].text(), "lcd-fixed");
  EXPECT_EQ(whole["events"].integer(), 60);
  EXPECT_EQ(whole["bad_events"].integer(), 0);
  ASSERT_EQ(whole["shape"].list().size(), 3);
  for (const JsonValue& size : whole["shape"].list()) EXPECT_EQ(size.integer(), 12);
}

TEST(Verbs, InfoOfWhatIsNoDataIsADataError) {
  const pipeline::TemporaryFolder folder;
  write_text(folder / "x.h5", "no");
  EXPECT_EQ(call({"data", "info", folder / "x.h5"}).exit_code, 4);
  EXPECT_EQ(call({"data", "info", folder / "*.hdf5"}).exit_code, 4);
}

TEST_F(ToyRun, CheckSaysWhatWouldRunWithoutOpeningData) {
  std::filesystem::remove(path("toy.h5"));
  const ProcessEnd end = call({"check", path("toy.yaml")});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  for (const char* part :
       {"generator", "discriminator", "replica.1", "bounds:", "placement:", "topology hash: "}) {
    EXPECT_THAT(end.out, HasSubstr(part));
  }
  const JsonValue object = last_line(call({"check", path("toy.yaml"), "--json"}));
  EXPECT_THAT(end.out, HasSubstr(object["topology_hash"].text()));
  EXPECT_GT(object["message_bytes"].integer(), 0);
}

TEST_F(ToyRun, InspectShowsCountersShapesAndHash) {
  const JsonValue summary = summary_of("a");
  const ProcessEnd end = call({"inspect", checkpoint("a", 0)});
  EXPECT_EQ(end.exit_code, 0);
  for (const std::string& part :
       {std::string("/generator/dense1/kernel"), summary["state_hash"].text(),
        std::string("as stored"), std::string("iteration 22")}) {
    EXPECT_THAT(end.out, HasSubstr(part));
  }
  const JsonValue object = last_line(call({"inspect", checkpoint("a", 0), "--json"}));
  EXPECT_EQ(object["iteration"].integer(), 22);
  EXPECT_EQ(object["slot"].integer(), 0);
  EXPECT_EQ(object["model"].text(), "toy");
  EXPECT_FALSE(object["tensors"].list().empty());
}

TEST_F(ToyRun, GeneratedShowersDoNotDependOnThreadsAndAreReadAsData) {
  run("a");
  const auto generate = [&](const std::string& name, const Words& more) {
    Words words{"generate", checkpoint("a", 0), "--out", path(name), "--events", "50"};
    words.insert(words.end(), more.begin(), more.end());
    const ProcessEnd end = call(words);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return read_text(path(name));
  };
  const std::string bytes = generate("1.h5", {"--energy", "60", "--threads", "1"});
  EXPECT_EQ(generate("3.h5", {"--energy", "60", "--threads", "3"}), bytes);
  EXPECT_NE(generate("seed.h5", {"--energy", "60", "--seed", "2"}), bytes);
  EXPECT_NE(generate("energy.h5", {"--energy", "61"}), bytes);
  const JsonValue info = last_line(call({"data", "info", path("1.h5"), "--json"}));
  EXPECT_EQ(info["schema"].text(), "lcd-fixed");
  EXPECT_EQ(info["events"].integer(), 50);
  EXPECT_NEAR(info["energy_gev"]["min"].number(), 60.0, 1e-4);
  EXPECT_EQ(info["bad_events"].integer(), 0);
}

TEST_F(ToyRun, GenerateRefusesWhatIsNoCheckpoint) {
  expect_refused(call({"generate", path("toy.h5"), "--out", path("g.h5")}), 4,
                 {path("toy.h5"), "not a checkpoint"});
  EXPECT_FALSE(std::filesystem::exists(path("g.h5")));
}

}  // namespace
}  // namespace troupe
