// troupe study as people meet it: its trials are runs of the same program.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "telemetry/watch/page_client.h"
#include "tests/main/study_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST_F(StudyVerb, TrialIsTheRunOfItsSettingsByHash) {
  write_study("method: {kind: random, trials: 3}\nrepeat: {seeds: 2}\nparallel: 2\n");
  const ProcessEnd end = call(study_words("search"));
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const JsonValue report = last_line(end);
  EXPECT_TRUE(report["error"].is_null());
  ASSERT_EQ(report["trials"].list().size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const JsonValue& trial = report["trials"].list()[i];
    EXPECT_EQ(trial["state"].text(), "done");
    for (std::size_t repeat = 0; repeat < 2; ++repeat) {
      Words words{"--set", fmt::format("train.seed={}", 1 + repeat)};
      for (const auto& [path, value] : std::get<JsonValue::Object>(trial["settings"].content)) {
        words = words + Words{"--set", path + "=" + value.text()};
      }
      const JsonValue& run = trial["runs"].list()[repeat];
      EXPECT_EQ(run["state_hash"].text(), hash_of(fmt::format("own.{}.{}", i, repeat), words));
      EXPECT_TRUE(std::filesystem::exists(
          path(fmt::format("search/trials/{}.{}/summary.json", i, repeat))));
    }
  }
  EXPECT_EQ(found_by(report_of("search")), found_by(report));
  const ProcessEnd table = call({"study", path("search"), "--report"});
  EXPECT_THAT(table.out, HasSubstr("3 of 3 trials have ended; the best is trial "));
  EXPECT_THAT(table.out,
              HasSubstr("troupe run " + path("toy.yaml") + " --set train.learning_rate"));
}

// Each fold tests with other events, and is the run that leaves these out.
TEST_F(StudyVerb, FoldsAreRunsThatTestDifferentEvents) {
  write_study("method: {kind: random, trials: 1}\nrepeat: {folds: 3}\n");
  const ProcessEnd end = call(study_words("search"));
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const JsonValue report = last_line(end);
  const JsonValue& trial = report["trials"].list()[0];
  ASSERT_EQ(trial["runs"].list().size(), 3u);
  std::set<std::string> hashes;
  for (std::size_t fold = 0; fold < 3; ++fold) {
    Words words{"--set", "data.test_one_in=3", "--set", fmt::format("data.test_part={}", fold)};
    for (const auto& [path, value] : std::get<JsonValue::Object>(trial["settings"].content)) {
      words = words + Words{"--set", path + "=" + value.text()};
    }
    const std::string hash = trial["runs"].list()[fold]["state_hash"].text();
    EXPECT_EQ(hash, hash_of(fmt::format("own.{}", fold), words));
    hashes.insert(hash);
  }
  EXPECT_EQ(hashes.size(), 3u);
}

TEST_F(StudyVerb, FailingTrialIsToldAndCostsTheOthersNothing) {
  write_text(path("s.yaml"), R"(topology: toy.yaml
space:
  train.learning_rate.g: {choice: [1e-3, 1e30]}
  train.micro_batch: {choice: [4, 4096]}
  train.iterations: {choice: [6]}
objective: {maximise: iterations, of: summary}
method: {kind: grid}
parallel: 2
)");
  const ProcessEnd end = call(study_words("search"));
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const JsonValue report = last_line(end);
  const auto& trials = report["trials"].list();
  ASSERT_EQ(trials.size(), 4u);
  EXPECT_EQ(trials[0]["state"].text(), "done");
  EXPECT_EQ(trials[0]["figure"].number(), 6.0);
  for (const std::size_t i : {1, 2, 3}) {
    const JsonValue& run = trials[i]["runs"].list()[0];
    EXPECT_EQ(trials[i]["state"].text(), "failed") << i;
    EXPECT_NE(run["error"].text(), "") << i;
    EXPECT_EQ(run["exit_code"].integer(), i == 2 ? 6u : 4u) << run["error"].text();
    EXPECT_THAT(end.err, HasSubstr(fmt::format("trial {} failed: ", i)));
  }
}

TEST_F(StudyVerb, TrialForWhichMemoryIsShortFailsAndCostsTheOthersNothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  const std::string text = R"(topology: toy.yaml
space:
  train.seed: {choice: [1, 2]}
  train.micro_batch: {choice: [4, 65536]}
  train.micro_batches: {choice: [64], only_with: {train.micro_batch: 65536}}
  train.iterations: {choice: [6]}
objective: {maximise: iterations, of: summary}
method: {kind: grid}
parallel: 2
)";
  write_text(path("s.yaml"), text);
  const ProcessEnd end =
      call(study_words("search"), {.largest_memory_bytes = std::uint64_t{2} << 30});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const JsonValue report = last_line(end);
  const auto& trials = report["trials"].list();
  ASSERT_EQ(trials.size(), 4u);
  std::size_t failed = 0;
  for (const JsonValue& trial : trials) {
    const JsonValue& run = trial["runs"].list()[0];
    if (trial["settings"]["train.micro_batch"].text() == "4") {
      const std::string seed = trial["settings"]["train.seed"].text();
      EXPECT_EQ(run["state_hash"].text(),
                hash_of("own." + seed, {"--seed", seed, "--set", "train.iterations=6"}));
      continue;
    }
    ++failed;
    EXPECT_EQ(trial["state"].text(), "failed");
    EXPECT_EQ(run["exit_code"].integer(), 3u);
    EXPECT_THAT(run["error"].text(), HasSubstr("GB may be used here"));
  }
  EXPECT_EQ(failed, 2u);
}

// As the system does where memory is short.
TEST_F(StudyVerb, TrialThatTheSystemKillsFailsAndTheNextOneGoesOn) {
  write_text(path("s.yaml"), R"(topology: toy.yaml
space:
  train.iterations: {choice: [1000000, 6]}
  train.epochs: {choice: [1000000]}
objective: {maximise: iterations, of: summary}
method: {kind: grid}
)");
  Process study(command(study_words("search")));
  ASSERT_TRUE(study.wait_until(
      [&] { return std::filesystem::exists(path("search/trials/0/metrics.jsonl")); }));
  const JsonValue nodes = parse_json(read_text(path("search/trials/0/nodes.json")));
  ASSERT_EQ(::kill(static_cast<pid_t>(nodes.list()[0]["pid"].integer()), SIGKILL), 0);
  const ProcessEnd end = study.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const JsonValue report = last_line(end);
  const auto& trials = report["trials"].list();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0]["runs"].list()[0]["exit_code"].integer(), 128u + SIGKILL);
  EXPECT_THAT(trials[0]["runs"].list()[0]["error"].text(), HasSubstr("was killed by signal 9"));
  EXPECT_EQ(trials[1]["state"].text(), "done");
}

TEST_F(StudyVerb, PageFollowsTheStudy) {
  write_study("method: {kind: random, trials: 1}\n");
  ASSERT_EQ(call(study_words("search")).exit_code, 0);
  Process page(command({"study", path("search"), "--report", "--web", "--listen", "127.0.0.1:0"}));
  ASSERT_TRUE(page.wait_until([&] { return page.out().find('\n') != std::string::npos; }));
  auto address = telemetry::parse_page_address(page.out().substr(0, page.out().find('\n')));
  ASSERT_TRUE(address.ok()) << address.error().message;
  const auto shown = [&] {
    const auto told = telemetry::PageClient(*address).get("/");
    return told.ok() ? *told : told.error().message;
  };
  EXPECT_THAT(shown(), HasSubstr("<title>trial 0: "));
  EXPECT_THAT(shown(), testing::Not(HasSubstr("<title>trial 1: ")));
  EXPECT_THAT(shown(), testing::Not(HasSubstr("refresh"))) << "the study is over";
  std::string text = read_text(path("search/study.yaml"));
  write_text(path("search/study.yaml"), text.replace(text.find("trials: 1"), 9, "trials: 2"));
  ASSERT_EQ(call({"study", "--resume", path("search")}).exit_code, 0);
  EXPECT_TRUE(
      page.wait_until([&] { return shown().find("<title>trial 1: ") != std::string::npos; }));
  text = read_text(path("search/study.yaml"));
  write_text(path("search/study.yaml"), "topology: nowhere.yaml\n");
  write_text(path("search/study.jsonl"), read_text(path("search/study.jsonl")) + "{");
  EXPECT_TRUE(page.wait_until(
      [&] { return page.err().find("the page stands still: ") != std::string::npos; }));
  EXPECT_THAT(shown(), HasSubstr("<title>trial 1: "));
  page.send(SIGINT);
  EXPECT_EQ(page.wait().exit_code, 130);
  expect_refused(call({"study", path("search"), "--report", "--listen", "127.0.0.1:0"}), 2,
                 {"--listen goes with --web"});
}

TEST_F(StudyVerb, PageOfAStudyThatGoesOnIsShownToThoseWhoKnowItsToken) {
  write_text(path("s.yaml"), R"(topology: toy.yaml
space:
  train.iterations: {choice: [6, 1000000]}
  train.epochs: {choice: [1000000]}
objective: {maximise: iterations, of: summary}
method: {kind: grid}
)");
  write_text(path("token"), "secret\n");
  Process study(command(study_words("search")));
  ASSERT_TRUE(study.wait_until(
      [&] { return std::filesystem::exists(path("search/trials/1/metrics.jsonl")); }));
  Process page(command({"study", path("search"), "--report", "--web", "--listen", "127.0.0.1:0",
                        "--token", path("token")}));
  ASSERT_TRUE(page.wait_until([&] { return page.out().find('\n') != std::string::npos; }));
  auto address = telemetry::parse_page_address(page.out().substr(0, page.out().find('\n')));
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_FALSE(telemetry::PageClient(*address).get("/").ok());
  const auto refused = telemetry::PageClient(*address).get("/api/runs");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("the file that --token"));
  address->token = "secret";
  const auto told = telemetry::PageClient(*address).get("/");
  ASSERT_TRUE(told.ok()) << told.error().message;
  EXPECT_THAT(*told, HasSubstr("<title>trial 0: 6</title>"));
  EXPECT_THAT(*told, HasSubstr("running"));
  EXPECT_THAT(*told, HasSubstr("<meta http-equiv=\"refresh\" content=\"3\">"));
  for (Process* const each : {&study, &page}) {
    each->send(SIGINT);
    EXPECT_EQ(each->wait().exit_code, 130);
  }
}

TEST_F(StudyVerb, EventsForTensorBoardStandBesideThoseOfOthers) {
  write_study("method: {kind: random, trials: 1}\n");
  for (const char* name : {"first", "second"}) {
    ASSERT_EQ(call(study_words(name)).exit_code, 0);
    // The second time it writes the same files again.
    for (int i = 0; i < 2; ++i) {
      const ProcessEnd end =
          call({"study", path(name), "--report", "--tensorboard", path("board")});
      EXPECT_EQ(end.exit_code, 0) << end.err;
    }
    for (const std::string folder : {"", "/0"}) {
      const auto found = std::filesystem::directory_iterator(path("board/") + name + folder);
      EXPECT_EQ(
          std::ranges::count_if(found, [](const auto& each) { return each.is_regular_file(); }), 1)
          << name << folder;
    }
  }
  std::filesystem::create_directories(path("other/first/0"));
  write_text(path("other/first/0/events.out.tfevents.1.host"), "of another run");
  expect_refused(call({"study", path("first"), "--report", "--tensorboard", path("other")}), 2,
                 {"other/first/0 has the events of another run"});
  EXPECT_FALSE(std::filesystem::exists(path("other/first/1")));
  // Another study, of the same name and begun in the same second.
  std::filesystem::create_directory(path("there"));
  std::filesystem::copy(path("first"), path("there/first"),
                        std::filesystem::copy_options::recursive);
  std::string journal = read_text(path("there/first/study.jsonl"));
  const std::string before = "\"hash\":\"";
  char& digit = journal[journal.find(before) + before.size()];
  digit = digit == '0' ? '1' : '0';
  write_text(path("there/first/study.jsonl"), journal);
  expect_refused(call({"study", path("there/first"), "--report", "--tensorboard", path("board")}),
                 2, {"board/first/ has the events of another run"});
}

TEST_F(StudyVerb, FigureThatNoRunHasEndsTheStudyAndSaysWhichThereAre) {
  write_text(path("s.yaml"), R"(topology: toy.yaml
space: {train.iterations: {choice: [4]}}
objective: {minimise: lost/g, of: metrics}
method: {kind: random, trials: 1}
)");
  const ProcessEnd end = call(study_words("search"));
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_THAT(end.err, HasSubstr("trial 0: the run has no figure lost/g; "));
  EXPECT_THAT(end.err, HasSubstr("begin a study in another folder"));
  const JsonValue report = report_of("search");
  EXPECT_EQ(report["trials"].list()[0]["state"].text(), "running");
  EXPECT_TRUE(report["best"].is_null());
}

// The first checkpoint does not fit.
TEST_F(StudyVerb, FullDiskStopsTheStudyAndFailsNoTrial) {
  write_study("method: {kind: random, trials: 2}\n");
  const auto whole = found_by(last_line(call(study_words("whole"))));
  const ProcessEnd full = call(study_words("cut"), {.largest_file_bytes = 16384});
  EXPECT_EQ(full.exit_code, 4);
  EXPECT_THAT(full.err, HasSubstr("File too large"));
  EXPECT_THAT(full.err, HasSubstr("go on with: troupe study --resume " + path("cut")));
  EXPECT_EQ(lines_of("cut"), 3u);
  const ProcessEnd last = call({"study", "--resume", path("cut"), "--json"});
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(found_by(last_line(last)), whole);
}

TEST_F(StudyVerb, TopologyThatChangesMeanwhileEndsTheStudy) {
  write_study("method: {kind: random, trials: 1000}\n");
  Process process(command(study_words("search")));
  ASSERT_TRUE(process.wait_until([&] { return lines_of("search") >= 3; }));
  const std::string before = read_text(path("toy.yaml"));
  write_text(path("toy.yaml"), before + "# touched\n");
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_THAT(end.err, HasSubstr(path("toy.yaml") + " has changed since the study began"));
  for (const JsonValue& line : json_lines(path("search/study.jsonl"))) {
    if (line["kind"].text() != "end") continue;
    EXPECT_EQ(line["error"].text(), "");
  }
}

// The journal begins before the folder holds a study.
TEST_F(StudyVerb, StudyWithoutAWholeLineInItsJournalIsRefused) {
  write_study("method: {kind: random, trials: 1}\n");
  ASSERT_EQ(call(study_words("whole")).exit_code, 0);
  std::filesystem::create_directory(path("cut"));
  std::filesystem::copy_file(path("whole/study.yaml"), path("cut/study.yaml"));
  for (const char* journal : {"none", "", "{\"kind\":\"stu"}) {
    if (journal != std::string("none")) write_text(path("cut/study.jsonl"), journal);
    expect_refused(call({"study", "--resume", path("cut")}), 4,
                   {"has a study and no journal; put study.jsonl back"});
  }
}

// The known trials are there even if all other lines are lost.
TEST_F(StudyVerb, TrialsOfAnotherStudyCountAsRunBeforeAnyBegins) {
  write_study("method: {kind: bayesian, trials: 3, first: 2}\n");
  ASSERT_EQ(call(study_words("first")).exit_code, 0);
  ASSERT_EQ(call({"study", path("first"), "--report", "--optuna", path("o.db")}).exit_code, 0);
  write_study("method: {kind: bayesian, trials: 4, first: 2}\n");
  const ProcessEnd end = call(study_words("more") + Words{"--from", path("o.db")});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const auto whole = found_by(last_line(end));
  ASSERT_EQ(whole.size(), 4u);
  EXPECT_EQ(lines_of("more"), 13u);
  std::string journal = read_text(path("more/study.jsonl"));
  for (int i = 0; i < 3; ++i) journal.resize(journal.rfind('\n', journal.size() - 2) + 1);
  write_text(path("more/study.jsonl"), journal);
  std::filesystem::remove_all(path("more/trials"));
  const ProcessEnd last = call({"study", "--resume", path("more"), "--json"});
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(found_by(last_line(last)), whole);
}

// The line of its end alone was lost. A process that seems to be still there is waited for.
TEST_F(StudyVerb, RunThatHasEndedIsNotBegunAgainAndALockedFolderIsWaitedFor) {
  write_text(path("s.yaml"), R"(topology: toy.yaml
space: {train.iterations: {choice: [6]}}
objective: {maximise: events_per_second, of: summary}
method: {kind: random, trials: 1}
)");
  const auto whole = found_by(last_line(call(study_words("search"))));
  const std::string journal = read_text(path("search/study.jsonl"));
  const std::size_t behind = journal.rfind('\n', journal.size() - 2) + 1;
  write_text(path("search/study.jsonl"), journal.substr(0, behind));
  const auto lock = path("search/trials/0/.lock");
  const int file = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(file, LOCK_EX | LOCK_NB), 0);
  Process process(command({"study", "--resume", path("search"), "--json"}));
  ASSERT_TRUE(process.wait_until(
      [&] { return process.err().find("waits for the process that still works in") < SIZE_MAX; }));
  EXPECT_EQ(lines_of("search"), 3u);
  ::close(file);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(found_by(last_line(end)), whole);
}

TEST_F(StudyVerb, StudyThatIsStoppedWhileItWaitsFailsNoTrial) {
  write_study("method: {kind: random, trials: 1}\n");
  ASSERT_EQ(call(study_words("search")).exit_code, 0);
  const std::string journal = read_text(path("search/study.jsonl"));
  const std::size_t behind = journal.rfind('\n', journal.size() - 2) + 1;
  write_text(path("search/study.jsonl"), journal.substr(0, behind));
  // Not even the topology is there yet.
  std::filesystem::remove(path("search/trials/0/topology.yaml"));
  const int file = ::open(path("search/trials/0/.lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(file, LOCK_EX | LOCK_NB), 0);
  Process process(command({"study", "--resume", path("search"), "--json"}));
  ASSERT_TRUE(process.wait_until(
      [&] { return process.err().find("waits for the process that still works in") < SIZE_MAX; }));
  process.send(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 130);
  ::close(file);
  EXPECT_EQ(lines_of("search"), 3u);
}

// The method learns from figures, so that each proposal tells whether they were all kept.
TEST_F(StudyVerb, KilledAndStoppedStudyGoesOnToTheSameEnd) {
  write_study("method: {kind: bayesian, trials: 7, first: 3}\nparallel: 2\n");
  const auto whole = found_by(last_line(call(study_words("whole"))));
  ASSERT_EQ(whole.size(), 7u);
  Process first(command(study_words("cut")));
  first.wait_until([&] { return lines_of("cut") >= 5; });
  first.send(SIGKILL);
  first.wait();
  Process second(command({"study", "--resume", path("cut"), "--json"}));
  second.wait_until([&] { return lines_of("cut") >= 12; });
  second.send(SIGINT);
  const ProcessEnd stopped = second.wait();
  if (lines_of("cut") < 22) {
    EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
    EXPECT_THAT(stopped.err, HasSubstr("go on with: troupe study --resume"));
  }
  const ProcessEnd last = call({"study", "--resume", path("cut"), "--json"});
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(found_by(last_line(last)), whole) << stopped.err << last.err;
  EXPECT_EQ(lines_of("cut"), lines_of("whole"));
}

// One on the last rung was resumed on its way there.
TEST_F(StudyVerb, HalvingLeavesTrialsAndTrainsTheBestAsAWholeRun) {
  write_text(path("s.yaml"), R"(topology: toy.yaml
space:
  train.learning_rate.g: {log: [1e-4, 1e-2]}
  actors.validator.every: {choice: [1 epoch]}
  actors.validator.events: {choice: [20]}
objective: {minimise: merit}
method: {kind: random, trials: 4}
stop: {kind: halving, from: 1 epoch, keep_one_in: 2}
parallel: 2
)");
  const ProcessEnd end = call(study_words("search"));
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const JsonValue report = last_line(end);
  const auto& trials = report["trials"].list();
  ASSERT_EQ(trials.size(), 4u);
  std::size_t done = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& runs = trials[i]["runs"].list();
    ASSERT_EQ(runs.size(), trials[i]["rung"].integer() + 1);
    EXPECT_EQ(trials[i]["state"].text(), runs.size() == 2 ? "done" : "left");
    for (std::size_t rung = 0; rung < runs.size(); ++rung) {
      Words words{"--set", fmt::format("train.epochs={}", rung + 1)};
      for (const auto& [path, value] : std::get<JsonValue::Object>(trials[i]["settings"].content)) {
        words = words + Words{"--set", path + "=" + value.text()};
      }
      EXPECT_EQ(runs[rung]["state_hash"].text(), hash_of(fmt::format("own.{}.{}", i, rung), words));
    }
    done += runs.size() == 2;
  }
  EXPECT_GE(done, 1u);
  EXPECT_LT(done, 4u);
}

TEST_F(StudyVerb, GoesOnWithMoreTrialsAndWithNothingElseChanged) {
  write_study("method: {kind: random, trials: 1}\n");
  ASSERT_EQ(call(study_words("search")).exit_code, 0);
  std::string text = read_text(path("search/study.yaml"));
  const std::size_t at = text.find("trials: 1");
  ASSERT_NE(at, std::string::npos);
  write_text(path("search/study.yaml"), text.replace(at, 9, "trials: 2"));
  const ProcessEnd more = call({"study", "--resume", path("search"), "--json"});
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(last_line(more)["trials"].list().size(), 2u);
  write_text(path("toy.yaml"), read_text(path("toy.yaml")) + "# touched\n");
  expect_refused(call({"study", "--resume", path("search")}), 3,
                 {"only trials, target, patience and workers may change"});
}

TEST_F(StudyVerb, RefusesWhatIsNoStudy) {
  expect_refused(call({"study"}), 2, {"which study file?"});
  expect_refused(call({"study", path("none.yaml")}), 3, {path("none.yaml")});
  expect_refused(call({"study", path("toy.yaml")}), 3,
                 {"toy.yaml:2:1: unknown key \"model\"", "\"space\" is missing"});
  expect_refused(call({"study", folder_.path(), "--report"}), 2, {"is no study's folder"});
  expect_refused(call({"study", "--resume", folder_.path()}), 2, {"is no study's folder"});
  expect_refused(call({"study", "a", "--resume", "b"}), 2, {"--resume names the folder already"});
  expect_refused(call({"study", "--resume", "b", "--report"}), 2, {"--report runs nothing"});
  expect_refused(call({"study", "a", "--report", "--out", "b"}), 2, {"leave out --out"});
  write_study("");
  write_text(path("taken"), "");
  expect_refused(call({"study", path("s.yaml"), "--out", path("taken")}), 2, {"taken"});
}

}  // namespace
}  // namespace troupe
