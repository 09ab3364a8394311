#include "runtime/transport/wire_types.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace wire_types_test {

struct Note {
  static constexpr std::string_view kName = "note";
  std::uint64_t number = 0;
  std::string text;
};
template <class Archive>
void fields(Archive& archive, Like<Note> auto& body) {
  archive.number("number", body.number, 1000);
  archive.text("text", body.text, 8);
}

// Has one payload of as many bytes as it says.
struct Block {
  static constexpr std::string_view kName = "block";
  std::uint64_t size = 0;
};
template <class Archive>
void fields(Archive& archive, Like<Block> auto& body) {
  archive.number("size", body.size);
}
const char* fault_of(const Block& body, std::span<const Buffer> payloads) {
  const bool sound = payloads.size() == 1 && payloads[0].size() == body.size;
  return sound ? nullptr : "a block without its bytes";
}

WireTypes both() {
  WireTypes types;
  types.add<Note>();
  types.add<Block>();
  return types;
}

Buffer packed(const WireTypes& types, const Message& message) {
  WireWriter out;
  types.pack(message, out);
  return out.take_header();
}

TEST(WireTypes, MessageComesBackWithItsPayloads) {
  const WireTypes types = both();
  const Buffer header = packed(types, Message::of(Note{7, "seven"}));
  WireReader in(header.bytes());
  auto message = types.unpack("note", in, {Buffer::zeroed(3)});
  ASSERT_TRUE(message.ok()) << message.error().message;
  EXPECT_TRUE(in.finished());
  const Note* note = message->as<Note>();
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->number, 7U);
  EXPECT_EQ(note->text, "seven");
  EXPECT_EQ(message->bytes(), Message::kOverheadBytes + 3);
}

TEST(WireTypes, WhatABodyRefusesIsAnErrorThatNamesIt) {
  const WireTypes types = both();
  const Buffer header = packed(types, Message::of(Note{1001, "beyond"}));
  WireReader in(header.bytes());
  const auto message = types.unpack("note", in, {});
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().message,
            "note: at byte 1: a number up to 1000 is expected, 1001 stands");
}

TEST(WireTypes, BodyThatReliesOnItsPayloadsSeesThem) {
  const WireTypes types = both();
  const Buffer header = packed(types, Message::of(Block{4}));
  WireReader whole(header.bytes());
  EXPECT_TRUE(types.unpack("block", whole, {Buffer::zeroed(4)}).ok());
  WireReader cut(header.bytes());
  EXPECT_FALSE(types.unpack("block", cut, {Buffer::zeroed(3)}).ok());
}

TEST(WireTypes, FaultThatTheReceiverFindsIsAnErrorThatNamesTheBody) {
  WireTypes types;
  types.add<Note>([](const Note& note) { return note.number == 13 ? "an unlucky number" : ""; });
  const Buffer lucky = packed(types, Message::of(Note{12, "twelve"}));
  WireReader first(lucky.bytes());
  EXPECT_TRUE(types.unpack("note", first, {}).ok());
  const Buffer unlucky = packed(types, Message::of(Note{13, "thirteen"}));
  WireReader second(unlucky.bytes());
  const auto message = types.unpack("note", second, {});
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().message.find("note: "), 0U);
  EXPECT_NE(message.error().message.find("an unlucky number"), std::string::npos);
  EXPECT_FALSE(second.ok());
}

TEST(WireTypes, UnknownNameIsAnErrorForTheReaderToo) {
  const WireTypes types = both();
  EXPECT_TRUE(types.knows("note"));
  EXPECT_FALSE(types.knows("letter"));
  WireReader in({});
  EXPECT_FALSE(types.unpack("letter", in, {}).ok());
  EXPECT_FALSE(in.ok());
}

TEST(WireTypesDeathTest, TwoBodiesOfOneNameAreADefect) {
  WireTypes types = both();
  EXPECT_DEATH(types.add<Note>(), "two bodies with one name");
}

}  // namespace wire_types_test
}  // namespace troupe::runtime
