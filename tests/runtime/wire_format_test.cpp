#include "runtime/transport/wire_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <msgpack.hpp>

#include "runtime/transport/wire.h"

namespace troupe::runtime {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

Bytes zeros(std::size_t count) { return Bytes(count); }

Bytes operator+(Bytes front, const Bytes& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

// The header that `write` leaves.
Bytes written(const std::function<void(WireWriter&)>& write) {
  WireWriter out;
  write(out);
  const Buffer header = out.take_header();
  return {header.bytes().begin(), header.bytes().end()};
}

// What `read` makes of all of `bytes`; the problem of those that it does not like.
template <class Read>
std::string problem_of(const Bytes& bytes, const Read& read) {
  WireReader in(bytes);
  read(in);
  in.finished();
  return in.problem();
}

constexpr std::array kNumbers{std::uint64_t{0},
                              std::uint64_t{127},
                              std::uint64_t{128},
                              std::uint64_t{255},
                              std::uint64_t{256},
                              std::uint64_t{65535},
                              std::uint64_t{65536},
                              std::uint64_t{UINT32_MAX},
                              std::uint64_t{1} << 32,
                              std::uint64_t{1} << 63,
                              UINT64_MAX};
constexpr std::array kIntegers{std::int64_t{0},
                               std::int64_t{-1},
                               std::int64_t{-32},
                               std::int64_t{-33},
                               std::int64_t{-128},
                               std::int64_t{-129},
                               std::int64_t{-32768},
                               std::int64_t{-32769},
                               std::int64_t{INT32_MIN},
                               std::int64_t{INT32_MIN} - 1,
                               INT64_MIN,
                               INT64_MAX};
constexpr std::array kReals{0.0,
                            -0.0,
                            2.0,
                            -3.0,
                            0.1,
                            1e308,
                            5e-324,
                            std::numeric_limits<double>::infinity(),
                            std::bit_cast<double>(std::uint64_t{0x7ff8000000000123}),
                            std::bit_cast<double>(std::uint64_t{0xfff4000000000001})};

void write_everything(WireWriter& out) {
  out.list(9);
  for (const std::uint64_t number : kNumbers) out.number(number);
  for (const std::int64_t integer : kIntegers) out.integer(integer);
  for (const double real : kReals) out.real(real);
  out.flag(true);
  out.flag(false);
  for (const std::size_t size : {0, 31, 32, 255, 256, 65535, 65536}) {
    out.text(std::string(size, 'x'));
    out.bytes(zeros(size));
  }
  out.hash({0x0123456789abcdef, UINT64_MAX});
  out.none();
  out.list(15);
  out.list(16);
  out.list(65536);
}

TEST(WireFormat, NumbersOfEverySizeComeBack) {
  const Bytes header = written(write_everything);
  WireReader in(header);
  in.list(9);
  for (const std::uint64_t number : kNumbers) EXPECT_EQ(in.number(), number);
  for (const std::int64_t integer : kIntegers) EXPECT_EQ(in.integer(), integer);
  for (const double real : kReals) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(in.real()), std::bit_cast<std::uint64_t>(real));
  }
  EXPECT_TRUE(in.flag());
  EXPECT_FALSE(in.flag());
  for (const std::size_t size : {0, 31, 32, 255, 256, 65535, 65536}) {
    EXPECT_EQ(in.text(size), std::string(size, 'x'));
    EXPECT_EQ(in.bytes(size).size(), size);
  }
  EXPECT_EQ(in.hash(), (Hash128{0x0123456789abcdef, UINT64_MAX}));
  EXPECT_FALSE(in.present());
  in.list(15);
  in.list(16);
  in.list(65536);
  EXPECT_TRUE(in.finished()) << in.problem();
}

TEST(WireFormat, PresentLeavesTheValue) {
  const Bytes header = written([](WireWriter& out) { out.number(7); });
  WireReader in(header);
  ASSERT_TRUE(in.present());
  EXPECT_EQ(in.number(), 7U);
  EXPECT_TRUE(in.finished());
}

TEST(WireFormat, EveryFormOfAnIntegerReadsAsItsValue) {
  const std::vector<std::pair<Bytes, std::int64_t>> forms{
      {bytes_of({0x07}), 7},
      {bytes_of({0xcc, 7}), 7},
      {bytes_of({0xcd, 0, 7}), 7},
      {bytes_of({0xce, 0, 0, 0, 7}), 7},
      {bytes_of({0xcf, 0, 0, 0, 0, 0, 0, 0, 7}), 7},
      {bytes_of({0xd0, 7}), 7},
      {bytes_of({0xd1, 0, 7}), 7},
      {bytes_of({0xd2, 0, 0, 0, 7}), 7},
      {bytes_of({0xd3, 0, 0, 0, 0, 0, 0, 0, 7}), 7},
      {bytes_of({0xff}), -1},
      {bytes_of({0xe0}), -32},
      {bytes_of({0xd0, 0xff}), -1},
      {bytes_of({0xd1, 0xff, 0xff}), -1},
      {bytes_of({0xd2, 0xff, 0xff, 0xff, 0xfe}), -2},
      {bytes_of({0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0}), INT64_MIN},
  };
  for (const auto& form : forms) {
    WireReader in(form.first);
    EXPECT_EQ(in.integer(), form.second);
    EXPECT_TRUE(in.finished()) << in.problem();
    WireReader unsigned_in(form.first);
    EXPECT_EQ(unsigned_in.number(), form.second < 0 ? 0U : static_cast<std::uint64_t>(form.second));
    EXPECT_EQ(unsigned_in.finished(), form.second >= 0);
  }
}

TEST(WireFormat, LongFormsOfShortValuesRead) {
  EXPECT_EQ(problem_of(bytes_of({0xd9, 1, 'a'}), [](auto& in) { EXPECT_EQ(in.text(1), "a"); }), "");
  EXPECT_EQ(problem_of(bytes_of({0xda, 0, 1, 'a'}), [](auto& in) { EXPECT_EQ(in.text(1), "a"); }),
            "");
  EXPECT_EQ(
      problem_of(bytes_of({0xdb, 0, 0, 0, 1, 'a'}), [](auto& in) { EXPECT_EQ(in.text(1), "a"); }),
      "");
  EXPECT_EQ(problem_of(bytes_of({0xc5, 0, 1, 9}), [](auto& in) { in.bytes(1); }), "");
  EXPECT_EQ(problem_of(bytes_of({0xc6, 0, 0, 0, 1, 9}), [](auto& in) { in.bytes(1); }), "");
  EXPECT_EQ(problem_of(bytes_of({0xdc, 0, 0}), [](auto& in) { in.list(0); }), "");
  EXPECT_EQ(problem_of(bytes_of({0xdd, 0, 0, 0, 0}), [](auto& in) { in.list(0); }), "");
}

TEST(WireFormat, SinglePrecisionReadsAsItsValue) {
  const Bytes header = bytes_of({0xca, 0xbf, 0xc0, 0, 0});  // -1.5f
  WireReader in(header);
  EXPECT_EQ(in.real(), -1.5);
  EXPECT_TRUE(in.finished());
}

TEST(WireFormat, ProblemNamesPlaceAndWhatStandsThere) {
  EXPECT_EQ(problem_of(written([](WireWriter& out) { out.list(1), out.text("abc"); }),
                       [](WireReader& in) { in.list(1), in.number(9); }),
            "at byte 1: a number up to 9 is expected, a text of 3 bytes stands");
  EXPECT_EQ(problem_of(bytes_of({10}), [](WireReader& in) { in.number(9); }),
            "at byte 0: a number up to 9 is expected, 10 stands");
  EXPECT_EQ(problem_of(bytes_of({0xf0}), [](WireReader& in) { in.integer(-15, 3); }),
            "at byte 0: an integer from -15 to 3 is expected, -16 stands");
  EXPECT_EQ(problem_of(bytes_of({0x92, 1, 2}), [](WireReader& in) { in.list(3); }),
            "at byte 0: a list of 3 is expected, a list of 2 stands");
  EXPECT_EQ(problem_of(bytes_of({0xcd, 1}), [](WireReader& in) { in.number(); }),
            fmt::format("at byte 0: a number up to {} is expected, the header ends", UINT64_MAX));
  EXPECT_EQ(problem_of(bytes_of({1, 2}), [](WireReader& in) { in.number(); }),
            "at byte 1: the header should end, 1 bytes follow");
}

TEST(WireFormat, OtherKindsAreRefused) {
  const auto refused = [](const Bytes& bytes, const std::function<void(WireReader&)>& read) {
    return !problem_of(bytes, read).empty();
  };
  const auto number = [](WireReader& in) { EXPECT_EQ(in.number(), 0U); };
  // A map, each extension, the unused byte, nil, a flag, a real, a text, bytes, a list.
  for (const unsigned lead : {0x81, 0xc7, 0xd4, 0xd8, 0xc1, 0xc0, 0xc3, 0xcb, 0xa1, 0xc4, 0x91}) {
    EXPECT_TRUE(refused(bytes_of({lead, 1, 1, 1, 1, 1, 1, 1, 1}), number)) << lead;
  }
  EXPECT_TRUE(refused(bytes_of({1}), [](WireReader& in) { EXPECT_EQ(in.real(), 0.0); }));
  EXPECT_TRUE(refused(bytes_of({1}), [](WireReader& in) { EXPECT_FALSE(in.flag()); }));
  EXPECT_TRUE(refused(bytes_of({0xc4, 0}), [](WireReader& in) { EXPECT_EQ(in.text(9), ""); }));
  EXPECT_TRUE(refused(bytes_of({0xa0}), [](WireReader& in) { EXPECT_TRUE(in.bytes(9).empty()); }));
  EXPECT_TRUE(refused(bytes_of({0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0}),
                      [](WireReader& in) { EXPECT_EQ(in.integer(), 0); }));
  EXPECT_TRUE(refused(bytes_of({0xc4, 15}) + zeros(15),
                      [](WireReader& in) { EXPECT_EQ(in.hash(), Hash128{}); }));
  EXPECT_TRUE(refused({}, [](WireReader& in) { EXPECT_FALSE(in.present()); }));
}

TEST(WireFormat, LengthsBeyondTheLimitOrTheHeaderAreRefused) {
  const Bytes text = written([](WireWriter& out) { out.text("abcd"); });
  EXPECT_EQ(problem_of(text, [](WireReader& in) { in.text(4); }), "");
  EXPECT_NE(problem_of(text, [](WireReader& in) { in.text(3); }), "");
  const Bytes short_by_one(text.begin(), text.end() - 1);
  EXPECT_NE(problem_of(short_by_one, [](WireReader& in) { in.text(9); }), "");
  EXPECT_NE(problem_of(bytes_of({0xdd, 0xff, 0xff, 0xff, 0xff}),
                       [](WireReader& in) { EXPECT_EQ(in.list_up_to(SIZE_MAX), 0U); }),
            "");
  EXPECT_NE(problem_of(bytes_of({0xdb, 0xff, 0xff, 0xff, 0xff, 0, 0}),
                       [](WireReader& in) { EXPECT_EQ(in.text(SIZE_MAX), ""); }),
            "");
  EXPECT_NE(problem_of(bytes_of({0xc6, 0xff, 0xff, 0xff, 0xff, 0, 0}),
                       [](WireReader& in) { EXPECT_TRUE(in.bytes(SIZE_MAX).empty()); }),
            "");
  EXPECT_NE(problem_of(bytes_of({0x93, 1, 2}), [](WireReader& in) { in.list_up_to(9); }), "");
  EXPECT_EQ(problem_of(bytes_of({0x92, 1, 2}),
                       [](WireReader& in) {
                         EXPECT_EQ(in.list_up_to(2), 2U);
                         in.number(), in.number();
                       }),
            "");
}

TEST(WireFormat, FirstProblemStaysAndEverythingReadsAsZero) {
  const Bytes header = bytes_of({1, 2, 3});
  WireReader in(header);
  EXPECT_EQ(in.number(), 1U);
  in.fail("a reason");
  EXPECT_EQ(in.number(), 0U);
  EXPECT_EQ(in.text(9), "");
  EXPECT_EQ(in.list_up_to(9), 0U);
  EXPECT_FALSE(in.present());
  EXPECT_TRUE(in.attachment().empty());
  in.fail("another");
  EXPECT_FALSE(in.finished());
  EXPECT_EQ(in.problem(), "at byte 1: a reason");
}

TEST(WireFormat, AttachmentsTravelUncopiedInOrder) {
  WireWriter out;
  const Buffer first = Buffer::zeroed(8);
  const Buffer second = Buffer::zeroed(16);
  out.attach(first);
  out.attach(second);
  const std::vector<Buffer> attachments = out.take_attachments();
  WireReader in({}, attachments);
  EXPECT_EQ(in.attachment().data(), first.data());
  EXPECT_FALSE(WireReader({}, attachments).finished());
  EXPECT_EQ(in.attachment().data(), second.data());
  EXPECT_TRUE(in.finished());
  EXPECT_TRUE(in.attachment().empty());
  EXPECT_FALSE(in.ok());
}

TEST(WireFormat, LibrarysOwnUnpackerAgrees) {
  WireWriter out;
  out.list(6);
  out.number(UINT64_MAX);
  out.integer(-70000);
  out.real(-0.0);
  out.text("name");
  out.bytes(bytes_of({1, 2}));
  out.none();
  const Buffer header = out.take_header();
  const auto unpacked =
      msgpack::unpack(reinterpret_cast<const char*>(header.data()), header.size());
  const msgpack::object& list = unpacked.get();
  ASSERT_EQ(list.type, msgpack::type::ARRAY);
  ASSERT_EQ(list.via.array.size, 6U);
  const msgpack::object* values = list.via.array.ptr;
  EXPECT_EQ(values[0].via.u64, UINT64_MAX);
  EXPECT_EQ(values[1].via.i64, -70000);
  ASSERT_EQ(values[2].type, msgpack::type::FLOAT64);
  EXPECT_TRUE(std::signbit(values[2].via.f64));
  EXPECT_EQ(values[3].as<std::string>(), "name");
  EXPECT_EQ(values[4].type, msgpack::type::BIN);
  EXPECT_EQ(values[4].via.bin.size, 2U);
  EXPECT_TRUE(values[5].is_nil());
}

TEST(WireFormat, LibrarysOwnPackerIsRead) {
  msgpack::sbuffer bytes;
  msgpack::packer<msgpack::sbuffer> out(bytes);
  out.pack_array(5);
  out.pack_fix_uint64(3);
  out.pack_fix_int32(-3);
  out.pack_float(0.5F);
  out.pack(std::string(300, 'a'));
  out.pack(true);
  WireReader in(std::as_bytes(std::span(bytes.data(), bytes.size())));
  in.list(5);
  EXPECT_EQ(in.number32(), 3U);
  EXPECT_EQ(in.integer(), -3);
  EXPECT_EQ(in.real(), 0.5);
  EXPECT_EQ(in.text(300), std::string(300, 'a'));
  EXPECT_TRUE(in.flag());
  EXPECT_TRUE(in.finished()) << in.problem();
}

TEST(WireFormatDeathTest, HeaderOfMoreThanMayTravelIsADefect) {
  const std::string text(Packet::kMostHeaderBytes, 'x');
  EXPECT_DEATH(written([&](WireWriter& out) { out.text(text); }), "more bytes than may travel");
  EXPECT_DEATH(written([&](WireWriter& out) { out.text(text + "x"); }), "no header can hold");
}

}  // namespace
}  // namespace troupe::runtime
