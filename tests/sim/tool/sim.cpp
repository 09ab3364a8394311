// sim [training] --seed N: plays one history and prints what happened, line by line, and how it
// ended. sim [training] --seeds A..B, --minutes M [--from A]: plays many; prints the trace of the
// first that fails. Histories are of messages between actors that do nothing else, or of a training
// run with Troupe's own; --strategy is that of all trainings, where each has its own otherwise.
// Exits with 0 when none failed, 1 when one did, 2 when it was called in another way.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/history.h"
#include "tests/sim/training/training_history.h"

namespace troupe::sim {
namespace {

struct Wanted {
  std::uint64_t first = 0;
  std::uint64_t last = UINT64_MAX;
  std::optional<std::chrono::minutes> minutes;
  bool trace = false;
  bool training = false;
  std::optional<Strategy> strategy;  // of each training; none: as its seed draws
};

std::optional<Strategy> strategy_named(std::string_view word) {
  const auto found = std::ranges::find(kStrategyWords, word);
  if (found == kStrategyWords.end()) return std::nullopt;
  return static_cast<Strategy>(found - kStrategyWords.begin());
}

std::string_view word_of(Strategy strategy) {
  return kStrategyWords[static_cast<std::size_t>(strategy)];
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Wanted> read_arguments(std::vector<std::string_view> arguments) {
  Wanted wanted;
  bool bounded = false;
  wanted.training = !arguments.empty() && arguments.front() == "training";
  if (wanted.training) arguments.erase(arguments.begin());
  if (arguments.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view option = arguments[i], value = arguments[i + 1];
    const std::size_t dots = value.find("..");
    if (option == "--seeds" && dots != std::string_view::npos) {
      const auto first = number_of(value.substr(0, dots)), last = number_of(value.substr(dots + 2));
      if (!first || !last) return std::nullopt;
      wanted.first = *first;
      wanted.last = *last;
      bounded = true;
      continue;
    }
    if (option == "--strategy" && wanted.training) {
      wanted.strategy = strategy_named(value);
      if (!wanted.strategy) return std::nullopt;
      continue;
    }
    const auto number = number_of(value);
    if (!number) return std::nullopt;
    if (option == "--seed") {
      wanted.first = wanted.last = *number;
      wanted.trace = bounded = true;
    } else if (option == "--minutes") {
      wanted.minutes = std::chrono::minutes(*number);
      bounded = true;
    } else if (option == "--from") {
      wanted.first = *number;
    } else {
      return std::nullopt;
    }
  }
  if (!bounded) return std::nullopt;
  return wanted;
}

bool play_training_aloud(std::uint64_t seed, std::optional<Strategy> strategy) {
  const TrainingHistoryEnd history = play_training_history(
      seed, [](std::string_view line) { fmt::print("{}\n", line); }, strategy);
  const TrainingEnd& end = history.end;
  fmt::print(
      "seed {}: {:.3f} s simulated, {} changes of the View, {} joined, {} heads, {}{}{}: {}\n",
      seed, std::chrono::duration<double>(end.simulated).count(), end.changes, end.joined,
      end.heads, word_of(history.strategy),
      end.guests == 0 ? std::string()
                      : fmt::format(", {} guests, up to {} in one place, {} outlived it",
                                    end.guests, end.most_of_one_place, end.outlived),
      history.resumed ? ", resumed after: " + end.head_error->message : "",
      history.failure ? "FAILED: " + *history.failure : "as it should be");
  return !history.failure;
}

bool play_aloud(std::uint64_t seed) {
  const HistoryEnd end =
      play_history(seed, [](std::string_view line) { fmt::print("{}\n", line); });
  for (const std::string& failure : end.failures) fmt::print("FAILED: {}\n", failure);
  fmt::print(
      "seed {}: {:.3f} s simulated in {} events, {} items arrived, {} came back, {} "
      "reconnections, {} pairs parted: {}\n",
      seed, std::chrono::duration<double>(end.simulated).count(), end.events, end.arrived,
      end.came_back, end.reconnections, end.parted,
      end.failures.empty() ? "as it should be" : "FAILED");
  return end.failures.empty();
}

int play(const Wanted& wanted) {
  const auto aloud = [&](std::uint64_t seed) {
    return wanted.training ? play_training_aloud(seed, wanted.strategy) : play_aloud(seed);
  };
  const auto is_good = [&](std::uint64_t seed) {
    return wanted.training ? !play_training_history(seed, {}, wanted.strategy).failure
                           : play_history(seed).failures.empty();
  };
  if (wanted.trace) return aloud(wanted.first) ? 0 : 1;
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::steady_clock::now() - start; };
  std::uint64_t played = 0;
  for (std::uint64_t seed = wanted.first; seed <= wanted.last; ++seed) {
    if (wanted.minutes && passed() >= *wanted.minutes) break;
    if (!is_good(seed)) {
      (void)aloud(seed);
      fmt::print("again with: sim {}{}--seed {}\n", wanted.training ? "training " : "",
                 wanted.strategy ? fmt::format("--strategy {} ", word_of(*wanted.strategy)) : "",
                 seed);
      return 1;
    }
    ++played;
  }
  fmt::print("{} seeds from {} in {:.1f} s, all as they should be\n", played, wanted.first,
             std::chrono::duration<double>(passed()).count());
  return 0;
}

}  // namespace
}  // namespace troupe::sim

int main(int count, char** values) {
  const auto wanted = troupe::sim::read_arguments({values + 1, values + count});
  if (!wanted) {
    fmt::print(
        stderr,
        "usage: sim [training [--strategy {}]] --seed N | --seeds A..B | --minutes M [--from A]\n",
        fmt::join(troupe::sim::kStrategyWords, "|"));
    return 2;
  }
  return troupe::sim::play(*wanted);
}
