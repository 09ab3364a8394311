#include "runtime/base/utf8.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

TEST(Utf8, WhatIsNotWellFormedIsReplaced) {
  EXPECT_EQ(valid_utf8("a\n\xC3\xA9"), "a\n\xC3\xA9");
  EXPECT_EQ(valid_utf8("\xC3z\xED\xA0\x80"), "\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(valid_utf8(""), "");
  EXPECT_TRUE(is_utf8("a\n\xC3\xA9"));
  EXPECT_FALSE(is_utf8("a\xC3"));
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));
}

// U+009B alone begins a command to some terminals.
TEST(Utf8, WhatCouldCommandATerminalIsEscaped) {
  EXPECT_EQ(printable("bad\nname\x1b[31m"), "bad\\nname\\x1b[31m");
  EXPECT_EQ(printable("\r\t\x7f\xC2\x9B\xFF"), "\\r\\t\\x7f\\x9b\\xff");
  EXPECT_EQ(printable("\xC2\xA0 \xC3\xA9~\xF0\x9F\x98\x80"), "\xC2\xA0 \xC3\xA9~\xF0\x9F\x98\x80");
}

TEST(Utf8, WhatCouldTurnTheDirectionOfReadingIsEscaped) {
  EXPECT_EQ(printable("a\u202Eb\u2066c\u200Fd\u2028e"), "a\\u202eb\\u2066c\\u200fd\\u2028e");
}

TEST(Utf8, LinesOfATextStayApartAndOnlyTheFirstBeginsAtTheMargin) {
  EXPECT_EQ(printable_lines("one"), "one");
  EXPECT_EQ(printable_lines("one\ntwo\n  three\n\n    four\x1b\n"),
            "one\n  two\n  three\n\n    four\\x1b\n");
}

TEST(Utf8, CharactersThatDoNotShowAreNamed) {
  EXPECT_EQ(hidden_name(std::string_view("\0", 1)), "the control character U+0000");
  EXPECT_EQ(hidden_name("\x1b"), "the control character U+001B");
  EXPECT_EQ(hidden_name("\xC2\x85"), "the control character U+0085");
  EXPECT_EQ(hidden_name("\xE2\x80\xAE"), "U+202E (it turns the direction of writing)");
  for (const char* hidden : {"\n", "\x7f", "\xE2\x80\x8E", "\xE2\x80\xAA", "\xE2\x81\xA9"}) {
    EXPECT_TRUE(is_hidden(hidden));
  }
  // A zero-width joiner belongs to words of some languages; arrows stand beside the marks.
  for (const char* shown :
       {" ", "~", "\xC2\xA0", "\xE2\x80\x8D", "\xE2\x86\x90", "\xF0\x9F\x98\x80"}) {
    EXPECT_FALSE(is_hidden(shown));
  }
}

}  // namespace
}  // namespace troupe::runtime
