// Topologies as bytes: what is read, and that what a run keeps of them can be read again.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "config/yaml_value.h"
#include "runtime/base/utf8.h"
#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using runtime::ErrorKind;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TopologyText : public testing::Test {
 protected:
  const TemporaryFolder folder_;
};

TEST_F(TopologyText, PipeThatNobodyWritesToIsRefusedAtOnce) {
  const std::string path = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto text = read_topology_text(path);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().kind, ErrorKind::kTopology);
  EXPECT_EQ(text.error().message, path + ": is a pipe that nobody writes to");
}

TEST_F(TopologyText, PipeIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    for (const char c : kLeast) ASSERT_EQ(::write(ends[1], &c, 1), 1);
    ::close(ends[1]);
  });
  const auto text = read_topology_text(fmt::format("/dev/fd/{}", ends[0]));
  writer.join();
  ::close(ends[0]);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, kLeast);
}

TEST_F(TopologyText, FileThatIsTooLargeIsRefused) {
  const std::string path = folder_ / "large.yaml";
  std::ofstream(path) << std::string(kMostYamlBytes, ' ');
  EXPECT_TRUE(read_topology_text(path).ok());
  std::ofstream(path, std::ios::app) << ' ';
  const auto text = read_topology_text(path);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().message,
            path + ":1:1: larger than 1048576 bytes, too large for a topology file");
}

TEST(PrintedTopology, CommentsAreText) {
  const auto loaded = parse_topology(kLeast,
                                     "/fold\xff"
                                     "er/\xc3\xa9.yaml",
                                     "/folder");
  ASSERT_TRUE(loaded.ok());
  const std::string text = print_topology(*loaded);
  EXPECT_TRUE(runtime::is_utf8(text));
  EXPECT_THAT(text, HasSubstr("/fold\xef\xbf\xbd"
                              "er/\xc3\xa9.yaml:1"));
  EXPECT_TRUE(check_printed(*loaded).ok());
}

TEST(PrintedTopology, ThatIsNoTextIsRefusedByTheFieldThatIsNone) {
  const auto loaded = parse_topology(kLeast, "t.yaml",
                                     "/fold\xff"
                                     "er");
  ASSERT_TRUE(loaded.ok());
  const auto checked = check_printed(*loaded);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().kind, ErrorKind::kTopology);
  EXPECT_THAT(checked.error().message,
              StartsWith("t.yaml:2:15: data.train: the topology of a run"));
  EXPECT_THAT(checked.error().message, HasSubstr("byte 0xff is not UTF-8 text"));
}

TEST(PrintedTopology, ThatIsTooLargeIsRefusedByItsLargestField) {
  std::string files;
  for (int i = 0; i < 5000; ++i) files += fmt::format("f{}.h5, ", i);
  const auto loaded =
      parse_topology(fmt::format("model: {{zoo: toy}}\ndata: {{train: [{}]}}\n", files), "t.yaml",
                     fmt::format("/{:a<250}", ""));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const auto checked = check_printed(*loaded);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message,
              StartsWith("t.yaml:2:15: data.train: the topology of a run"));
  EXPECT_THAT(checked.error().message, HasSubstr("larger than 1048576 bytes"));
  EXPECT_THAT(checked.error().message, Not(HasSubstr("\n")));
  for (const std::string& path : shipped_topologies()) {
    EXPECT_TRUE(check_printed(*load_topology(path)).ok()) << path;
  }
}

}  // namespace
}  // namespace troupe::config
