// The other verbs, and how the binary is talked to.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Verbs, HelpOfEachShowsUsageAndAnExample) {
  std::vector<Words> verbs = every_verb();
  verbs.push_back({"data"});
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
  for (const char* verb : {"run", "data make", "validate", "completions"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + verb + " "));
  }
  const ProcessEnd version = call({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, HasSubstr("\nprecision: fp32, bf16\n"));
  EXPECT_THAT(version.out, HasSubstr("\ndevices: cpu, gpu, gpu:0"));
  EXPECT_THAT(version.out, testing::MatchesRegex("troupe [0-9]+\\.[0-9]+\\.[0-9]+\n.*\n"));
}

TEST(Verbs, UsageErrorsExitWithTwoAndSayNothingOnStandardOutputButForJson) {
  const std::vector<Words> wrong{
      {"run"},
      {"run", "a.yaml", "--out", "a", "--resume", "b"},
      {"check"},
      {"data", "make"},
      {"data", "make", "x.h5", "--detector", "cms"},
      {"data", "make", "x.h5", "--events", "0"},
      {"data", "make", "x.h5", "--events", "-5"},
      {"data", "make", "x.h5", "--events", "18446744073709551615"},
      {"data", "make", "x.h5", "--threads", "0"},
      {"data", "make", "x.h5", "--min-energy", "500", "--max-energy", "10"},
      {"data", "info"},
      {"generate"},
      {"generate", "x.h5"},
      {"generate", "x.h5", "--out", "y.h5", "--energy", "0"},
      {"generate", "x.h5", "--out", "y.h5", "--energy", "1e300"},
      {"generate", "x.h5", "--out", "y.h5", "--energy", "1e-50"},
      {"drain"},
      {"drain", "127.0.0.1:8500"},
      {"drain", "127.0.0.1:8500", "member.0", "member.1"},
      {"drain", "127.0.0.1:8500", "member.0", "--within", "0"},
      {"drain", "127.0.0.1:8500", "member.0", "--key", "keys", "--token", "token"},
      {"drain", "127.0.0.1:8500", "member.0", "--key", "keys"},
      {"drain", "127.0.0.1", "member.0"},
      {"drain", "127.0.0.1:1", std::string(300, 'n')},
      {"drain", "127.0.0.1:1", "bad\nname\x1b[31m"},
      {"join", "127.0.0.1:1", "--node", std::string(300, 'n')},
      {"join", "127.0.0.1:1", "--node", ""},
      {"join", "127.0.0.1:8500", "--key", "keys", "--token", "token"},
      {"join", "127.0.0.1:8500", "--preemption-every", "0"},
      {"watch"},
      {"watch", "--web"},
      {"watch", "a", "b"},
      {"watch", "a", "--listen", "127.0.0.1:0"},
      {"watch", "a", "--waits"},
      {"watch", "a", "--trace", "t.json"},
      {"watch", "http://127.0.0.1:1", "--waits", "--trace", "t.json"},
      {"watch", "http://127.0.0.1:1", "--waits", "--json"},
      {"watch", "http://127.0.0.1:1", "--web"},
      {"watch", "https://127.0.0.1:1"},
      {"watch", "http://"},
      {"watch", "a", "--web", "--json"},
      {"watch", "a", "--token", "no-such-file"},
  };
  const TemporaryFolder folder;
  for (const Words& words : wrong) {
    const ProcessEnd end = call(words, {.folder = folder.path()});
    EXPECT_EQ(end.exit_code, 2) << testing::PrintToString(words) << end.err;
    const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
    EXPECT_EQ(end.out.empty(), !json) << end.out;
    EXPECT_NE(end.err, "");
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(Verbs, MadeShowersDependOnTheSeedAndNotOnThreadsOrFiles) {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, const Words& more) {
    Words words =
        Words{"data", "make", folder / name, "--detector", "lcd-fixed-12", "--events", "60"} + more;
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

TEST(Verbs, AnglesAreRefusedInDegreesAsTheyAreGiven) {
  const TemporaryFolder folder;
  const ProcessEnd end =
      call({"data", "make", folder / "x.h5", "--detector", "lcd-angle-51", "--min-angle", "30"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("30 to 120 degrees"));
  EXPECT_THAT(end.err, HasSubstr("60 to 120 degrees"));
}

// Found out before any shower is made: these would take days.
TEST(Verbs, FileThatCannotBeMadeIsRefusedAtOnce) {
  const TemporaryFolder folder;
  for (const std::string& file : {folder / "none/x.h5", folder.path()}) {
    const ProcessEnd end = call({"data", "make", file, "--events", "4294967295"});
    EXPECT_FALSE(end.timed_out);
    EXPECT_EQ(end.exit_code, 4) << end.err;
    EXPECT_THAT(end.err, HasSubstr(file));
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(Verbs, OutputThatIsNoFileIsLeftAlone) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const ProcessEnd end = call({"data", "make", pipe, "--detector", "lcd-fixed-12"});
  EXPECT_EQ(end.exit_code, 4) << end.err;
  EXPECT_THAT(end.err, HasSubstr(pipe + ": it is there and is no file"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  // Nor does reading one wait for a writer.
  for (const char* verb : {"inspect", "generate"}) {
    const ProcessEnd refused = call({verb, pipe, "--out", folder / "x.h5"});
    EXPECT_FALSE(refused.timed_out) << verb;
  }
}

TEST(Verbs, LinkAsOutputIsFollowed) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("there.h5", folder / "link.h5");
  Words words{"data", "make", folder / "link.h5", "--detector", "lcd-fixed-12", "--events", "5"};
  for (int i = 0; i < 2; ++i) {
    const ProcessEnd end = call(words);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.h5"));
    EXPECT_TRUE(std::filesystem::is_regular_file(folder / "there.h5"));
    words.push_back("--force");
  }
}

TEST_F(ToyRun, OutputThatIsThereIsReplacedOnlyByForce) {
  write_text(path("a.h5"), "precious");
  write_text(path("b_1.h5"), "precious");
  const auto make = [&](const std::string& name, const Words& more) {
    Words words =
        Words{"data", "make", path(name), "--detector", "lcd-fixed-12", "--events", "5"} + more;
    return call(words);
  };
  expect_refused(make("a.h5", {}), 2, {path("a.h5"), "is there already", "--force"});
  expect_refused(make("b.h5", {"--files", "2"}), 2, {path("b_1.h5"), "--force"});
  EXPECT_EQ(read_text(path("a.h5")), "precious");
  EXPECT_EQ(make("a.h5", {"--force"}).exit_code, 0);
  EXPECT_EQ(call({"data", "info", path("a.h5"), path("a.h5")}).exit_code, 0);
}

TEST(Verbs, FileMayBeLargerThanMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need their address space";
#endif
  constexpr std::uint64_t kMemory = 320 << 20;
  const TemporaryFolder folder;
  const ProcessEnd end =
      call({"data", "make", folder / "a.h5", "--events", "5500", "--gzip", "0", "--threads", "1"},
           {.largest_memory_bytes = kMemory});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_GT(std::filesystem::file_size(folder / "a.h5"), kMemory);
}

TEST_F(ToyRun, OutputThatCannotBeWrittenIsAnError) {
  run("a");
  const ProcessOptions full{.largest_file_bytes = 200};
  for (const Words& words : {Words{"check", path("toy.yaml"), "--no-data"},
                             {"inspect", checkpoint("a", 0)},
                             {"inspect", checkpoint("a", 0), "--json"},
                             {"--help"}}) {
    const ProcessEnd end = call(words, full);
    EXPECT_EQ(end.exit_code, 1) << testing::PrintToString(words);
    EXPECT_THAT(end.err, HasSubstr("cannot write standard output"));
  }
}

// With less and less short memory, it is the vector of a round's images that no longer fits.
TEST(Verbs, MemoryThatIsShortIsToldInPlainWordsAndNoCoreIsDumped) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  const TemporaryFolder folder;
  const Words words{"data", "make", folder / "x.h5", "--events", "100000", "--threads", "1"};
  int code = 0;
  for (std::uint64_t mib = 48; mib < 512 && code != 3; mib += 16) {
    const ProcessEnd end = call(words, {.largest_memory_bytes = mib << 20});
    // There is not even room for the libraries. HDF5 1.10 follows a null pointer in H5Fcreate where
    // its cache finds none.
    if (end.exit_code == 127 || end.signal == SIGSEGV) continue;
    code = end.exit_code;
    ASSERT_THAT(code, AnyOf(1, 3)) << mib << " MiB: " << end.err;
    if (code == 3) {
      EXPECT_THAT(end.err, HasSubstr("there is no memory left; "));
    }
  }
  EXPECT_EQ(code, 3);
  EXPECT_TRUE(folder.names().empty());
}

TEST_F(ToyRun, CheckWithoutDataSaysWhatWouldRun) {
  std::filesystem::remove(path("toy.h5"));
  const ProcessEnd end = call({"check", path("toy.yaml"), "--no-data"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  for (const char* part :
       {"generator", "discriminator", "replica.0..1", "bounds:", "placement:", "topology hash: "}) {
    EXPECT_THAT(end.out, HasSubstr(part));
  }
  const JsonValue object = last_line(call({"check", path("toy.yaml"), "--no-data", "--json"}));
  EXPECT_THAT(end.out, HasSubstr(object["topology_hash"].text()));
  EXPECT_GT(object["message_bytes"].integer(), 0);
}

std::ptrdiff_t lines_of(const ProcessEnd& end) {
  return std::count(end.out.begin(), end.out.end(), '\n');
}

TEST_F(ToyRun, CheckTellsEqualActorsAndLinksTogetherUnlessAllAreAskedFor) {
  const ProcessEnd few = call({"check", path("toy.yaml"), "--workers", "2"});
  const ProcessEnd many = call({"check", path("toy.yaml"), "--workers", "64"});
  EXPECT_EQ(lines_of(few) + 1, lines_of(many));  // which tells of rows
  EXPECT_THAT(many.out, HasSubstr("\nring: 8 rows, each a ring of its own, begin with member.0, "));
  EXPECT_LE(lines_of(many), 40) << many.out;
  EXPECT_THAT(many.out,
              HasSubstr("\n  replica.0..127 -> reducer.0..63: contributions, 128 links, "));
  const ProcessEnd all = call({"check", path("toy.yaml"), "--workers", "64", "--links"});
  EXPECT_THAT(all.out,
              HasSubstr("\n  replica.127.contributions -> reducer.63.contributions  data"));
  EXPECT_THAT(all.out, HasSubstr("average_pool1"));
  const JsonValue object =
      last_line(call({"check", path("toy.yaml"), "--workers", "64", "--json"}));
  EXPECT_THAT(object["plan"].text(), HasSubstr("replica.127.contributions"));
}

// The output is larger than what waits in a pipe.
TEST_F(ToyRun, ReaderThatGoesEndsTheProgramSilentlyAsOthers) {
  const std::string script = "'" TROUPE_BINARY "' check " + path("toy.yaml") +
                             " --no-data --workers 64 --set train.scaling=weak --links | head -n 3 "
                             ">&2; echo ${PIPESTATUS[0]}";
  const ProcessEnd end = Process({"/usr/bin/env", "bash", "-c", script}).wait();
  EXPECT_EQ(end.out, "141\n");
  EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 3) << end.err;
}

TEST_F(ToyRun, LogLevelHoldsForAllProcessesOfARun) {
  const ProcessEnd quiet = run("a", {"--workers", "1", "--log-level", "warning"});
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_THAT(quiet.err, testing::Not(HasSubstr(" info ")));
  EXPECT_EQ(read_text(path("a/log.txt")), "");
}

TEST_F(ToyRun, CheckRefusesAsTheRunDoesAndLeavesNothingBehind) {
  const auto names = folder_.names();
  const auto expect_both = [&](int code, const std::string& why, const Words& more) {
    expect_refused(call(Words{"check", path("toy.yaml")} + more), code, {why});
    EXPECT_EQ(folder_.names(), names);
    expect_refused(run("a", more), code, {why});
    std::filesystem::remove_all(path("a"));
    std::filesystem::remove_all(path("data"));
  };
  expect_both(4, "no file matches the pattern", {"--set", "data.train=" + path("none*.h5")});
  expect_both(4, "180 events", {"--set", "train.micro_batches=64"});
  expect_both(3, "cluster.keys: there are no keys in",
              {"--workers", "2", "--set", "cluster.keys=" + path("keys")});
  expect_both(3, "actors.monitor.publish: cannot publish at tcp://10.1.2.3:8500",
              {"--set", "actors.monitor.publish=tcp://10.1.2.3:8500"});
  const ProcessEnd good = call({"check", path("toy.yaml")});
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_THAT(good.err, HasSubstr("troupe: training data: 180 events from 1 files"));
  EXPECT_EQ(folder_.names(), names);
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
  EXPECT_EQ(object["recomputed_hash"].text(), object["state_hash"].text());
  EXPECT_FALSE(object["tensors"].list().empty());
}

// A file from elsewhere may hold anything.
TEST(Verbs, NamesInDataDoNotCommandTheTerminal) {
  const TemporaryFolder folder;
  {
    pipeline::Hdf5Scribe file(folder / "a.h5");
    file.add("bad\x1b[31m", {1}, {1.0f});
    file.attribute("worse\n\x1b[32m", 1.0);
  }
  const ProcessEnd end = call({"data", "info", folder / "a.h5"});
  EXPECT_EQ(end.exit_code, 4) << end.err;
  EXPECT_THAT(end.out, HasSubstr("bad\\x1b[31m"));
  EXPECT_THAT(end.err, HasSubstr("bad\\x1b[31m"));
  EXPECT_THAT(end.out, HasSubstr("@worse\\n\\x1b[32m"));
  EXPECT_EQ((end.out + end.err).find('\x1b'), std::string::npos);
}

// Its datasets are told all the same.
TEST(Verbs, DataInfoOfAFileWithoutASchemaIsDescribedAndAnError) {
  const TemporaryFolder folder;
  pipeline::Hdf5Scribe(folder / "a.h5").add("group/showers", {1}, {1.0f});
  for (const Words& more : {Words{}, Words{"--json"}}) {
    const ProcessEnd end = call(Words{"data", "info", folder / "a.h5"} + more);
    EXPECT_EQ(end.exit_code, 4);
    EXPECT_THAT(end.err, HasSubstr("a.h5: HDF5 of no schema that is known here: lcd-fixed"));
    EXPECT_THAT(end.err, HasSubstr("it has group/showers"));
    if (more.empty()) {
      EXPECT_THAT(end.out, HasSubstr("group/showers float32"));
    } else {
      EXPECT_TRUE(last_line(end)["schema"].is_null());
    }
  }
}

}  // namespace
}  // namespace troupe
