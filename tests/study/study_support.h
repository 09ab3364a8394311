#pragma once

// Studies for tests, and a stand-in for what trials find.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

#include <fmt/format.h>

#include "study/method.h"
#include "study/study_file.h"
#include "study/trial_book.h"
#include "tests/support/temporary_folder.h"

namespace troupe::study {

inline std::string source_path(const std::string& path) {
  return std::string(TROUPE_SOURCE_DIR) + "/" + path;
}

// Everything that a study must have, of the toy topology.
inline const std::string kLeast =
    "topology: toy\nspace: {train.learning_rate.g: {log: [1e-4, 1e-2]}}\n"
    "objective: {minimise: merit}\n";

inline runtime::Result<LoadedStudy> parse(const std::string& text) {
  return parse_study(text, "s.yaml", "/folder");
}

inline std::string message_of(const runtime::Result<LoadedStudy>& result) {
  return result.ok() ? std::string() : result.error().message;
}

// A study that must be right.
inline LoadedStudy parsed(const std::string& text) {
  auto result = parse(text);
  EXPECT_TRUE(result.ok()) << message_of(result);
  return result.ok() ? *result : LoadedStudy{};
}

// For failures.
inline void PrintTo(const RunResult& result, std::ostream* out) {
  *out << (result.figure ? fmt::format("{}", *result.figure) : result.error);
}

inline Dimension linear(std::string path, double low, double high) {
  Dimension dimension;
  dimension.path = std::move(path);
  dimension.linear = {low, high};
  return dimension;
}
inline Dimension logarithmic(std::string path, double low, double high) {
  Dimension dimension;
  dimension.path = std::move(path);
  dimension.log = {low, high};
  return dimension;
}
inline Dimension whole(std::string path, std::int64_t low, std::int64_t high,
                       std::int64_t step = 1) {
  Dimension dimension;
  dimension.path = std::move(path);
  dimension.integer = {low, high};
  dimension.step = step;
  return dimension;
}
inline Dimension words(std::string path, std::vector<std::string> choice) {
  Dimension dimension;
  dimension.path = std::move(path);
  dimension.choice = std::move(choice);
  return dimension;
}

// One of each kind.
inline Space mixed_space() {
  return {logarithmic("rate", 1e-4, 1e-1), linear("share", -1.0, 2.0), whole("batch", 8, 30, 8),
          words("optimiser", {"adam", "rmsprop", "sgd"})};
}

inline Dimension only_with(Dimension dimension, std::string path, std::vector<std::string> values) {
  dimension.only_with = {std::move(path), std::move(values)};
  return dimension;
}

// Fields that hang on a choice, one of them by another one that does.
inline Space hanging_space() {
  return {words("optimiser", {"adam", "rmsprop", "sgd"}), linear("rate", 0.0, 1.0),
          only_with(linear("beta", 0.0, 1.0), "optimiser", {"adam"}),
          only_with(words("nesterov", {"no", "yes"}), "optimiser", {"rmsprop", "sgd"}),
          only_with(whole("delay", 1, 3), "nesterov", {"yes"})};
}

inline Study study_of(Space space, MethodKind kind, std::uint32_t trials) {
  Study study;
  study.space = std::move(space);
  study.objective.minimise = "merit";
  study.method.kind = kind;
  study.method.trials = trials;
  return study;
}

// Dixon and Szegoe 1978; its least value is 0.397887.
inline double branin(double x, double y) {
  using std::numbers::pi;
  const double a = y - 5.1 / (4.0 * pi * pi) * x * x + 5.0 / pi * x - 6.0;
  return a * a + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * std::cos(x) + 10.0;
}
inline Space branin_space() { return {linear("x", -5.0, 10.0), linear("y", 0.0, 15.0)}; }

// Proposes and looks, one by one; the costs in their order.
inline std::vector<double> costs_of(const Method& method,
                                    const std::function<double(const Point&)>& function) {
  Known known;
  std::vector<double> costs;
  for (std::uint32_t i = 0; i < method.trials(); ++i) {
    const Point point = method.propose(i, known);
    costs.push_back(function(point));
    known.ended.push_back({point, costs.back()});
  }
  return costs;
}

}  // namespace troupe::study
