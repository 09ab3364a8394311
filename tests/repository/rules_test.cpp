#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/repository/layers.h"
#include "tests/repository/source_tree.h"

namespace troupe::repository {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A Rule names what only one place of the product may do.
struct Rule {
  const char* what;                 // an expression that no other line of code matches
  std::vector<std::string> places;  // files
  const char* instead;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {
      {R"(std::thread\s*\w*[({]|\bthread_?\s*[({]\s*\[|\bjthread\b|std::async)",
       {"runtime/base/start_thread.h", "runtime/base/start_thread.cpp"},
       "start_thread() says so where the system gives none"},
      {R"((steady|system)_clock::now\(|\btime\(nullptr\))",
       {"runtime/base/clock.cpp"},
       "take a Clock, or ask steady_now() or wall_now()"},
      {R"(random_device|\bgetrandom\()",
       {"runtime/base/secret.cpp"},
       "secret_number() and fill_secret() are what nobody can guess"},
      {R"((^|[^\w])::close\()", {"runtime/base/descriptor.h"}, "a Descriptor closes itself"},
      {R"(#\s*include\s*<zmq)",
       {"runtime/transport/zmq_socket.cpp", "runtime/transport/keys.cpp",
        "telemetry/sinks/publisher.cpp"},
       "ZmqSocket is what the wire sees of the library"},
      {R"(#\s*include\s*<uc[pst]/)",
       {"runtime/transport/ucx_library.h"},
       "UcxLibrary is what opens UCX when a run asks for it"}};
  return kRules;
}

// "model/tensor.cpp:7: ..." for each line of the file that a rule refuses.
std::vector<std::string> refused_lines(const SourceFile& file) {
  std::vector<std::string> refused;
  for (const Rule& rule : rules()) {
    const std::regex what(rule.what);
    if (std::ranges::find(rule.places, file.path) != rule.places.end()) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      if (!std::regex_search(code, what)) continue;
      refused.push_back(file.path + ":" + std::to_string(i + 1) + ": " + rule.instead);
    }
  }
  return refused;
}

TEST(Rules, LineThatDoesWhatOnePlaceDoesIsRefused) {
  for (const char* line :
       {"thread_ = std::thread([] {});", "std::thread worker{run};",
        "      thread_([this] { run(); }) {", "std::jthread worker;", "auto sum = std::async(add);",
        "  ::close(file);", "auto now = std::chrono::steady_clock::now();",
        "x = std::time(nullptr);", "std::random_device device;", "::getrandom(bytes, size, 0);",
        "#include <zmq.hpp>", "#include <ucp/api/ucp.h>"}) {
    EXPECT_EQ(refused_lines({"model/a.cpp", {"", line}}).size(), 1u) << line;
  }
  EXPECT_THAT(refused_lines({"model/a.cpp", {"", "::close(file);"}}),
              ElementsAre("model/a.cpp:2: a Descriptor closes itself"));
}

TEST(Rules, LineThatOnlySpeaksOfItIsNot) {
  for (const char* line : {"std::thread thread_;", "std::vector<std::thread> others_;",
                           "void Door::close() {", "// as std::thread() does", "door::close();"}) {
    EXPECT_THAT(refused_lines({"model/a.cpp", {line}}), IsEmpty()) << line;
  }
  EXPECT_THAT(refused_lines({"runtime/base/clock.cpp", {"steady_clock::now()"}}), IsEmpty());
}

TEST(Rules, TheTreeFollowsThem) {
  const std::vector<SourceFile> sources = read_sources(layer_folders(), {".h", ".cpp"});
  ASSERT_GT(sources.size(), 20u);
  for (const SourceFile& source : sources) EXPECT_THAT(refused_lines(source), IsEmpty());
}

}  // namespace
}  // namespace troupe::repository
