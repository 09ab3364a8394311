#include "tests/main/cluster_run.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "tests/main/ledger_check.h"

namespace troupe {
namespace {

// An open socket at the port, or -1.
int bound_socket(std::uint16_t port) {
  const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::bind(number, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return number;
  }
  ::close(number);
  return -1;
}

}  // namespace

ClusterRun::ClusterRun() { ::setenv(kMark, path("").c_str(), 1); }

void ClusterRun::TearDown() {
  EXPECT_TRUE(all_gone()) << "processes are left";
  for (const auto& [process, words] : processes()) {
    ADD_FAILURE() << process << " is left: " << words;
    ::kill(process, SIGKILL);
  }
}

std::map<pid_t, std::string> ClusterRun::processes() const {
  const std::string mark = fmt::format("{}={}", kMark, path(""));
  std::map<pid_t, std::string> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t process = std::stoi(name);
    if (process == ::getpid()) continue;
    // A process that has ended has no environment any more.
    const std::string environment = '\0' + read_text(entry.path() / "environ");
    if (environment.find('\0' + mark + '\0') == std::string::npos) continue;
    std::string words = read_text(entry.path() / "cmdline");
    std::replace(words.begin(), words.end(), '\0', ' ');
    found[process] = words;
  }
  return found;
}

pid_t ClusterRun::process_with(const std::string& words) const {
  for (const auto& [process, line] : processes()) {
    if (line.find(words) != std::string::npos) return process;
  }
  return 0;
}

pid_t ClusterRun::member(int number) const {
  return process_with(fmt::format("--node member.{} ", number));
}

bool ClusterRun::all_gone() const {
  return wait_for([&] { return processes().empty(); });
}

std::map<std::string, NodeLine> ClusterRun::nodes(const std::string& name) const {
  std::map<std::string, NodeLine> lines;
  const std::string text = read_text(path(name + "/nodes.json"));
  if (text.empty()) return lines;
  const JsonValue all = parse_json(text);
  for (const JsonValue& node : all.list()) {
    NodeLine& line = lines[node["name"].text()];
    line.pid = static_cast<pid_t>(node["pid"].integer());
    line.state = node["state"].text();
    if (node.has("cause")) line.cause = node["cause"].text();
  }
  return lines;
}

std::string ClusterRun::log(const std::string& name) const {
  return read_text(path(name + "/log.txt"));
}

std::size_t ClusterRun::count(const std::string& what, const std::string& name) const {
  const std::string text = read_text(path(name + "/metrics.jsonl"));
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

std::size_t ClusterRun::steps(const std::string& name) const {
  return count(R"("kind":"step")", name);
}

bool ClusterRun::wait_until_told(Process& process, const std::string& what,
                                 const std::string& name) const {
  return process.wait_until([&] { return count(what, name) > 0; });
}

bool ClusterRun::wait_until_said(Process& process, const std::string& what,
                                 const std::string& name) const {
  return process.wait_until([&] { return log(name).find(what) != std::string::npos; });
}

std::uint16_t ClusterRun::page_port(Process& process, const std::string& name, int n) const {
  constexpr std::string_view kWords = "watch it at http://127.0.0.1:";
  std::size_t at = std::string::npos;
  std::string text;
  const bool told = process.wait_until([&] {
    text = log(name);
    at = text.find(kWords);
    for (int i = 1; i < n && at != std::string::npos; ++i) at = text.find(kWords, at + 1);
    return at != std::string::npos && text.find('\n', at) != std::string::npos;
  });
  if (!told) {
    ADD_FAILURE() << process.wait().err;
    return 0;
  }
  return static_cast<std::uint16_t>(std::stoi(text.substr(at + kWords.size())));
}

void ClusterRun::wait_until_training(Process& process, std::size_t count,
                                     const std::string& name) const {
  ASSERT_TRUE(process.wait_until([&] { return steps(name) >= count; })) << process.wait().err;
}

void ClusterRun::replace_head(Process& process) const {
  constexpr const char* kView = R"({"kind":"view")";
  const pid_t before = head();
  ASSERT_GT(before, 0);
  const std::size_t views = count(kView);
  ::kill(before, SIGKILL);
  ASSERT_TRUE(process.wait_until([&] { return head() != before && count(kView) > views; }))
      << process.wait().err;
}

void ClusterRun::expect_five_members_whole(const Words& words, const Words& order,
                                           std::uint64_t events_per_step) const {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  const Words five{"--workers", "5",
                   "--set",     fmt::format("cluster.listen=\"{}\"", address),
                   "--set",     "cluster.failure.restart=3"};
  Process process(command(run_words("a", words + five)));
  wait_until_training(process);
  ASSERT_GT(member(1), 0);
  ::kill(member(1), SIGKILL);
  ASSERT_TRUE(wait_until_told(process, R"("joined":["member.5"])")) << log();
  const auto newcomer = join({address});
  ASSERT_TRUE(wait_until_told(process, R"("joined":["member.8"])")) << newcomer->err() << log();
  // A newcomer that is not in its View yet would have to join again.
  wait_until_training(process, steps() + 20);
  ASSERT_NO_FATAL_FAILURE(replace_head(process));
  wait_until_training(process, steps() + 20);
  ASSERT_GT(member(2), 0);
  ::kill(member(2), SIGTERM);
  ASSERT_TRUE(wait_until_said(process, "member.2 has left the run")) << log();
  wait_until_training(process, steps() + 20);
  stop_and_expect_whole(process, words + order, events_per_step);
  EXPECT_EQ(newcomer->wait().exit_code, 0) << newcomer->err();
}

ProcessEnd ClusterRun::stop(Process& process) const {
  EXPECT_TRUE(process.running()) << process.wait().err;
  process.send(SIGTERM);
  ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 143) << end.err;
  return end;
}

void ClusterRun::expect_goes_on(const Words& resumed_with, const Words& more,
                                std::uint64_t events_per_step) const {
  const std::string told = read_text(path("a/metrics.jsonl"));
  const std::uint64_t slots = parse_json(told.substr(0, told.find('\n')))["schedule"].list().size();
  const std::uint64_t iterations = (checkpoints("a").empty() ? 0 : newest_step("a") / slots) + 5;
  const JsonValue gone_on = resumed("a", until_iteration(iterations, resumed_with));
  EXPECT_EQ(hash_of("whole", until_iteration(iterations, more)), gone_on["state_hash"].text());
  expect_clean_ledger(path("a"), slots * iterations, events_per_step);
  std::filesystem::remove_all(path("whole"));
}

void ClusterRun::stop_and_expect_whole(Process& process, const Words& more,
                                       std::uint64_t events_per_step) const {
  stop(process);
  expect_goes_on({}, more, events_per_step);
}

// Below those that systems hand out, so that no connection takes one meanwhile.
std::uint16_t ClusterRun::free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(15000, 32000);
  for (int i = 0; i < 100; ++i) {
    const int port = ports(random);
    bool free = true;
    for (int k = 0; k < 4; ++k) {
      const int number = bound_socket(static_cast<std::uint16_t>(port + k));
      free = free && number >= 0;
      if (number >= 0) ::close(number);
    }
    if (free) return static_cast<std::uint16_t>(port);
  }
  CHECK(false, "no free ports");
  return 0;
}

std::string ClusterRun::make_keys(const std::string& name) const {
  const ProcessEnd end = call({"keygen", path(name)});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return path(name);
}

std::string ClusterRun::public_key(const std::string& keys) const {
  std::ifstream file(keys + "/public.key");
  constexpr std::string_view kWord = "public ";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kWord)) return line.substr(kWord.size());
  }
  ADD_FAILURE() << "no key in " << keys;
  return {};
}

void ClusterRun::let_in(const std::string& keys, const std::string& other) const {
  std::ofstream(keys + "/allowed.keys", std::ios::app) << public_key(other) << " a friend\n";
}

Words ClusterRun::head_words(const std::string& name, const std::string& address, int members,
                             const Words& more) const {
  Words words =
      run_words(name, {"--workers", std::to_string(members), "--head-at", address}) + more;
  return words;
}

std::unique_ptr<Process> ClusterRun::join(const Words& words, const ProcessOptions& options) {
  return std::make_unique<Process>(command(Words{"join"} + words), options);
}

}  // namespace troupe
