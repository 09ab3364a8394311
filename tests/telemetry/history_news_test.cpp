#include "telemetry/history_news.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json_reader.h"
#include "runtime/base/json_writer.h"
#include "tests/telemetry/telemetry_support.h"

namespace troupe::telemetry {
namespace {

std::vector<double> means_of(const HistoryNews& run, std::string_view curve) {
  std::vector<double> means;
  for (const SeriesPoint& point : run.find(curve)->points) means.push_back(point.mean);
  return means;
}

TEST(HistoryNews, UpdatesReplaceAndAdd) {
  HistoryNews run = news_of(
      R"({"version":5,"whole":true,"run":{"name":"quick"},"progress":{"state":"training"},
          "series":{"b":{"from":0,"mean":[1.5,2.0]}},"marks":[{"kind":"node"}]})");
  run.take(news_of(
      R"({"version":6,"whole":false,"series":{"a":{"from":0,"mean":[7]},
          "b":{"from":1,"mean":[2.5,3.5]},"c":{"from":1,"mean":[1]}},"marks":[{"kind":"view"}]})"));
  EXPECT_EQ(means_of(run, "a"), std::vector<double>{7.0});
  EXPECT_EQ(means_of(run, "b"), (std::vector<double>{1.5, 2.5, 3.5}));
  // What comes before that was never told.
  EXPECT_TRUE(means_of(run, "c").empty());
  EXPECT_EQ(run.find("d"), nullptr);
  EXPECT_EQ(run.version, 6u);
  ASSERT_EQ(run.marks.size(), 2u);
  EXPECT_EQ(run.marks[1].kind, "view");
  EXPECT_EQ(run.run->name, "quick");
  EXPECT_FALSE(is_over(*run.progress));
  run.take(news_of(R"({"version":7,"whole":true,"progress":{"state":"ended"}})"));
  EXPECT_TRUE(run.series.empty());
  EXPECT_TRUE(is_over(*run.progress));
}

TEST(HistoryNews, FollowerKnowsAllThatTheHistoryKnows) {
  History history({.points = 4, .marks = 3, .log_lines = 3});
  HistoryNews run;
  for (std::uint64_t step = 0; step < 20; ++step) {
    StepFacts made;
    made.slot = "g";
    if (step % 3 == 0) made.losses = {{"generation", 0.5}};
    Record record{1.0 + static_cast<double>(step), step, made};
    if (step % 7 == 0) record.body = NodeFacts{.name = "head", .state = "running"};
    history.take(record);
    history.take_log({1.0, "info", std::to_string(step)});
    if (step % 2 == 0) run.take(history.news(run.version));
    if (step == 10) history.clear();
  }
  run.take(history.news(run.version));
  HistoryNews all = history.news(0);
  EXPECT_EQ(runtime::to_json(run.series[0].second), runtime::to_json(all.series[0].second));
  // The history itself has forgotten older ones.
  EXPECT_GE(run.log.size(), all.log.size());
  run.marks = all.marks;
  run.log = all.log;
  EXPECT_EQ(runtime::to_json(run), runtime::to_json(all));
}

TEST(HistoryNews, WhatIsNotUnderstoodIsLeftOut) {
  for (const char* text : {"", "[]", "{}", "null", "{\"version\":-1}", "{\"version\":\"1\"}"}) {
    HistoryNews news;
    EXPECT_FALSE(runtime::read_json(text, news)) << text;
  }
  HistoryNews run;
  run.take(news_of(
      R"({"version":1,"run":7,"progress":[],"series":{"a":1,"b":{"from":9,"mean":[1]}},"nodes":{},
          "marks":7,"log":[1,[],{}]})"));
  EXPECT_TRUE(means_of(run, "b").empty());
}

TEST(HistoryNews, NotesAreBounded) {
  HistoryNews run;
  for (std::size_t i = 0; i < HistoryNews::kNotes + 10; ++i) {
    run.take(news_of(R"({"version":2,"log":[{"text":"a"}],"marks":[{}],"validations":[{}]})"));
  }
  EXPECT_EQ(run.log.size(), HistoryNews::kNotes);
  EXPECT_EQ(run.marks.size(), HistoryNews::kNotes);
  EXPECT_EQ(run.validations.size(), HistoryNews::kNotes);
}

}  // namespace
}  // namespace troupe::telemetry
