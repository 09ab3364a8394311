#include "telemetry/sample_board.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "runtime/base/json_writer.h"
#include "telemetry/record.h"

namespace troupe::telemetry {
namespace {

// As a line of kind "samples" tells them.
std::string values_of(SampleBoard& board) { return runtime::to_json(board.take_values()); }

constexpr double kLargest = std::numeric_limits<double>::max();

TEST(SampleBoard, NumbersOfASeriesBecomeCountMeanLowHighLast) {
  SampleBoard board;
  EXPECT_TRUE(board.empty());
  for (const double value : {2.0, -1.0, 5.0}) board.take("replica.0", "compute_seconds", value);
  board.take("loader", "read_seconds", 0.25);
  EXPECT_FALSE(board.empty());
  EXPECT_EQ(values_of(board), R"({"values":{"loader/read_seconds":[1,0.25,0.25,0.25,0.25],)"
                              R"("replica.0/compute_seconds":[3,2,-1,5,5]}})");
}

TEST(SampleBoard, LineHasOnlyWhatCameSinceTheOneBefore) {
  SampleBoard board;
  board.take("a", "x", 1.0);
  board.take("a", "y", 1.0);
  board.take_values();
  EXPECT_TRUE(board.empty());
  EXPECT_EQ(values_of(board), "{}");
  board.take("a", "y", 3.0);
  EXPECT_EQ(values_of(board), R"({"values":{"a/y":[1,3,3,3,3]}})");
}

TEST(SampleBoard, SeriesTooManyAreLeftOutOfTheLineAndCounted) {
  SampleBoard board({.most_series = 2});
  for (const char* name : {"a", "b", "c", "c", "a"}) board.take("x", name, 1.0);
  EXPECT_EQ(board.left_out(), 2U);
  EXPECT_EQ(values_of(board), R"({"values":{"x/a":[2,1,1,1,1],"x/b":[1,1,1,1,1]}})");
  // The next line has room for others.
  for (const char* name : {"c", "d", "a"}) board.take("x", name, 1.0);
  EXPECT_EQ(board.left_out(), 3U);
  EXPECT_EQ(values_of(board), R"({"values":{"x/c":[1,1,1,1,1],"x/d":[1,1,1,1,1]}})");
}

TEST(SampleBoard, WhatIsNotFiniteOrHasTooLongANameIsLeftOutAndCounted) {
  SampleBoard board({.most_name_bytes = 5});
  board.take("abc", "d", std::numeric_limits<double>::quiet_NaN());
  board.take("abc", "d", std::numeric_limits<double>::infinity());
  board.take("abc", "de", 1.0);
  EXPECT_TRUE(board.empty());
  board.take("abc", "d", 1.0);
  EXPECT_EQ(board.left_out(), 3U);
  EXPECT_EQ(values_of(board), R"({"values":{"abc/d":[1,1,1,1,1]}})");
}

TEST(SampleBoard, MeanOfTheLargestNumbersIsANumber) {
  SampleBoard board;
  for (const double value : {kLargest, kLargest, -kLargest, -kLargest}) board.take("a", "b", value);
  EXPECT_EQ(values_of(board).find("null"), std::string::npos);
}

TEST(SampleBoard, NamesOfAnyBytesStayJson) {
  SampleBoard board;
  board.take("a\"", "\n\xff", 1.0);
  EXPECT_EQ(values_of(board), R"({"values":{"a\"/\u000a\ufffd":[1,1,1,1,1]}})");
}

}  // namespace
}  // namespace troupe::telemetry
