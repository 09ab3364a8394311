// A command may say more than is kept.

#include "launch/processes/command.h"

#include <gmock/gmock.h>

#include <string>

namespace troupe::launch {
namespace {

CommandRequest shell(const std::string& script) { return {.words = {"sh", "-c", script}}; }

TEST(Command, LongLineStaysOneLine) {
  for (const std::size_t size : {65535U, 65536U, 65537U, 131072U, 200000U}) {
    const auto output = output_of(
        shell("head -c " + std::to_string(size) + " /dev/zero | tr '\\0' x; echo; echo; echo end"));
    ASSERT_TRUE(output.ok()) << output.error().message;
    EXPECT_TRUE(*output == std::string(size, 'x') + "\n\nend\n") << size;
  }
}

TEST(Command, OutputIsItsFirstLinesUpToTheMost) {
  CommandRequest request = shell("echo one; echo twelve; echo x");
  for (const auto& [most, kept] : {std::pair<std::size_t, const char*>{0, ""},
                                   {3, ""},
                                   {4, "one\n"},
                                   {10, "one\n"},
                                   {11, "one\ntwelve\n"},
                                   {13, "one\ntwelve\nx\n"}}) {
    request.most_output = most;
    const auto ended = run_command(request);
    ASSERT_TRUE(ended.ok()) << ended.error().message;
    EXPECT_EQ(ended->output, kept) << most;
    EXPECT_EQ(ended->is_cut, most < 13) << most;
  }
}

TEST(Command, OutputThatLacksItsEndIsAnError) {
  CommandRequest request = shell("head -c 1048576 /dev/zero | tr '\\0' '\\n'");
  EXPECT_EQ(output_of(request)->size(), std::size_t{1} << 20);
  request.words.back() += "; echo";
  const auto longer = output_of(request);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().message, "sh prints more than 1024 KiB");
  EXPECT_TRUE(carry_out(request).ok()) << "where nobody reads it";
}

TEST(Command, FailureHasTheLastLinesOfItsErrors) {
  CommandRequest request = shell("printf 'one\\ntwo\\nthree\\n' >&2; exit 3");
  EXPECT_EQ(output_of(request).error().message, "sh ended with exit code 3: three");
  request.error_lines = 2;
  EXPECT_EQ(output_of(request).error().message, "sh ended with exit code 3: two\nthree");
}

TEST(Command, LastWordsAreOneLineThatPeopleCanRead) {
  const auto loud = carry_out(shell("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 3"));
  ASSERT_FALSE(loud.ok());
  EXPECT_LT(loud.error().message.size(), 1100U);
  EXPECT_EQ(carry_out(shell("printf 'a\\033[2J\\tb \\n' >&2; exit 3")).error().message,
            "sh ended with exit code 3: a [2J b");
}

TEST(Command, ShownLineEndsBehindAWholeCharacter) {
  EXPECT_EQ(shown_line("abcdef", 6), "abcdef");
  EXPECT_EQ(shown_line("abcdefg", 6), "abc...");
  EXPECT_EQ(shown_line("ab\u00e9def", 6), "ab...");
  EXPECT_EQ(shown_line(" \n\x7f", 6), "");
}

TEST(Command, ShownLineTellsThatItIsCutAndShowsWhatIsHidden) {
  EXPECT_EQ(shown_line("abcdef    \n", 6), "abcdef");
  EXPECT_EQ(shown_line("ab        c", 6), "ab ...");
  EXPECT_EQ(shown_line("a\u202eb\xff"), "a\\u202eb\\xff");
  EXPECT_EQ(shown_line("a\u202eb", 6), "a\\u...");
}

}  // namespace
}  // namespace troupe::launch
