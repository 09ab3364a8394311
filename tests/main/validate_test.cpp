// `troupe validate`: files, checkpoints and folders of runs against data.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <limits>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

JsonValue figure(const JsonValue& generated, const std::string& name) {
  for (const JsonValue& each : generated["figures"].list()) {
    if (each["name"].text() == name) return each;
  }
  ADD_FAILURE() << "no figure " << name;
  return generated;
}

class Validate : public ToyRun {
 protected:
  std::string made(const std::string& name, const std::string& seed) const {
    const ProcessEnd end = call({"data", "make", path(name), "--detector", "lcd-fixed-12",
                                 "--events", "120", "--max-energy", "100", "--seed", seed});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return path(name);
  }
  static JsonValue validated(const Words& words) {
    const ProcessEnd end = call(Words{"validate"} + words + Words{"--json", "--replicas", "20"});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return last_line(end);
  }
};

TEST_F(Validate, ShowersOfTheSameGeneratorHaveNoFaultAndCopiesAreFound) {
  const std::string data = made("data.h5", "1"), other = made("other.h5", "2");
  const JsonValue found = validated({other, "--against", data});
  EXPECT_EQ(found["error"].is_null(), true);
  EXPECT_EQ(found["events"].integer(), 120);
  const JsonValue& generated = found["generated"].list()[0];
  EXPECT_EQ(generated["verdict"].text(), "No fault was found.");
  EXPECT_NEAR(figure(generated, "response")["value"].number(), 1.0, 0.05);
  EXPECT_GT(figure(generated, "response")["uncertainty"].number(), 0.0);
  EXPECT_GT(figure(generated, "longitudinal")["floor_95"].number(), 0.0);
  EXPECT_EQ(figure(generated, "longitudinal")["unit"].text(), "%");

  const JsonValue same = validated({data, "--against", data})["generated"].list()[0];
  EXPECT_EQ(same["faults"].list()[0]["kind"].text(), "copies");
  EXPECT_EQ(figure(same, "copies")["value"].number(), 100.0);
}

TEST_F(Validate, VerdictStandsAboveTheFiguresForPeople) {
  const std::string data = made("data.h5", "1"), other = made("other.h5", "2");
  const ProcessEnd end = call({"validate", other, "--against", data, "--replicas", "20"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, testing::StartsWith("No fault was found.\n\nfigure "));
  EXPECT_THAT(end.out, HasSubstr("\nmean response, generated / data "));
  EXPECT_THAT(end.out, HasSubstr("\ndistributions  "));
}

TEST_F(Validate, FiguresDependOnTheSeedAndNotOnThreads) {
  const std::string data = made("data.h5", "1"), other = made("other.h5", "2");
  const auto figures = [&](const Words& more) {
    const ProcessEnd end =
        call(Words{"validate", other, "--against", data, "--json", "--replicas", "20"} + more);
    return end.out;
  };
  const std::string once = figures({"--threads", "1"});
  EXPECT_EQ(figures({"--threads", "3"}), once);
  EXPECT_NE(figures({"--seed", "2"}), once);
}

TEST_F(Validate, CheckpointMakesAShowerForEachOfTheDataAndARunsFolderIsRanked) {
  run("a", {"--set", "actors.validator={every: 1 epoch, events: 10}", "--set", "train.epochs=3"});
  const JsonValue one = validated({checkpoint("a", 0), "--against", path("toy.h5")});
  EXPECT_EQ(one["generated"].list()[0]["name"].text(), checkpoint("a", 0));
  EXPECT_EQ(one["generated"].list()[0]["events"].integer(), 200);
  EXPECT_EQ(one["events"].integer(), 200);
  // A generator is asked for the energies of the data, so nothing is said of conditions.
  for (const JsonValue& fault : one["generated"].list()[0]["faults"].list()) {
    EXPECT_NE(fault["kind"].text(), "conditions");
  }
  const std::string best = path("a/checkpoints/") +
                           parse_json(read_text(path("a/checkpoints/best.json")))["file"].text();
  const JsonValue of_folder = validated({path("a"), "--against", path("toy.h5")});
  EXPECT_EQ(of_folder["generated"].list()[0]["name"].text(), best);

  const JsonValue ranked = validated({path("a")});  // against the run's own test events
  EXPECT_EQ(ranked["events"].integer(), 20);
  ASSERT_EQ(ranked["generated"].list().size(), checkpoints("a").size());
  double before = 0.0;
  for (const JsonValue& each : ranked["generated"].list()) {
    const double merit = figure(each, "merit")["value"].number();
    EXPECT_GE(merit, before);
    before = merit;
  }
  const ProcessEnd table = call({"validate", path("a"), "--replicas", "5", "--by", "response"});
  EXPECT_THAT(table.out, testing::StartsWith("checkpoint "));
  EXPECT_THAT(table.out, HasSubstr("\nThe best, " + path("a/checkpoints/step-")));

  const std::string damaged = checkpoint("a", 0);
  std::filesystem::resize_file(damaged, std::filesystem::file_size(damaged) / 2);
  const ProcessEnd rest = call({"validate", path("a"), "--replicas", "5", "--json"});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("left out: " + damaged));
  EXPECT_EQ(last_line(rest)["generated"].list().size(), checkpoints("a").size() - 1);
}

TEST_F(Validate, WrongWordsAndDataAreRefused) {
  const std::string data = made("data.h5", "1");
  expect_refused(call({"validate", data}), 2, {"--against: which showers are right?"});
  expect_refused(call({"validate", data, "--against", path("none.h5")}), 4, {"none.h5"});
  expect_refused(call({"validate", path("none.h5"), "--against", data}), 4, {"none.h5"});
  expect_refused(call({"validate", data, "--against", path("toy.h5")}), 4,
                 {"12 x 12 x 12", "4 x 4 x 4"});
  expect_refused(call({"validate", data, "--against", data, "--by", "beauty"}), 2,
                 {"--by: no figure beauty"});
  run("a");
  expect_refused(call({"validate", path("a"), "--against", data}), 4, {"expected images of"});
  std::filesystem::remove(path("toy.h5"));
  expect_refused(call({"validate", path("a")}), 4, {"name others: --against"});
}

TEST_F(Validate, ReportIsWrittenAndNotOverAnotherFile) {
  const std::string data = made("data.h5", "1"), other = made("other.h5", "2");
  const Words words{"validate",   other, "--against", data,
                    "--replicas", "5",   "--report",  path("report.html")};
  EXPECT_EQ(call(words).exit_code, 0);
  EXPECT_THAT(read_text(path("report.html")), testing::StartsWith("<!doctype html>"));
  expect_refused(call(words), 2, {"report.html is there already"});
  EXPECT_EQ(call(words + Words{"--force"}).exit_code, 0);
  expect_refused(call({"validate", other, "--against", data, "--report", path("no/report.html")}),
                 4, {"cannot write"});
}

TEST_F(Validate, BadShowersAreToldAndLeftOut) {
  ToyData bad(50);
  bad.cells[64] = std::numeric_limits<float>::quiet_NaN();
  bad.write(path("bad.h5"));
  const ProcessEnd end =
      call({"validate", path("bad.h5"), "--against", path("toy.h5"), "--json", "--replicas", "5"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("left out: " + path("bad.h5") + ": dataset ECAL, event 1"));
  EXPECT_EQ(last_line(end)["generated"].list()[0]["events"].integer(), 49);
}

// The showers that the generator is fitted to are not part of the project. pipeline/ShowerFit holds
// the fit without them.
TEST_F(Validate, BuiltInShowersHaveTheProfilesOfGeant4s) {
  const char* folder = std::getenv("TROUPE_REAL_SHOWERS");
  if (folder == nullptr) GTEST_SKIP() << "TROUPE_REAL_SHOWERS names no folder of real showers";
  const auto against = [&](const std::string& detector, const std::string& events,
                           const std::string& data) {
    const std::string made = path(detector + ".h5");
    const ProcessEnd end = call({"data", "make", made, "--detector", detector, "--events", events,
                                 "--max-energy", "100", "--seed", "7"});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return validated({made, "--against", folder + ("/" + data)})["generated"].list()[0];
  };
  const JsonValue fixed = against("lcd-fixed-25", "2066", "geant4_fixed25.h5");
  const JsonValue tilted = against("lcd-angle-51", "1337", "geant4_angle51.h5");
  for (const JsonValue& showers : {fixed, tilted}) {
    EXPECT_NEAR(figure(showers, "response")["value"].number(), 1.0, 0.01);
    EXPECT_NEAR(figure(showers, "response_width")["value"].number(), 1.0, 0.1);
    EXPECT_LT(figure(showers, "longitudinal")["value"].number(), 2.0);
    EXPECT_LT(figure(showers, "transverse_x")["value"].number(), 2.0);
    EXPECT_LT(figure(showers, "transverse_y")["value"].number(), 2.5);
    EXPECT_NEAR(figure(showers, "depth")["value"].number(), 0.0, 0.15);
    EXPECT_NEAR(figure(showers, "width_x")["value"].number(), 1.0, 0.04);
    EXPECT_NEAR(figure(showers, "hits")["value"].number(), 1.0, 0.05);
    EXPECT_LT(figure(showers, "share_correlations")["value"].number(), 0.1);
  }
}

}  // namespace
}  // namespace troupe
