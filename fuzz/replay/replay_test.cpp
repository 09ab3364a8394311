// The part of fuzzing that runs with the suite, with any compiler. Every fuzz target keeps its
// promise over its committed corpus and over a fixed number of changed inputs, the same each time.
// An input that breaks a promise ends the program; its number is printed before.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/stride.h"
#include "tests/support/temporary_folder.h"

// One of fuzz/TARGET.cpp each: CMake names its function so.
#define TROUPE_TARGET(name) extern "C" int run_##name(const std::uint8_t* data, std::size_t size);
TROUPE_TARGET(fuzz_checkpoint)
TROUPE_TARGET(fuzz_data_files)
TROUPE_TARGET(fuzz_neighbours)
TROUPE_TARGET(fuzz_handshake)
TROUPE_TARGET(fuzz_invitation)
TROUPE_TARGET(fuzz_keras)
TROUPE_TARGET(fuzz_page_events)
TROUPE_TARGET(fuzz_page_request)
TROUPE_TARGET(fuzz_run_files)
TROUPE_TARGET(fuzz_study)
TROUPE_TARGET(fuzz_topology)
TROUPE_TARGET(fuzz_trace)
TROUPE_TARGET(fuzz_wire_frames)
TROUPE_TARGET(fuzz_wire_header)

namespace troupe::fuzz {
namespace {

struct Target {
  const char* name;
  int (*run)(const std::uint8_t* data, std::size_t size);
  std::uint64_t changes;                  // of each input
  std::vector<std::string> folders = {};  // of more first inputs
  std::uint64_t part = 5;                 // the suite plays one change in so many
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

// Changes an input as a hand that slips would, and as one that means harm.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (std::size_t i = 0, changes = 1 + below(3); i < changes; ++i) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  void change(std::string& text) {
    // Pieces of YAML, JSON and HTTP.
    static const std::vector<std::string> kPieces{
        "null",      "~",         "true",  "-1",    "1e999", ".nan",         "99999999999999999999",
        "{}",        "[]",        "\"",    "''",    "*a",    "&a ",          ": ",
        "<<: *a",    "!!binary ", "---\n", "...\n", "? ",    "|\n",          "%YAML 1.2\n",
        "\xe2\x82",  "\r\n",      "\t",    "0",     "[[[[[", "{a: {a: {a: ", "none",
        "synthetic", "- ",        "#",     "\xff",  "\n\n"};
    const std::size_t at = below(text.size() + 1), length = std::min(below(12), text.size() - at);
    switch (below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 2:
        text.replace(at, length, kPieces[below(kPieces.size())]);
        break;
      case 3:  // a part elsewhere
        text.insert(below(text.size() + 1), text.substr(at, below(200)));
        break;
      case 4:
        text.resize(at);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random_());
    }
  }

  std::mt19937_64 random_;
};

// The sorted inputs of the folders.
std::vector<std::string> inputs_in(const std::vector<std::string>& folders) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(TROUPE_SOURCE_DIR "/") + folder)) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, KeepsItsPromiseForTheCorpusAndForChangedInputs) {
  const Target& target = GetParam();
  std::vector<std::string> folders = target.folders;
  folders.push_back(std::string("fuzz/corpus/") + target.name);
  const std::vector<std::string> paths = inputs_in(folders);
  ASSERT_FALSE(paths.empty());
  const auto run = [&](const std::string& bytes) {
    target.run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  };
  for (const std::string& path : paths) {
    const std::string input = read_text(path);
    std::cout << path << std::endl;
    run(input);
    for (std::uint64_t seed = 0; seed < target.changes; seed += stride(target.part)) {
      std::cout << seed << ' ' << std::flush;
      run(Mutator(seed).mutate(input));
    }
    std::cout << std::endl;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, Replay,
    testing::Values(
        Target{"fuzz_checkpoint", run_fuzz_checkpoint, 200},
        Target{"fuzz_data_files", run_fuzz_data_files, 10000, {}, 100},
        Target{"fuzz_neighbours", run_fuzz_neighbours, 500},
        Target{"fuzz_handshake", run_fuzz_handshake, 500},
        Target{"fuzz_invitation", run_fuzz_invitation, 5000},
        Target{"fuzz_keras", run_fuzz_keras, 200},
        Target{"fuzz_page_events", run_fuzz_page_events, 5000},
        Target{"fuzz_page_request", run_fuzz_page_request, 5000},
        Target{"fuzz_run_files", run_fuzz_run_files, 500},
        Target{"fuzz_study", run_fuzz_study, 200},
        Target{"fuzz_topology", run_fuzz_topology, 300, {"config/topologies", "config/zoo"}},
        Target{"fuzz_trace", run_fuzz_trace, 5000},
        Target{"fuzz_wire_frames", run_fuzz_wire_frames, 2000},
        Target{"fuzz_wire_header", run_fuzz_wire_header, 2000}),
    [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace troupe::fuzz
