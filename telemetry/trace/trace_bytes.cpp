#include "telemetry/trace/trace_bytes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/bytes.h"

namespace troupe::telemetry {
namespace {

using runtime::ActorTrace;
using runtime::TimePoint;
using runtime::TraceFlow;
using runtime::TraceRecord;

// Tells the layout below from other bytes. Processes of one run are of one build.
constexpr std::string_view kMagic = "TRT1";
// A record has a head, a start and an argument, a byte each at least.
constexpr std::size_t kLeastRecordBytes = 3;

constexpr std::size_t kMostNameBytes = 64;

// Few bytes that become many records must not fill the memory. Records of actors that ran have five
// bytes and more of times, sizes and numbers.
constexpr std::size_t kMostTimesTheBytes = 12;
constexpr std::size_t kSpareBytes = 4096;

// No machine has run so long, in either direction.
constexpr TimePoint kFarthest{std::int64_t{1} << 59};

// The lowest bits of a record's first number; its name stands above them.
constexpr std::uint64_t kSent = 1, kHasFlow = 2;

class Writer {
 public:
  void number(std::uint64_t value) { runtime::append_varint(bytes_, value); }
  // Numbers near 0 take few bytes, whatever their sign.
  void integer(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void name(std::string_view value) {
    const std::string_view kept = value.substr(0, kMostNameBytes);
    number(kept.size());
    raw(kept);
  }
  void raw(std::string_view value) {
    const auto* const data = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), data, data + value.size());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// After the first fault everything reads as zero.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> rest)
      : rest_(rest), room_(kMostTimesTheBytes * rest.size() + kSpareBytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = std::to_integer<std::uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    fail();
    return 0;
  }
  std::int64_t integer() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  // How many things follow that have at least `bytes` each and take `memory` each.
  std::size_t count(std::size_t bytes, std::size_t memory) {
    const std::uint64_t value = number();
    if (value <= rest_.size() / bytes && value <= room_ / memory) {
      room_ -= static_cast<std::size_t>(value) * memory;
      return static_cast<std::size_t>(value);
    }
    fail();
    return 0;
  }
  std::string name() {
    const std::size_t size = count(1, 1);
    if (size > kMostNameBytes) {
      fail();
      return {};
    }
    const std::string value(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return value;
  }
  void expect(std::string_view what) {
    const auto* const data = reinterpret_cast<const std::byte*>(what.data());
    if (rest_.size() < what.size() || !std::equal(data, data + what.size(), rest_.begin())) {
      return fail();
    }
    rest_ = rest_.subspan(what.size());
  }
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  bool ok() const { return ok_; }
  bool finished() const { return ok_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  std::size_t room_;  // that the rest may take
  bool ok_ = true;
};

// Times of neighbours differ little. Differences may wrap round: they add up again all the same.
std::int64_t less(TimePoint a, TimePoint b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a.count()) -
                                   static_cast<std::uint64_t>(b.count()));
}

TimePoint plus(TimePoint a, std::int64_t b) {
  return TimePoint{static_cast<std::int64_t>(static_cast<std::uint64_t>(a.count()) +
                                             static_cast<std::uint64_t>(b))};
}

void write_record(const TraceRecord& record, TimePoint before, Writer& out) {
  const std::uint64_t flow = record.flow.known() ? kHasFlow : 0;
  out.number(std::uint64_t{record.name} << 2 | flow | (record.sent ? kSent : 0));
  out.integer(less(record.start, before));
  if (!record.sent) out.integer(less(record.end, record.start));
  out.integer(record.argument);
  if (flow == 0) return;
  out.number(record.flow.link);
  out.number(record.flow.number);
}

TraceRecord read_record(std::size_t names, TimePoint before, Reader& in) {
  TraceRecord record;
  const std::uint64_t head = in.number();
  record.sent = (head & kSent) != 0;
  const std::uint64_t name = head >> 2;
  if (name >= names && !(record.sent && name == 0)) in.fail();
  record.name = static_cast<std::uint32_t>(name);
  record.start = record.end = plus(before, in.integer());
  if (!record.sent) record.end = plus(record.start, in.integer());
  const auto is_time = [](TimePoint time) { return time > -kFarthest && time < kFarthest; };
  if (!is_time(record.start) || !is_time(record.end)) in.fail();
  record.argument = in.integer();
  if ((head & kHasFlow) == 0) return record;
  const std::uint64_t link = in.number();
  if (link == 0 || link > UINT32_MAX) in.fail();
  record.flow = {static_cast<std::uint32_t>(link), in.number()};
  return record;
}

ActorTrace read_actor(Reader& in) {
  ActorTrace actor;
  actor.name = in.name();
  const std::size_t names = in.count(1, sizeof(std::string));
  actor.trace.names.reserve(names);
  for (std::size_t i = 0; i < names && in.ok(); ++i) actor.trace.names.push_back(in.name());
  actor.trace.written = in.number();
  const std::size_t records = in.count(kLeastRecordBytes, sizeof(TraceRecord));
  actor.trace.records.reserve(records);
  TimePoint before{0};
  for (std::size_t i = 0; i < records && in.ok(); ++i) {
    actor.trace.records.push_back(read_record(actor.trace.names.size(), before, in));
    before = actor.trace.records.back().start;
  }
  return actor;
}

}  // namespace

std::vector<std::byte> pack_actors(const std::vector<ActorTrace>& actors) {
  Writer out;
  out.raw(kMagic);
  out.number(actors.size());
  for (const ActorTrace& actor : actors) {
    out.name(actor.name);
    out.number(actor.trace.names.size());
    for (const std::string& name : actor.trace.names) out.name(name);
    out.number(actor.trace.written);
    out.number(actor.trace.records.size());
    TimePoint before{0};
    for (const TraceRecord& record : actor.trace.records) {
      write_record(record, before, out);
      before = record.start;
    }
  }
  return out.take();
}

runtime::Result<std::vector<ActorTrace>> unpack_actors(std::span<const std::byte> bytes) {
  Reader in(bytes);
  in.expect(kMagic);
  std::vector<ActorTrace> actors;
  const std::size_t count = in.count(4, sizeof(ActorTrace));
  actors.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) actors.push_back(read_actor(in));
  if (in.finished()) return actors;
  return runtime::Error{runtime::ErrorKind::kData, "these bytes are no trace"};
}

}  // namespace troupe::telemetry
