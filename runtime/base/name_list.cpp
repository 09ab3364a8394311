#include "runtime/base/name_list.h"

#include <cstddef>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::runtime {
namespace {

constexpr std::size_t kMostNames = 16;
constexpr std::size_t kFirstNames = 12;

}  // namespace

std::string name_list(const std::vector<std::string>& names) {
  if (names.size() <= kMostNames) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} others", fmt::join(std::span(names).first(kFirstNames), ", "),
                     names.size() - kFirstNames);
}

}  // namespace troupe::runtime
