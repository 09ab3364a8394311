#include "telemetry/page/page_asset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libdeflate.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace troupe::telemetry {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A test of a program with a page; where it was built without there is nothing to test.
class PageAssets : public testing::Test {
 protected:
  void SetUp() override {
    if (page_assets().empty()) GTEST_SKIP() << "built without a page";
  }
};

std::string unpacked(const PageAsset& asset) {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> unpacker(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  std::string text(4 << 20, '\0');
  std::size_t size = 0;
  const auto status = libdeflate_gzip_decompress(
      unpacker.get(), asset.gzip.data(), asset.gzip.size(), text.data(), text.size(), &size);
  EXPECT_EQ(status, LIBDEFLATE_SUCCESS) << asset.path;
  text.resize(size);
  return text;
}

TEST_F(PageAssets, WeighLessThanAQuarterOfAMegabyte) {
  std::size_t total = 0;
  for (const PageAsset& asset : page_assets()) total += asset.gzip.size();
  EXPECT_LT(total, 250'000u);
  EXPECT_GT(total, 10'000u);
}

TEST_F(PageAssets, BeginWithThePageAndAreInOrder) {
  EXPECT_EQ(page_assets().front().path, "/");
  EXPECT_TRUE(std::ranges::is_sorted(page_assets(), {}, &PageAsset::path));
  for (const PageAsset& asset : page_assets()) {
    EXPECT_THAT(asset.path, StartsWith("/"));
    EXPECT_FALSE(asset.content_type.empty()) << asset.path;
    EXPECT_THAT(asset.etag, testing::MatchesRegex("\"[0-9a-f]+\"")) << asset.path;
    EXPECT_FALSE(unpacked(asset).empty()) << asset.path;
  }
}

// A page that fetched from elsewhere would not work where there is no network.
TEST_F(PageAssets, MentionOnlyFilesThatAreThere) {
  const std::string page = unpacked(page_assets().front());
  std::size_t mentioned = 0;
  for (const PageAsset& asset : page_assets()) {
    mentioned += page.find('"' + std::string(asset.path) + '"') != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(mentioned, 3u);  // a script, a style sheet, an icon
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
}

}  // namespace
}  // namespace troupe::telemetry
