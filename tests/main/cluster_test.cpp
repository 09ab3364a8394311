// The same bits from one process and from several, stopped and gone on with in any of them.

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class Cluster : public ClusterRun {
 protected:
  // Run, head and joined members; the head's end.
  ProcessEnd by_hand(const Words& head_line, int members, const std::string& address,
                     const Words& join_more) const {
    Process process(command(head_line));
    std::vector<std::unique_ptr<Process>> joined;
    for (int i = 0; i < members; ++i) {
      joined.push_back(std::make_unique<Process>(command(Words{"join", address} + join_more)));
    }
    for (const auto& one : joined) {
      const ProcessEnd end = one->wait();
      EXPECT_EQ(end.exit_code, 0) << end.err;
    }
    return process.wait();
  }
};

TEST_F(Cluster, AnyNumberOfWorkersGivesTheHashOfOneProcess) {
  const JsonValue alone = summary_of("alone", {"--set", "actors.replica.count=1"});
  const std::string hash = alone["state_hash"].text();
  EXPECT_EQ(hash_of("three", {"--set", "actors.replica.count=3"}), hash);
  for (const char* workers : {"1", "3"}) {
    const JsonValue summary = summary_of(workers, {"--workers", workers});
    EXPECT_EQ(summary["state_hash"].text(), hash) << workers;
    EXPECT_EQ(summary["ledger"]["events"].integer(), alone["ledger"]["events"].integer());
    EXPECT_EQ(summary["ledger"]["sum"].text(), alone["ledger"]["sum"].text());
    EXPECT_GT(summary["bytes_on_wire"].integer(), 0u);
    EXPECT_EQ(nodes(workers).size(), std::stoul(workers) + 1);
    for (const auto& [name, node] : nodes(workers))
      EXPECT_EQ(node.state, "ended") << name << " " << node.cause;
  }
}

// The supervisor reads it, and no other process does.
TEST_F(Cluster, TopologyThatCanBeReadOnceIsEnough) {
  const std::string line =
      "cat \"$2\" | \"$0\" run /dev/stdin --workers 2 --out \"$1\" --set data.train=\"$3\"";
  Process piped({"/bin/sh", "-c", line, command({}).front(), path("piped"), path("toy.yaml"),
                 path("toy.h5")});
  EXPECT_EQ(piped.wait().exit_code, 0);
  const auto topology = [this](const std::string& run) {
    std::ifstream file(path(run + "/topology.yaml"));
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  EXPECT_THAT(topology("piped"), HasSubstr("zoo: toy  # /dev/stdin:"));
}

TEST_F(Cluster, LossyReductionsRepeatThemselvesAndNotTheExactOne) {
  const std::string exact = hash_of("exact");
  for (const char* format : {"fp32", "bf16", "int8"}) {
    const Words words{"--workers", "3", "--set",
                      fmt::format("actors.reducer.reduction={}", format)};
    const std::string hash = hash_of(format, words);
    EXPECT_EQ(hash_of(fmt::format("{}-again", format), words), hash) << format;
    EXPECT_NE(hash, exact) << format;
  }
}

// Two sites whose hosts take turns in the file, with one line between them that is slower than the
// others; their members are all here.
TEST_F(Cluster, RingOrderedByBandwidthGivesTheHashOfOneProcessAndItsOwnLossySums) {
  // Every member has a micro-batch of its own.
  const Words numbers{"--workers", "4", "--set", "actors.replica.count=1"};
  const Words sites{"--workers",
                    "4",
                    "--set",
                    "actors.replica.count=1",
                    "--set",
                    "cluster.hosts=[{address: a1}, {address: b1}, {address: a2}, {address: b2}]",
                    "--set",
                    "cluster.bandwidth=[{between: [[a1, a2], [b1, b2]], rate: 100Mbit}, {between: "
                    "[a1, b1], rate: 10Mbit}]"};
  const std::string ring =
      "ring: a1 (member.0) -> a2 (member.2) -> b1 (member.1) -> b2 (member.3) -> a1; slowest edge "
      "a2 -> b1, 100Mbit\n";
  const ProcessEnd checked = call(Words{"check", path("toy.yaml"), "--links"} + sites);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("\n" + ring));
  EXPECT_THAT(
      checked.out,
      HasSubstr(
          "each of reducer.0, reducer.1, reducer.2, reducer.3 to each other of them at ring"));

  EXPECT_EQ(hash_of("sites", sites), hash_of("alone"));
  EXPECT_THAT(read_text(path("sites/log.txt")), HasSubstr(ring));
  const auto in_fp32 = [&](const std::string& name, Words words) {
    words = words + Words{"--set", "actors.reducer.reduction=fp32"};
    return hash_of(name, words);
  };
  const std::string lossy = in_fp32("lossy", sites);
  EXPECT_EQ(in_fp32("lossy-again", sites), lossy);
  EXPECT_NE(in_fp32("lossy-numbers", numbers), lossy);
}

TEST_F(Cluster, WeakScalingMakesIterationsOfAsManyMicroBatchesForEachMember) {
  const Words weak{"--workers", "2", "--set", "train.scaling=weak"};
  const JsonValue two = summary_of("two", weak);
  const JsonValue one = summary_of("one", {"--workers", "1", "--set", "train.scaling=weak"});
  EXPECT_NE(two["state_hash"].text(), one["state_hash"].text());
  EXPECT_GT(two["ledger"]["events"].integer(), 0u);
  EXPECT_EQ(two["ledger"]["events"].integer() * one["iterations"].integer(),
            2 * one["ledger"]["events"].integer() * two["iterations"].integer());
}

TEST_F(Cluster, UnevenAndIdleMembersGiveTheHashOfOneProcess) {
  const std::string hash = hash_of("alone");
  EXPECT_EQ(hash_of("uneven", {"--workers", "2", "--set", "cluster.assign=[1, 3]"}), hash);
  EXPECT_EQ(hash_of("idle", {"--workers", "2", "--set", "cluster.assign=[0, 1]"}), hash);
  EXPECT_EQ(hash_of("single", {"--workers", "6", "--set", "actors.replica.count=1"}), hash);
}

TEST_F(Cluster, ValidationAndCheckpointsAreThoseOfOneProcess) {
  const Words validating{"--set", "actors.validator={every: 1 epoch, events: 10}", "--set",
                         "actors.checkpointer={every: 1 epoch, keep: 3}"};
  Words over_two = validating + Words{"--workers", "2"};
  const JsonValue alone = summary_of("alone", validating);
  const JsonValue members = summary_of("members", over_two);
  EXPECT_EQ(members["state_hash"].text(), alone["state_hash"].text());
  EXPECT_EQ(checkpoints("members"), checkpoints("alone"));
  EXPECT_FALSE(checkpoints("alone").empty());
  const auto& rows = alone["validation"]["rows"].list();
  const auto& others = members["validation"]["rows"].list();
  ASSERT_EQ(others.size(), rows.size());
  const auto best = [&](const std::string& name) {
    return read_text(path(name + "/checkpoints/best.json"));
  };
  EXPECT_EQ(best("members"), best("alone"));
  const auto told = [&](const std::string& name) {
    std::vector<std::string> lines;
    std::istringstream text(read_text(path(name + "/metrics.jsonl")));
    for (std::string line; std::getline(text, line);) {
      // All but when that was.
      if (line.starts_with(R"({"kind":"validation")")) {
        lines.push_back(line.substr(line.find(R"("fields")")));
      }
    }
    return lines;
  };
  EXPECT_EQ(told("members"), told("alone"));
  EXPECT_FALSE(told("alone").empty());
}

TEST_F(Cluster, RunStoppedInSeveralProcessesGoesOnInAnyNumberToTheSameHash) {
  const std::vector<Words> sessions{
      {"--workers", "2"}, {"--workers", "0"}, {"--workers", "3"}, {"--workers", "1"}};
  for (std::uint32_t stop = 0; stop < sessions.size(); ++stop) {
    const bool first = stop % 2 == 0;
    const ProcessEnd end =
        interrupt(first ? SIGTERM : SIGINT, stop, 40, kEndlessRun, sessions[stop]);
    ASSERT_EQ(end.exit_code, first ? 143 : 130) << end.err;
    EXPECT_THAT(end.err, HasSubstr("--resume " + path("a")));
    // The options with which the process above it asks the head.
    if (!first) {
      EXPECT_THAT(end.err, testing::Not(HasSubstr("signal 15")));
    }
    const JsonValue summary = parse_json(read_text(path("a/summary.json")));
    EXPECT_TRUE(summary["stopped"].truth());
    EXPECT_EQ(summary["steps"].integer(), newest_step("a"));
    for (const auto& [name, node] : nodes())
      EXPECT_EQ(node.state, "ended") << name << " " << node.cause;
  }
  const std::uint64_t iterations = newest_step("a") / 4 + 5;
  const JsonValue whole = summary_of("whole", until_iteration(iterations));
  const JsonValue parts = resumed("a", until_iteration(iterations, {"--workers", "2"}));
  EXPECT_EQ(parts["state_hash"].text(), whole["state_hash"].text());
  EXPECT_EQ(parts["ledger"]["sum"].text(), whole["ledger"]["sum"].text());
  EXPECT_EQ(json_lines(path("a/metrics.jsonl")).back()["step"].integer(), iterations * 4);
}

// Each in a way of its own: any ports, those that are named, a socket of the file system.
TEST_F(Cluster, MembersThatListenWhereTheyAreToldGiveTheHashOfOneProcess) {
  const std::string hash = hash_of("alone");
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Process head(command(head_words("a", address, 3, {"--json"})));
  std::vector<std::unique_ptr<Process>> joined;
  for (const std::string& place :
       {std::string("127.0.0.1:0"), fmt::format("127.0.0.1:{}", free_port()),
        "ipc://" + path("member")}) {
    joined.push_back(std::make_unique<Process>(command({"join", address, "--listen", place})));
  }
  for (const auto& one : joined) {
    const ProcessEnd end = one->wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }
  const ProcessEnd end = head.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash);
}

TEST_F(Cluster, MembersThatProveTheirKeysGiveTheHashOfOneProcess) {
  const std::string hash = hash_of("alone");
  const std::string keys = make_keys("keys");
  const std::string other = make_keys("other");
  let_in(keys, other);
  const int port = free_port();
  const ProcessEnd end =
      by_hand(run_words("a", {"--json", "--set", "cluster.keys=" + keys, "--set",
                              fmt::format("cluster.listen=\"*:{}\"", port), "--set",
                              "cluster.hosts=[{address: elsewhere.invalid, workers: 2}]"}),
              2, fmt::format("127.0.0.1:{}#{}", port, public_key(keys)), {"--key", other});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash);
}

// One that the supervisor starts, on addresses of this host, and one by hand.
TEST_F(Cluster, MembersHereAndElsewhereMakeOneRun) {
  const std::string hash = hash_of("alone");
  const std::string keys = make_keys("keys");
  const int port = free_port();
  const ProcessEnd end = by_hand(
      run_words("a", {"--json", "--set", "cluster.keys=" + keys, "--set",
                      fmt::format("cluster.listen=\"*:{}\"", port), "--set",
                      "cluster.hosts=[{address: localhost}, {address: elsewhere.invalid}]"}),
      1, fmt::format("127.0.0.1:{}#{}", port, public_key(keys)),
      {"--key", keys, "--node", "member.1"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash);
  EXPECT_EQ(nodes().size(), 3u);
}

// The head waits there although it needs nobody yet.
TEST_F(Cluster, MembersThatAreAllHereAreJoinedFromElsewhereLater) {
  const std::string keys = make_keys("keys");
  const int port = free_port();
  Process run(command(
      run_words("a", kEndlessRun + Words{"--set", "cluster.keys=" + keys, "--set",
                                         fmt::format("cluster.listen=\"*:{}\"", port), "--set",
                                         "cluster.hosts=[{address: localhost}]"})));
  wait_until_training(run);
  Process newcomer(
      command({"join", fmt::format("127.0.0.1:{}#{}", port, public_key(keys)), "--key", keys}));
  EXPECT_TRUE(wait_until_told(newcomer, R"("joined":["member.)"));
  run.send(SIGTERM);
  const ProcessEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 143) << end.err;
  const ProcessEnd joined = newcomer.wait();
  EXPECT_EQ(joined.exit_code, 0) << joined.err;
}

struct Span {
  double start = 0, end = 0;  // microseconds
};

// Those of a trace whose names begin so.
std::vector<Span> spans_of(const JsonValue& trace, const std::string& name) {
  std::vector<Span> spans;
  for (const JsonValue& event : trace["traceEvents"].list()) {
    if (event["ph"].text() != "X" || !event["name"].text().starts_with(name)) continue;
    const double start = event["ts"].number();
    spans.push_back({start, start + event["dur"].number()});
  }
  return spans;
}

// How many of the spans begin while one of the others lasts.
std::ptrdiff_t begun_within(const std::vector<Span>& spans, const std::vector<Span>& others) {
  return std::count_if(spans.begin(), spans.end(), [&](const Span& span) {
    return std::any_of(others.begin(), others.end(), [&](const Span& other) {
      return other.start < span.start && span.start < other.end;
    });
  });
}

TEST_F(Cluster, ReducesWhileItComputes) {
  write_text(path("toy.yaml"),
             "model: {zoo: gan3d_12}\n"
             "data: {train: synthetic, synthetic: {events: 40}, preprocessing: {power: 0.35}}\n"
             "train: {iterations: 6, epochs: 9, micro_batch: 2, micro_batches: 2}\n"
             "actors: {checkpointer: {every: none}, validator: {every: none}}\n");
  std::map<std::string, std::ptrdiff_t> early, ahead;
  for (const std::string overlap : {"true", "false"}) {
    summary_of(overlap, {"--workers", "2", "--trace", "--set", "actors.reducer.segment=64KiB",
                         "--set", "actors.replica.overlap=" + overlap});
    for (const char* member : {"member.0", "member.1"}) {
      const JsonValue trace =
          parse_json(read_text(path(fmt::format("{}/trace/{}.json", overlap, member))));
      // A replica begins with these when nothing else is being reduced: what its reducer is given
      // meanwhile are the step's own buckets.
      for (const char* step : {"compute 1 d_fake", "compute 2 g", "compute 3 g"}) {
        early[overlap] += begun_within(spans_of(trace, "bucket"), spans_of(trace, step));
      }
      ahead[overlap] +=
          begun_within(spans_of(trace, "compute 0 d_real"), spans_of(trace, "reduce 3 g")) +
          begun_within(spans_of(trace, "prepare "), spans_of(trace, "reduce "));
    }
  }
  EXPECT_GT(early["true"], 0);
  EXPECT_GT(ahead["true"], 0);
  EXPECT_EQ(early["false"], 0);
  EXPECT_EQ(ahead["false"], 0);
  EXPECT_GT(parse_json(read_text(path("true/trace/head.json")))["traceEvents"].list().size(), 0U);
}

}  // namespace
}  // namespace troupe
