#include "pipeline/data/condition_law.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "runtime/base/disk.h"
#include "runtime/base/math.h"

namespace troupe::pipeline {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::size_t kMostHistogramBytes = std::size_t{16} << 20;

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Error refusal(const std::string& text) {
  return Error{ErrorKind::kUsage,
               fmt::format("{} is no number, no list (50,100), no range (10:500 or 10:500:log), "
                           "and no file with a histogram",
                           text.empty() ? "nothing" : text)};
}

}  // namespace

Result<ConditionLaw> ConditionLaw::parse(const std::string& text) {
  // A name of numbers alone means these, whatever files and folders there are.
  const auto other = [&]() -> Result<ConditionLaw> {
    std::error_code ignored;
    if (std::filesystem::exists(text, ignored)) return read_histogram(text);
    return refusal(text);
  };
  ConditionLaw law;
  auto parts = split(text, ':');
  if (parts.size() <= 1) {
    for (const std::string& each : split(text, ',')) {
      const auto value = number(each);
      if (!value) return other();
      law.list_.push_back(*value);
    }
    if (law.list_.empty()) return other();
    return law;
  }
  law.logarithmic_ = parts.size() == 3 && parts.back() == "log";
  if (law.logarithmic_) parts.pop_back();
  const auto low = number(parts[0]);
  const auto high = number(parts[1]);
  if (parts.size() != 2 || !low || !high) return other();
  if (!(*low < *high)) {
    return Error{ErrorKind::kUsage, fmt::format("{}: a range ends above its beginning", text)};
  }
  if (law.logarithmic_ && !(*low > 0)) {
    return Error{ErrorKind::kUsage, fmt::format("{}: a logarithmic range begins above 0", text)};
  }
  law.bins_.push_back({*low, *high, 1.0});
  return law;
}

Result<ConditionLaw> ConditionLaw::read_histogram(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, runtime::read_file(path, kMostHistogramBytes));
  ConditionLaw law;
  std::size_t line_number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++line_number;
    if (const auto added = law.add_bin(line.substr(0, line.find('#'))); !added.ok()) {
      return Error{ErrorKind::kData,
                   fmt::format("{}:{}: {}", path, line_number, added.error().message)};
    }
  }
  const double all = law.bins_.empty() ? 0 : law.bins_.back().share;
  if (!(all > 0) || !std::isfinite(all)) {
    return Error{ErrorKind::kData, path + ": the weights of its bins add up to nothing"};
  }
  for (Bin& bin : law.bins_) bin.share /= all;
  return law;
}

// Shares are sums of weights until the whole is known.
Result<void> ConditionLaw::add_bin(const std::string& line) {
  std::istringstream words(line);
  std::vector<double> values;
  for (std::string word; words >> word;) {
    const auto value = number(word);
    if (!value) return Error{ErrorKind::kData, word + " is no number"};
    values.push_back(*value);
  }
  if (values.empty()) return {};
  if (values.size() != 3) {
    return Error{ErrorKind::kData, "a bin is a line of three numbers: LOW HIGH WEIGHT"};
  }
  if (!(values[0] < values[1]) || !(values[2] >= 0)) {
    return Error{ErrorKind::kData, "a bin has LOW < HIGH and a WEIGHT of 0 or more"};
  }
  const double before = bins_.empty() ? 0 : bins_.back().share;
  bins_.push_back({values[0], values[1], before + values[2]});
  return {};
}

// Logarithms by runtime/base/math.h are the same bits everywhere.
double ConditionLaw::at(std::uint64_t event, double uniform) const {
  if (!list_.empty()) return list_[event % list_.size()];
  const auto bin =
      std::lower_bound(bins_.begin(), bins_.end() - 1, uniform,
                       [](const Bin& each, double share) { return each.share < share; });
  const double before = bin == bins_.begin() ? 0 : (bin - 1)->share;
  const double inside = bin->share > before ? (uniform - before) / (bin->share - before) : 0;
  if (!logarithmic_) return bin->low + inside * (bin->high - bin->low);
  const double low = runtime::math::log(bin->low);
  return runtime::math::exp(low + inside * (runtime::math::log(bin->high) - low));
}

bool ConditionLaw::is_of_classes(std::int64_t classes) const {
  const auto is_class = [classes](double value) {
    return value >= 0 && value < static_cast<double>(classes) && std::trunc(value) == value;
  };
  return !list_.empty() && std::ranges::all_of(list_, is_class);
}

double ConditionLaw::least() const {
  if (!list_.empty()) return *std::min_element(list_.begin(), list_.end());
  return std::min_element(bins_.begin(), bins_.end(),
                          [](const Bin& a, const Bin& b) { return a.low < b.low; })
      ->low;
}

double ConditionLaw::most() const {
  if (!list_.empty()) return *std::max_element(list_.begin(), list_.end());
  return std::max_element(bins_.begin(), bins_.end(),
                          [](const Bin& a, const Bin& b) { return a.high < b.high; })
      ->high;
}

}  // namespace troupe::pipeline
