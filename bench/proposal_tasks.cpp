#include "bench/proposal_tasks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numbers>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/disk.h"
#include "runtime/base/json_reader.h"

namespace troupe::bench {
namespace {

using study::Dimension;
using study::Point;
using study::Space;

Dimension field(std::string path) {
  Dimension made;
  made.path = std::move(path);
  return made;
}
Dimension linear(std::string path, double low, double high) {
  Dimension made = field(std::move(path));
  made.linear = {low, high};
  return made;
}
Dimension logarithmic(std::string path, double low, double high) {
  Dimension made = field(std::move(path));
  made.log = {low, high};
  return made;
}
Dimension integer(std::string path, std::int64_t low, std::int64_t high, std::int64_t step) {
  Dimension made = field(std::move(path));
  made.integer = {low, high};
  made.step = step;
  return made;
}
Dimension choice(std::string path, std::vector<std::string> words) {
  Dimension made = field(std::move(path));
  made.choice = std::move(words);
  return made;
}
Dimension only_with(Dimension dimension, std::string path, std::string value) {
  dimension.only_with = {std::move(path), {std::move(value)}};
  return dimension;
}

constexpr std::size_t kLongestTable = std::size_t{64} << 20;

double square(double x) { return x * x; }

ProposalTask branin() {
  const auto cost = [](const Point& point) {
    using std::numbers::pi;
    const double x = point[0];
    const double a = point[1] - 5.1 / (4.0 * pi * pi) * x * x + 5.0 / pi * x - 6.0;
    return a * a + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * std::cos(x) + 10.0;
  };
  return {"branin", {linear("x", -5.0, 10.0), linear("y", 0.0, 15.0)},
          cost,     {std::numbers::pi, 2.275},
          0.397887, 8};
}

ProposalTask hartmann() {
  using Row = std::array<double, 6>;
  static constexpr std::array<double, 4> kWeights{1.0, 1.2, 3.0, 3.2};
  static constexpr std::array<Row, 4> kWidths{{{10, 3, 17, 3.5, 1.7, 8},
                                               {0.05, 10, 17, 0.1, 8, 14},
                                               {3, 3.5, 1.7, 10, 17, 8},
                                               {17, 8, 0.05, 10, 0.1, 14}}};
  static constexpr std::array<Row, 4> kCentres{{{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                                {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                                {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                                {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}}};
  const auto cost = [](const Point& point) {
    double sum = 0.0;
    for (std::size_t i = 0; i < 4; ++i) {
      double exponent = 0.0;
      for (std::size_t j = 0; j < 6; ++j) {
        exponent += kWidths[i][j] * square(point[j] - kCentres[i][j]);
      }
      sum -= kWeights[i] * std::exp(-exponent);
    }
    return sum;
  };
  Space space;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) space.push_back(linear(name, 0.0, 1.0));
  return {"hartmann6", std::move(space),
          cost,        {0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573},
          -3.32237,    2};
}

// The best rate depends on the optimiser, and filters and dropout hang together.
ProposalTask mixed() {
  const auto cost = [](const Point& point) {
    static constexpr std::array<double, 3> kRates{-3.0, -3.5, -1.5}, kOffsets{0.0, 0.15, 0.3};
    const auto optimiser = static_cast<std::size_t>(point[3]);
    const double rate = std::log10(point[0]) - kRates[optimiser];
    const double filters = (point[2] - 24.0) / 16.0;
    return kOffsets[optimiser] + square(rate) + square(filters) +
           4.0 * square(point[1] - 0.2 - 0.15 * filters);
  };
  return {"mixed",
          {logarithmic("rate", 1e-5, 1e-1), linear("dropout", 0.0, 0.6),
           integer("filters", 4, 64, 4), choice("optimiser", {"adam", "rmsprop", "sgd"})},
          cost,
          {1e-3, 0.2, 24.0, 0.0},
          0.0,
          2};
}

// Each optimiser has coefficients of its own.
ProposalTask conditional() {
  const auto cost = [](const Point& point) {
    const double rate = std::log10(point[1]);
    if (point[0] == 0.0) {
      return square(rate + 3.0) + square(5.0 * (point[2] - 0.5)) + square(3.0 * (point[3] - 0.9));
    }
    if (point[0] == 1.0) return 0.1 + square(rate + 3.5) + square(4.0 * (point[4] - 0.8));
    return 0.3 + square(rate + 1.5) + square(3.0 * (point[5] - 0.9));
  };
  const std::string other = "optimiser";
  return {"conditional",
          {choice(other, {"adam", "rmsprop", "sgd"}), logarithmic("rate", 1e-5, 1e-1),
           only_with(linear("beta_1", 0.0, 0.99), other, "adam"),
           only_with(linear("beta_2", 0.5, 0.999), other, "adam"),
           only_with(linear("decay", 0.5, 0.999), other, "rmsprop"),
           only_with(linear("momentum", 0.0, 0.99), other, "sgd")},
          cost,
          {0.0, 1e-3, 0.5, 0.9, study::kAbsent, study::kAbsent},
          0.0,
          3};
}

// Nothing: the text is no number.
std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' ? std::optional(value) : std::nullopt;
}

bool are_numbers(const std::vector<std::string>& texts) {
  return std::ranges::all_of(texts,
                             [](const std::string& each) { return number_of(each).has_value(); });
}

// The different values of a field, numbers in order.
std::vector<std::string> values_of(const nlohmann::json& trials, const std::string& path) {
  std::vector<std::string> values;
  for (const auto& trial : trials) {
    const auto value = trial.at("settings").at(path).get<std::string>();
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  if (are_numbers(values)) std::ranges::sort(values, {}, number_of);
  return values;
}

// A field counts its values if they are numbers, and has a choice of them if not.
Space fields_of(const nlohmann::json& trials) {
  Space space;
  for (const auto& [path, first] : trials.at(0).at("settings").items()) {
    auto values = values_of(trials, path);
    if (values.size() < 2) continue;
    const auto last = static_cast<std::int64_t>(values.size()) - 1;
    space.push_back(are_numbers(values) ? integer(path, 0, last, 1)
                                        : choice(path, std::move(values)));
  }
  return space;
}

Point place_of(const Space& space, const nlohmann::json& trials, const nlohmann::json& trial) {
  Point point;
  for (const Dimension& dimension : space) {
    const auto values = values_of(trials, dimension.path);
    const auto value = trial.at("settings").at(dimension.path).get<std::string>();
    point.push_back(static_cast<double>(std::ranges::find(values, value) - values.begin()));
  }
  return point;
}

nlohmann::json json_of(const Dimension& dimension) {
  nlohmann::json made{{"path", dimension.path}};
  if (dimension.log) made["log"] = *dimension.log;
  if (dimension.linear) made["linear"] = *dimension.linear;
  if (dimension.integer) made["integer"] = *dimension.integer;
  if (dimension.integer) made["step"] = dimension.step;
  if (dimension.choice) made["choice"] = *dimension.choice;
  if (dimension.only_with) {
    made["only_with"] = {dimension.only_with->path, dimension.only_with->values};
  }
  return made;
}

}  // namespace

std::vector<ProposalTask> proposal_tasks() {
  return {branin(), hartmann(), mixed(), conditional()};
}

runtime::Result<ProposalTask> read_table(const std::string& path) {
  const auto text = runtime::read_file(path, kLongestTable);
  if (!text.ok()) return text.error();
  const nlohmann::json report = runtime::parse_json(*text);
  if (!report.contains("trials") || report.value("method", "") != "grid") {
    return runtime::Error{runtime::ErrorKind::kData,
                          path + ": not what --report --json says of a grid"};
  }
  const nlohmann::json& trials = report["trials"];
  ProposalTask task{report.value("name", path), fields_of(trials), {}, {}, HUGE_VAL, 2};
  std::map<Point, double> costs;
  double worst = 0.0;
  for (const nlohmann::json& trial : trials) {
    const nlohmann::json& figure = trial.at("figure");
    if (figure.is_number()) worst = std::max(worst, figure.get<double>());
  }
  for (const nlohmann::json& trial : trials) {
    const nlohmann::json& figure = trial.at("figure");
    const Point point = place_of(task.space, trials, trial);
    costs[point] = figure.is_number() ? figure.get<double>() : worst;
    if (costs[point] < task.least) std::tie(task.best, task.least) = std::tie(point, costs[point]);
  }
  task.cost = [costs = std::move(costs)](const Point& point) { return costs.at(point); };
  return task;
}

std::string space_json(const Space& space) {
  nlohmann::json all = nlohmann::json::array();
  for (const Dimension& dimension : space) all.push_back(json_of(dimension));
  return all.dump();
}

}  // namespace troupe::bench
