#include "pipeline/steps/ring_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "pipeline/steps/ring_schedule.h"

namespace troupe::pipeline {
namespace {

constexpr double kLeastBucket = 4096;
constexpr double kGain = 0.01;  // that rows have to bring

// The lines between the hosts of a ring, by the positions of its members.
class Lines {
 public:
  Lines(std::span<const std::uint32_t> ring, const RingCosts& costs) : costs_(costs) {
    for (const std::uint32_t member : ring) {
      const auto known = static_cast<std::uint32_t>(costs.bandwidths.size());
      hosts_.push_back(member < costs.hosts.size() ? costs.hosts[member] : known + member);
      like_.push_back(costs.lines_of(member).value_or(known));
    }
    for (const std::vector<std::uint64_t>& from : costs.bandwidths) {
      for (const std::uint64_t bits : from) {
        if (bits != kUnnamedBandwidth) unnamed_ = std::max(unnamed_, bytes_of(bits));
      }
    }
  }

  std::size_t members() const { return hosts_.size(); }
  std::uint32_t host(std::size_t position) const { return hosts_[position % hosts_.size()]; }
  bool are_together(std::size_t a, std::size_t b) const { return host(a) == host(b); }
  // Bits per second between members of two hosts, kUnnamedBandwidth where nothing is said.
  std::uint64_t bits(std::size_t a, std::size_t b) const {
    const std::uint32_t from = like(a), to = like(b);
    return are_known(from, to) ? costs_.bandwidths[from][to] : kUnnamedBandwidth;
  }
  // Seconds that a message is under way.
  double delay(std::size_t a, std::size_t b) const {
    const std::uint32_t from = like(a), to = like(b);
    const bool is_said = !costs_.delays.empty() && are_known(from, to);
    return std::max(is_said ? costs_.delays[from][to] : 0.0, kMessageSeconds);
  }
  // From the sender's first byte to the receiver's last.
  double seconds(std::size_t a, std::size_t b, double bytes) const {
    return delay(a, b) + bytes / rate(a, b);
  }
  // Bytes per second.
  double rate(std::size_t a, std::size_t b) const {
    const std::uint64_t bits = this->bits(a, b);
    return bits == kUnnamedBandwidth ? unnamed_ : bytes_of(bits);
  }

 private:
  std::uint32_t like(std::size_t position) const { return like_[position % like_.size()]; }
  bool are_known(std::uint32_t from, std::uint32_t to) const {
    return from != to && std::max(from, to) < costs_.bandwidths.size();
  }
  static double bytes_of(std::uint64_t bits) {
    return std::max(static_cast<double>(bits), 1.0) / 8.0;
  }

  const RingCosts& costs_;
  std::vector<std::uint32_t> hosts_;      // by position
  std::vector<std::uint32_t> like_;       // hosts that have the same lines
  double unnamed_ = kLineBytesPerSecond;  // lines that nobody names are none of the slow ones
};

// Rings side by side, whose members send to the next at the same time, again and again.
class Rings {
 public:
  Rings(const Lines& lines, double bucket) : lines_(lines), bucket_(bucket) {}

  // In each turn, in that ring.
  void send(std::size_t ring, std::size_t from, std::size_t to, double bytes) {
    Way& way = ways_[ring];
    ++way.lines;
    const bool together = lines_.are_together(from, to);
    const double seconds = together ? kMessageSeconds : lines_.seconds(from, to, bucket_);
    way.seconds += seconds;
    way.least = std::min(way.least, seconds);
    if (together) return;
    busiest_ = std::max(busiest_, busy_[lines_.host(from)] += bytes / lines_.rate(from, to));
  }
  // Until every bucket has passed all lines of its ring but one, and every host has sent what its
  // members have to send to other hosts.
  double seconds() const {
    double seconds = 0.0;
    for (const auto& [ring, way] : ways_) {
      const double busy = static_cast<double>(way.lines - 1) * busiest_;
      seconds = std::max({seconds, busy, way.seconds - way.least});
    }
    return seconds;
  }

 private:
  struct Way {
    std::size_t lines = 0;
    double seconds = 0.0, least = std::numeric_limits<double>::infinity();  // of a bucket
  };

  const Lines& lines_;
  const double bucket_;
  std::map<std::size_t, Way> ways_;       // by ring
  std::map<std::uint32_t, double> busy_;  // by host, seconds of a turn
  double busiest_ = 0.0;
};

double seconds_of(const Lines& lines, std::vector<std::uint32_t> rows, const RingCosts& costs) {
  const std::size_t members = lines.members();
  if (rows.empty()) rows = {0};
  const double bytes = costs.step_bytes;
  const double bucket =
      std::max(kLeastBucket, std::min(costs.bucket_bytes, bytes / static_cast<double>(members)));
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t end = i + 1 < rows.size() ? rows[i + 1] : members + rows.front();
    lengths.push_back(end - rows[i]);
  }
  const std::size_t longest = std::ranges::max(lengths);
  double slowest_row = 0.0;
  Rings columns(lines, bucket);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t length = lengths[i];
    Rings row(lines, bucket);
    for (std::size_t place = 0; length > 1 && place < length; ++place) {
      row.send(0, rows[i] + place, rows[i] + (place + 1) % length,
               bytes / static_cast<double>(length));
    }
    slowest_row = std::max(slowest_row, row.seconds());
    const std::size_t next = (i + 1) % rows.size();
    for (std::size_t column = 0; rows.size() > 1 && column < longest; ++column) {
      columns.send(column, rows[i] + column % length, rows[next] + column % lengths[next],
                   bytes / static_cast<double>(longest * rows.size()));
    }
  }
  return 2.0 * (slowest_row + columns.seconds());
}

// The seconds of a bucket from the member before this position; 0 within a host.
double seconds_to(const Lines& lines, std::size_t position, double bucket) {
  const std::size_t before = position + lines.members() - 1;
  return lines.are_together(before, position) ? 0.0 : lines.seconds(before, position, bucket);
}

// Rows that begin behind the edges of the ring that take a bucket so long, or longer.
std::vector<std::uint32_t> sites(const Lines& lines, double seconds, double bucket) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < lines.members(); ++i) {
    if (seconds_to(lines, i, bucket) >= seconds) rows.push_back(i);
  }
  return rows;
}

// The same rows, each beginning at the first member of a host.
std::vector<std::uint32_t> of_whole_hosts(const Lines& lines, std::vector<std::uint32_t> rows) {
  for (std::uint32_t& row : rows) {
    while (row > 0 && lines.are_together(row - 1, row)) --row;
  }
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

}  // namespace

std::optional<std::uint32_t> RingCosts::lines_of(std::uint32_t member) const {
  if (member < hosts.size()) return hosts[member];
  const auto found = lines_of_later.find(member);
  return found == lines_of_later.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::uint32_t> site_order(std::span<const std::uint32_t> ring, const RingCosts& costs) {
  const Lines lines(ring, costs);
  std::size_t first = 0;
  for (std::size_t i = 1; i < ring.size(); ++i) {
    const bool is_slower =
        seconds_to(lines, i, costs.bucket_bytes) > seconds_to(lines, first, costs.bucket_bytes);
    if (is_slower) first = i;
  }
  std::vector<std::uint32_t> order(ring.begin(), ring.end());
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  return order;
}

std::vector<std::uint32_t> even_rows(std::uint32_t members, std::uint32_t rows) {
  std::vector<std::uint32_t> firsts;
  for (std::uint64_t i = 0; i < rows; ++i) {
    firsts.push_back(static_cast<std::uint32_t>(i * members / rows));
  }
  return firsts;
}

double ring_seconds(std::span<const std::uint32_t> ring, const std::vector<std::uint32_t>& rows,
                    const RingCosts& costs) {
  return seconds_of(Lines(ring, costs), rows, costs);
}

std::vector<std::uint32_t> ring_rows(std::span<const std::uint32_t> ring, const RingCosts& costs) {
  const Lines lines(ring, costs);
  const auto members = static_cast<std::uint32_t>(ring.size());
  std::vector<std::vector<std::uint32_t>> choices;
  std::set<double> edges;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    edges.insert(seconds_to(lines, i, costs.bucket_bytes));
  }
  edges.erase(0.0);
  for (const double seconds : edges) choices.push_back(sites(lines, seconds, costs.bucket_bytes));
  const auto root = static_cast<std::uint32_t>(std::lround(std::sqrt(members)));
  for (const std::uint32_t rows : {root / 2, root, 2 * root}) {
    const bool is_enough = rows >= costs.least && members / std::max(rows, 1U) >= costs.least;
    if (is_enough) choices.push_back(of_whole_hosts(lines, even_rows(members, rows)));
  }
  std::vector<std::uint32_t> best;
  double least = seconds_of(lines, best, costs) * (1.0 - kGain);
  for (std::vector<std::uint32_t>& rows : choices) {
    if (rows.size() < 2 || rows.size() == members) continue;
    const double seconds = seconds_of(lines, rows, costs);
    if (seconds >= least) continue;
    least = seconds;
    best = std::move(rows);
  }
  return best;
}

}  // namespace troupe::pipeline
