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

// How many of the first members make a site: about as fast as one of the workers that are left, and
// so few that each of the others has a member.
std::size_t site_size(std::span<const std::uint32_t> members, std::span<const std::uint64_t> speeds,
                      std::uint64_t workers) {
  std::uint64_t all = 0, sum = speeds[members.front()];
  for (const std::uint32_t member : members) all += speeds[member];
  std::size_t size = 1;
  while (size + workers <= members.size() &&
         (2 * sum + speeds[members[size]]) * workers <= 2 * all) {
    sum += speeds[members[size++]];
  }
  return workers == 1 ? members.size() : size;
}

std::vector<std::uint32_t> whole_sites(std::uint32_t workers, std::uint32_t parts,
                                       std::span<const std::uint64_t> speeds,
                                       std::span<const std::uint32_t> by_site) {
  std::vector<std::uint32_t> able(by_site.begin(), by_site.end());
  if (able.empty()) {
    able.resize(speeds.size());
    std::iota(able.begin(), able.end(), 0);
  }
  std::erase_if(able, [&](std::uint32_t member) { return speeds[member] == 0; });
  std::vector<std::uint32_t> owners;
  if (able.size() < workers) {
    for (const std::uint32_t member : assign_micro_batches(workers, speeds)) {
      owners.insert(owners.end(), parts, member);
    }
    return owners;
  }
  std::span<const std::uint32_t> left(able);
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    const auto site = left.first(site_size(left, speeds, workers - worker));
    left = left.subspan(site.size());
    std::vector<std::uint64_t> of_site;
    for (const std::uint32_t member : site) of_site.push_back(speeds[member]);
    for (const std::uint32_t place : assign_micro_batches(parts, of_site)) {
      owners.push_back(site[place]);
    }
  }
  return owners;
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
                                                std::span<const std::uint64_t> speeds,
                                                std::uint32_t parts,
                                                std::span<const std::uint32_t> by_site) {
  std::vector<std::uint32_t> owners;
  const std::vector<std::uint32_t> quotas = micro_batch_quotas(count, speeds);
  CHECK(count % parts == 0, "whole workers");
  if (parts > 1) return whole_sites(count / parts, parts, speeds, by_site);
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
                                                  std::span<const std::uint64_t> speeds,
                                                  std::uint32_t parts) {
  const std::uint64_t count = owners.size();
  const std::uint64_t total = checked_total(count, speeds);
  const auto survives = [&](std::uint32_t owner) {
    return owner < speeds.size() && speeds[owner] > 0;
  };
  std::vector<std::uint64_t> owned(speeds.size(), 0);
  for (const std::uint32_t owner : owners) {
    if (survives(owner)) ++owned[owner];
  }
  std::vector<std::uint32_t> able;
  for (std::uint32_t member = 0; member < speeds.size(); ++member) {
    if (speeds[member] > 0) able.push_back(member);
  }
  std::vector<std::uint32_t> result(owners.begin(), owners.end());
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (survives(result[i])) continue;
    std::vector<std::uint32_t> keepers;
    for (const std::uint32_t owner : owners.subspan(i / parts * parts, parts)) {
      if (survives(owner)) keepers.push_back(owner);
    }
    const std::vector<std::uint32_t>& takers = keepers.empty() ? able : keepers;
    result[i] = *std::ranges::max_element(takers, {}, [&](std::uint32_t member) {
      return shortfall(count, speeds[member], owned[member], total);
    });
    ++owned[result[i]];
  }
  return result;
}

}  // namespace troupe::pipeline
