// Runs that are watched, as whoever watches them meets it: the page's addresses of a running
// training, and that nothing of it reaches the trained bits.

#include <gmock/gmock.h>

#include <fmt/format.h>
#include <csignal>
#include <filesystem>
#include <set>

#include "tests/main/cluster_run.h"
#include "tests/telemetry/page/raw_client.h"

namespace troupe {
namespace {

using telemetry::body_of;
using telemetry::get;
using telemetry::RawClient;
using telemetry::status_of;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const Words kUnwatched{"--set", "actors.monitor={listen: none, tensorboard: false}"};

class Watching : public ClusterRun {
 protected:
  static JsonValue history(std::uint16_t port) {
    return parse_json(body_of(get(port, "/api/runs/0/history")));
  }
  static std::string state_of(const JsonValue& history, const std::string& node) {
    for (const JsonValue& each : history["nodes"].list()) {
      if (each["name"].text() == node) return each["state"].text();
    }
    return "";
  }
  static std::size_t actors_of(const JsonValue& history, const std::string& node) {
    for (const JsonValue& each : history["nodes"].list()) {
      if (each["name"].text() == node) return each["actors"].list().size();
    }
    return 0;
  }
  static std::set<std::string> marks(const JsonValue& history) {
    std::set<std::string> texts;
    if (!history.has("marks")) return texts;
    for (const JsonValue& mark : history["marks"].list()) texts.insert(mark["text"].text());
    return texts;
  }
  // Any free port, so that tests beside this one do not meet.
  Words watched(const Words& more = {}) const {
    return Words{"--set", "actors.monitor.listen=127.0.0.1:0"} + more;
  }
};

TEST_F(Watching, StateIsTheSameWhoeverWatchesAndWhateverBecomesOfIt) {
  const Words validating{"--set", "actors.validator={every: 1 epoch, events: 20}"};
  const std::string hash = hash_of("unwatched", kUnwatched + validating);
  EXPECT_EQ(hash_of("watched", watched({"--set", "actors.monitor.publish=ipc://" + path("stream"),
                                        validating[0], validating[1]})),
            hash);
  // Nothing that tells of the run can be written.
  std::filesystem::create_directories(path("full/metrics.jsonl"));
  write_text(path("full/showers"), "no folder");
  const ProcessEnd full = run("full", watched({"--json", validating[0], validating[1]}));
  ASSERT_EQ(full.exit_code, 0) << full.err;
  EXPECT_EQ(last_line(full)["state_hash"].text(), hash);
  EXPECT_THAT(full.err, HasSubstr("metrics.jsonl: Is a directory; metrics are not written"));
}

TEST_F(Watching, RunThatIsNotWatchedLeavesNoEventFileAndNamesNoPage) {
  summary_of("a", kUnwatched);
  for (const auto& entry : std::filesystem::directory_iterator(path("a"))) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("tfevents")));
  }
  EXPECT_THAT(read_text(path("a/log.txt")), Not(HasSubstr("watch it")));
}

TEST_F(Watching, PageOfARunningTrainingTellsHowFarItIs) {
  Words words =
      watched(kEndlessRun) + Words{"--set", "actors.validator={every: 5 iterations, events: 20}"};
  Process process(command(run_words("a", words)));
  const std::uint16_t port = page_port(process, "a");
  wait_until_training(process, 200);
  EXPECT_EQ(body_of(get(port, "/healthz")), "ok\n");
  const JsonValue runs = parse_json(body_of(get(port, "/api/runs")));
  EXPECT_EQ(runs["runs"].list().at(0)["folder"].text(), path("a"));
  EXPECT_TRUE(runs["runs"].list().at(0)["live"].truth());
  const JsonValue known = history(port);
  EXPECT_EQ(known["progress"]["state"].text(), "training");
  EXPECT_GE(known["progress"]["steps"].integer(), 100);
  EXPECT_EQ(known["run"]["name"].text(), "toy");
  EXPECT_TRUE(known["series"].has("loss/g/generation"));
  EXPECT_TRUE(known["series"].has("validation/total"));
  EXPECT_FALSE(known["log"].list().empty());
  EXPECT_THAT(body_of(get(port, "/metrics", "Accept: application/openmetrics-text\r\n")),
              AllOf(HasSubstr("troupe_steps_total "), HasSubstr("\n# EOF\n")));
  const auto& showers = known["showers"].list();
  ASSERT_FALSE(showers.empty());
  const JsonValue seen = parse_json(
      body_of(get(port, fmt::format("/api/runs/0/showers/{}", showers.front().integer()))));
  EXPECT_EQ(seen["space"].list().size(), 3);
  EXPECT_EQ(status_of(get(port, "/api/runs/0/showers/3")), 404);
  EXPECT_THAT(body_of(get(port, "/api/runs/0/waits")),
              AllOf(HasSubstr("local\n"), HasSubstr("replica.0: ")));
  const JsonValue trace = parse_json(body_of(get(port, "/api/runs/0/trace")));
  EXPECT_GT(trace["traceEvents"].list().size(), 100);
  // A stream begins with all that is known, and goes on.
  RawClient stream(port);
  stream.say(fmt::format("GET /api/runs/0/stream HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", port));
  EXPECT_THAT(stream.hear("event: update"), HasSubstr("event: history"));
  process.send(SIGTERM);
  // Followers are told how it ended.
  EXPECT_THAT(stream.hear(R"("state":"stopped")"), HasSubstr(R"("state":"stopped")"));
  EXPECT_EQ(process.wait().exit_code, 143);
}

TEST_F(Watching, KilledMemberAndItsSuccessorAreShown) {
  Process process(command(run_words("a", watched([] {
                                      return kEndlessRun + Words{"--workers", "2"};
                                    }()))));
  const std::uint16_t port = page_port(process, "a");
  wait_until_training(process);
  ASSERT_EQ(state_of(history(port), "member.1"), "running");
  ::kill(member(1), SIGKILL);
  EXPECT_TRUE(process.wait_until([&] { return state_of(history(port), "member.1") == "dead"; }));
  EXPECT_TRUE(process.wait_until([&] { return state_of(history(port), "member.2") == "running"; }));
  EXPECT_TRUE(process.wait_until([&] { return actors_of(history(port), "member.2") > 0; }));
  EXPECT_THAT(body_of(get(port, "/api/runs/0/waits")),
              AllOf(HasSubstr("head\n"), HasSubstr("member.0\n"), HasSubstr("member.2\n"),
                    Not(HasSubstr(": on another node\n"))));
  const JsonValue known = history(port);
  EXPECT_THAT(marks(known), Contains(HasSubstr("member.1 was lost: ")));
  EXPECT_THAT(marks(known), Contains(HasSubstr("member.2 is joining")));
  EXPECT_THAT(marks(known), Contains(HasSubstr("2 members; member.2 joined")));
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 143);
}

TEST_F(Watching, RunThatGoesOnShowsWhatWasBeforeAndWhereItWentOn) {
  summary_of("a", watched({"--set", "train.epochs=1"}));
  Process process(command({"run", "--resume", path("a"), "--set", "train.epochs=1000000", "--set",
                           "actors.monitor.listen=127.0.0.1:0"}));
  const std::uint16_t port = page_port(process, "a", 2);
  EXPECT_TRUE(
      process.wait_until([&] { return history(port)["progress"]["steps"].integer() > 100; }));
  const JsonValue known = history(port);
  EXPECT_EQ(known["series"]["loss/d_real/generation"]["x"].list().at(0).integer(), 0);
  EXPECT_THAT(marks(known), Contains("went on at step 44"));
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 143);
}

TEST_F(Watching, BeyondThisMachineThePageAsksForATokenThatTheRunHasMade) {
  Process process(
      command(run_words("a", kEndlessRun + Words{"--set", "actors.monitor.listen=0.0.0.0:0"})));
  std::string log;
  ASSERT_TRUE(process.wait_until([&] {
    if (std::filesystem::exists(path("a/log.txt"))) log = read_text(path("a/log.txt"));
    return log.find("watch it at http://") != std::string::npos;
  }));
  EXPECT_THAT(log, HasSubstr("/ with the token in " + path("a/page.token")));
  const std::size_t at = log.find("watch it at http://");
  const std::size_t colon = log.find(':', at + 19);
  const auto port = static_cast<std::uint16_t>(std::stoi(log.substr(colon + 1)));
  const std::string token = read_text(path("a/page.token"));
  EXPECT_EQ(std::filesystem::status(path("a/page.token")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(status_of(get(port, "/api/runs")), 401);
  const std::string key = token.substr(0, token.find('\n'));
  EXPECT_EQ(status_of(get(port, "/api/runs", "Authorization: Bearer " + key + "\r\n")), 200);
  EXPECT_EQ(log.find(key), std::string::npos);
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 143);
}

}  // namespace
}  // namespace troupe
