#include "telemetry/sinks/sinks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/format.h>

#include "telemetry/sinks/protobuf.h"
#include "telemetry/sinks/tensorboard_event.h"
#include "tests/support/temporary_folder.h"

namespace troupe::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Sinks of a folder, and what they warned of.
struct WatchedRun {
  TemporaryFolder folder;
  std::shared_ptr<History> history = std::make_shared<History>();
  std::vector<std::string> warnings;

  SinkOptions options() {
    SinkOptions options;
    options.metrics_path = folder / "metrics.jsonl";
    options.history = history;
    options.tensorboard_folder = folder.path();
    options.time = 1760000000.0;
    options.warn = [this](const std::string& text) { warnings.push_back(text); };
    return options;
  }
  std::string events() const {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      const std::string name = entry.path().filename();
      if (name.starts_with("events.out.tfevents.")) all += read_text(entry.path());
    }
    return all;
  }
};

std::string scalar(double time, std::uint64_t step, std::string_view tag, double value) {
  return summary_event(time, step, std::vector{scalar_value(tag, value)});
}

Record step_record(std::uint64_t step, double loss) {
  StepFacts facts;
  facts.slot = "g";
  facts.losses = {{"a", loss}};
  return {1760000001, step, facts};
}

Record validation_record(std::uint64_t step, double total) {
  return {1760000001, step,
          ValidationFacts{
              fmt::format(R"({{"rows":[{{"comparison":{{"merit":{{"total":{}}}}}}}]}})", total)}};
}

TEST(Sinks, QuickStepsBecomeTheirMeanAndAllElseStaysWhatItIs) {
  WatchedRun run;
  SinkOptions options = run.options();
  options.publish = "tcp://127.0.0.1:*";
  Sinks sinks(options);
  EXPECT_THAT(sinks.published_at(), testing::MatchesRegex("tcp://127.0.0.1:[0-9]+"));
  sinks.take(step_record(0, 1));
  sinks.take(step_record(1, 3));
  sinks.take(validation_record(2, 0.5));
  sinks.take(validation_record(4, 0.25));
  sinks.flush();
  const std::string events = run.events();
  EXPECT_THAT(events, HasSubstr(scalar(1760000001, 1, "loss/g/a", 2)));
  for (const auto& [step, total] : {std::pair{2, 0.5}, {4, 0.25}}) {
    const auto value = scalar_value("validation/total", total);
    EXPECT_THAT(events, HasSubstr(ProtobufMessage().message(1, value).text())) << step;
  }
  EXPECT_EQ(run.history->progress().steps, 2u);
  EXPECT_THAT(run.warnings, IsEmpty());
}

TEST(Sinks, PlacesThatCannotBeWrittenAreToldOnceAndTheOthersGoOn) {
  WatchedRun run;
  SinkOptions options = run.options();
  options.metrics_path = "/dev/full";
  options.tensorboard_folder = "/nowhere/at/all";
  options.publish = "tcp://192.168.1.2:8500";
  Sinks sinks(options);
  for (std::uint64_t step = 0; step < 10; ++step) {
    sinks.take(step_record(step, 1));
    sinks.take_showers("no showers", step, 1760000001);
    sinks.flush();
  }
  EXPECT_THAT(run.warnings,
              ElementsAre(HasSubstr("cannot publish at tcp://192.168.1.2:8500"),
                          HasSubstr("cannot open /nowhere/at/all/events.out.tfevents."),
                          HasSubstr("cannot write /dev/full: No space left on device")));
  EXPECT_EQ(run.history->progress().steps, 10u);
  EXPECT_EQ(sinks.published_at(), "");
}

TEST(Sinks, SessionThatDoesNothingLeavesNothingButIsKnown) {
  WatchedRun run;
  RunRecord run_of;
  run_of.facts.name = "toy";
  const Record first{1760000001, 8, run_of};
  {
    Sinks sinks(run.options());
    sinks.begin(first);
    sinks.flush();
  }
  EXPECT_EQ(run.history->facts().name, "toy");
  EXPECT_TRUE(std::filesystem::is_empty(run.folder.path()));
  {
    Sinks sinks(run.options());
    sinks.begin(first);
    sinks.take(step_record(8, 0.5));
  }
  EXPECT_EQ(read_text(run.folder / "metrics.jsonl"),
            line_of(first) + "\n" + line_of(step_record(8, 0.5)) + "\n");
  EXPECT_NE(run.events(), "");
}

}  // namespace
}  // namespace troupe::telemetry
