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
    const auto output = output_of(request);
    ASSERT_TRUE(output.ok()) << output.error().message;
    EXPECT_EQ(*output, kept) << most;
  }
}

TEST(Command, FailureHasTheLastLinesOfItsErrors) {
  CommandRequest request = shell("printf 'one\\ntwo\\nthree\\n' >&2; exit 3");
  EXPECT_EQ(output_of(request).error().message, "sh ended with exit code 3: three");
  request.error_lines = 2;
  EXPECT_EQ(output_of(request).error().message, "sh ended with exit code 3: two\nthree");
}

}  // namespace
}  // namespace troupe::launch
