#pragma once

// Helpers of the tests of telemetry.

#include <gtest/gtest.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/json_reader.h"
#include "telemetry/history_news.h"
#include "telemetry/record.h"

namespace troupe::telemetry {

// The record of a line that must be right.
inline Record read(std::string_view line) {
  auto record = read_record(line);
  EXPECT_TRUE(record.ok()) << line;
  return record.ok() ? *std::move(record) : Record{};
}

inline HistoryNews news_of(std::string_view json) {
  HistoryNews news;
  EXPECT_TRUE(runtime::read_json(json, news)) << json;
  return news;
}

constexpr runtime::TimePoint us(int number) { return std::chrono::microseconds(number); }

}  // namespace troupe::telemetry
