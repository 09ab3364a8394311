// What actors tell of themselves reaches the Monitor, and costs the run no bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "tests/actors/whole_run.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using testing::IsSupersetOf;

// Tells nonsense whenever anything happens, more than any link has room for.
class Flooding final : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void receive(Context& context, Message message) override {
    flood(context);
    Wrapped::receive(context, std::move(message));
  }
  void timer(Context& context, runtime::TimerId id) override {
    flood(context);
    Wrapped::timer(context, id);
  }

 private:
  static void flood(Context& context) {
    SampleMetrics nonsense;
    nonsense.samples.assign(kMostSamples, {"nonsense", -1.0});
    for (const char* port : {"samples", "metrics"}) {
      if (!context.out(port).valid()) continue;
      for (int i = 0; i < 200; ++i) context.send(port, Message::of(SampleMetrics(nonsense)));
    }
  }
};

// A Monitor, and the series of all samples that came to it.
class Listening final : public Wrapped {
 public:
  Listening(std::unique_ptr<runtime::Actor> inner, std::set<std::string>& series)
      : Wrapped(std::move(inner)), series_(series) {}
  void receive(Context& context, Message message) override {
    if (const auto* told = message.as<SampleMetrics>()) {
      for (const Sample& sample : told->samples) {
        series_.insert(std::string(message.sender_name()) + "/" + sample.name);
      }
    }
    Wrapped::receive(context, std::move(message));
  }

 private:
  std::set<std::string>& series_;
};

std::set<std::string> series_of_a_run() {
  std::set<std::string> series;
  run_whole(1,
            [&](const std::string& kind,
                std::unique_ptr<runtime::Actor> actor) -> std::unique_ptr<runtime::Actor> {
              if (kind != "monitor") return actor;
              return std::make_unique<Listening>(std::move(actor), series);
            });
  return series;
}

// replica.12/compute_seconds as replica.N/compute_seconds.
std::string without_number(const std::string& series) {
  const std::size_t slash = series.find('/'), dot = series.find('.');
  return dot < slash ? series.substr(0, dot) + ".N" + series.substr(slash) : series;
}

TEST(Samples, LinksFullOfThemChangeNothing) {
  const auto as_it_is = [](const std::string&, std::unique_ptr<runtime::Actor> actor) {
    return actor;
  };
  const auto flooding =
      [](const std::string& kind,
         std::unique_ptr<runtime::Actor> actor) -> std::unique_ptr<runtime::Actor> {
    if (kind == "coordinator" || kind == "monitor") return actor;
    return std::make_unique<Flooding>(std::move(actor));
  };
  const WholeRun quiet = run_whole(1, as_it_is);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const WholeRun loud = run_whole(seed, flooding);
    EXPECT_EQ(loud.state_hash, quiet.state_hash);
    EXPECT_EQ(loud.validation, quiet.validation);
    std::int64_t dropped = 0;
    for (const runtime::LinkStats& link : loud.links) dropped += link.dropped;
    EXPECT_GT(dropped, 0);
  }
}

TEST(Samples, EveryReplicaTellsAndOneOfThemTheGradients) {
  const auto series = series_of_a_run();
  EXPECT_THAT(series, IsSupersetOf({"replica.0/compute_seconds", "replica.1/compute_seconds",
                                    "replica.0/gradient_norm/generator",
                                    "replica.0/gradient_norm/discriminator", "loader/read_seconds",
                                    "reducer/sum_seconds", "checkpointer/write_seconds",
                                    "validator/seconds"}));
  EXPECT_FALSE(series.contains("replica.1/gradient_norm/generator"));
}

TEST(Samples, EverySeriesIsDocumented) {
  std::ostringstream text;
  text << std::ifstream(TROUPE_SOURCE_DIR "/docs/watching.md").rdbuf();
  for (const std::string& series : series_of_a_run()) {
    EXPECT_THAT(text.str(), testing::HasSubstr("| `" + without_number(series) + "` |"));
  }
}

}  // namespace
}  // namespace troupe::actors
