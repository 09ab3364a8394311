#include "runtime/transport/wire_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>
#include <msgpack.hpp>

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {
namespace {

constexpr std::uint8_t kFloat64 = 0xcb;
constexpr std::uint8_t kShortList = 0x90;  // and the length, up to 15
constexpr std::uint8_t kList16 = 0xdc;
constexpr std::size_t kHashBytes = 16;
// Most headers are smaller than that, and blocks of this size are malloc's cheapest. The 8 KiB that
// the library would begin with are not.
constexpr std::size_t kFirstBytes = 512;

// The meaning of the lead bytes 0xc0 to 0xdf: the kind, and how many bytes its number or length
// takes.
struct Form {
  std::uint8_t kind;
  std::uint8_t bytes;
};

}  // namespace

struct WireWriter::Packer {
  msgpack::sbuffer bytes{kFirstBytes};
  msgpack::packer<msgpack::sbuffer> out{bytes};
};

WireWriter::WireWriter() : packer_(std::make_unique<Packer>()) {}
WireWriter::~WireWriter() = default;

void WireWriter::list(std::size_t count) {
  CHECK(count <= Packet::kMostHeaderBytes, "a list that no header can hold");
  packer_->out.pack_array(static_cast<std::uint32_t>(count));
}

std::size_t WireWriter::begin_list() {
  const std::size_t begin = packer_->bytes.size();
  const char lead = static_cast<char>(kShortList);
  packer_->bytes.write(&lead, 1);
  return begin;
}

// Hardly any list is so long that its values have to make room for two more bytes of its length.
void WireWriter::end_list(std::size_t begin, std::size_t count) {
  CHECK(count <= UINT16_MAX, "a list that is too long");
  msgpack::sbuffer& bytes = packer_->bytes;
  if (count < 16) {
    bytes.data()[begin] = static_cast<char>(kShortList | count);
    return;
  }
  const auto length = to_big_endian(static_cast<std::uint16_t>(count));
  bytes.write(reinterpret_cast<const char*>(length.data()), length.size());
  char* const lead = bytes.data() + begin;
  std::rotate(lead + 1, bytes.data() + bytes.size() - length.size(), bytes.data() + bytes.size());
  *lead = static_cast<char>(kList16);
}

void WireWriter::number(std::uint64_t value) { packer_->out.pack_uint64(value); }

void WireWriter::integer(std::int64_t value) { packer_->out.pack_int64(value); }

// By hand: the library turns 2.0 into the integer 2, which loses the sign of -0.0.
void WireWriter::real(double value) {
  const auto bits = to_big_endian(std::bit_cast<std::uint64_t>(value));
  const char lead = static_cast<char>(kFloat64);
  packer_->bytes.write(&lead, 1);
  packer_->bytes.write(reinterpret_cast<const char*>(bits.data()), bits.size());
}

void WireWriter::flag(bool value) {
  if (value) {
    packer_->out.pack_true();
  } else {
    packer_->out.pack_false();
  }
}

void WireWriter::text(std::string_view value) {
  CHECK(value.size() <= Packet::kMostHeaderBytes, "a text that no header can hold");
  packer_->out.pack_str(static_cast<std::uint32_t>(value.size()));
  packer_->out.pack_str_body(value.data(), static_cast<std::uint32_t>(value.size()));
}

void WireWriter::bytes(std::span<const std::byte> value) {
  CHECK(value.size() <= Packet::kMostHeaderBytes, "bytes that no header can hold");
  packer_->out.pack_bin(static_cast<std::uint32_t>(value.size()));
  packer_->out.pack_bin_body(reinterpret_cast<const char*>(value.data()),
                             static_cast<std::uint32_t>(value.size()));
}

void WireWriter::hash(const Hash128& value) {
  std::array<std::byte, kHashBytes> both;
  std::ranges::copy(to_big_endian(value.high), both.begin());
  std::ranges::copy(to_big_endian(value.low), both.begin() + 8);
  bytes(both);
}

void WireWriter::none() { packer_->out.pack_nil(); }

Buffer WireWriter::take_header() {
  Buffer header = take_frame();
  CHECK(header.size() <= Packet::kMostHeaderBytes, "a header of more bytes than may travel");
  return header;
}

Buffer WireWriter::take_frame() {
  CHECK(packer_ != nullptr, "the header was taken before");
  const std::unique_ptr<Packer> packer = std::move(packer_);
  return Buffer::copy_of(std::as_bytes(std::span(packer->bytes.data(), packer->bytes.size())));
}

// The beginning of some bytes: a whole number, real, flag or nil, or the kind and
// length of what follows.
struct WireReader::Head {
  enum Kind : std::uint8_t {
    kEnd,    // nothing, or only a part of the head
    kOther,  // a map, an extension, or 0xc1, which is no MessagePack
    kNone,
    kFlag,
    kNumber,
    kNegative,
    kReal,
    kText,
    kBytes,
    kList,
  };
  Kind kind = kEnd;
  std::size_t bytes = 0;    // that the head takes
  std::uint64_t value = 0;  // or the bits of a negative integer or a double, or the length

  static Head of(std::span<const std::byte> bytes);
  std::string text() const;
};

WireReader::Head WireReader::Head::of(std::span<const std::byte> bytes) {
  static constexpr std::array<Form, 32> kForms{{
      {kNone, 0},     {kOther, 0},    {kFlag, 0},     {kFlag, 0},      // nil, unused, false, true
      {kBytes, 1},    {kBytes, 2},    {kBytes, 4},                     // bin
      {kOther, 1},    {kOther, 2},    {kOther, 4},                     // ext
      {kReal, 4},     {kReal, 8},                                      // float
      {kNumber, 1},   {kNumber, 2},   {kNumber, 4},   {kNumber, 8},    // uint
      {kNegative, 1}, {kNegative, 2}, {kNegative, 4}, {kNegative, 8},  // int of either sign
      {kOther, 0},    {kOther, 0},    {kOther, 0},    {kOther, 0},    {kOther, 0},  // fixext
      {kText, 1},     {kText, 2},     {kText, 4},                                   // str
      {kList, 2},     {kList, 4},                                                   // array
      {kOther, 2},    {kOther, 4},                                                  // map
  }};
  if (bytes.empty()) return {};
  const auto lead = std::to_integer<std::uint8_t>(bytes[0]);
  if (lead < 0x80) return {kNumber, 1, lead};
  if (lead < 0x90) return {kOther, 1, 0};
  if (lead < 0xa0) return {kList, 1, lead & 0x0fU};
  if (lead < 0xc0) return {kText, 1, lead & 0x1fU};
  if (lead >= 0xe0) return {kNegative, 1, static_cast<std::uint64_t>(std::int64_t{lead} - 256)};
  const Form form = kForms[lead - 0xc0U];
  if (bytes.size() < std::size_t{1} + form.bytes) return {};
  Head head{static_cast<Kind>(form.kind), std::size_t{1} + form.bytes,
            from_big_endian(bytes.subspan(1, form.bytes))};
  if (head.kind == kFlag) head.value = lead & 1U;
  if (head.kind == kReal && form.bytes == 4) {
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(head.value));
    head.value = std::bit_cast<std::uint64_t>(static_cast<double>(single));
  }
  if (head.kind == kNegative) {
    const int unused = 64 - 8 * form.bytes;
    const auto integer = static_cast<std::int64_t>(head.value << unused) >> unused;
    head.value = static_cast<std::uint64_t>(integer);
    if (integer >= 0) head.kind = kNumber;
  }
  return head;
}

// Ends the sentence that take_head() begins with what is expected.
std::string WireReader::Head::text() const {
  switch (kind) {
    case kEnd:
      return "the header ends";
    case kOther:
      return "something stands that no message has";
    case kNone:
      return "nil stands";
    case kFlag:
      return "true or false stands";
    case kNumber:
      return fmt::format("{} stands", value);
    case kNegative:
      return fmt::format("{} stands", static_cast<std::int64_t>(value));
    case kReal:
      return fmt::format("the real {} stands", std::bit_cast<double>(value));
    case kText:
      return fmt::format("a text of {} bytes stands", value);
    case kBytes:
      return fmt::format("{} bytes stand", value);
    case kList:
      return fmt::format("a list of {} stands", value);
  }
  return {};
}

// The head of the next value, which is taken when `fits` likes it; else an empty one, and the
// reader fails, naming `expected` and what stands there. After a failure: an empty one.
template <class Fits, class Expected>
WireReader::Head WireReader::take_head(Fits&& fits, Expected&& expected) {
  if (!ok()) return {};
  const Head head = Head::of(rest_);
  if (!fits(head)) {
    fail(fmt::format("{} is expected, {}", expected(), head.text()));
    return {};
  }
  take(head.bytes);
  return head;
}

// A text, bytes or list: its length, of which the reader knows that it is there.
std::size_t WireReader::take_length(std::uint8_t kind, std::size_t most, std::string_view what) {
  const Head head = take_head(
      [&](const Head& h) {
        return h.kind == kind && h.value <= most && h.value <= rest_.size() - h.bytes;
      },
      [&] { return fmt::format("{} of at most {}", what, std::min(most, rest_.size())); });
  return head.value;
}

std::span<const std::byte> WireReader::take(std::size_t bytes) {
  const auto taken = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  taken_ += bytes;
  return taken;
}

void WireReader::list(std::size_t count) {
  take_head([&](const Head& h) { return h.kind == Head::kList && h.value == count; },
            [&] { return fmt::format("a list of {}", count); });
}

std::size_t WireReader::list_up_to(std::size_t most) {
  return take_length(Head::kList, most, "a list");
}

std::uint64_t WireReader::number(std::uint64_t most) {
  return take_head([&](const Head& h) { return h.kind == Head::kNumber && h.value <= most; },
                   [&] { return fmt::format("a number up to {}", most); })
      .value;
}

std::int64_t WireReader::integer(std::int64_t least, std::int64_t most) {
  const auto fits = [&](const Head& h) {
    if (h.kind != Head::kNegative && (h.kind != Head::kNumber || h.value > INT64_MAX)) return false;
    const auto value = static_cast<std::int64_t>(h.value);
    return least <= value && value <= most;
  };
  const Head head =
      take_head(fits, [&] { return fmt::format("an integer from {} to {}", least, most); });
  return static_cast<std::int64_t>(head.value);
}

double WireReader::real() {
  return std::bit_cast<double>(
      take_head([](const Head& h) { return h.kind == Head::kReal; }, [] { return "a real"; })
          .value);
}

bool WireReader::flag() {
  return take_head([](const Head& h) { return h.kind == Head::kFlag; },
                   [] { return "true or false"; })
             .value != 0;
}

std::string WireReader::text(std::size_t most) {
  const auto characters = take(take_length(Head::kText, most, "a text"));
  return {reinterpret_cast<const char*>(characters.data()), characters.size()};
}

std::span<const std::byte> WireReader::bytes(std::size_t most) {
  return take(take_length(Head::kBytes, most, "a byte string"));
}

Hash128 WireReader::hash() {
  const auto both = bytes(kHashBytes);
  if (both.size() == kHashBytes)
    return {from_big_endian(both.first(8)), from_big_endian(both.subspan(8))};
  fail(fmt::format("a hash has {} bytes, {} stand", kHashBytes, both.size()));
  return {};
}

bool WireReader::present() {
  if (!ok()) return false;
  const Head head = Head::of(rest_);
  if (head.kind == Head::kNone) take(head.bytes);
  if (head.kind == Head::kEnd) fail("a value or nil is expected, the header ends");
  return head.kind != Head::kNone && head.kind != Head::kEnd;
}

Buffer WireReader::attachment() {
  if (!ok()) return {};
  if (attachments_taken_ == attachments_.size()) {
    fail(fmt::format("a frame {} is expected behind the header", attachments_taken_ + 1));
    return {};
  }
  return attachments_[attachments_taken_++];
}

void WireReader::fail(std::string_view problem) {
  if (ok()) problem_ = fmt::format("at byte {}: {}", taken_, problem);
}

bool WireReader::finished() {
  if (!rest_.empty()) fail(fmt::format("the header should end, {} bytes follow", rest_.size()));
  if (attachments_taken_ != attachments_.size()) {
    fail(fmt::format("{} frames are expected behind the header, there are {}", attachments_taken_,
                     attachments_.size()));
  }
  return ok();
}

}  // namespace troupe::runtime
