#include "launch/processes/line_splitter.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <vector>

#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Lines {
  std::vector<std::string> seen;
  LineSplitter splitter{[this](std::string_view line) { seen.emplace_back(line); }};
};

TEST(LineSplitter, SplitsTheSameWhereverTheBytesAreCut) {
  const std::string text = "one\n\nthree three\nlast";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      Lines lines;
      lines.splitter.add(std::string_view(text).substr(0, first));
      lines.splitter.add(std::string_view(text).substr(first, second - first));
      lines.splitter.add(std::string_view(text).substr(second));
      EXPECT_THAT(lines.seen, ElementsAre("one", "", "three three")) << first << " " << second;
      lines.splitter.finish();
      EXPECT_THAT(lines.seen, ElementsAre("one", "", "three three", "last"));
    }
  }
}

TEST(LineSplitter, FinishTellsALastLineOnce) {
  Lines lines;
  lines.splitter.add("part");
  EXPECT_THAT(lines.seen, IsEmpty());
  lines.splitter.finish();
  lines.splitter.finish();
  EXPECT_THAT(lines.seen, ElementsAre("part"));
}

TEST(LineSplitter, AStreamWithoutNewlinesComesInPieces) {
  constexpr std::size_t kMost = LineSplitter::kLongestLine;
  Lines lines;
  const std::string text(2 * kMost + 3, 'x');
  for (std::size_t at = 0; at < text.size(); at += 1000) {
    lines.splitter.add(std::string_view(text).substr(at, 1000));
  }
  ASSERT_EQ(lines.seen.size(), 2u);
  EXPECT_EQ(lines.seen[0].size(), kMost);
  EXPECT_EQ(lines.seen[1].size(), kMost);
  lines.splitter.finish();
  EXPECT_EQ(lines.seen.back(), "xxx");
}

TEST(PrefixedLines, NamesEveryLine) {
  const TemporaryFolder folder;
  const int file = ::open((folder / "out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  prefixed_lines("member.0", file)("a");
  prefixed_lines("head", file)("");
  ::close(file);
  EXPECT_EQ(read_text(folder / "out"), "member.0 | a\nhead | \n");
}

}  // namespace
}  // namespace troupe::launch
