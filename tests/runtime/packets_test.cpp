// The packets that no test of gates could send wrongly: what is read is what was written, and no
// more than is meant is read.

#include "runtime/transport/packets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/transport/node_name.h"

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

TEST(Packets, ADirectoryComesOutAsItWentIn) {
  const auto read = unpack(pack(directory_of(3)), WireTypes());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto* directory = std::get_if<Directory>(&*read);
  ASSERT_NE(directory, nullptr);
  EXPECT_EQ(directory->edition, 7U);
  ASSERT_EQ(directory->entries.size(), 3U);
  const DirectoryEntry& entry = directory->entries[1];
  EXPECT_EQ(entry.node, "member.1");
  EXPECT_EQ(entry.address, "tcp://10.0.0.5:40001");
  EXPECT_EQ(entry.key, std::string(40, 'k'));
  EXPECT_EQ(entry.incarnation, 1U);
  EXPECT_TRUE(entry.dial);
  EXPECT_FALSE(directory->entries[2].dial);

  const auto heard = unpack(pack(DirectoryHeard{9}), WireTypes());
  ASSERT_TRUE(heard.ok());
  EXPECT_EQ(std::get<DirectoryHeard>(*heard).edition, 9U);
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
  DrainRequest request;
  request.node = request.host = bad;
  const auto asked = unpack(pack(request), WireTypes());
  ASSERT_TRUE(asked.ok()) << asked.error().message;
  EXPECT_EQ(std::get<DrainRequest>(*asked).node, clean);
  EXPECT_EQ(std::get<DrainRequest>(*asked).host, clean);
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

TEST(Packets, WhoAsksThatANodeLeaveIsReadAsItWasWritten) {
  DrainRequest request;
  request.node = "member.2";
  request.host = "host";
  request.pid = 4242;
  const auto read = unpack(pack(request), WireTypes());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto& back = std::get<DrainRequest>(*read);
  EXPECT_EQ(back.version, kProtocolVersion);
  EXPECT_EQ(back.node, "member.2");
  EXPECT_EQ(back.host, "host");
  EXPECT_EQ(back.pid, 4242U);
  request.node = std::string(257, 'n');
  EXPECT_FALSE(unpack(pack(request), WireTypes()).ok());
  // Of another version nothing but that is read, so that it can be answered.
  request.version = kProtocolVersion + 1;
  const auto newer = unpack(pack(request), WireTypes());
  ASSERT_TRUE(newer.ok()) << newer.error().message;
  EXPECT_EQ(std::get<DrainRequest>(*newer).version, kProtocolVersion + 1);

  const auto drained = unpack(pack(Drained{"member.2"}), WireTypes());
  ASSERT_TRUE(drained.ok());
  EXPECT_EQ(std::get<Drained>(*drained).node, "member.2");
  EXPECT_FALSE(unpack(pack(Drained{std::string(257, 'n')}), WireTypes()).ok());
}

}  // namespace
}  // namespace troupe::runtime
