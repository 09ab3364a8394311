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
using runtime::TraceRecord;

// Tells the layout below from other bytes. Processes of one run are of one build.
constexpr std::string_view kMagic = "TRT1";
// A record has a head, a start and an argument, a byte each at least; an actor a name and three
// numbers.
constexpr std::size_t kLeastRecordBytes = 3, kLeastActorBytes = 4;

constexpr std::size_t kMostNameBytes = 64;

// Few bytes that become many records must not fill the memory. Records of actors that ran have five
// bytes and more of times, sizes and numbers.
constexpr std::size_t kMostTimesTheBytes = 12;
constexpr std::size_t kSpareBytes = 4096;

// No machine has run so long, in either direction.
constexpr TimePoint kFarthestTime{std::int64_t{1} << 59};

// The lowest bits of a record's first number; its name stands above them.
constexpr std::uint64_t kSent = 1, kHasFlow = 2;

// Writes the values that it is shown, which are sound.
class Writer {
 public:
  void number(std::uint64_t value) { runtime::append_varint(bytes_, value); }
  // Numbers near 0 take few bytes, whatever their sign.
  void integer(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void time(TimePoint value, TimePoint before) { integer((value - before).count()); }
  void name(std::string_view value) {
    const std::string_view kept = value.substr(0, kMostNameBytes);
    number(kept.size());
    raw(kept);
  }
  void list(auto& values, std::size_t, auto each) {
    number(values.size());
    for (auto& value : values) each(value);
  }
  void raw(std::string_view value) {
    const auto* const data = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), data, data + value.size());
  }
  void expect(bool) {}
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// After the first fault everything reads as zero.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> rest)
      : rest_(rest), room_(kMostTimesTheBytes * rest.size() + kSpareBytes) {}

  void number(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      value |= (byte & 127) << shift;
      if (byte < 128) return;
    }
    value = 0;
    expect(false);
  }
  void integer(std::int64_t& value) {
    std::uint64_t coded = 0;
    number(coded);
    value = static_cast<std::int64_t>((coded >> 1) ^ (~(coded & 1) + 1));
  }
  // The difference may be any; the sum wraps round, and is looked at after that.
  void time(TimePoint& value, TimePoint before) {
    std::int64_t passed = 0;
    integer(passed);
    value = TimePoint{static_cast<std::int64_t>(static_cast<std::uint64_t>(before.count()) +
                                                static_cast<std::uint64_t>(passed))};
    expect(value > -kFarthestTime && value < kFarthestTime);
  }
  void name(std::string& value) {
    const std::size_t size = count(1, 1);
    expect(size <= kMostNameBytes);
    if (!ok_) return;
    value.assign(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
  }
  // Each of the values takes `least` bytes or more.
  template <class T>
  void list(std::vector<T>& values, std::size_t least, auto each) {
    const std::size_t size = count(least, sizeof(T));
    values.reserve(size);
    while (values.size() < size && ok_) each(values.emplace_back());
  }
  void raw(std::string_view value) {
    const auto wanted = std::as_bytes(std::span(value));
    const bool found =
        rest_.size() >= value.size() && std::equal(wanted.begin(), wanted.end(), rest_.begin());
    expect(found);
    if (found) rest_ = rest_.subspan(value.size());
  }
  void expect(bool is_sound) {
    if (is_sound) return;
    ok_ = false;
    rest_ = {};
  }
  bool finished() const { return ok_ && rest_.empty(); }

 private:
  // How many things follow that have at least `bytes` each and take `memory` each.
  std::size_t count(std::size_t bytes, std::size_t memory) {
    std::uint64_t value = 0;
    number(value);
    expect(value <= rest_.size() / bytes && value <= room_ / memory);
    if (!ok_) return 0;
    room_ -= static_cast<std::size_t>(value) * memory;
    return static_cast<std::size_t>(value);
  }

  std::span<const std::byte> rest_;
  std::size_t room_;  // that the rest may take
  bool ok_ = true;
};

// These walks are the layout. Times of neighbours differ little, so their differences are told.
template <class Archive>
void walk(Archive& archive, std::size_t names, TimePoint before, TraceRecord& record) {
  std::uint64_t head = std::uint64_t{record.name} << 2 | (record.flow.known() ? kHasFlow : 0) |
                       (record.sent ? kSent : 0);
  archive.number(head);
  record.sent = (head & kSent) != 0;
  const std::uint64_t name = head >> 2;
  archive.expect(name < names || (record.sent && name == 0));
  record.name = static_cast<std::uint32_t>(name);
  archive.time(record.start, before);
  if (record.sent) {
    record.end = record.start;
  } else {
    archive.time(record.end, record.start);
  }
  archive.integer(record.argument);
  if ((head & kHasFlow) == 0) return;
  std::uint64_t link = record.flow.link;
  archive.number(link);
  archive.expect(link > 0 && link <= UINT32_MAX);
  record.flow.link = static_cast<std::uint32_t>(link);
  archive.number(record.flow.number);
}

template <class Archive>
void walk(Archive& archive, std::vector<ActorTrace>& actors) {
  archive.raw(kMagic);
  archive.list(actors, kLeastActorBytes, [&](ActorTrace& actor) {
    runtime::TraceSnapshot& trace = actor.trace;
    archive.name(actor.name);
    archive.list(trace.names, 1, [&](std::string& name) { archive.name(name); });
    archive.number(trace.written);
    TimePoint before{0};
    archive.list(trace.records, kLeastRecordBytes, [&](TraceRecord& record) {
      walk(archive, trace.names.size(), before, record);
      before = record.start;
    });
  });
}

}  // namespace

std::vector<std::byte> pack_actors(std::vector<ActorTrace> actors) {
  Writer out;
  walk(out, actors);
  return out.take();
}

runtime::Result<std::vector<ActorTrace>> unpack_actors(std::span<const std::byte> bytes) {
  Reader in(bytes);
  std::vector<ActorTrace> actors;
  walk(in, actors);
  if (in.finished()) return actors;
  return runtime::Error{runtime::ErrorKind::kData, "these bytes are no trace"};
}

}  // namespace troupe::telemetry
