#include "runtime/transport/wire_fields.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace wire_fields_test {

struct Leaf {
  std::uint32_t number = 0;
  bool operator==(const Leaf&) const = default;
};
template <class Archive>
void fields(Archive& archive, Like<Leaf> auto& leaf) {
  archive.number("number", leaf.number, 100);
}
const char* fault_of(const Leaf& leaf) { return leaf.number == 13 ? "an unlucky leaf" : nullptr; }

enum class Shade : std::uint8_t { kDark, kLight };

struct Tree {
  std::int16_t height = 0;
  std::vector<Leaf> leaves = {};
  std::optional<Leaf> best = {};
  std::optional<Shade> shade = {};
  std::vector<float> rings = {};
  std::shared_ptr<const Leaf> newest = {};
};
template <class Archive>
void fields(Archive& archive, Like<Tree> auto& tree) {
  archive.integer("height", tree.height, -2, 300);
  archive.list("leaves", tree.leaves, 2);
  archive.perhaps("best", tree.best);
  archive.perhaps_choice("shade", tree.shade, Shade::kLight);
  archive.floats("rings", tree.rings);
  archive.last("newest", tree.newest);
}

struct Written {
  Buffer header;
  std::vector<Buffer> attachments;
};

Written written(const Tree& tree) {
  WireWriter out;
  write_fields(out, tree);
  Buffer header = out.take_header();
  return {std::move(header), out.take_attachments()};
}

// What is wrong with it; "": nothing.
std::string problem_of(const Written& bytes, Tree& tree) {
  WireReader in(bytes.header.bytes(), bytes.attachments);
  read_fields(in, tree);
  in.finished();
  return in.problem();
}

TEST(WireFields, StructComesBackWithWhatIsThereAndWithoutWhatIsAbsent) {
  const Tree full{
      -2, {{1}, {2}}, Leaf{3}, Shade::kLight, {0.5F, 1.5F}, std::make_shared<Leaf>(Leaf{4})};
  Tree back;
  EXPECT_EQ(problem_of(written(full), back), "");
  EXPECT_EQ(back.height, -2);
  EXPECT_EQ(back.leaves, full.leaves);
  EXPECT_EQ(back.best, full.best);
  EXPECT_EQ(back.shade, full.shade);
  EXPECT_EQ(back.rings, full.rings);
  EXPECT_EQ(*back.newest, *full.newest);
  Tree none;
  EXPECT_EQ(problem_of(written({}), none), "");
  EXPECT_FALSE(none.best || none.shade || none.newest);
  EXPECT_TRUE(none.leaves.empty() && none.rings.empty());
}

TEST(WireFields, ValueOutOfItsRangeIsRefused) {
  Tree back;
  EXPECT_NE(problem_of(written({.height = 301}), back), "");
  EXPECT_NE(problem_of(written({.leaves = {{101}}}), back), "");
}

TEST(WireFields, FaultOfAStructWithinAnotherIsTold) {
  for (const Tree& tree : {Tree{.leaves = {{1}, {13}}}, Tree{.best = Leaf{13}},
                           Tree{.newest = std::make_shared<Leaf>(Leaf{13})}}) {
    Tree back;
    EXPECT_NE(problem_of(written(tree), back).find("an unlucky leaf"), std::string::npos);
  }
}

TEST(WireFields, ListOfMoreThanItMayHaveIsNeitherWrittenNorRead) {
  EXPECT_DEATH(written({.leaves = {{1}, {2}, {3}}}), "leaves");
  WireWriter out;
  out.list(4);
  out.integer(0);
  out.list(3);
  for (int i = 0; i < 3; ++i) {
    out.list(1);
    out.number(1);
  }
  out.none();
  out.number(0);
  out.attach(Buffer::zeroed(0));
  Tree back;
  EXPECT_NE(problem_of({out.take_header(), out.take_attachments()}, back), "");
}

TEST(WireFields, StructOfFewerOrMoreFieldsIsRefused) {
  for (const std::size_t count : {0, 3, 6}) {
    WireWriter out;
    out.list(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (i == 1) {
        out.list(0);
      } else if (i == 2) {
        out.none();
      } else if (i == 4) {
        out.list(1);
        out.number(1);
      } else {
        out.number(0);
      }
    }
    out.attach(Buffer::zeroed(0));
    Tree back;
    const std::string problem = problem_of({out.take_header(), out.take_attachments()}, back);
    EXPECT_NE(problem.find(count < 4 ? "a field is missing" : "more fields than are known"),
              std::string::npos)
        << count << ": " << problem;
  }
}

TEST(WireFields, ArrayThatEndsWithinAFloatIsRefused) {
  Written bytes = written({});
  bytes.attachments[0] = Buffer::zeroed(6);
  Tree back;
  EXPECT_NE(problem_of(bytes, back).find("within a float"), std::string::npos);
}

struct Greeting {
  std::string name;
};
template <class Archive>
void fields(Archive& archive, Like<Greeting> auto& greeting) {
  archive.words("name", greeting.name, 8);
}

TEST(WireFields, WordsOfUnknownPeersArePrintable) {
  WireWriter out;
  write_fields(out, Greeting{"a\x1b[2J"});
  const Buffer header = out.take_header();
  WireReader in(header.bytes());
  Greeting greeting;
  read_fields(in, greeting);
  EXPECT_TRUE(in.finished());
  EXPECT_EQ(greeting.name.find('\x1b'), std::string::npos);
}

}  // namespace wire_fields_test
}  // namespace troupe::runtime
