#include "telemetry/sinks/shower_pictures.h"

#include <gtest/gtest.h>

namespace troupe::telemetry {
namespace {

// 2 x 3 x 4 cells. Data: all in cell (1, 2, 3), which is 23; generated: a hundredth of it in 0.
constexpr const char* kShowersFile =
    R"({"step":8,"space":[2,3,4],"profiles":{},"histograms":[{"name":"hits","low":0,"high":2,)"
    R"("data":[1,3],"generated":[0,4]}],"events":[{"energy":100,"angle":null,)"
    R"("data":{"total":1,"cells":[23],"gev":[1.0]},"generated":{"total":1,"cells":[0,99],"gev":[0.01,5]}}]})";

std::uint8_t pixel(const Image& image, std::uint32_t x, std::uint32_t y) {
  return image.samples[std::size_t{y} * image.width + x];
}

TEST(ShowerPictures, CellsStandWhereTheyAreInAllThreeViews) {
  const auto pictures = shower_pictures(kShowersFile);
  ASSERT_TRUE(pictures.ok());
  ASSERT_EQ(pictures->images.size(), 1);
  const auto& [name, image] = pictures->images.front();
  EXPECT_EQ(name, "100 GeV");
  // x right and y down, x and z, y and z: 2, 2 and 3 cells wide, of 4 pixels, 4 pixels apart.
  EXPECT_EQ(image.width, 8u + 4 + 8 + 4 + 12);
  EXPECT_EQ(image.height, 16u + 4 + 16);
  EXPECT_EQ(pixel(image, 7, 11), 255);        // x = 1, y = 2
  EXPECT_EQ(pixel(image, 12 + 7, 15), 255);   // x = 1, z = 3
  EXPECT_EQ(pixel(image, 24 + 11, 15), 255);  // y = 2, z = 3
  EXPECT_EQ(pixel(image, 0, 0), 0);
  EXPECT_EQ(pixel(image, 9, 0), 64);
  // Two of four decades below the brightest; what lies outside the space is nowhere.
  for (const std::uint32_t left : {0, 12, 24}) EXPECT_EQ(pixel(image, left, 20), 128) << left;
  EXPECT_EQ(std::count(image.samples.begin(), image.samples.end(), 128), 3 * 16);
  EXPECT_TRUE(png(image).ok());
}

TEST(ShowerPictures, HistogramsComeInPairs) {
  const auto pictures = shower_pictures(kShowersFile);
  ASSERT_TRUE(pictures.ok());
  ASSERT_EQ(pictures->histograms.size(), 2);
  EXPECT_EQ(pictures->histograms[0].first, "hits/data");
  EXPECT_EQ(pictures->histograms[0].second.count, 4.0);
  EXPECT_EQ(pictures->histograms[1].first, "hits/generated");
  EXPECT_EQ(pictures->histograms[1].second.counts.back(), 4.0);
}

TEST(ShowerPictures, WhatIsNoShowerIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"space":[1,2]})", R"({"space":[1,1,1],"events":5,"histograms":[]})",
        R"({"space":[1,1,1],"events":[{}],"histograms":[]})"}) {
    EXPECT_FALSE(shower_pictures(text).ok()) << text;
  }
  const auto huge = shower_pictures(R"({"space":[100000,100000,1],"events":[],"histograms":[]})");
  ASSERT_TRUE(huge.ok());
  EXPECT_TRUE(huge->images.empty());
}

}  // namespace
}  // namespace troupe::telemetry
