#include "pipeline/data/condition_law.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;

TEST(ConditionLaw, NumberAndListAreTakenInTurn) {
  const auto one = ConditionLaw::parse("100");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->at(7, 0.3), 100.0);
  const auto list = ConditionLaw::parse("50,200,100");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->at(0, 0.9), 50.0);
  EXPECT_EQ(list->at(5, 0.9), 100.0);
  EXPECT_EQ(list->at((std::uint64_t{3} << 40) + 1, 0.9), 200.0);
  EXPECT_EQ(list->least(), 50.0);
  EXPECT_EQ(list->most(), 200.0);
}

TEST(ConditionLaw, NumbersAndListsMayBeOfClasses) {
  const auto is_of_classes = [](const char* text) {
    return ConditionLaw::parse(text)->is_of_classes(3);
  };
  for (const char* const text : {"0", "2", "0,1,2", "1,1"})
    EXPECT_TRUE(is_of_classes(text)) << text;
  for (const char* const text : {"3", "-1", "0.5", "0,1,3", "0:2"}) {
    EXPECT_FALSE(is_of_classes(text)) << text;
  }
}

TEST(ConditionLaw, RangesAreUniformInTheValueOrItsLogarithm) {
  const auto plain = ConditionLaw::parse("10:500");
  ASSERT_TRUE(plain.ok());
  EXPECT_DOUBLE_EQ(plain->at(0, 0.5), 255.0);
  const auto logarithmic = ConditionLaw::parse("1:10000:log");
  ASSERT_TRUE(logarithmic.ok());
  EXPECT_NEAR(logarithmic->at(0, 0.25), 10.0, 1e-9);
  EXPECT_NEAR(logarithmic->at(0, 1 - 1e-12), 10000.0, 1e-5);
  EXPECT_EQ(logarithmic->most(), 10000.0);
}

TEST(ConditionLaw, HistogramIsInvertedBinByBin) {
  const TemporaryFolder folder;
  write_text(folder / "h", "# energies\n0 10 1\n 10\t20 0 # empty\n20 40 3\n");
  const auto law = ConditionLaw::parse(folder / "h");
  ASSERT_TRUE(law.ok()) << law.error().message;
  EXPECT_DOUBLE_EQ(law->at(0, 0.125), 5.0);
  EXPECT_DOUBLE_EQ(law->at(0, 0.25), 10.0);
  EXPECT_DOUBLE_EQ(law->at(0, 0.625), 30.0);
  EXPECT_DOUBLE_EQ(law->at(0, 1.0), 40.0);
  EXPECT_EQ(law->least(), 0.0);
  EXPECT_EQ(law->most(), 40.0);
}

// Runs are often kept in folders with numbers for names.
TEST(ConditionLaw, NumberIsANumberThoughAFileOrFolderHasItsName) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  std::filesystem::create_directory("100");
  write_text("10:500", "1 2 3\n");
  write_text("1:2:3", "1 2 3\n");
  const auto number = ConditionLaw::parse("100");
  const auto range = ConditionLaw::parse("10:500");
  const auto histogram = ConditionLaw::parse("1:2:3");
  std::filesystem::current_path(before);
  ASSERT_TRUE(number.ok()) << number.error().message;
  EXPECT_EQ(number->at(0, 0.5), 100.0);
  ASSERT_TRUE(range.ok()) << range.error().message;
  EXPECT_EQ(range->most(), 500.0);
  ASSERT_TRUE(histogram.ok()) << histogram.error().message;
  EXPECT_EQ(histogram->most(), 2.0);
}

TEST(ConditionLaw, TextsThatAreNoneAreRefused) {
  for (const char* text : {"", "many", "1,,2", "1:2:3", "1:2:log:3", ":", "1:", "nan", "1e999"}) {
    EXPECT_THAT(ConditionLaw::parse(text), FailsWith(ErrorKind::kUsage, "is no number")) << text;
  }
  EXPECT_THAT(ConditionLaw::parse("500:10"), FailsWith(ErrorKind::kUsage, "ends above"));
  EXPECT_THAT(ConditionLaw::parse("0:10:log"), FailsWith(ErrorKind::kUsage, "begins above 0"));
}

TEST(ConditionLaw, FaultsOfAHistogramAreToldWithTheirLine) {
  const TemporaryFolder folder;
  const auto fails = [&](const std::string& text, const std::string& part) {
    write_text(folder / "h", text);
    EXPECT_THAT(ConditionLaw::parse(folder / "h"), FailsWith(ErrorKind::kData, part));
  };
  fails("1 2 3\n1 2\n", "h:2: a bin is a line of three numbers");
  fails("1 2 x\n", "h:1: x is no number");
  fails("2 1 1\n", "h:1: a bin has LOW < HIGH");
  fails("1 2 -1\n", "h:1: a bin has");
  fails("# nothing\n", "add up to nothing");
  fails("1 2 0\n", "add up to nothing");
}

}  // namespace
}  // namespace troupe::pipeline
