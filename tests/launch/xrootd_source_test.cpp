// Files of root:// by programs that stand in for those of XRootD; tests/oracle/data_servers.py has
// the real ones.

#include "launch/run/xrootd_source.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "pipeline/data/near_copy.h"
#include "tests/launch/made_tools.h"
#include "tests/support/fails_with.h"

namespace troupe::launch {
namespace {

using runtime::ErrorKind;
using testing::HasSubstr;

constexpr const char* kAddress = "root://host:1094//eos/a.h5";

class XrootdTools : public MadeTools {
 protected:
  XrootdTools() {
    tool("xrdfs", "printf 'Path:   /eos/a.h5\\nSize:   5\\nMTime:  2026-01-02 03:04:05\\n'");
    tool("xrdcp", "shift 5; printf 12345 > \"$2\"");
  }
  runtime::Result<void> copy(const std::string& address) const {
    return pipeline::copy_from(XrootdSource(), address, folder_ / "copy");
  }
};

TEST_F(XrootdTools, CopyWhatTheServerHasAndOnceForItsVersion) {
  const auto near = [&] {
    return pipeline::near_copy(XrootdSource(), kAddress, {folder_ / "near", 0});
  };
  const auto first = near();
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(read_text(first->path), "12345");
  EXPECT_THAT(calls(), HasSubstr("[root://host:1094][stat][/eos/a.h5]"));
  EXPECT_THAT(calls(), HasSubstr("[root://host:1094//eos/a.h5][" + first->path + ".part]"));
  ASSERT_TRUE(near().ok());
  // The server has another version, of which the time alone tells.
  tool("xrdfs", "printf 'Size:   5\\nMTime:  2026-01-02 03:04:06\\n'");
  tool("xrdcp", "shift 5; printf abcde > \"$2\"");
  ASSERT_TRUE(near().ok());
  EXPECT_EQ(read_text(first->path), "abcde");
  const std::string all = calls();
  std::size_t copies = 0;
  for (std::size_t at = 0; (at = all.find("[--force]", at)) != std::string::npos; ++at) ++copies;
  EXPECT_EQ(copies, 2u);
  // A server that is gone leaves the copy good.
  tool("xrdfs", "echo '[FATAL] Connection error' >&2; exit 54");
  EXPECT_EQ(read_text(near().value().path), "abcde");
}

TEST_F(XrootdTools, FailuresAreToldWithoutSecretsAndLeaveNothing) {
  const std::string secret = std::string(kAddress) + "?authz=SECRET";
  tool("xrdcp", "echo \"[ERROR] cannot open $6\" >&2; exit 50");
  EXPECT_THAT(copy(secret), FailsWith(ErrorKind::kData,
                                      "root://host:1094//eos/a.h5: xrdcp says: [ERROR] cannot"));
  EXPECT_THAT(copy(secret).error().message, testing::Not(HasSubstr("SECRET")));
  tool("xrdcp", "shift 5; printf 123 > \"$2\"");
  EXPECT_THAT(copy(kAddress), FailsWith(ErrorKind::kData, "the file changes while it is copied"));
  tool("xrdfs",
       "echo '[ERROR] Server responded with an error: [3011] gone' >&2; echo >&2; exit 54");
  EXPECT_THAT(copy(kAddress), FailsWith(ErrorKind::kData, "there is no such file on the server"));
  tool("xrdfs", "echo nothing that is known");
  EXPECT_THAT(copy(kAddress), FailsWith(ErrorKind::kData, "xrdfs tells no size of it"));
  tool("xrdfs", "exit 127");
  EXPECT_THAT(copy(kAddress),
              FailsWith(ErrorKind::kData, "is not installed (Debian: xrootd-client)"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "copy"));
}

TEST_F(XrootdTools, PatternsMatchWhatTheFolderHas) {
  tool("xrdfs",
       "case $2 in ls) printf '/eos/a_1.h5\\n/eos/b_1.h5\\n/eos/a_2.h5\\nnoise\\n';; "
       "*) echo '[ERROR] [3011]' >&2; exit 54;; esac");
  const auto expand = [](const std::string& address) {
    return pipeline::expand_address(XrootdSource(), address);
  };
  EXPECT_EQ(expand("root://host//eos/a_*.h5?authz=t").value(),
            (Words{"root://host//eos/a_1.h5?authz=t", "root://host//eos/a_2.h5?authz=t"}));
  EXPECT_THAT(calls(), HasSubstr("[ls][/eos/?authz=t]"));
  EXPECT_THAT(expand("root://host//eos/c_*.h5"),
              FailsWith(ErrorKind::kData, "no file on the server matches"));
}

TEST(XrootdStat, IsAVersionOnlyWhereItTellsASize) {
  const auto version =
      read_xrootd_stat("Path:   /a\nId:     1\nSize:   12\nMTime:  x y\nFlags: 16");
  EXPECT_TRUE(version.has_size);
  EXPECT_EQ(version.size, 12u);
  EXPECT_EQ(version.tag, "x y");
  EXPECT_FALSE(read_xrootd_stat("").has_size);
  EXPECT_FALSE(read_xrootd_stat("Size: many\nMTime").has_size);
  EXPECT_FALSE(read_xrootd_stat("Size: 99999999999999999999999").has_size);
}

}  // namespace
}  // namespace troupe::launch
