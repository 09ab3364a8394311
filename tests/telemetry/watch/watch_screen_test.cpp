#include "telemetry/watch/watch_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "runtime/base/json_reader.h"
#include "tests/telemetry/telemetry_support.h"

namespace troupe::telemetry {
namespace {

using testing::HasSubstr;

constexpr const char* kHistory = R"({"version":5,"whole":true,"now":1.0,
 "run":{"name":"quick","model":"gan3d_25","version":"1","schedule":["d_real","d_fake","g","g"],
        "losses":[["generation",3.0],["energy",0.5]],"iterations":800,"iterations_per_epoch":200},
 "progress":{"state":"training","error":"","steps":88,"iterations":200,"epochs":1,"epoch":2,"all_epochs":4,"events":1408,
             "events_per_second":812.5,"seconds_left":107.0,"dropped":0,"began":1.0,"newest":2.0,
             "node_hours":0.1,"core_hours":0.2,"cost":0.5},
 "series":{"loss/g/generation":{"width":1,"from":0,"x":[2,6],"mean":[1.5,2.0],"low":[],"high":[]},
           "loss/g/energy":{"width":1,"from":0,"x":[2,6],"mean":[1.0,4.0]},
           "validation/sampling_fraction_width_error":{"width":1,"from":0,"x":[2],"mean":[3.6]},
           "validation/floor/sampling_fraction_width_error":{"width":1,"from":0,"x":[2],"mean":[0.05]},
           "validation/layer_correlation_difference":{"width":1,"from":0,"x":[2],"mean":[0.42]},
           "validation/distance":{"width":1,"from":0,"x":[2,6],"mean":[1.5,2.5],"low":[1.25,2.5],"high":[2,3]},
           "seconds/compute":{"width":1,"from":0,"x":[2],"mean":[0.75]},
           "seconds/reduce":{"width":1,"from":0,"x":[2],"mean":[0.25]}},
 "marks":[{"kind":"node","step":40,"time":3.0,"text":"member.1 was lost"}],
 "validations":[{"step":2,"time":1.0,"rows":[{"name":"generated",
                 "chosen":{"figure":"merit","title":"merit","unit":"","distance":0.5}}]},
                {"step":4,"time":1.5,"rows":[{"name":"generated",
                 "chosen":{"figure":"response_energy","title":"its error","unit":"%","distance":1.25}}]},
                {"step":6,"time":2.0,"rows":[{"name":"data"},{"name":"generated",
                 "chosen":{"figure":"response_energy","title":"its error","unit":"%","distance":2.5}}]}],
 "nodes":[{"name":"head","host":"a","state":"running","cause":"","cores":0.5,
           "resident_bytes":1234567,
           "devices":[{"device":"cuda:0","name":"card","own_bytes":1200000000,"used_bytes":-1,
                       "memory_bytes":80000000000,"busy":0.93,"watts":312.4,"celsius":-1}]}],
 "bill":{"cost":0.75,"cost_per_epoch":0.25,"cost_at_end":1.5,"first_cost":1.25,
         "pools":[{"name":"hpc","wanted":4,"running":3,"node_hours":1.5,"cost":0.75,"iterations":310}]},
 "log":[{"time":1.0,"level":"warning","text":"slow \u001b[2Jdisk"}]})";

std::string screen_of(const HistoryNews& run, std::size_t columns = 100, std::size_t rows = 40) {
  std::string all;
  for (const std::string& line : watch_screen(run, columns, rows)) all += line + "\n";
  return all;
}

TEST(WatchScreen, ShowsWhatMattersInItsPlace) {
  const HistoryNews run = news_of(kHistory);
  const std::string screen = screen_of(run);
  EXPECT_THAT(screen, HasSubstr("quick  gan3d_25  training"));
  EXPECT_THAT(screen, HasSubstr("25.0 %"));
  EXPECT_THAT(screen, HasSubstr("iteration 200/800, epoch 2/4, g 8, 812.5 events/s, 1:47 left"));
  EXPECT_THAT(screen, HasSubstr("▁█"));
  EXPECT_THAT(screen, HasSubstr("off the data (data against data)\n"
                                "  its width 360 % (5), layers 0.42\n"));
  EXPECT_THAT(screen, HasSubstr("\nbest so far  its error: 1.25 % from its ideal\n"));
  EXPECT_THAT(screen, HasSubstr("compute 75 %  reduce 25 %"));
  EXPECT_THAT(screen, HasSubstr("0.50 cores"));
  EXPECT_THAT(screen, HasSubstr("1.2 MB"));
  EXPECT_THAT(screen, HasSubstr("cuda:0 (card)  1.2 GB of 80.0 GB  93 % busy  312 W\n"));
  EXPECT_THAT(screen, HasSubstr("member.1 was lost"));
  EXPECT_THAT(screen, HasSubstr("cost 0.50"));
  EXPECT_THAT(screen,
              HasSubstr("pools  cost 0.75, 0.25 an epoch, 1.50 at the end (at first 1.25)"));
  EXPECT_THAT(screen, HasSubstr("3 of 4 nodes  1.50 node hours  0.75  310 iterations"));
}

TEST(WatchScreen, SmallSumsHaveDigits) {
  HistoryNews run = news_of(kHistory);
  run.bill->cost = run.bill->pools[0].cost = 0.00042;
  run.bill->cost_per_epoch = 0.00021;
  const std::string screen = screen_of(run);
  EXPECT_THAT(screen, HasSubstr("pools  cost 0.00042, 0.00021 an epoch"));
  EXPECT_THAT(screen, HasSubstr("1.50 node hours  0.00042  310 iterations"));
}

TEST(WatchScreen, TextsOfARunCannotCommandTheTerminal) {
  const HistoryNews run = news_of(kHistory);
  EXPECT_THAT(screen_of(run), HasSubstr("slow ?[2Jdisk"));
  EXPECT_EQ(fit("a\x1b\x07\x7f\xc2\x9b\xff z", 20), "a????? z");
}

TEST(WatchScreen, FitsAnyTerminal) {
  const HistoryNews run = news_of(kHistory);
  for (const std::size_t columns : {1u, 10u, 40u, 300u}) {
    for (const std::size_t rows : {1u, 5u, 50u}) {
      const auto lines = watch_screen(run, columns, rows);
      EXPECT_LE(lines.size(), rows);
      for (const std::string& line : lines) {
        const auto characters = std::count_if(line.begin(), line.end(),
                                              [](char byte) { return (byte & 0xC0) != 0x80; });
        EXPECT_LE(static_cast<std::size_t>(characters), columns);
      }
    }
  }
}

TEST(WatchScreen, ARunOfWhichNothingIsKnownIsShownToo) {
  EXPECT_THAT(screen_of(HistoryNews{}), HasSubstr("a run"));
  EXPECT_EQ(watch_line(HistoryNews{}), "iteration 0");
}

TEST(WatchScreen, FiguresForPeople) {
  EXPECT_EQ(duration_text(46.6), "47 s");
  EXPECT_EQ(duration_text(107.0), "1:47");
  EXPECT_EQ(duration_text(7384.0), "2:03:04");
  EXPECT_EQ(duration_text(3.2 * 86400.0), "3 d 4 h");
  EXPECT_EQ(duration_text(-1.0), "?");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::quiet_NaN()), "?");
  EXPECT_EQ(bytes_text(512.0), "512 B");
  EXPECT_EQ(bytes_text(1.24e9), "1.2 GB");
  EXPECT_EQ(bytes_text(999.0e6), "999 MB");
  const double values[] = {1.0, std::numeric_limits<double>::quiet_NaN(), 2.0, 3.0};
  EXPECT_EQ(sparkline(values, 3), "?▁█");
  EXPECT_EQ(sparkline({}, 3), "");
  EXPECT_EQ(sparkline(std::vector<double>{-1.7e308, 0.0, 1.7e308}, 3), "▁▅█");
  EXPECT_EQ(sparkline(std::vector<double>{0.0, 5e-324}, 2), "▁▁");
}

}  // namespace
}  // namespace troupe::telemetry
