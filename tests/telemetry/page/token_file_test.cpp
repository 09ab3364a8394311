#include "telemetry/page/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace troupe::telemetry {
namespace {

using testing::HasSubstr;

class TokenFile : public testing::Test {
 protected:
  runtime::Result<std::string> read(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return read_token_file(path_, "--token");
  }
  TemporaryFolder folder_;
  const std::string path_ = folder_ / "token";
};

TEST_F(TokenFile, HoldsOneWordWithWhiteSpaceAroundIt) {
  const std::string longest(256, 'a');
  for (const std::string& word : {std::string("x"), std::string("a;b=c/d+~"), longest}) {
    for (const char* before : {"", "\n \t"}) {
      for (const char* behind : {"", "\n", " \r\n\n"}) {
        const auto token = read(before + word + behind);
        ASSERT_TRUE(token.ok()) << token.error().message;
        EXPECT_EQ(*token, word);
      }
    }
  }
}

TEST_F(TokenFile, AnythingElseIsRefusedAndTheFileNamed) {
  const std::string texts[] = {"",
                               " \n",
                               "two words",
                               "two\nlines",
                               std::string(257, 'a'),
                               "a" + std::string(5000, '\n'),
                               "\xc3\xa4",
                               "a\x01",
                               std::string("a\0b", 3)};
  for (const std::string& text : texts) {
    const auto token = read(text);
    ASSERT_FALSE(token.ok()) << text;
    EXPECT_EQ(token.error().kind, runtime::ErrorKind::kUsage);
    EXPECT_THAT(token.error().message, HasSubstr("--token: " + path_));
  }
  const auto folder = read_token_file(folder_.path(), "--token");
  EXPECT_FALSE(folder.ok());
  const auto nowhere = read_token_file("/nowhere/at/all", "--token");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().message, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace troupe::telemetry
