#pragma once

// How values stand in a packet's header: MessagePack, written by the library and read by a cursor
// that allocates nothing but what it has seen the bytes of. Bytes from an unknown peer therefore
// cost at most their own size again, and never a crash.
//
// Written is the shortest form of a value; read is every form that MessagePack has for it. Maps and
// extensions are never written and always refused.
//
//   WireWriter out;  out.list(2);  out.number(step);  out.text(name);
//   WireReader in(header.bytes());
//   in.list(2);  step = in.number();  name = in.text();
//   if (!in.finished()) ... the header is not what it should be: in.problem() says how
//
// A reader that met something wrong stays wrong: everything reads as zero from then on. Who uses
// one value to decide how to read the next (a count, a kind) needs no check in between, but must
// end on zeros.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/hash.h"

namespace troupe::runtime {

// One thread's. Never fails: take_header() CHECKs that the header is within
// Packet::kMostHeaderBytes, which who writes texts of any length has to see to.
class WireWriter {
 public:
  WireWriter();
  ~WireWriter();
  WireWriter(const WireWriter&) = delete;
  WireWriter& operator=(const WireWriter&) = delete;

  void list(std::size_t count);  // the next so many values are one
  // A list whose length is not known yet. begin_list() returns where it begins, and end_list() is
  // told that and how many values have been written since. CHECKs that they are under 65536.
  std::size_t begin_list();
  void end_list(std::size_t begin, std::size_t count);
  void number(std::uint64_t value);
  void integer(std::int64_t value);
  void real(double value);  // all bits, also of a NaN
  void flag(bool value);
  void text(std::string_view value);
  void bytes(std::span<const std::byte> value);
  void hash(const Hash128& value);
  void none();  // an absent value: reader.present() is false

  // Goes as a frame of its own behind the header, without being copied, in this order.
  void attach(Buffer buffer) { attachments_.push_back(std::move(buffer)); }

  // All that was written; nothing can be written after it.
  Buffer take_header();
  // The same, of any size, for a frame behind a header.
  Buffer take_frame();
  std::vector<Buffer> take_attachments() { return std::move(attachments_); }

 private:
  struct Packer;
  std::unique_ptr<Packer> packer_;
  std::vector<Buffer> attachments_;
};

// One thread's. Nothing it reads can make it fail in any other way than ok() says.
class WireReader {
 public:
  // Both outlive the reader.
  explicit WireReader(std::span<const std::byte> bytes, std::span<const Buffer> attachments = {})
      : rest_(bytes), attachments_(attachments) {}

  // A list of exactly `count` values.
  void list(std::size_t count);
  // A list of any length up to `most`: its length. Each of its values takes a byte or more of the
  // header, so what a caller reserves for them is bounded by what has arrived.
  std::size_t list_up_to(std::size_t most);
  // Any form of an integer that lies in the range.
  std::uint64_t number(std::uint64_t most = UINT64_MAX);
  std::uint32_t number32() { return static_cast<std::uint32_t>(number(UINT32_MAX)); }
  std::int64_t integer(std::int64_t least = INT64_MIN, std::int64_t most = INT64_MAX);
  double real();  // never from an integer
  bool flag();
  // As it stands: not looked into, so it may be no UTF-8.
  std::string text(std::size_t most);
  std::span<const std::byte> bytes(std::size_t most);  // inside the header
  Hash128 hash();
  // Whether a value follows; an absent one is taken.
  bool present();
  // The next frame behind the header, of any size.
  Buffer attachment();

  // What is wrong with the contents, beyond their form. The first thing counts.
  void fail(std::string_view problem);

  bool ok() const { return problem_.empty(); }
  // Bytes of the header that were read.
  std::size_t taken() const { return taken_; }
  // ok, and nothing is left, neither in the header nor behind it.
  bool finished();
  // For people, with the position in bytes; "" while ok.
  const std::string& problem() const { return problem_; }

 private:
  struct Head;

  template <class Fits, class Expected>
  Head take_head(Fits&& fits, Expected&& expected);
  std::size_t take_length(std::uint8_t kind, std::size_t most, std::string_view what);
  std::span<const std::byte> take(std::size_t bytes);

  std::span<const std::byte> rest_;
  std::size_t taken_ = 0;
  std::span<const Buffer> attachments_;
  std::size_t attachments_taken_ = 0;
  std::string problem_;
};

}  // namespace troupe::runtime
