// What --json prints last: one object with error and exit_code, whatever has happened.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <regex>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class JsonFailure : public ToyRun {
 protected:
  // The only line there is.
  static void expect_told(const ProcessEnd& end, int exit_code, const std::string& part) {
    EXPECT_EQ(end.exit_code, exit_code) << end.err;
    ASSERT_THAT(end.out, testing::EndsWith("}\n")) << end.err;
    EXPECT_EQ(end.out.find('\n'), end.out.size() - 1) << end.out;
    const JsonValue object = last_line(end);
    EXPECT_EQ(object["exit_code"].number(), exit_code);
    EXPECT_THAT(object["error"].text(), HasSubstr(part));
    EXPECT_THAT(end.err, HasSubstr(part));
  }
};

// The keys of an object.
std::vector<std::string> keys_of(const JsonValue& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : std::get<JsonValue::Object>(object.content)) keys.push_back(key);
  return keys;
}

// Those that docs/commands.md has for the verb: of objects within the object it tells in brackets,
// and behind a semicolon more of keys that all verbs have.
std::vector<std::string> documented_keys(const std::string& verb) {
  const std::string text = read_text(TROUPE_SOURCE_DIR "/docs/commands.md");
  const std::string begin = "\n| `" + verb + "` | ";
  const std::size_t at = text.find(begin);
  EXPECT_NE(at, std::string::npos) << verb;
  std::string row = text.substr(at + begin.size(), text.find('\n', at + 1) - at - begin.size());
  row = std::regex_replace(row.substr(0, row.find(';')), std::regex("\\([^)]*\\)"), "");
  std::vector<std::string> keys{"error", "exit_code"};
  const std::regex name("`([^`]*)`");
  for (auto key = std::sregex_iterator(row.begin(), row.end(), name); key != std::sregex_iterator();
       ++key) {
    keys.push_back((*key)[1]);
  }
  return keys;
}

TEST_F(JsonFailure, IsAnObjectOfEveryVerbThatHasJson) {
  const std::string none = path("none");
  expect_told(call({"inspect", none, "--json"}), 4, none);
  expect_told(call({"generate", none, "--out", path("g.h5"), "--json"}), 4, none);
  expect_told(call({"watch", none, "--json"}), 4, none);
  expect_told(call({"watch", "127.0.0.1:1", "--json"}), 5, "127.0.0.1:1");
  expect_told(call({"data", "info", none, "--json"}), 4, none);
  expect_told(call({"data", "make", path("none/a.h5"), "--json"}), 4, path("none/a.h5"));
  expect_told(call({"keygen", path("toy.yaml/keys"), "--json"}), 2, "toy.yaml");
  expect_told(call({"check", none, "--json"}), 3, none);
  for (const Words& verb : every_verb()) {
    if (call(verb + Words{"--help"}).out.find("\n  --json ") == std::string::npos) continue;
    const bool needs_words = verb != Words{"devices"};
    expect_told(call(verb + (needs_words ? Words{"--json"} : Words{"--json", "more"})), 2,
                needs_words ? "which" : "more");
  }
  expect_told(call({"frobnicate", "--json"}), 2, "frobnicate");
}

TEST_F(JsonFailure, ObjectOfAVerbThatSucceededHasTheSameEndAndTheDocumentedKeys) {
  run("a");
  for (const Words& words :
       {Words{"check", path("toy.yaml")},
        {"inspect", checkpoint("a", 0)},
        {"watch", path("a")},
        {"data", "info", path("toy.h5")},
        {"data", "make", path("m.h5"), "--events", "3", "--detector", "lcd-fixed-12"},
        {"generate", path("a"), "--out", path("g.h5"), "--events", "3"},
        {"keygen", path("keys")},
        {"run", "--resume", path("a")}}) {
    Words with_json = words;
    with_json.emplace_back("--json");
    const JsonValue object = last_line(call(with_json));
    EXPECT_TRUE(object["error"].is_null()) << words.front();
    EXPECT_EQ(object["exit_code"].integer(), 0u) << words.front();
    const std::string verb = words[0] == "data" ? words[0] + " " + words[1] : words[0];
    EXPECT_THAT(keys_of(object), testing::UnorderedElementsAreArray(documented_keys(verb))) << verb;
  }
}

TEST_F(JsonFailure, SummaryOfARunHasTheSameKeysHoweverItEnds) {
  const ProcessEnd whole = run("whole", {"--json"});
  const auto keys = keys_of(last_line(whole));
  EXPECT_EQ(keys.size(), 17u);
  // It diverges.
  const ProcessEnd failed =
      run("failed", {"--set", "train.learning_rate={g: 1e30, d: 1e30}", "--json"});
  EXPECT_EQ(last_line(failed)["exit_code"].integer(), 6u) << failed.err;
  EXPECT_EQ(keys_of(last_line(failed)), keys);
  EXPECT_EQ(keys_of(parse_json(read_text(path("failed/summary.json")))), keys);
  // It is stopped.
  Process process(command(run_words("stopped", {"--set", "train.epochs=1000000", "--json"})));
  wait_for_checkpoint(process, "stopped", 20);
  process.send(SIGINT);
  const ProcessEnd stopped = process.wait();
  EXPECT_EQ(stopped.exit_code, 130);
  EXPECT_EQ(last_line(stopped)["exit_code"].integer(), 130u);
  EXPECT_TRUE(last_line(stopped)["error"].is_null());
  EXPECT_EQ(keys_of(last_line(stopped)), keys);
  EXPECT_EQ(keys_of(parse_json(read_text(path("stopped/summary.json")))), keys);
  // It does not begin.
  EXPECT_EQ(keys_of(last_line(run("whole", {"--json"}))), keys);
  EXPECT_EQ(keys_of(last_line(run("b", {"--json", "--bogus"}))), keys);
}

// The signal reaches the process that prints the summary through the one above it.
TEST_F(JsonFailure, SummaryOfSeveralProcessesTellsTheExitCodeOfTheOnePeopleStarted) {
  Process process(
      command(run_words("a", {"--set", "train.epochs=1000000", "--workers", "1", "--json"})));
  wait_for_checkpoint(process, "a", 20);
  process.send(SIGINT);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 130) << end.err;
  EXPECT_EQ(last_line(end)["exit_code"].integer(), 130u);
}

TEST_F(JsonFailure, IsAnObjectOfARunInOneProcessAndInSeveral) {
  std::filesystem::remove(path("toy.h5"));
  expect_told(run("a", {"--json"}), 4, "no such file");
  expect_told(run("b", {"--json", "--workers", "1"}), 4, "no such file");
  EXPECT_EQ(run("c").out, "");
}

TEST_F(JsonFailure, IsAnObjectOfATopologyAndOfACommandLineThatAreWrong) {
  expect_told(run("a", {"--json", "--set", "model.zoo=none"}), 3, "model.zoo");
  expect_told(call({"check", path("toy.yaml"), "--json", "--set", "model.zoo=none"}), 3,
              "model.zoo");
  expect_told(run("a", {"--json", "--wrokers", "2"}), 2, "--wrokers");
}

}  // namespace
}  // namespace troupe
