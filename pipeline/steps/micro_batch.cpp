#include "pipeline/steps/micro_batch.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

// The number of micro-batches that a member lacks to its share, times the sum of all speeds.
std::int64_t shortfall(std::uint64_t count, std::uint64_t speed, std::uint64_t owned,
                       std::uint64_t total) {
  return static_cast<std::int64_t>(count * speed) - static_cast<std::int64_t>(owned * total);
}

std::uint64_t checked_total(std::uint64_t count, std::span<const std::uint64_t> speeds) {
  std::uint64_t total = 0;
  std::uint64_t product = 0;
  for (const std::uint64_t speed : speeds) {
    CHECK(!__builtin_add_overflow(total, speed, &total), "speeds beyond 64 bits");
  }
  CHECK(total > 0, "at least one member that can work");
  CHECK(!__builtin_mul_overflow(count, total, &product) &&
            product <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
        "micro-batches x speeds beyond 63 bits");
  return total;
}

}  // namespace

std::vector<std::uint32_t> micro_batch_quotas(std::uint32_t count,
                                              std::span<const std::uint64_t> speeds) {
  const std::uint64_t total = checked_total(count, speeds);
  std::vector<std::uint32_t> quotas;
  std::vector<std::uint64_t> remainders;
  std::uint32_t given = 0;
  for (const std::uint64_t speed : speeds) {
    quotas.push_back(static_cast<std::uint32_t>(count * speed / total));
    remainders.push_back(count * speed % total);
    given += quotas.back();
  }
  std::vector<std::size_t> order(speeds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (std::size_t i = 0; given < count; ++i, ++given) ++quotas[order[i]];
  return quotas;
}

std::vector<std::uint32_t> assign_micro_batches(std::uint32_t count,
                                                std::span<const std::uint64_t> speeds) {
  std::vector<std::uint32_t> owners;
  const std::vector<std::uint32_t> quotas = micro_batch_quotas(count, speeds);
  for (std::uint32_t member = 0; member < quotas.size(); ++member) {
    owners.insert(owners.end(), quotas[member], member);
  }
  return owners;
}

std::vector<std::uint32_t> micro_batches_of(std::span<const std::uint32_t> owners,
                                            std::uint32_t owner) {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == owner) indices.push_back(i);
  }
  return indices;
}

// One by one, in order of the index, so that every member finds the same result.
std::vector<std::uint32_t> reassign_micro_batches(std::span<const std::uint32_t> owners,
                                                  std::span<const std::uint64_t> speeds) {
  const std::uint64_t count = owners.size();
  const std::uint64_t total = checked_total(count, speeds);
  const auto survives = [&](std::uint32_t owner) {
    return owner < speeds.size() && speeds[owner] > 0;
  };
  std::vector<std::uint64_t> owned(speeds.size(), 0);
  for (const std::uint32_t owner : owners) {
    if (survives(owner)) ++owned[owner];
  }
  std::vector<std::uint32_t> result(owners.begin(), owners.end());
  for (std::uint32_t& owner : result) {
    if (survives(owner)) continue;
    std::uint32_t best = 0;
    while (speeds[best] == 0) ++best;
    for (std::uint32_t member = best + 1; member < speeds.size(); ++member) {
      if (speeds[member] > 0 && shortfall(count, speeds[member], owned[member], total) >
                                    shortfall(count, speeds[best], owned[best], total)) {
        best = member;
      }
    }
    owner = best;
    ++owned[best];
  }
  return result;
}

}  // namespace troupe::pipeline
