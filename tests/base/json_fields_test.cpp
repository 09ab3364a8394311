#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/json_reader.h"
#include "runtime/base/json_writer.h"

namespace troupe::runtime {
namespace json_fields_test {

constexpr std::size_t kMost = 2;

struct Leaf {
  std::uint32_t number = 0;
  bool operator==(const Leaf&) const = default;
};
template <class Archive>
void fields(Archive& archive, Like<Leaf> auto& leaf) {
  archive.number("number", leaf.number, 100);
}

struct Tree {
  std::int16_t height = 0;
  double width = 0.0, fine = 0.0;
  double planted = 0.0;
  std::uint64_t bits = 0;
  bool green = false;
  std::string name = {};
  int converted = 0;
  Leaf leaf = {};
  std::vector<Leaf> leaves = {};
  std::optional<Leaf> best = {};
  std::optional<std::string> owner = {};
  std::string raw = "null";
  std::vector<std::pair<std::string, double>> weights = {};
  std::vector<std::string> names = {};
  bool operator==(const Tree&) const = default;
};
template <class Archive>
void fields(Archive& archive, Like<Tree> auto& tree) {
  archive.integer("height", tree.height, -2, 300);
  archive.tuple("size", [&](auto& values) {
    values.real("", tree.width);
    values.real("", tree.fine, 3);
  });
  archive.moment("planted", tree.planted);
  archive.bits("bits", tree.bits);
  archive.group("looks", [&](auto& looks) { looks.flag("green", tree.green); });
  archive.text("name", tree.name, kMost);
  archive.converted(
      "converted", tree.converted, kMost, [](int value) { return std::to_string(value); },
      [](const std::string& text) {
        return text == "7" ? std::optional(7) : std::optional<int>();
      });
  archive.object("leaf", tree.leaf);
  archive.list("leaves", tree.leaves, kMost);
  archive.perhaps("best", tree.best);
  archive.last("owner", tree.owner);
  archive.json("raw", tree.raw);
  archive.map("weights", tree.weights, [](auto& item, auto& weight) { item.real("", weight); });
  archive.last("names", tree.names);
}
const char* fault_of(const Tree& tree) { return tree.height == 13 ? "an unlucky tree" : nullptr; }

const std::string kFull =
    R"({"height":-2,"size":[0.123456789,0.123],"planted":1760000000.125,)"
    R"("bits":"00000000000000ff","looks":{"green":true},"name":"a \"b\"",)"
    R"("converted":"7","leaf":{"number":1},"leaves":[{"number":2},{"number":3}],)"
    R"("best":{"number":4},"owner":"me","raw":{"x":[1]},"weights":{"":1.5,"b":2},"names":["c"]})";

TEST(JsonFields, StructBecomesOneObjectAndComesBack) {
  const Tree full{
      -2,   0.123456789, 0.123,      1760000000.125, 255,  true,           "a \"b\"",
      7,    {1},         {{2}, {3}}, Leaf{4},        "me", R"({"x":[1]})", {{"", 1.5}, {"b", 2.0}},
      {"c"}};
  EXPECT_EQ(to_json(full), kFull);
  Tree back;
  EXPECT_TRUE(read_json(kFull, back));
  EXPECT_EQ(back, full);
}

TEST(JsonFields, AbsentIsNullOrNothing) {
  EXPECT_EQ(to_json(Tree{}),
            R"({"height":0,"size":[0,0],"planted":0.000,"bits":"0000000000000000",)"
            R"("looks":{"green":false},"name":"","converted":"0",)"
            R"("leaf":{"number":0},"leaves":[],"best":null,"raw":null})");
  Tree back;
  EXPECT_TRUE(read_json("{}", back));
  EXPECT_EQ(back, Tree{});
}

TEST(JsonFields, WhatIsNoNumberIsNull) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::string text = to_json(Tree{.width = kNone, .planted = kNone});
  EXPECT_THAT(text, testing::HasSubstr(R"("size":[null,0],"planted":null)"));
  Tree back;
  EXPECT_TRUE(read_json(text, back));
  EXPECT_TRUE(std::isnan(back.width));
  EXPECT_EQ(back.planted, 0.0) << "a time is always one";
}

TEST(JsonFields, FieldOfAnotherKindOrOutOfItsRangeStaysAsItWas) {
  const Tree before{.height = 5,
                    .width = 1.5,
                    .bits = 3,
                    .green = true,
                    .name = "a",
                    .converted = 2,
                    .leaf = {9}};
  for (const char* text : {R"({"height":301})",
                           R"({"height":-3})",
                           R"({"height":1.5})",
                           R"({"height":18446744073709551615})",
                           R"({"height":"5"})",
                           R"({"size":5})",
                           R"({"size":{"width":2}})",
                           R"({"planted":"x"})",
                           R"({"bits":"0x1f"})",
                           R"({"bits":255})",
                           R"({"bits":"00000000000000001"})",
                           R"({"bits":""})",
                           R"({"looks":[true]})",
                           R"({"looks":{"green":1}})",
                           R"({"name":null})",
                           R"({"converted":"8"})",
                           R"({"leaf":{"number":101}})",
                           R"({"leaf":[1]})",
                           R"({"leaf":{"number":-1}})",
                           R"({"leaves":{"number":1}})",
                           R"({"best":7})",
                           R"({"owner":7})",
                           R"({"weights":[1]})"}) {
    Tree tree = before;
    EXPECT_TRUE(read_json(text, tree)) << text;
    EXPECT_EQ(tree, before) << text;
  }
}

TEST(JsonFields, ItemsOfAnotherKindAndThoseBeyondTheMostAreLeftOut) {
  Tree tree;
  EXPECT_TRUE(read_json(R"({"leaves":[5,{"number":1},[],{"number":2},{"number":3}],)"
                        R"("weights":{"a":"x","b":2,"c":[1]},"names":["d",5]})",
                        tree));
  EXPECT_EQ(tree.leaves, (std::vector<Leaf>{{1}, {2}}));
  EXPECT_EQ(tree.weights, (std::vector<std::pair<std::string, double>>{{"b", 2.0}}));
  EXPECT_EQ(tree.names, std::vector<std::string>{"d"});
}

TEST(JsonFields, RowOfValuesWithOneOfAnotherKindIsLeftOut) {
  std::vector<std::pair<std::string, double>> pairs;
  const auto text =
      nlohmann::json::parse(R"({"all":[["a",1],["b","x"],[5,2],["c"],["d",3,4],["e",5]]})");
  JsonReader reader(text);
  reader.list("all", pairs, SIZE_MAX, [](JsonReader& item, auto& pair) {
    item.tuple("", [&](JsonReader& values) {
      values.text("", pair.first, kMost);
      values.real("", pair.second);
    });
  });
  EXPECT_EQ(pairs, (std::vector<std::pair<std::string, double>>{{"a", 1.0}, {"e", 5.0}}));
}

TEST(JsonFields, DigitsWithoutLeadingZerosAreReadToo) {
  Tree tree;
  EXPECT_TRUE(read_json(R"({"bits":"ff"})", tree));
  EXPECT_EQ(tree.bits, 255U);
}

TEST(JsonFields, TextThatIsNestedTooDeepIsRefused) {
  const auto nested = [](std::size_t depth) {
    return "{\"raw\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  Tree tree;
  EXPECT_TRUE(read_json(nested(kMostJsonDepth), tree));
  for (const std::size_t depth : {kMostJsonDepth + 1, 1'000'000}) {
    EXPECT_FALSE(read_json(nested(depth), tree));
  }
  EXPECT_TRUE(read_json("{\"name\":\"\\\"" + std::string(100, '[') + "\"}", tree));
}

TEST(JsonFields, WhatIsNoObjectOrNotSoundIsRefused) {
  for (const char* text : {"", "{", "[]", "7", "null", "{} x", "\xff", R"({"height":13})"}) {
    Tree tree;
    EXPECT_FALSE(read_json(text, tree)) << text;
  }
}

}  // namespace json_fields_test
}  // namespace troupe::runtime
