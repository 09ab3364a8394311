#include "telemetry/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <limits>
#include <map>
#include <thread>

#include "telemetry/history_news.h"
#include "tests/telemetry/telemetry_support.h"

namespace troupe::telemetry {
namespace {

using nlohmann::json;
using testing::ElementsAre;

Record run_line(double time, std::uint64_t step = 0) {
  return read(fmt::format(
      R"({{"kind":"run","time":{},"step":{},"name":"toy","model":"gan3d_12","schedule":["d_real","g"],)"
      R"("losses":[["generation",3.0]],"iterations":100,"iterations_per_epoch":10,)"
      R"("price_per_node_hour":2,"node":"local","host":"a","role":"all","pid":7}})",
      time, step));
}

Record step_line(std::uint64_t step, double time) {
  return read(fmt::format(
      R"({{"kind":"step","time":{},"step":{},"iteration":{},"slot":"{}","events":16,)"
      R"("losses":{{"generation":{}}},"seconds":{{"compute":0.5}}}})",
      time, step, step / 2, step % 2 == 0 ? "d_real" : "g", static_cast<double>(step) * 0.5));
}

// What a page knows that obeys docs/watching.md.
struct Page {
  json run, progress, nodes, showers;
  std::map<std::string, json> series;
  json marks = json::array(), validations = json::array(), log = json::array();
  std::uint64_t version = 0;

  void take(const History::Text& text) {
    const json news = json::parse(*text.json);
    EXPECT_EQ(news["version"], text.version);
    if (news["whole"]) *this = Page{};
    version = text.version;
    for (auto [name, part] : {std::pair{"run", &run},
                              {"progress", &progress},
                              {"nodes", &nodes},
                              {"showers", &showers}}) {
      if (news.contains(name)) *part = news[name];
    }
    for (auto [name, part] :
         {std::pair{"marks", &marks}, {"validations", &validations}, {"log", &log}}) {
      for (const json& item : news.value(name, json::array())) part->push_back(item);
    }
    const json all = news.value("series", json::object());
    for (const auto& [name, told] : all.items()) {
      json& known = series[name];
      for (const char* list : {"x", "mean", "low", "high"}) {
        json kept = json::array();
        for (std::size_t i = 0; i < told["from"]; ++i) kept.push_back(known[list].at(i));
        for (const json& value : told[list]) kept.push_back(value);
        known[list] = kept;
      }
      known["width"] = told["width"];
    }
  }
  bool operator==(const Page&) const = default;
};

TEST(History, FollowerKnowsTheSameAsWhoAsksForAll) {
  HistoryOptions options;
  options.points = 8;
  History history(options);
  Page follower;
  history.take(run_line(100.0));
  for (std::uint64_t step = 0; step < 300; ++step) {
    history.take(step_line(step, 100.0 + static_cast<double>(step)));
    if (step % 50 == 3) history.take_log({101.0, "info", fmt::format("line {}", step)});
    if (step % 100 == 7)
      history.take(read(fmt::format(R"({{"kind":"showers","time":1,"step":{}}})", step)));
    if (step % 7 != 0 && step % 11 != 0) continue;
    follower.take(history.since(follower.version));
    Page fresh;
    fresh.take(history.whole());
    ASSERT_EQ(follower, fresh) << step;
  }
  EXPECT_EQ(follower.series["loss/g/generation"]["width"], 32);
  EXPECT_EQ(follower.showers, json::array({7, 107, 207}));
}

TEST(History, UpdateHoldsWhatIsNewAlone) {
  History history;
  history.take(run_line(100.0));
  for (std::uint64_t step = 0; step < 10; ++step) history.take(step_line(step, 101.0));
  const auto before = history.whole();
  history.take(step_line(10, 102.0));
  const json news = json::parse(*history.since(before.version).json);
  EXPECT_EQ(news["whole"], false);
  EXPECT_FALSE(news.contains("run"));
  EXPECT_FALSE(news.contains("nodes"));
  EXPECT_EQ(news["series"]["loss/d_real/generation"]["from"], 5);
  EXPECT_EQ(news["series"]["loss/d_real/generation"]["x"], json::array({10}));
  EXPECT_FALSE(news["series"].contains("loss/g/generation"));
}

TEST(History, VersionThatIsNotKnownGetsEverything) {
  History history;
  history.take(run_line(100.0));
  EXPECT_EQ(json::parse(*history.since(1'000'000).json)["whole"], true);
}

TEST(History, ClearedItIsToldAnewToEverybody) {
  History history;
  Page follower;
  history.take(run_line(100.0));
  for (std::uint64_t step = 0; step < 30; ++step) history.take(step_line(step, 101.0));
  history.take_log({101.0, "info", "before"});
  follower.take(history.whole());
  history.clear();
  history.take(run_line(200.0));
  history.take(step_line(0, 201.0));
  EXPECT_EQ(json::parse(*history.since(follower.version).json)["whole"], true);
  follower.take(history.since(follower.version));
  EXPECT_EQ(follower.progress["steps"], 1);
  EXPECT_EQ(follower.progress["began"], 200.0);
  EXPECT_TRUE(follower.log.empty());
  history.take(step_line(1, 202.0));
  EXPECT_EQ(json::parse(*history.since(follower.version).json)["whole"], false);
  follower.take(history.since(follower.version));
  Page fresh;
  fresh.take(history.whole());
  EXPECT_EQ(follower, fresh);
}

TEST(History, SameQuestionsGetTheSameText) {
  History history;
  history.take(run_line(100.0));
  const auto first = history.whole();
  EXPECT_EQ(first.json, history.whole().json);
  history.take(step_line(0, 101.0));
  const auto since = history.since(first.version);
  EXPECT_EQ(since.json, history.since(first.version).json);
  EXPECT_NE(since.json, history.whole().json);
}

TEST(History, ProgressCountsIterationsAndEventsAndTimeLeft) {
  History history;
  history.take(run_line(100.0));
  EXPECT_EQ(history.progress().state, "starting");
  for (std::uint64_t step = 0; step < 40; ++step) {
    history.take(step_line(step, 101.0 + 0.5 * static_cast<double>(step)));
  }
  const RunProgress progress = history.progress();
  EXPECT_EQ(progress.state, "training");
  EXPECT_EQ(progress.steps, 40);
  EXPECT_EQ(progress.iterations, 20);
  EXPECT_EQ(progress.epochs, 2);
  EXPECT_EQ(progress.events, 320);
  EXPECT_NEAR(progress.events_per_second, 16.0, 1e-9);
  ASSERT_TRUE(progress.seconds_left);
  EXPECT_NEAR(*progress.seconds_left, 80.0, 1e-9);
}

TEST(History, CostIsNodesByTimeAndLeavesOutThePauseBetweenSessions) {
  History history;
  history.take(run_line(1000.0));
  history.take(step_line(0, 1000.0 + 1800.0));
  history.take(run_line(50000.0, 1));
  history.take(
      read(R"({"kind":"node","time":50000,"step":1,"node":"member.0","state":"running","pid":8})"));
  // The machine that a member runs on is not counted twice.
  history.take(read(
      R"({"kind":"node","time":50000,"step":1,"node":"hpc.0","role":"pool","state":"running"})"));
  history.take(step_line(1, 50000.0 + 900.0));
  const RunProgress progress = history.progress();
  EXPECT_NEAR(progress.node_hours, 0.5 + 2 * 0.25, 1e-9);
  EXPECT_NEAR(progress.cost, 2.0, 1e-9);
}

// The price of the run is that of the others.
TEST(History, NodesOfPoolsCostWhatTheirBillSays) {
  History history;
  history.take(run_line(1000.0));
  history.take(
      read(R"({"kind":"node","time":1000,"step":0,"node":"member.0","state":"running","pid":8})"));
  history.take(step_line(0, 1000.0 + 3600.0));
  EXPECT_NEAR(history.progress().cost, 4.0, 1e-9);
  history.take(read(
      R"({"kind":"bill","time":4600,"step":0,"cost":7,"pools":[{"name":"hpc","node_hours":0.5,"workers":2,"cost":7}]})"));
  EXPECT_NEAR(history.progress().cost, 7.0 + 2.0, 1e-9);
  ASSERT_TRUE(history.news(0).bill);
  EXPECT_EQ(history.news(0).bill->pools[0].name, "hpc");
  EXPECT_FALSE(history.news(history.version()).bill);
}

TEST(History, CoresOfNodesAddUpUntilTheyAreGone) {
  History history;
  history.take(run_line(1000.0));
  history.take(read(
      R"({"kind":"samples","time":1000,"step":0,"values":{"node/local/cores":[1,1.5,1,2,2]}})"));
  history.take(step_line(0, 1000.0 + 3600.0));
  history.take(
      read(R"({"kind":"node","time":4600,"step":1,"node":"local","state":"dead","cause":"x"})"));
  // What it told before comes behind that.
  history.take(read(
      R"({"kind":"samples","time":4600,"step":1,"values":{"node/local/cores":[1,1.7,1,2,2]}})"));
  history.take(step_line(1, 1000.0 + 7200.0));
  EXPECT_NEAR(history.progress().core_hours, 1.5, 1e-9);
}

TEST(History, NodesOfTheSessionBeforeHaveEnded) {
  History history;
  history.take(run_line(1000.0));
  history.take(
      read(R"({"kind":"node","time":1000,"step":1,"node":"member.2","state":"running","pid":8})"));
  history.take(run_line(2000.0, 1));
  const auto gone = history.node("member.2");
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->state, "ended");
  EXPECT_EQ(history.node("local")->state, "running");
  history.take(step_line(1, 2000.0 + 3600.0));
  EXPECT_NEAR(history.progress().node_hours, 1.0, 1e-9);
  NodeSample late;
  late.node = "member.2";
  EXPECT_FALSE(history.take_node(late, 2001.0));
}

TEST(History, SamplesLeaveRoomForWhatIsNoSample) {
  HistoryOptions options;
  options.most_series = 4;
  History history(options);
  for (int i = 0; i < 5; ++i) {
    history.take(read(fmt::format(
        R"({{"kind":"samples","time":1,"step":1,"values":{{"s{}":[1,1,1,1,1]}}}})", i)));
  }
  EXPECT_EQ(history.latest().size(), 3);
  history.take(run_line(100.0));
  history.take(step_line(1, 101.0));
  EXPECT_EQ(history.latest().size(), 4);
}

TEST(History, NumbersOfAnySizeStayNumbers) {
  HistoryOptions options;
  options.points = 4;
  History history(options);
  history.take(run_line(1000.0));
  for (std::uint64_t step = 0; step < 20; ++step) {
    history.take(read(fmt::format(
        R"({{"kind":"samples","time":1,"step":{},"values":{{"s":[1,1.7e308,1,1,1]}}}})", step)));
  }
  const json known = json::parse(*history.whole().json);
  EXPECT_EQ(known["series"]["s"]["mean"].back(), 1.7e308);
  NodeSample sample;
  sample.node = "local";
  sample.sent_bytes = std::numeric_limits<std::int64_t>::min();
  history.take_node(sample, 1.0);
  sample.sent_bytes = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(history.take_node(sample, 2.0));
  EXPECT_NEAR(history.node("local")->sent_per_second, 0x1p64, 1e4);
}

TEST(History, WhoLogsDoesNotWaitForATextToBeMade) {
  HistoryOptions options;
  options.log_lines = 2000;
  History history(options);
  history.take(run_line(1000.0));
  Page page;
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) history.take_log({1.0, "info", std::to_string(i)});
  });
  while (page.log.size() < 1000) page.take(history.since(page.version));
  writer.join();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(page.log[i]["text"], std::to_string(i));
}

TEST(History, NodeTellsBusyCoresAndBytesPerSecond) {
  History history;
  history.take(run_line(1000.0));
  NodeSample sample;
  sample.node = "local";
  sample.cpu_seconds = 10.0;
  sample.sent_bytes = 1000;
  history.take_node(sample, 1001.0);
  sample.cpu_seconds = 13.0;
  sample.sent_bytes = 3000;
  sample.resident_bytes = 77;
  history.take_node(sample, 1003.0, 0.25);
  NodeState node = history.nodes().at(0);
  EXPECT_NEAR(node.cores, 1.5, 1e-9);
  EXPECT_NEAR(node.sent_per_second, 1000.0, 1e-9);
  EXPECT_EQ(node.sample.resident_bytes, 77);
  EXPECT_EQ(node.clock_error, 0.25);
  // A process that took its place.
  sample.cpu_seconds = 1.0;
  history.take_node(sample, 1004.0);
  EXPECT_NEAR(history.nodes().at(0).cores, 1.5, 1e-9);
  sample.node = "unknown";
  history.take_node(sample, 1004.0);
  EXPECT_EQ(history.nodes().size(), 1);
}

TEST(History, SeriesBeyondTheLimitAreCountedAsDropped) {
  HistoryOptions options;
  options.most_series = 2;
  History history(options);
  history.take(read(
      R"({"kind":"samples","time":1,"step":1,"values":{"a":[1,1,1,1,1],"b":[1,1,1,1,1],"c":[1,1,1,1,1]}})"));
  EXPECT_EQ(history.latest().size(), 2);
  EXPECT_EQ(history.progress().dropped, 1);
  NodeSample sample;
  sample.node = "local";
  sample.links.push_back({"replica.0", "monitor", "metrics", 9, 0, 8, 0, 5});
  history.take(run_line(100.0));
  history.take_node(sample, 101.0);
  history.set_dropped(30);
  EXPECT_EQ(history.progress().dropped, 36);
}

TEST(History, OldMarksAndLogLinesMakeRoom) {
  HistoryOptions options;
  options.log_lines = 3;
  History history(options);
  for (int i = 0; i < 10; ++i) history.take_log({1.0, "info", std::to_string(i)});
  std::vector<std::string> texts;
  const HistoryNews news = history.news(0);
  for (const LogLine& line : news.log) texts.push_back(line.text);
  EXPECT_THAT(texts, ElementsAre("7", "8", "9"));
}

TEST(History, EndIsToldWithItsReason) {
  History history;
  history.take(run_line(1.0));
  history.end("failed", "the disk is full");
  EXPECT_EQ(history.progress().state, "failed");
  EXPECT_EQ(history.progress().error, "the disk is full");
  EXPECT_EQ(history.nodes().at(0).state, "ended");
}

TEST(History, ReadersAndAWriterMeetAtAnyTime) {
  HistoryOptions options;
  options.points = 16;
  History history(options);
  history.take(run_line(100.0));
  std::thread writer([&] {
    for (std::uint64_t step = 0; step < 2000; ++step) {
      history.take(step_line(step, 100.0 + static_cast<double>(step)));
    }
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      Page page;
      while (page.version == 0 || page.progress["steps"] < 2000) {
        page.take(history.since(page.version));
      }
      Page fresh;
      fresh.take(history.whole());
      EXPECT_EQ(page.series, fresh.series);
    });
  }
  writer.join();
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace troupe::telemetry
