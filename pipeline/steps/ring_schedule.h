#pragma once

// The way of a bucket through the members of a View.
//
// In one ring, position p sends to p + 1, the last one to position 0. A bucket is summed on its
// first way round: it begins at one position, every other adds its own part, and the last of them,
// the bucket's home, holds the sum. On its second way the sum goes on from home until all have it.
//
// In a ring of rings the positions are cut into rows, each a ring of its own. A bucket is summed in
// all rows at once. The last of each row, of whom no two are in one row, are a ring too, the
// bucket's column: in it the sums of rows become that of all, which goes round the column and from
// there round each row. So the longest way is that of a row and a column, not that of all members,
// while each of these carries as many bytes as before: rows of L and R of them are
// 2 (L - 1) / L + 2 (R - 1) / (R L) = 2 (N - 1) / N of a step's bytes for each member.
//
// Positions take turns as homes, so that all carry the same if rows are of one length. No
// all-reduce undercuts 2 (N - 1) / N of the bytes.
//
// Pure functions of integers: every member must find the same.

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::pipeline {

// The work of one position on a bucket. A position alone begins and completes the bucket, and sends
// nothing.
struct BucketRole {
  std::uint32_t parts = 0;  // sums of others, which come to it and to which it adds its own
  std::optional<std::uint32_t> part_to;  // the position that its sum goes to; none: it is home
  std::vector<std::uint32_t> sum_to;     // those that it sends the sum of all to; two at most
  bool begins() const { return parts == 0; }
  bool completes() const { return !part_to; }
  bool operator==(const BucketRole&) const = default;
};

class BucketRoutes {
 public:
  // `rows`: the positions at which a row begins, ascending; the last row goes on at position 0.
  // Empty: all members are one ring. CHECKs that are_rows().
  explicit BucketRoutes(std::uint32_t members, std::vector<std::uint32_t> rows = {});

  // The position that is first to hold the bucket's sum.
  std::uint32_t home_of(std::uint32_t bucket) const;
  BucketRole role(std::uint32_t bucket, std::uint32_t position) const;
  // The positions that a position sends to, whatever the bucket: the next of its row, and those of
  // the next row that may stand behind it in a column. Ascending; none of a position alone.
  std::vector<std::uint32_t> next_of(std::uint32_t position) const;
  // Messages from one position to another, its neighbour, for `buckets` buckets and one header.
  std::int64_t messages(std::uint32_t buckets, std::uint32_t from, std::uint32_t to) const;
  // The most messages one after the other, from the first part until all have a bucket's sum.
  std::uint32_t longest_way() const;

 private:
  std::uint32_t length(std::uint32_t row) const;
  std::uint32_t row_of(std::uint32_t position) const;
  // The member of the row's ring behind `place`, which counts from the row's first.
  std::uint32_t position_at(std::uint32_t row, std::uint32_t place) const;
  // The place in a row that adds up the row's parts of a bucket.
  std::uint32_t collector(std::uint32_t bucket, std::uint32_t row) const;
  std::uint32_t home_row(std::uint32_t bucket) const;

  std::uint32_t members_;
  std::vector<std::uint32_t> rows_;  // at least one
  std::uint32_t longest_ = 1;        // members of the longest row
};

// Whether such rows are none, or two and more of so many members.
bool are_rows(const std::vector<std::uint32_t>& rows, std::size_t members);

// Headers go the way of this bucket.
inline constexpr std::uint32_t kHeaderBucket = 0;

}  // namespace troupe::pipeline
