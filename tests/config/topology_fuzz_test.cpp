#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "config/zoo.h"
#include "tests/config/config_support.h"
#include "tests/support/stride.h"

namespace troupe::config {
namespace {

// Changes a text as a hand that slips would, and as one that means harm.
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
    static const std::string kCharacters = "{}[]:,-#&*!|>'\"%@`~ \n\t0123456789.eE+-abcxyz\xc3\xff";
    static const std::vector<std::string> kPieces{"null",
                                                  "~",
                                                  "true",
                                                  "-1",
                                                  "1e999",
                                                  ".nan",
                                                  "99999999999999999999",
                                                  "{}",
                                                  "[]",
                                                  "\"",
                                                  "''",
                                                  "*a",
                                                  "&a ",
                                                  "<<: *a",
                                                  "!!binary ",
                                                  "---\n",
                                                  "...\n",
                                                  "? ",
                                                  "|\n",
                                                  ">-\n  x\n",
                                                  "\xe2\x82",
                                                  "\r\n",
                                                  "\t",
                                                  "0",
                                                  "[[[[[[[[[[",
                                                  "{a: {a: {a: ",
                                                  "none",
                                                  "synthetic",
                                                  "%YAML 1.2\n"};
    const std::size_t at = below(text.size() + 1), length = std::min(below(12), text.size() - at);
    switch (below(7)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, 1, kCharacters[below(kCharacters.size())]);
        break;
      case 2:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 3:
        text.replace(at, length, kPieces[below(kPieces.size())]);
        break;
      case 4:  // a part elsewhere
        text.insert(below(text.size() + 1), text.substr(at, below(200)));
        break;
      case 5:
        text.resize(at);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random_());
    }
  }

  std::mt19937_64 random_;
};

// Whatever the bytes: a topology that prints and reads back as itself, or an error that says so.
void expect_sound(const std::string& text, const std::vector<std::string>& overrides) {
  const auto result = parse(text, overrides);
  if (!result.ok()) {
    const runtime::ErrorKind kind = result.error().kind;
    EXPECT_TRUE(kind == runtime::ErrorKind::kTopology ||
                (kind == runtime::ErrorKind::kUsage && !overrides.empty()));
    EXPECT_FALSE(result.error().message.empty());
    return;
  }
  const auto again = parse(print_topology(*result));
  ASSERT_TRUE(again.ok()) << again.error().message << "\nfrom\n" << text;
  EXPECT_EQ(values_of(again->topology), values_of(result->topology)) << text;
}

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  for (const std::string& path : shipped_topologies()) texts.push_back(read_text(path));
  // The toy's own text, as a user would describe a model.
  std::string model = "data: {train: a.h5}\nmodel:\n";
  const std::string_view toy = *zoo_text("toy");
  for (std::size_t at = 0; at < toy.size(); at = toy.find('\n', at) + 1) {
    model += fmt::format("  {}\n", toy.substr(at, toy.find('\n', at) - at));
  }
  texts.push_back(model);
  return texts;
}

TEST(TopologyFuzz, SeedsAreSound) {
  for (const std::string& text : seeds()) {
    EXPECT_TRUE(parse(text).ok()) << message_of(parse(text));
    expect_sound(text, {});
  }
}

TEST(TopologyFuzz, MutatedTopologiesAreReadOrRefused) {
  std::size_t read = 0;
  for (const std::string& text : seeds()) {
    for (std::uint64_t seed = 0; seed < 400; seed += stride(5)) {
      SCOPED_TRACE(fmt::format("seed {}", seed));
      const std::string mutated = Mutator(seed).mutate(text);
      read += parse(mutated).ok() ? 1 : 0;
      expect_sound(mutated, {});
    }
  }
  // Some mutations must do no harm, or the fuzzer would not reach behind the first check.
  EXPECT_GT(read, 50 / stride(5));
}

TEST(TopologyFuzz, MutatedOverridesAreReadOrRefused) {
  const std::vector<std::string> overrides{
      "train.learning_rate.g={rate: 1e-3, policy: plateau, patience: 3}",
      "model.generator.layers.0.dense.units=8", "links=[{from: loader, to: replica, credits: 3}]"};
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_sound(kLeast, {Mutator(seed).mutate(overrides[seed % overrides.size()])});
  }
}

}  // namespace
}  // namespace troupe::config
