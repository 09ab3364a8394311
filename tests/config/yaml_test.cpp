#include "config/yaml_value.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::HasSubstr;

std::string problems_of(std::string_view text) {
  Problems problems;
  parse_yaml(text, "y", problems);
  return problems.empty() ? std::string() : problems.error().message;
}

TEST(Yaml, EveryValueKnowsItsPlace) {
  const YamlValue root = parse_well("a: 1\nb:\n  - x\n  - {c: \"two\"}\nd:\n");
  EXPECT_EQ(root.find("a")->place.text(), "y:1:4");
  EXPECT_EQ(root.find("b")->items[1].find("c")->place.text(), "y:4:9");
  EXPECT_TRUE(root.find("b")->items[1].find("c")->quoted);
  EXPECT_FALSE(root.find("b")->items[0].quoted);
  EXPECT_EQ(root.members[1].key_place.text(), "y:2:1");
  // An absent value stands at its key.
  EXPECT_TRUE(root.find("d")->is_null());
  EXPECT_EQ(root.find("d")->place.text(), "y:5:1");
}

TEST(Yaml, ColumnsCountCharactersNotBytes) {
  EXPECT_EQ(parse_well("{\"\u00e4\u00f6\": 1, b: 2}").find("b")->place.text(), "y:1:14");
  EXPECT_EQ(parse_well("\xEF\xBB\xBF\u00e4: 1\n").find("\u00e4")->place.text(), "y:1:4");
}

TEST(Yaml, DuplicateKeysAreAllReportedAndTheFirstOneStays) {
  Problems problems;
  const YamlValue root = parse_yaml("a: 1\na: 2\nb: {c: 1, c: 2}\n", "y", problems);
  EXPECT_EQ(root.find("a")->scalar, "1");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems.error().message, HasSubstr("y:2:1: \"a\" is given twice"));
  EXPECT_THAT(problems.error().message, HasSubstr("y:3:11: \"c\" is given twice"));
}

TEST(Yaml, SyntaxErrorsHaveAPlace) {
  EXPECT_THAT(problems_of("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("y:3:"));
  EXPECT_THAT(problems_of("a: 1\n\tb: 2\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(problems_of("a: *nobody\n"), HasSubstr("y:1:4"));
}

TEST(Yaml, BytesThatAreNoTextAreRefusedWithTheirPlace) {
  EXPECT_THAT(problems_of("a: 1\nb: \xff\n"), HasSubstr("y:2:4: byte 0xff"));
  EXPECT_THAT(problems_of(std::string_view("a\0b", 3)),
              HasSubstr("y:1:2: the control character U+0000"));
  EXPECT_THAT(problems_of("\xff\xfe"
                          "a\0"),
              HasSubstr("byte 0xff"));
  EXPECT_THAT(problems_of("x: \xed\xa0\x80"), HasSubstr("byte 0xed"));  // a surrogate
  EXPECT_THAT(problems_of("x: \xc0\xaf"), HasSubstr("byte 0xc0"));      // overlong
  EXPECT_THAT(problems_of("x: \xe2\x82"), HasSubstr("byte 0xe2"));      // cut
  EXPECT_EQ(problems_of("x: \xe2\x82\xac \xf0\x9f\x98\x80"), "");
}

TEST(Yaml, NestingBeyondTheLimitIsRefusedQuickly) {
  EXPECT_THAT(problems_of(std::string(100'000, '[')), HasSubstr("y:1:"));
  EXPECT_THAT(problems_of(std::string(100'000, '{')), HasSubstr("y:1:"));
  std::string indented;
  for (int i = 0; i < 600; ++i) indented += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(problems_of(indented), HasSubstr("nested deeper than 40 levels"));
  std::string dashes;
  for (int i = 0; i < 10'000; ++i) dashes += "- ";
  EXPECT_NE(problems_of(dashes), "");
}

TEST(Yaml, PassingALimitIsToldOfOnce) {
  const std::string problems = problems_of(std::string(100, '['));
  EXPECT_THAT(problems, HasSubstr("nested deeper than 40 levels"));
  EXPECT_THAT(problems, testing::Not(HasSubstr("\n")))
      << "what the parser gives up with is no news";
}

TEST(Yaml, CommonMistakesAreHintedAt) {
  EXPECT_THAT(problems_of("model:\n\tzoo: toy\n"),
              HasSubstr("; the line is indented by a tab, and YAML takes spaces only"));
  EXPECT_THAT(problems_of("a:\n  listen: [::1]:8400\nb: 1\n"),
              HasSubstr("y:2:16: not valid YAML: end of map not found; a value that begins with [ "
                        "and is no list needs quotes: \"[::1]:8400\""));
  EXPECT_THAT(problems_of("a: [1, 2\n"), testing::Not(HasSubstr("needs quotes")));
  EXPECT_THAT(problems_of("a: [data/*.h5, *.h5]\n"),
              HasSubstr("; a value that begins with * needs quotes: \"*.h5\""));
}

TEST(Yaml, CharactersThatDoNotShowAreNamedWithTheirPlaces) {
  EXPECT_EQ(problems_of("a: 1\nb: \x1b[31m\n"),
            "y:2:4: the control character U+001B stands here; take it out");
  EXPECT_EQ(problems_of(std::string("a: \0", 4)),
            "y:1:4: the control character U+0000 stands here; take it out");
  EXPECT_EQ(problems_of("\u00e4: a\u202etxt.h5\n"),
            "y:1:5: U+202E (it turns the direction of writing) stands here; take it out");
  EXPECT_EQ(problems_of("# \u2066\n"),
            "y:1:3: U+2066 (it turns the direction of writing) stands here; take it out");
}

TEST(Yaml, AliasesStandForCopies) {
  const YamlValue root = parse_well("a: &x {b: 1}\nc: *x\n");
  EXPECT_EQ(root.find("c")->find("b")->scalar, "1");
}

TEST(Yaml, AliasBombIsRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{0}: &a{0} [", i);
    for (int j = 0; j < 9; ++j) bomb += fmt::format("*a{}, ", i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(problems_of(bomb), HasSubstr("more than 50000 values"));
}

TEST(Yaml, AliasInsideItsOwnValueIsRefused) {
  EXPECT_THAT(problems_of("a: &x [1, *x]\n"), HasSubstr("an alias inside the value it names"));
}

TEST(Yaml, OtherOddDocumentsAreRefused) {
  EXPECT_THAT(problems_of("a: 1\n---\nb: 2\n"), HasSubstr("a second document"));
  EXPECT_THAT(problems_of("a: !!python/object x\n"), HasSubstr("tags such as"));
  EXPECT_THAT(problems_of("? [a, b]\n: 1\n"), HasSubstr("a key must be a word, found a list"));
  EXPECT_THAT(problems_of("\"\": 1\n"), HasSubstr("a key must be a word"));
  EXPECT_THAT(problems_of(std::string(kMostYamlBytes + 1, ' ')), HasSubstr("larger than"));
  EXPECT_TRUE(parse_well("# nothing\n").is_null());
}

TEST(Yaml, PrintedValuesParseToThemselves) {
  YamlValue root = YamlValue::map();
  for (const char* text : {"plain",
                           "",
                           "with space",
                           " lead",
                           "a: b",
                           "a#b",
                           "null",
                           "true",
                           "12",
                           "-",
                           "~",
                           "quote\"back\\slash",
                           "tab\tnew\nline",
                           "\u00e4",
                           "[x]",
                           "127.0.0.1:8400",
                           "'",
                           "1 epoch",
                           "--set a=b",
                           "\x7f"}) {
    root.add(fmt::format("k{}", root.members.size()), YamlValue::text(text));
  }
  YamlValue item = YamlValue::map();
  item.add("dense", YamlValue::map());
  item.members[0].value.add("units", YamlValue::plain("3"));
  YamlValue list = YamlValue::list();
  list.items = {item, item};
  root.add("layers", list);
  root.add("empty", YamlValue::list());
  root.add("odd key: #", YamlValue::plain("1e-06"));
  for (const bool comments : {false, true}) {
    const YamlValue again = parse_well(print_yaml(root, comments));
    ASSERT_EQ(again.members.size(), root.members.size());
    for (std::size_t i = 0; i < root.members.size(); ++i) {
      EXPECT_EQ(again.members[i].key, root.members[i].key);
      EXPECT_EQ(again.members[i].value.scalar, root.members[i].value.scalar);
    }
    EXPECT_EQ(print_yaml(again), print_yaml(parse_well(print_yaml(again))));
  }
}

TEST(Yaml, MergeReplacesAllButSections) {
  const YamlValue base = parse_well("a: {x: 1, y: [1, 2]}\nb: 1\n");
  const YamlValue over = parse_well("a: {y: [3], z: 4}\nc: 5\n");
  EXPECT_EQ(flow_yaml(merge(base, over)), "{a: {x: 1, y: [3], z: 4}, b: 1, c: 5}");
}

}  // namespace
}  // namespace troupe::config
