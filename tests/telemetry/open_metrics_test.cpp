#include "telemetry/open_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <sstream>

namespace troupe::telemetry {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const History& history) { return open_metrics(history); }

void take(History& history, const std::string& line) {
  const auto record = read_record(line);
  ASSERT_TRUE(record.ok()) << line;
  history.take(*record);
}

TEST(OpenMetrics, RunThatToldNothingYetHasATextAllTheSame) {
  const std::string text = text_of(History());
  EXPECT_THAT(text, HasSubstr("troupe_run_state{state=\"starting\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("troupe_steps_total 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("troupe_loss")));
  EXPECT_THAT(text, Not(HasSubstr("troupe_left_seconds")));
  EXPECT_THAT(text, EndsWith("\n# EOF\n"));
}

TEST(OpenMetrics, SeriesBecomeFamiliesWithLabels) {
  History history;
  take(history, R"({"kind":"step","step":0,"slot":"g","losses":{"generation":1.5,"aux":2},)"
                R"("seconds":{"compute":0.25}})");
  take(history, R"({"kind":"step","step":1,"slot":"d_real","losses":{"generation":3}})");
  take(history, R"({"kind":"samples","step":2,"values":{"node/a/cores":[1,0.5,0,1,1]}})");
  EXPECT_THAT(text_of(history),
              HasSubstr("# TYPE troupe_loss gauge\n"
                        "# HELP troupe_loss Loss of the slot's newest step, by term.\n"
                        "troupe_loss{slot=\"d_real\",term=\"generation\"} 3\n"
                        "troupe_loss{slot=\"g\",term=\"aux\"} 2\n"
                        "troupe_loss{slot=\"g\",term=\"generation\"} 1.5\n"
                        "# TYPE troupe_step_seconds gauge\n"
                        "# UNIT troupe_step_seconds seconds\n"));
  EXPECT_THAT(text_of(history), HasSubstr("troupe_sample{series=\"node/a/cores\"} 0.5\n"));
}

TEST(OpenMetrics, OlderFormatNamesCountersByTheirSamples) {
  const std::string text = open_metrics(History(), MetricsFormat::kPrometheus);
  EXPECT_THAT(text, HasSubstr("# TYPE troupe_steps_total counter\n"
                              "# HELP troupe_steps_total Optimiser updates committed.\n"
                              "troupe_steps_total 0\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE troupe_run_info gauge\n"));
  EXPECT_THAT(text, Not(HasSubstr("# UNIT")));
  EXPECT_THAT(text, Not(HasSubstr("# EOF")));
}

TEST(OpenMetrics, EveryFamilyStandsTogetherAndComesOnce) {
  History history;
  for (const char* node : {"head", "member.0", "member.1"}) {
    take(history,
         R"({"kind":"node","time":1,"step":0,"state":"running","host":"h","pid":1,"node":")" +
             std::string(node) + "\"}");
    NodeSample sample;
    sample.node = node;
    sample.actors = {{"reducer", "running", 3}};
    sample.links = {{"a", "b", "p", 1, 1, 8, 1, 0}, {"b", "a", "q", 1, 1, 0, 1, 2}};
    sample.devices = {{"cuda:0", "card", 3, -1, 9, 0.5, -1.0, 40.0}};
    history.take_node(sample, 2.0);
  }
  std::istringstream lines(text_of(history));
  std::set<std::string> families;
  std::string line, family;
  std::set<std::string> samples;
  while (std::getline(lines, line)) {
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << family;
    } else if (!line.starts_with("#")) {
      EXPECT_TRUE(line.starts_with(family)) << line << " in " << family;
      EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
  }
  EXPECT_TRUE(samples.contains(R"(troupe_link_queued{node="member.1",from="b",to="a",port="q"})"));
  EXPECT_FALSE(
      samples.contains(R"(troupe_link_credits{node="member.1",from="b",to="a",port="q"})"));
  const std::string device = R"({node="member.1",device="cuda:0",name="card"})";
  for (const char* known : {"own_bytes", "memory_bytes", "busy_ratio", "celsius"}) {
    EXPECT_TRUE(samples.contains(std::string("troupe_device_") + known + device)) << known;
  }
  for (const char* unknown : {"used_bytes", "watts"}) {
    EXPECT_FALSE(samples.contains(std::string("troupe_device_") + unknown + device)) << unknown;
  }
}

TEST(OpenMetrics, NodeThatIsGoneHasNoQueues) {
  History history;
  take(history,
       R"({"kind":"node","time":1,"step":0,"node":"m","state":"running","host":"h","pid":1})");
  NodeSample sample;
  sample.node = "m";
  sample.links = {{"a", "b", "p", 1, 1, 8, 1, 0}};
  history.take_node(sample, 2.0);
  EXPECT_THAT(text_of(history), HasSubstr("troupe_link_queued{"));
  take(history, R"({"kind":"node","time":3,"step":0,"node":"m","state":"dead","cause":"killed"})");
  EXPECT_THAT(text_of(history), Not(HasSubstr("troupe_link_queued{")));
  EXPECT_THAT(text_of(history), HasSubstr(R"(troupe_node_up{node="m",role="member",host="h"} 0)"));
}

TEST(OpenMetrics, LabelsMayHoldAnything) {
  RunRecord run;
  run.facts.name = "quote \" slash \\ line\nend";
  run.facts.model = "\xff ü";
  History history;
  history.take({1.0, 0, run});
  EXPECT_THAT(text_of(history),
              HasSubstr("# TYPE troupe_run info\n# HELP troupe_run What is trained.\n"
                        "troupe_run_info{name=\"quote \\\" slash \\\\ line\\nend\","
                        "model=\"\xef\xbf\xbd ü\",version=\"\"} 1\n"));
}

TEST(OpenMetrics, NumbersAreWrittenWholeAndNotFiniteOnesByName) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [value, expected] : {std::pair{std::nan(""), "NaN"},
                                        {infinity, "+Inf"},
                                        {-infinity, "-Inf"},
                                        {0.1, "0.1"},
                                        {9007199254740991.0, "9007199254740991"},
                                        {1e-300, "1e-300"},
                                        {-0.0, "-0"}}) {
    History history;
    take(history, R"({"kind":"node","time":1,"step":0,"node":"m","state":"running"})");
    NodeSample sample;
    sample.node = "m";
    sample.cpu_seconds = value;
    history.take_node(sample, 2.0);
    EXPECT_THAT(open_metrics(history, MetricsFormat::kPrometheus),
                HasSubstr("# TYPE troupe_node_cpu_seconds_total counter\n"
                          "# HELP troupe_node_cpu_seconds_total Processor time of the node.\n"
                          "troupe_node_cpu_seconds_total{node=\"m\"} " +
                          std::string(expected) + "\n"));
  }
}

TEST(OpenMetrics, WhoAsksForItGetsIt) {
  EXPECT_EQ(metrics_format("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3"),
            MetricsFormat::kOpenMetrics);
  for (const char* accept : {"", "*/*", "text/plain;version=0.0.4", "text/html,*/*;q=0.8"})
    EXPECT_EQ(metrics_format(accept), MetricsFormat::kPrometheus) << accept;
  EXPECT_THAT(std::string(content_type(MetricsFormat::kOpenMetrics)),
              HasSubstr("application/openmetrics-text; version=1.0.0"));
  EXPECT_THAT(std::string(content_type(MetricsFormat::kPrometheus)),
              HasSubstr("text/plain; version=0.0.4"));
}

}  // namespace
}  // namespace troupe::telemetry
