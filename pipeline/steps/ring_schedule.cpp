#include "pipeline/steps/ring_schedule.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::pipeline {

bool are_rows(const std::vector<std::uint32_t>& rows, std::size_t members) {
  if (rows.empty()) return true;
  const bool rise = std::ranges::adjacent_find(rows, std::greater_equal{}) == rows.end();
  return rows.size() > 1 && rise && rows.back() < members;
}

BucketRoutes::BucketRoutes(std::uint32_t members, std::vector<std::uint32_t> rows)
    : members_(members), rows_(std::move(rows)) {
  CHECK(members > 0, "a ring has members");
  CHECK(are_rows(rows_, members), "rows of its members");
  if (rows_.empty()) rows_ = {0};
  for (std::uint32_t row = 0; row < rows_.size(); ++row) longest_ = std::max(longest_, length(row));
}

std::uint32_t BucketRoutes::length(std::uint32_t row) const {
  if (row + 1 < rows_.size()) return rows_[row + 1] - rows_[row];
  return members_ - rows_.back() + rows_.front();
}

std::uint32_t BucketRoutes::row_of(std::uint32_t position) const {
  const auto next = std::ranges::upper_bound(rows_, position);
  const auto rows_before = next - rows_.begin();
  return static_cast<std::uint32_t>(rows_before > 0 ? rows_before - 1 : rows_.size() - 1);
}

std::uint32_t BucketRoutes::position_at(std::uint32_t row, std::uint32_t place) const {
  return (rows_[row] + place % length(row)) % members_;
}

std::uint32_t BucketRoutes::collector(std::uint32_t bucket, std::uint32_t row) const {
  return bucket % longest_ % length(row);
}

std::uint32_t BucketRoutes::home_row(std::uint32_t bucket) const {
  return bucket / longest_ % static_cast<std::uint32_t>(rows_.size());
}

std::uint32_t BucketRoutes::home_of(std::uint32_t bucket) const {
  const std::uint32_t row = home_row(bucket);
  return position_at(row, collector(bucket, row));
}

BucketRole BucketRoutes::role(std::uint32_t bucket, std::uint32_t position) const {
  CHECK(position < members_, "a position in the ring");
  const auto rows = static_cast<std::uint32_t>(rows_.size());
  const std::uint32_t row = row_of(position), in_row = length(row);
  const std::uint32_t place = (position + members_ - rows_[row]) % members_;
  const std::uint32_t last = collector(bucket, row);
  const bool collects = place == last;
  const std::uint32_t next_row = (row + 1) % rows, home = home_row(bucket);
  const std::uint32_t in_next_row = position_at(next_row, collector(bucket, next_row));
  BucketRole role;
  if (place != (last + 1) % in_row) ++role.parts;  // from the one before it in its row
  if (!collects) {
    role.part_to = position_at(row, place + 1);
  } else {
    if (row != (home + 1) % rows) ++role.parts;  // from the one before it in the column
    if (row != home) role.part_to = in_next_row;
    if (next_row != home) role.sum_to.push_back(in_next_row);
  }
  if ((place + 1) % in_row != last) role.sum_to.push_back(position_at(row, place + 1));
  return role;
}

// Which place of a row collects a bucket repeats with as many buckets as the longest row has
// members.
std::vector<std::uint32_t> BucketRoutes::next_of(std::uint32_t position) const {
  CHECK(position < members_, "a position in the ring");
  const std::uint32_t row = row_of(position);
  const std::uint32_t place = (position + members_ - rows_[row]) % members_;
  std::set<std::uint32_t> next;
  if (length(row) > 1) next.insert(position_at(row, place + 1));
  if (rows_.size() > 1) {
    const std::uint32_t next_row = (row + 1) % static_cast<std::uint32_t>(rows_.size());
    for (std::uint32_t bucket = 0; bucket < longest_; ++bucket) {
      if (collector(bucket, row) != place) continue;
      next.insert(position_at(next_row, collector(bucket, next_row)));
    }
  }
  return {next.begin(), next.end()};
}

std::int64_t BucketRoutes::messages(std::uint32_t buckets, std::uint32_t from,
                                    std::uint32_t to) const {
  const auto crossing = [&](std::uint32_t bucket) {
    const BucketRole role = this->role(bucket, from);
    return (role.part_to == to ? 1 : 0) + std::ranges::count(role.sum_to, to);
  };
  std::int64_t messages = crossing(kHeaderBucket);
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) messages += crossing(bucket);
  return messages;
}

std::uint32_t BucketRoutes::longest_way() const {
  return 2 * (longest_ - 1 + static_cast<std::uint32_t>(rows_.size()) - 1);
}

}  // namespace troupe::pipeline
