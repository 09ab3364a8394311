// How good the settings are that a study finds, beside those that Optuna finds: the least value of
// four functions, or of trainings that are in a table, after 20, 40 and 60 trials, over 20 seeds,
// and the processor time of a proposal. Every function is first looked at where its minimum is
// known to be.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/answering.h"
#include "bench/measure.h"
#include "bench/proposal_tasks.h"
#include "runtime/base/json_reader.h"
#include "study/method.h"

namespace troupe::bench {
namespace {

using study::Known;
using study::MethodKind;
using study::Point;

constexpr std::array<std::uint32_t, 3> kAfter{20, 40, 60};

// The lengths that fit_kernel() thinks of first were found with seeds from 1 to 40.
constexpr std::uint64_t kFirstSeed = 1001;

struct Extent {
  std::uint32_t seeds, trials;
  bool peers;
};
constexpr Extent kFull{20, 60, true}, kSmall{3, 40, false};

// One search: the best cost so far behind each trial, and the seconds of all proposals.
struct Search {
  std::vector<double> best;
  double seconds = 0.0;

  void add(double cost) { best.push_back(best.empty() ? cost : std::min(best.back(), cost)); }
  double after(std::uint32_t trials) const {
    return best[std::min<std::size_t>(trials, best.size()) - 1];
  }
};

study::Study study_of(const ProposalTask& task, MethodKind kind, std::uint64_t seed,
                      std::uint32_t trials) {
  study::Study study;
  study.space = task.space;
  study.objective.minimise = "cost";
  study.method.kind = kind;
  study.method.seed = seed;
  study.method.trials = trials;
  study.method.levels = task.levels;
  return study;
}

Search search(const ProposalTask& task, MethodKind kind, std::uint64_t seed, std::uint32_t trials) {
  const auto method = make_method(study_of(task, kind, seed, trials));
  Known known;
  Search made;
  for (std::uint32_t i = 0; i < std::min(trials, method->trials()); ++i) {
    const double start = thread_seconds();
    const Point point = method->propose(i, known);
    made.seconds += thread_seconds() - start;
    made.add(task.cost(point));
    known.ended.push_back({point, task.cost(point)});
  }
  return made;
}

// The same by a program; nothing: it has said why.
std::optional<Search> search(const ProposalTask& task, Answering& peer, std::uint64_t seed,
                             std::uint32_t trials) {
  const auto fail = [&](const std::string& what) {
    fmt::print(stderr, "{}: {}\n", task.name, what);
    return std::nullopt;
  };
  Search made;
  auto said = peer.ask(fmt::format("begin {}", seed));
  for (std::uint32_t i = 0; said.ok() && i < trials; ++i) {
    said = peer.ask("ask");
    if (!said.ok()) break;
    study::Settings settings;
    const nlohmann::json answer = runtime::parse_json(*said);
    for (const auto& [path, value] : answer.items()) {
      settings.emplace_back(path, value.get<std::string>());
    }
    const auto point = point_of(task.space, settings);
    if (!point) return fail(*said + " is no point of the space");
    made.add(task.cost(*point));
    said = peer.ask(fmt::format("tell {}", task.cost(*point)));
  }
  if (said.ok()) said = peer.ask("seconds");
  if (!said.ok()) return fail(said.error().message);
  made.seconds = std::stod(*said);
  return made;
}

// Searches by one way, one of each seed.
struct Way {
  std::string name;
  std::vector<Search> searches;

  std::vector<double> after(std::uint32_t trials) const {
    std::vector<double> values;
    for (const Search& each : searches) values.push_back(each.after(trials));
    return values;
  }
  double seconds() const {
    double all = 0.0, proposals = 0.0;
    for (const Search& each : searches) {
      all += each.seconds;
      proposals += static_cast<double>(each.best.size());
    }
    return all / proposals;
  }
};

// "mean [low, high]" of the difference to the least value, where the mean of all seeds lies with a
// probability of 95 %, by Student's distribution for 20 seeds.
std::string text_of(const std::vector<double>& values, double least) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2) return fmt::format("{:.4f}", mean - least);
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = 2.093 * std::sqrt(squares / (count - 1.0) / count);
  return fmt::format("{:.4f} [{:.4f}, {:.4f}]", mean - least, mean - least - half,
                     mean - least + half);
}

// In how many of all pairs of their seeds the first is better; ties count half.
double share_of_wins(const Way& first, const Way& second, std::uint32_t trials) {
  double wins = 0.0, pairs = 0.0;
  for (const double own : first.after(trials)) {
    for (const double other : second.after(trials)) {
      wins += own < other ? 1.0 : own == other ? 0.5 : 0.0;
      pairs += 1.0;
    }
  }
  return wins / pairs;
}

class Comparison {
 public:
  Comparison(const ProposalTask& task, const Extent& extent) : task_(task), extent_(extent) {}

  // False: something is wrong, and it is said.
  bool run() {
    if (!is_right()) return false;
    add("bayesian", MethodKind::kBayesian, extent_.seeds);
    add("genetic", MethodKind::kGenetic, extent_.seeds);
    add("random", MethodKind::kRandom, extent_.seeds);
    add("grid", MethodKind::kGrid, 1);
    const bool hangs = std::ranges::any_of(
        task_.space, [](const study::Dimension& each) { return each.only_with.has_value(); });
    for (const char* sampler : {"tpe", "multivariate", "cmaes", "random"}) {
      // CMA-ES takes no conditional fields.
      if (!extent_.peers || (hangs && sampler == std::string("cmaes"))) continue;
      if (!add_peer(sampler)) return false;
    }
    print();
    // Where a process learns nothing, it is as good as chance.
    return share_of_wins(ways_[0], ways_[2], extent_.trials) > 0.5;
  }

 private:
  bool is_right() const {
    const double found = task_.cost(task_.best);
    const auto random = search(task_, MethodKind::kRandom, 1, 200);
    if (std::abs(found - task_.least) < 1e-4 && random.best.back() >= task_.least - 1e-5) {
      return true;
    }
    fmt::print(stderr, "{} is {} at its minimum, and should be {}\n", task_.name, found,
               task_.least);
    return false;
  }

  void add(const char* name, MethodKind kind, std::uint64_t seeds) {
    Way way{name, {}};
    for (std::uint64_t i = 0; i < seeds; ++i) {
      way.searches.push_back(search(task_, kind, kFirstSeed + i, extent_.trials));
    }
    ways_.push_back(std::move(way));
  }

  bool add_peer(const std::string& sampler) {
    Answering peer({TROUPE_PYTHON, TROUPE_PROPOSALS_PEER, sampler, space_json(task_.space)});
    const auto said = peer.answer();
    if (!said.ok()) {
      fmt::print("Optuna: {}\n", said.error().message);
      return said.error().message.starts_with("missing");
    }
    Way way{fmt::format("{}, {}", *said, sampler), {}};
    for (std::uint64_t i = 0; i < extent_.seeds; ++i) {
      auto found = search(task_, peer, kFirstSeed + i, extent_.trials);
      if (!found) return false;
      way.searches.push_back(std::move(*found));
    }
    ways_.push_back(std::move(way));
    return true;
  }

  void print() const {
    fmt::print(
        "{}: how far from the least value, mean of {} seeds [95 %], and in how many pairs of "
        "seeds ours is better\n",
        task_.name, extent_.seeds);
    for (const Way& way : ways_) {
      fmt::print("  {:<26}", way.name);
      for (const std::uint32_t trials : kAfter) {
        if (trials > extent_.trials) continue;
        fmt::print("  {:<26} {:4.2f}", text_of(way.after(trials), task_.least),
                   share_of_wins(ways_[0], way, trials));
      }
      fmt::print("  {:.2f} ms a proposal\n", 1e3 * way.seconds());
    }
    std::fflush(stdout);
  }

  const ProposalTask& task_;
  const Extent extent_;
  std::vector<Way> ways_;
};

int run(const Extent& extent, const std::string& wanted) {
  for (const ProposalTask& task : proposal_tasks()) {
    if (!wanted.empty() && wanted != task.name) continue;
    if (!Comparison(task, extent).run()) return 1;
  }
  return 0;
}

int run_table(const Extent& extent, const char* path) {
  const auto task = read_table(path);
  if (task.ok()) return Comparison(*task, extent).run() ? 0 : 1;
  fmt::print(stderr, "{}\n", task.error().message);
  return 1;
}

}  // namespace
}  // namespace troupe::bench

// bench_proposals [--small] [FUNCTION | --table FILE]. --small compares our own ways alone. FILE is
// what `troupe study DIR --report --json` says of a grid such as gan3d_12_table.yaml.
int main(int argc, char** argv) {
  bool small = false;
  const char* table = nullptr;
  std::string function;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      small = true;
    } else if (std::strcmp(argv[i], "--table") == 0 && i + 1 < argc) {
      table = argv[++i];
    } else {
      function = argv[i];
    }
  }
  const auto& extent = small ? troupe::bench::kSmall : troupe::bench::kFull;
  return table != nullptr ? troupe::bench::run_table(extent, table)
                          : troupe::bench::run(extent, function);
}
