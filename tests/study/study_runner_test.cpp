// How a study starts the processes of its runs and members, with a script in their place.

#include "study/study_runner.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "runtime/base/disk.h"
#include "study/method.h"
#include "tests/study/study_support.h"

namespace troupe::study {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// It notes its words, a line for each process, in the file of the name $calls.
constexpr const char* kScript = R"(#!/bin/sh
calls='{}/calls'
echo "$*" >> "$calls"
count() {{ grep -c "^$1" "$calls"; }}
await() {{
  for i in $(seq 600); do
    [ $(count $1) -lt $2 ] || return 0
    sleep 0.05
  done
  exit 9
}}
{}
)";

class StudyRunnerTest : public testing::Test {
 protected:
  // Trials of which the script is the run; what the first one comes to.
  RunResult run(const std::string& script,
                const std::string& more = "method: {kind: random, trials: 1}\nworkers: 2\n") {
    write_text(folder_ / "troupe", fmt::format(kScript, folder_.path(), script));
    std::filesystem::permissions(folder_ / "troupe", std::filesystem::perms::owner_all);
    const LoadedStudy loaded = parsed(
        "topology: toy\nspace: {train.seed: {integer: [1, 9]}}\n"
        "objective: {minimise: iterations, of: summary}\n" +
        more);
    runtime::FileDisk disk;
    const auto folder = StudyFolder::create(folder_ / "search", loaded.study, {}, disk);
    EXPECT_TRUE(folder.ok()) << folder.error().message;
    auto journal = StudyJournal::open(folder->journal());
    EXPECT_TRUE(journal.ok()) << journal.error().message;
    const auto method = make_method(loaded.study);
    TrialBook book(loaded.study, *method, loaded.rungs.size());
    const auto end = run_study({loaded, *folder, folder_ / "troupe", {"--quiet"}}, *journal, book,
                               runtime::Log::silent());
    EXPECT_TRUE(end.ok()) << end.error().message;
    return book.jobs().empty() || book.jobs()[0].results.empty() ? RunResult{}
                                                                 : book.jobs()[0].results[0];
  }
  // The lines of processes with this first word.
  std::vector<std::string> calls(const std::string& word) const {
    std::vector<std::string> found;
    const std::string text = read_text(folder_ / "calls");
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos;
         at = end + 1) {
      const std::string line = text.substr(at, end - at);
      if (line.starts_with(word)) found.push_back(line);
    }
    return found;
  }

  const TemporaryFolder folder_;
};

constexpr const char* kSummary = R"(echo '{"iterations":7,"stopped":false,"exit_code":0}')";

// As where somebody takes its ports between the look at them and the run.
TEST_F(StudyRunnerTest, RunThatHasNoAddressBeginsAgainAtAnother) {
  const RunResult result = run("[ $1 = run ] || exec sleep 100\n[ $(count run) = 3 ] || exit 2\n" +
                               std::string(kSummary));
  EXPECT_EQ(result.figure, 7.0) << result.error;
  const std::vector<std::string> runs = calls("run");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_THAT(runs[0], HasSubstr("cluster.listen=\"127.0.0.1:"));
  EXPECT_EQ(std::set(runs.begin(), runs.end()).size(), 3u) << runs[0];
}

TEST_F(StudyRunnerTest, RunThatHasLostAllItsWorkersGoesOn) {
  const RunResult result = run("[ $1 = run ] || exec sleep 100\n[ $(count run) = 3 ] || exit 5\n" +
                               std::string(kSummary));
  EXPECT_EQ(result.figure, 7.0) << result.error;
  EXPECT_EQ(calls("run").size(), 3u);
}

// It is then the trial's own end.
TEST_F(StudyRunnerTest, RunThatIsAlwaysRefusedFails) {
  const RunResult result = run("[ $1 = run ] || exec sleep 100\necho no room >&2\nexit 2");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.error, "no room");
  EXPECT_EQ(calls("run").size(), 5u);
}

TEST_F(StudyRunnerTest, RunWhoseMembersAreKilledOneAfterTheOtherGetsNoMore) {
  const RunResult result =
      run("[ $1 = run ] || kill -9 $$\nuntil [ $(count join) -ge 3 ]; do sleep 0.05; done\n"
          "sleep 0.5\n" +
          std::string(kSummary));
  EXPECT_EQ(result.figure, 7.0) << result.error;
  EXPECT_EQ(calls("join").size(), 3u);
}

// One that people have let go has no successor, and is no sign that its run is over: another one
// that is killed is replaced. What it tells is read, however little people want to read.
TEST_F(StudyRunnerTest, WorkerThatIsLetGoIsNotReplacedAndItsRunGoesOn) {
  const RunResult result = run(R"(case "$*" in
run*) await join 3 ;;
*)
  if mkdir "$calls.first" 2>/dev/null; then
    echo $$ > "$calls.pid"
    echo '12:00 info member.1: leaves the run: somebody has asked for it' >&2
    echo '12:00 info: bye' >&2
    exit 0
  elif mkdir "$calls.second" 2>/dev/null; then
    until [ -s "$calls.pid" ]; do sleep 0.05; done
    while kill -0 $(cat "$calls.pid") 2>/dev/null; do sleep 0.05; done
    kill -9 $$
  fi
  exec sleep 100 ;;
esac
)" + std::string(kSummary),
                               "method: {kind: random, trials: 1}\nworkers: 3\n");
  EXPECT_EQ(result.figure, 7.0) << result.error;
  EXPECT_EQ(calls("join").size(), 3u);
  EXPECT_THAT(calls("join"), Each(Not(HasSubstr("--quiet"))));
  EXPECT_THAT(calls("run"), ElementsAre(HasSubstr("--quiet")));
}

// Three runs have two workers each. The second one ends, and the third trial waits for the first;
// when that ends, two begin at once, and the run that is left has one worker too many.
TEST_F(StudyRunnerTest, WorkerLeavesItsRunWhenAnotherBegins) {
  const RunResult result = run(R"(case "$*" in
join*) trap 'echo left >> "$calls"; exit 0' TERM; while :; do sleep 0.05; done ;;
*trials/0\ *) await join 5 ;;
*trials/1\ *) await join 3 ;;
*) await left 1 ;;
esac
)" + std::string(kSummary),
                               "method: {kind: random, trials: 5}\nstop: {patience: 50}\n"
                               "parallel: 3\nworkers: 6\n");
  EXPECT_EQ(result.figure, 7.0) << result.error;
  EXPECT_EQ(calls("left").size(), 1u);
  EXPECT_EQ(calls("run").size(), 5u);
}

}  // namespace
}  // namespace troupe::study
