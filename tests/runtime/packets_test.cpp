// The packets that no test of gates could send wrongly: what is read is what was written, and no
// more than is meant is read.

#include "runtime/transport/packets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <variant>

#include "runtime/base/hash.h"
#include "runtime/transport/wire_fields.h"

namespace troupe::runtime {
namespace {

Directory directory_of(std::size_t entries) {
  Directory directory;
  directory.edition = 7;
  for (std::size_t i = 0; i < entries; ++i) {
    directory.entries.push_back({"member." + std::to_string(i), "tcp://10.0.0.5:40001",
                                 std::string(40, 'k'), i, i % 2 == 1});
  }
  return directory;
}

TEST(Packets, ADirectoryHasNoMoreEntriesAndNoLongerTextsThanAllowed) {
  EXPECT_TRUE(unpack(pack(directory_of(Directory::kMostEntries)), WireTypes()).ok());
  EXPECT_DEATH(pack(directory_of(Directory::kMostEntries + 1)), "entries");
  const auto fits = [](auto change) {
    Directory directory = directory_of(1);
    change(directory.entries[0]);
    return unpack(pack(directory), WireTypes()).ok();
  };
  EXPECT_TRUE(fits([](DirectoryEntry& entry) { entry.node = std::string(256, 'n'); }));
  EXPECT_FALSE(fits([](DirectoryEntry& entry) { entry.node = std::string(257, 'n'); }));
  EXPECT_TRUE(fits([](DirectoryEntry& entry) { entry.address = std::string(512, 'a'); }));
  EXPECT_FALSE(fits([](DirectoryEntry& entry) { entry.address = std::string(513, 'a'); }));
  EXPECT_FALSE(fits([](DirectoryEntry& entry) { entry.key = std::string(65, 'k'); }));
}

TEST(Packets, NoMoreNodesAreWantedThanARunHas) {
  Wanted wanted;
  wanted.nodes.assign(Wanted::kMostNodes, "member.2");
  const auto read = unpack(pack(wanted), WireTypes());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(std::get<Wanted>(*read).nodes, wanted.nodes);
  wanted.nodes.push_back("member.3");
  EXPECT_DEATH(pack(wanted), "nodes");
  EXPECT_FALSE(unpack(pack(Wanted{{std::string(257, 'n')}}), WireTypes()).ok());
}

TEST(Packets, AnIntroductionTellsWhereItsNodeIsDialed) {
  Hello hello;
  hello.node = "b";
  hello.incarnation = 5;
  hello.address = "ipc:///tmp/b";
  const auto read = unpack(pack(hello), WireTypes());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(std::get<Hello>(*read).address, "ipc:///tmp/b");
  EXPECT_FALSE(std::get<Hello>(*read).given_up);
  hello.given_up = true;
  EXPECT_TRUE(std::get<Hello>(*unpack(pack(hello), WireTypes())).given_up);
  hello.address = std::string(513, 'a');
  EXPECT_FALSE(unpack(pack(hello), WireTypes()).ok());
}

// They stand in lines of the log of whoever reads them.
TEST(Packets, NamesAndReasonsOfOthersComeOutWithoutControlCharacters) {
  const std::string bad = "a\n\x1b[31m", clean = "a\\n\\x1b[31m";
  HeadRequest request;
  request.name = request.host = bad;
  const auto asked = unpack(pack(request), WireTypes());
  ASSERT_TRUE(asked.ok()) << asked.error().message;
  EXPECT_EQ(std::get<HeadRequest>(*asked).name, clean);
  EXPECT_EQ(std::get<HeadRequest>(*asked).host, clean);
  Hello hello;
  hello.incarnation = 5;
  hello.node = hello.host = hello.address = bad;
  hello.terms = {{"topology", bad, ErrorKind::kTopology}};
  const auto met = unpack(pack(hello), WireTypes());
  ASSERT_TRUE(met.ok()) << met.error().message;
  const auto& back = std::get<Hello>(*met);
  EXPECT_EQ(back.node, clean);
  EXPECT_EQ(back.host, clean);
  EXPECT_EQ(back.address, clean);
  EXPECT_EQ(back.terms.front().value, clean);
  const auto refused = unpack(pack(Refusal{{ErrorKind::kUsage, bad}}), WireTypes());
  ASSERT_TRUE(refused.ok()) << refused.error().message;
  EXPECT_EQ(std::get<Refusal>(*refused).error.message, clean);
}

TEST(Packets, OnlyNamesThatOthersReadAreNamesOfNodes) {
  EXPECT_TRUE(is_node_name("member.2"));
  EXPECT_TRUE(is_node_name(std::string(256, 'n')));
  for (const std::string& name :
       {std::string(), std::string(257, 'n'), std::string("a\nb"), std::string("\xFF")}) {
    EXPECT_FALSE(is_node_name(name)) << name;
  }
}

TEST(Packets, WhatIsAskedOfTheHeadIsReadAsItWasWritten) {
  HeadRequest request{HeadRequest::Kind::kBurst, "hpc", "+4", "host", 4242};
  const auto read = unpack(pack(request), WireTypes());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto& back = std::get<HeadRequest>(*read);
  EXPECT_EQ(back.kind, HeadRequest::Kind::kBurst);
  EXPECT_EQ(back.name, "hpc");
  EXPECT_EQ(back.change, "+4");
  EXPECT_EQ(back.host, "host");
  EXPECT_EQ(back.pid, 4242U);
  request.name = std::string(257, 'n');
  EXPECT_FALSE(unpack(pack(request), WireTypes()).ok());

  const auto granted = unpack(pack(Granted{"member.2 has left the run"}), WireTypes());
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(std::get<Granted>(*granted).text, "member.2 has left the run");
  EXPECT_FALSE(unpack(pack(Granted{std::string(20'000, 'n')}), WireTypes()).ok());
}

TEST(Packets, AHeaderThatSaysItIsEmptyIsNoPacket) {
  // An edition that was heard; then the same behind an empty list.
  const std::array<std::byte, 3> list_of_two{std::byte{0x92}, std::byte{0x0d}, std::byte{0x03}};
  const std::array<std::byte, 3> empty_list{std::byte{0x90}, std::byte{0x0d}, std::byte{0x03}};
  EXPECT_TRUE(unpack({Buffer::copy_of(list_of_two), {}}, WireTypes()).ok());
  EXPECT_FALSE(unpack({Buffer::copy_of(empty_list), {}}, WireTypes()).ok());
}

TEST(Packets, AGraphOfTooManyActorsLacksTheLastOnesAndTheirLinks) {
  constexpr std::size_t kActors = 5000;
  GraphAnswer answer;
  answer.graph.actors.resize(kActors);
  for (std::size_t i = 0; i < kActors; ++i) answer.graph.actors[i].name = std::to_string(i);
  LinkWait kept, lost;
  kept.to = 1;
  lost.to = kActors - 1;
  answer.graph.links = {lost, kept};
  const auto read = unpack(pack(answer), WireTypes());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const WaitGraph& graph = std::get<GraphAnswer>(*read).graph;
  EXPECT_EQ(graph.actors.size(), 4096U);
  EXPECT_EQ(graph.actors.back().name, "4095");
  ASSERT_EQ(graph.links.size(), 1U);
  EXPECT_EQ(graph.links[0].to, 1U);
}

struct NumberMessage {
  static constexpr std::string_view kName = "number";
  std::uint32_t number = 0;
};
template <class Archive>
void fields(Archive& archive, Like<NumberMessage> auto& body) {
  archive.number("number", body.number);
}

Introduction introduction() {
  Introduction told{};
  told.node = "member.1";
  told.incarnation = 5;
  told.peer_incarnation = 6;
  told.host = "host";
  told.pid = 4242;
  told.machine = "machine";
  told.terms = {{"topology", "hash", ErrorKind::kTopology}};
  told.address = "tcp://10.0.0.5:40001";
  told.received = {1, 2, 3};
  told.given_up = true;
  return told;
}

GraphAnswer graph_answer() {
  ActorWait actor;
  actor.name = "loader.0";
  actor.activity = ActorWait::Activity::kRunning;
  actor.stopping = true;
  actor.running_for = Duration(5);
  actor.words = "credit";
  LinkWait link;
  link.to = 1;
  link.from_port = "out";
  link.to_port = "in";
  link.lane = Lane::kMetrics;
  link.sender_waits = true;
  link.messages_out = 3;
  link.message_credits = 4;
  link.bytes_out = 5;
  link.byte_credits = 6;
  link.queued = 7;
  return {{{actor, actor}, {link}}};
}

// A change of what is sent is a new kProtocolVersion, and then other bytes here.
TEST(Packets, BytesAreThoseOfTheProtocolsVersion) {
  const Error error{ErrorKind::kUsage, "why"};
  Envelope envelope;
  envelope.sequence = 3;
  envelope.link = 4;
  envelope.sender = "loader.0";
  envelope.target = "replica.1";
  envelope.cause = error;
  envelope.received = {1, 2, 3};
  envelope.message = Message::of(NumberMessage{7});
  WireTypes types;
  types.add<NumberMessage>();
  const std::string contents = "contents";
  const Packet packets[] = {
      pack(Hello{introduction()}),
      pack(Welcome{introduction()}),
      pack(Refusal{error}),
      pack(Account{{1, 2, 3}, {{4, 5, 600}}}),
      pack(Heartbeat{12345, 350, 16000}),
      pack(Bye{}),
      pack(GraphRequest{}),
      pack(graph_answer()),
      pack(Enrolment{"member.2", "host", 4242, "hpc.3@1a2b"}),
      pack(Invitation{"member.2", Buffer::copy_of(std::as_bytes(std::span(contents)))}),
      pack(envelope, types),
      pack(directory_of(2)),
      pack(DirectoryHeard{9}),
      pack(HeadRequest{HeadRequest::Kind::kBurst, "hpc", "+4", "host", 4242}),
      pack(Granted{"member.2 has left the run"}),
      pack(NotNow{"why"}),
      pack(Wanted{{"member.2", "member.5"}}),
      pack(Unheard{"member.2", 2000})};
  EXPECT_EQ(std::size(packets), std::variant_size_v<AnyPacket>);
  Hasher hasher;
  for (const Packet& packet : packets) {
    hasher.add(packet.header.bytes());
    for (const Buffer& payload : packet.payloads) hasher.add(payload.bytes());
  }
  EXPECT_EQ(hasher.digest().text(), "5d4b03b63f3cd28455595016e555b944");
}

}  // namespace
}  // namespace troupe::runtime
