// Keys as the binary makes them.

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/main/toy_run.h"
#include "tests/support/json_value.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class Keygen : public ToyRun {};

TEST_F(Keygen, MakesAFolderOfKeysAndSaysWhatTheyAreFor) {
  const ProcessEnd end = call({"keygen", path("keys")});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  for (const char* file : {"secret.key", "public.key", "allowed.keys"}) {
    EXPECT_THAT(end.out, HasSubstr(path("keys/") + file));
    EXPECT_TRUE(std::filesystem::exists(path("keys/") + file));
  }
  EXPECT_THAT(end.out, HasSubstr("cluster: {keys: " + path("keys") + "}"));
}

TEST_F(Keygen, PrintsOneObjectOnRequest) {
  const ProcessEnd end = call({"keygen", path("keys"), "--json", "--name", "node a"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  const JsonValue made = parse_json(end.out);
  EXPECT_EQ(made["folder"].text(), path("keys"));
  EXPECT_EQ(made["name"].text(), "node a");
  EXPECT_THAT(made["public_key"].text(), testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_THAT(read_text(path("keys/allowed.keys")),
              HasSubstr("\n" + made["public_key"].text() + " node a\n"));
  EXPECT_THAT(read_text(path("keys/secret.key")), HasSubstr(made["public_key"].text()));
}

TEST_F(Keygen, RefusesToOverwriteAndNamesItCannotWrite) {
  ASSERT_EQ(call({"keygen", path("keys")}).exit_code, 0);
  const std::string secret = read_text(path("keys/secret.key"));
  const ProcessEnd again = call({"keygen", path("keys")});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_EQ(again.out, "");
  EXPECT_THAT(again.err, HasSubstr("keys are never overwritten"));
  EXPECT_EQ(read_text(path("keys/secret.key")), secret);
  for (const char* name : {"", "a\nb", "a until b", "a until", "until"}) {
    const ProcessEnd bad = call({"keygen", path("other"), "--name", name});
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_THAT(bad.err, HasSubstr("--name"));
    EXPECT_FALSE(std::filesystem::exists(path("other")));
  }
  EXPECT_EQ(call({"keygen"}).exit_code, 2);
}

TEST_F(Keygen, ATokenIsPrintedAloneAndAdmitsForAWhile) {
  ASSERT_EQ(call({"keygen", path("keys")}).exit_code, 0);
  const ProcessEnd made = call({"token", path("keys"), "--for", "10min"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out.size(), 65u);
  EXPECT_THAT(made.err, HasSubstr("--token-file FILE"));
  EXPECT_THAT(made.err, testing::Not(HasSubstr(made.out.substr(0, 64)))) << "it goes into logs";
  EXPECT_THAT(read_text(path("keys/allowed.keys")), testing::ContainsRegex(" token until 20"));
}

// A text that is no key is refused before anything is dialed, so it shows what was read.
TEST_F(Keygen, ATokenComesFromAFileStandardInputOrTheEnvironment) {
  write_text(path("token"), "nonsense\n");
  const std::string drain =
      std::string(TROUPE_BINARY " drain 127.0.0.1:1#") + std::string(64, 'a') + " member.0 ";
  const auto shell = [](const std::string& script) {
    return Process({"/bin/sh", "-c", script}).wait();
  };
  const std::vector<std::pair<std::string, std::string>> scripts{
      {drain + "--token-file " + path("token"), "--token-file " + path("token")},
      {"echo nonsense | " + drain + "--token-file -", "--token-file -"},
      {"echo nonsense | " + drain + "--token -", "--token -"},
      {"TROUPE_TOKEN=nonsense " + drain, "TROUPE_TOKEN"},
      {drain + "--token nonsense", "--token"}};
  for (const auto& [script, from] : scripts) {
    const ProcessEnd end = shell(script);
    EXPECT_EQ(end.exit_code, 2) << script;
    EXPECT_THAT(end.err, HasSubstr(from + ": this is no key")) << script;
    const bool is_told = script.ends_with("--token nonsense");
    EXPECT_EQ(end.err.find("everybody on this machine can read") != std::string::npos, is_told);
  }
  EXPECT_THAT(shell("TROUPE_TOKEN=nonsense " + drain + "--key " + path("none")).err,
              HasSubstr("there are no keys in"))
      << "the option counts more than the environment";
  EXPECT_THAT(shell(drain + "--token-file - </dev/null").err, HasSubstr("holds no token"));
  EXPECT_THAT(shell(drain + "--token-file a --key b").err, HasSubstr("not several"));
}

TEST_F(Keygen, ATokenInTheEnvironmentIsNothingToHeadsWithoutKeys) {
  // The supervisor's members inherit it.
  const ProcessEnd end = Process({"/usr/bin/env", "TROUPE_TOKEN=" + std::string(64, 'a'),
                                  TROUPE_BINARY, "run", path("toy.yaml"), "--out", path("a"),
                                  "--workers", "1", "--set", "train.iterations=2"})
                             .wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
}

TEST_F(Keygen, ATokenNeedsKeysAndATime) {
  const ProcessEnd nowhere = call({"token", path("keys")});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("secret.key"));
  ASSERT_EQ(call({"keygen", path("keys")}).exit_code, 0);
  for (const char* time : {"", "5x", "0s", "1ms"}) {
    const ProcessEnd bad = call({"token", path("keys"), "--for", time});
    EXPECT_EQ(bad.exit_code, 2) << time;
    EXPECT_THAT(bad.err, HasSubstr("--for"));
  }
  EXPECT_EQ(call({"token"}).exit_code, 2);
}

}  // namespace
}  // namespace troupe
