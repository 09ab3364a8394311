// Who comes to a run that trains and is refused, or dies, or comes when others come and die: the
// run does not notice.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "model/backend.h"
#include "tests/main/cluster_run.h"
#include "tests/main/ledger_check.h"
#include "tests/main/refused_caller.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class ClusterNewcomer : public ClusterRun {
 protected:
  // A run without an end, of members that are started by hand, once it trains.
  void train(int members, const Words& more = {}, const Words& credentials = {}) {
    Words words = kEndlessRun;
    words.insert(words.end(), more.begin(), more.end());
    head_ = std::make_unique<Process>(command(head_words("a", address_, members, words)));
    credentials_ = credentials;
    for (int i = 0; i < members; ++i) {
      members_.push_back(start({"--node", fmt::format("member.{}", i)}));
    }
    wait_until_training(*head_, "a");
  }
  Words join_words(const Words& more = {}) const {
    Words words{"join", address_};
    if (!credentials_.empty()) {
      words[1] += "#" + credentials_[0];
      words.insert(words.end(), {"--key", credentials_[1]});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::unique_ptr<Process> start(const Words& more = {}) const {
    return std::make_unique<Process>(command(join_words(more)));
  }
  std::string log() const { return read_text(path("a/log.txt")); }
  bool says(const std::string& what) const {
    return wait_until(*head_, [&] { return log().find(what) != std::string::npos; });
  }
  bool is_told(const std::string& what) const {
    return wait_until(*head_, [&] { return has_told(what); });
  }
  bool has_told(const std::string& what) const {
    return read_text(path("a/metrics.jsonl")).find(what) != std::string::npos;
  }
  // Stops it; whatever has happened to it, it has made every step once, and goes on to the hash of
  // a run that nothing happened to.
  void expect_whole(const Words& more = {}, std::uint64_t events_per_step = 16) {
    stop_and_expect_whole(*head_, more, events_per_step);
    for (const auto& member : members_) EXPECT_EQ(member->wait().exit_code, 0);
  }

  const std::string address_ = fmt::format("127.0.0.1:{}", free_port());
  std::unique_ptr<Process> head_;
  std::vector<std::unique_ptr<Process>> members_;

 private:
  Words credentials_;  // the head's key and a folder of keys
};

TEST_F(ClusterNewcomer, OtherDataIsRefusedWhileItTrains) {
  train(1);
  ToyData other(200);
  other.cells[0] += 0.125f;
  other.write(path("toy.h5"));
  expect_refused(start()->wait(), 4, {"another data fingerprint: head has ", ", member.1 has "});
  EXPECT_TRUE(says("was refused: another data fingerprint"));
  ToyData(200).write(path("toy.h5"));
  members_.push_back(start());
  EXPECT_TRUE(is_told(R"("joined":["member.)"));
  expect_whole();
}

TEST_F(ClusterNewcomer, WrongKeysAreRefusedWhileItTrains) {
  const std::string keys = make_keys("keys");
  const std::string stranger = make_keys("stranger");
  train(1, {"--set", "cluster.keys=" + keys}, {public_key(keys), keys});
  const auto join = [&](const std::string& head, const std::string& own) {
    return call({"join", address_ + "#" + public_key(head), "--key", own, "--within", "3"});
  };
  expect_refused(join(keys, stranger), 5, {"key"});
  expect_refused(join(stranger, keys), 5, {address_});
  expect_refused(call({"join", address_, "--within", "1"}), 5, {address_});
  EXPECT_TRUE(says("key"));
  members_.push_back(start());
  EXPECT_TRUE(is_told(R"("joined":["member.)"));
  expect_whole();
}

// Of this processor kept from instructions that it has.
TEST_F(ClusterNewcomer, AnotherInstructionSetIsRefusedWhileItTrains) {
  const std::string own = model::make_cpu_backend()->numerics_class();
  if (own.find(" sse41,") != std::string::npos || own.find(" avx,") != std::string::npos) {
    GTEST_SKIP() << "no instructions to do without: " << own;
  }
  const std::string limit = own.find(" avx2,") != std::string::npos ? "SSE41" : "AVX2";
  const Words fastest{"--set", "model.kernels=fastest"};
  train(1, fastest);
  Words words{"/usr/bin/env", "ONEDNN_MAX_CPU_ISA=" + limit};
  const Words join = command(join_words());
  words.insert(words.end(), join.begin(), join.end());
  expect_refused(Process(words).wait(), 2, {"another numerics class", own});
  EXPECT_TRUE(says("was refused: another numerics class"));
  expect_whole(fastest);
}

// Every one with what the head has of those before it, which its refusals tell.
TEST_F(ClusterNewcomer, WhoDiffersInAnythingThatMustBeEqualIsRefusedWhileItTrains) {
  train(1);
  std::vector<runtime::Term> terms;
  for (const std::string name : {"topology", "plan", "numerics class", "data fingerprint"}) {
    terms.push_back({name, "otherwise"});
    const std::string answer = refusal_of(address_, [&] {
      runtime::Hello hello;
      hello.node = "member.1";
      hello.incarnation = 7;
      hello.host = "elsewhere";
      hello.pid = 7;
      hello.terms = terms;
      return runtime::pack(hello);
    });
    const std::string begin = fmt::format("another {}: head has ", name);
    const std::string end = ", member.1 has otherwise";
    ASSERT_THAT(answer, testing::AllOf(testing::StartsWith(begin), testing::EndsWith(end)));
    EXPECT_TRUE(says(answer));
    terms.back().value = answer.substr(begin.size(), answer.size() - begin.size() - end.size());
  }
  // Nobody is kept from coming by that.
  members_.push_back(start());
  EXPECT_TRUE(is_told(R"("joined":["member.)"));
  expect_whole();
}

TEST_F(ClusterNewcomer, TwoThatComeAtOnceBothJoin) {
  train(1);
  members_.push_back(start());
  members_.push_back(start());
  for (const int number : {1, 2}) {
    const std::string name = fmt::format("member.{}", number);
    EXPECT_TRUE(says(name + " is here and learns from"));
    EXPECT_TRUE(wait_until(*head_, [&] {
      return has_told(fmt::format(R"("joined":["{}"])", name)) ||
             has_told(R"("joined":["member.1","member.2"])");
    }));
  }
  expect_whole();
}

// Of iterations long enough for that: it has to be taught a step before it may join.
const Words kLongSteps{"--set", "train.micro_batch=30", "--set", "train.micro_batches=6"};

TEST_F(ClusterNewcomer, OneKilledWhileItLearnsCostsNothing) {
  train(1, kLongSteps);
  int killed_learning = 0;
  for (int number = 1; number <= 6 && killed_learning < 1; ++number) {
    const std::string name = fmt::format("member.{}", number);
    const auto newcomer = start();
    ASSERT_TRUE(says(name + " is here and learns from")) << log();
    newcomer->send(SIGKILL);
    ASSERT_TRUE(wait_until(*head_, [&] { return nodes("a")[name].state == "dead"; })) << log();
    killed_learning += !has_told(fmt::format(R"("joined":["{}"])", name));
  }
  EXPECT_GE(killed_learning, 1);
  expect_whole(kLongSteps, 180);
}

TEST_F(ClusterNewcomer, OneThatComesWhenAnotherIsKilledJoinsOrIsToldToComeAgain) {
  for (const int victim : {1, 0}) {  // 0 teaches
    train(2, kLongSteps);
    auto newcomer = start();
    ASSERT_TRUE(says("member.2 is here and learns from member.0"));
    members_[victim]->send(SIGKILL);
    EXPECT_EQ(members_[victim]->wait().signal, SIGKILL);
    members_.erase(members_.begin() + victim);
    ASSERT_TRUE(says(fmt::format("going on without member.{}", victim)));
    const auto joined = [&] { return has_told(R"("joined":["member.2"])"); };
    ASSERT_TRUE(wait_until(*head_, [&] { return joined() || !newcomer->running(); }));
    if (joined() && newcomer->running()) {
      members_.push_back(std::move(newcomer));
    } else {
      const ProcessEnd end = newcomer->wait();
      EXPECT_EQ(victim, 0) << end.err;
      EXPECT_EQ(end.exit_code, 5) << end.err;
      EXPECT_THAT(end.err, HasSubstr("join again"));
    }
    expect_whole(kLongSteps, 180);
    members_.clear();
    std::filesystem::remove_all(path("a"));
  }
}

}  // namespace
}  // namespace troupe
