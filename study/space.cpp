#include "study/space.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "config/scalar_codecs.h"
#include "runtime/base/error.h"
#include "runtime/base/math.h"

namespace troupe::study {
namespace {

namespace math = runtime::math;

double index_at(double share, std::uint64_t count) {
  const double index = std::floor(share * static_cast<double>(count));
  return std::clamp(index, 0.0, static_cast<double>(count - 1));
}

// A bound may have more digits.
double rounded(double value, double share, const std::array<double, 2>& bounds) {
  if (share <= 0.0 || share >= 1.0) return bounds[share <= 0.0 ? 0 : 1];
  const auto short_one = config::parse_number<double>(fmt::format("{:.6g}", value));
  CHECK(short_one.has_value());
  return std::clamp(*short_one, bounds[0], bounds[1]);
}

}  // namespace

bool exists(const Space& space, std::size_t number, const Point& point) {
  const auto& condition = space[number].only_with;
  if (!condition) return true;
  const auto other = std::ranges::find(space, condition->path, &Dimension::path);
  const double value = point.at(static_cast<std::size_t>(other - space.begin()));
  if (value == kAbsent) return false;
  return std::ranges::find(condition->values, text_of(*other, value)) != condition->values.end();
}

Point settled(const Space& space, Point point) {
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (!exists(space, i, point)) point[i] = kAbsent;
  }
  return point;
}

std::uint64_t levels(const Dimension& dimension) {
  if (dimension.choice) return dimension.choice->size();
  if (!dimension.integer) return 0;
  const auto [low, high] = *dimension.integer;
  const std::uint64_t width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  return width / static_cast<std::uint64_t>(dimension.step) + 1;
}

double value_at(const Dimension& dimension, double share) {
  if (dimension.log) {
    const auto [low, high] = *dimension.log;
    return rounded(low * math::exp(share * math::log(high / low)), share, *dimension.log);
  }
  if (dimension.linear) {
    const auto [low, high] = *dimension.linear;
    return rounded(low + share * (high - low), share, *dimension.linear);
  }
  const double index = index_at(share, levels(dimension));
  if (dimension.choice) return index;
  return static_cast<double>(dimension.integer->front()) +
         index * static_cast<double>(dimension.step);
}

double share_of(const Dimension& dimension, double value) {
  if (dimension.choice) return value;
  if (dimension.log) {
    const auto [low, high] = *dimension.log;
    return math::log(value / low) / math::log(high / low);
  }
  if (dimension.linear) {
    const auto [low, high] = *dimension.linear;
    return (value - low) / (high - low);
  }
  const std::uint64_t count = levels(dimension);
  if (count == 1) return 0.0;
  const double index = (value - static_cast<double>(dimension.integer->front())) /
                       static_cast<double>(dimension.step);
  return index / static_cast<double>(count - 1);
}

double value_near(const Dimension& dimension, double share) {
  const double inside = std::clamp(share, 0.0, 1.0);
  const std::uint64_t count = levels(dimension);
  if (count == 0) return value_at(dimension, inside);
  const double index = inside * static_cast<double>(count - 1) + 0.5;
  return value_at(dimension, index / static_cast<double>(count));
}

std::string text_of(const Dimension& dimension, double value) {
  if (dimension.choice) return dimension.choice->at(static_cast<std::size_t>(value));
  if (dimension.integer) return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{}", value);
}

std::optional<double> value_of(const Dimension& dimension, const std::string& text) {
  if (dimension.choice) {
    const auto found = std::ranges::find(*dimension.choice, text);
    if (found == dimension.choice->end()) return std::nullopt;
    return static_cast<double>(found - dimension.choice->begin());
  }
  if (dimension.integer) {
    const auto [low, high] = *dimension.integer;
    const auto number = config::parse_number<std::int64_t>(text);
    if (!number || *number < low || *number > high || (*number - low) % dimension.step != 0) {
      return std::nullopt;
    }
    return static_cast<double>(*number);
  }
  const auto [low, high] = dimension.log ? *dimension.log : *dimension.linear;
  const auto number = config::parse_number<double>(text);
  if (!number || !(*number >= low && *number <= high)) return std::nullopt;
  return number;
}

Settings settings_of(const Space& space, const Point& point) {
  CHECK(space.size() == point.size());
  Settings settings;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (point[i] == kAbsent) continue;
    settings.emplace_back(space[i].path, text_of(space[i], point[i]));
  }
  return settings;
}

std::optional<Point> point_of(const Space& space, const Settings& settings) {
  Point point;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (!exists(space, i, point)) {
      point.push_back(kAbsent);
      continue;
    }
    const auto setting = std::ranges::find(settings, space[i].path, &Settings::value_type::first);
    if (setting == settings.end()) return std::nullopt;
    const auto value = value_of(space[i], setting->second);
    if (!value) return std::nullopt;
    point.push_back(*value);
    ++taken;
  }
  return taken == settings.size() ? std::optional(point) : std::nullopt;
}

}  // namespace troupe::study
