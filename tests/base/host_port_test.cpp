#include "runtime/base/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;

TEST(HostPort, IsReadAndWrittenAsUrlsHaveIt) {
  for (const char* text : {"127.0.0.1:8400", "[::1]:0", "localhost:65535", "*:7000"}) {
    const auto parsed = parse_host_port(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->text(), text);
  }
  EXPECT_EQ(parse_host_port("[::1]:80")->host, "::1");
}

TEST(HostPort, OtherTextIsRefusedWithWhatIsWrongWithIt) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"host", "no port"},
      {"host:", "'' is not a port"},
      {"host:70000", "'70000' is not a port from 0 to 65535"},
      {"host:80x", "'80x' is not a port"},
      {"host:-1", "'-1' is not a port"},
      {"::1:80", "stands in brackets"},
      {":80", "no host"},
      {"[]:80", "not the name of a host"},
      {"a b:80", "not the name of a host"},
      {"a/b:80", "not the name of a host"}};
  for (const auto& [text, why] : kWrong) {
    const auto parsed = parse_host_port(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(why)) << text;
  }
}

}  // namespace
}  // namespace troupe::runtime
