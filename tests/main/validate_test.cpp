// `troupe validate`: files, checkpoints and folders of runs against data.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <tuple>

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

  const JsonValue newest = validated({path("a"), "--latest"});
  ASSERT_EQ(newest["generated"].list().size(), 1u);
  EXPECT_EQ(newest["generated"].list()[0]["name"].text(), checkpoint("a", 0));
  expect_refused(call({"validate", path("a"), "--latest", "--rank"}), 2,
                 {"--rank: ", "stands for its newest with --latest"});

  const JsonValue ranked = validated({path("a")});  // against the run's own test events
  EXPECT_EQ(ranked["events"].integer(), 20);
  ASSERT_EQ(ranked["generated"].list().size(), checkpoints("a").size());
  double before = 0.0;
  for (const JsonValue& each : ranked["generated"].list()) {
    const double merit = figure(each, "merit")["value"].number();
    EXPECT_GE(merit, before);
    before = merit;
  }
  EXPECT_EQ(ranked["by"].text(), "merit");
  const ProcessEnd table = call({"validate", path("a"), "--replicas", "5", "--by", "response"});
  EXPECT_THAT(table.out, testing::StartsWith("checkpoint "));
  EXPECT_THAT(table.out, HasSubstr("\nThe best by response, " + path("a/checkpoints/step-")));

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
  expect_refused(call({"validate", data, "--against", data, "--hit-threshold", "0"}), 2,
                 {"--hit-threshold: expected an energy above 0"});
  expect_refused(call({"validate", data, "--against", data, "--by", "beauty"}), 2,
                 {"--by: no figure beauty"});
  expect_refused(call({"validate", data, "--against", data, "--by", "merit"}), 2,
                 {"--by: only the checkpoints of a folder are ranked", "is no folder"});
  expect_refused(call({"validate", data, "--against", data, "--rank"}), 2,
                 {"--rank: only the checkpoints of a folder are ranked"});
  ToyData empty(20);
  std::ranges::fill(empty.cells, 0.0F);
  empty.write(path("empty.h5"));
  expect_refused(call({"validate", path("toy.h5"), "--against", path("empty.h5")}), 4,
                 {"none of the 20 showers to compare with", "20 of 20 showers have no energy"});
  run("a");
  expect_refused(call({"validate", path("a"), "--against", path("toy.h5"), "--by", "merit"}), 2,
                 {"--by: ", "stands for its best", "add --rank"});
  expect_refused(call({"validate", path("a"), "--against", data}), 4, {"expected images of"});
  expect_refused(call({"validate", path("a"), "--by", "angle.wasserstein"}), 2,
                 {"--by: ", "no angle", "angle.wasserstein"});
  expect_refused(call({"validate", path("a"), "--by", "longitudinal_angle", "--replicas", "2"}), 2,
                 {"--by: no showers that were compared have a longitudinal_angle"});
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
  const std::string before = read_text(data);
  expect_refused(call({"validate", other, "--against", data, "--report", data, "--force"}), 2,
                 {data + " is read itself and would be lost"});
  EXPECT_EQ(read_text(data), before);
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
  const JsonValue generated = last_line(end)["generated"].list()[0];
  EXPECT_EQ(generated["events"].integer(), 49);
  EXPECT_EQ(generated["left_out"].integer(), 1);
  EXPECT_EQ(generated["faults"].list()[0]["kind"].text(), "left_out");
  EXPECT_THAT(generated["faults"].list()[0]["text"].text(),
              testing::StartsWith("1 of 50 showers have "));
  EXPECT_TRUE(last_line(end)["remarks"].list().empty());

  // How many of some of its showers were bad is not known.
  const JsonValue part = validated({path("bad.h5"), "--against", path("toy.h5"), "--events", "20"});
  EXPECT_EQ(part["generated"].list()[0]["events"].integer(), 20);
  EXPECT_EQ(part["generated"].list()[0]["left_out"].integer(), 0);

  // The other way round it is the data that are bad, and the generator has no part in that.
  const JsonValue turned = validated({path("toy.h5"), "--against", path("bad.h5")});
  EXPECT_EQ(turned["generated"].list()[0]["left_out"].integer(), 0);
  for (const JsonValue& fault : turned["generated"].list()[0]["faults"].list()) {
    EXPECT_NE(fault["kind"].text(), "left_out");
  }
  EXPECT_THAT(turned["remarks"].list()[0]["text"].text(),
              testing::StartsWith("the data: 1 of 50 showers have "));
}

TEST_F(Validate, ClassifierTellsShowersOfOtherEnergiesFromTheData) {
  const std::string data = made("data.h5", "1"), equal = made("equal.h5", "2");
  EXPECT_EQ(call({"data", "make", path("other.h5"), "--detector", "lcd-fixed-12", "--events", "120",
                  "--min-energy", "60", "--max-energy", "100"})
                .exit_code,
            0);
  const JsonValue same =
      figure(validated({equal, "--against", data})["generated"].list()[0], "auc");
  EXPECT_EQ(same["ideal"].number(), 0.5);
  EXPECT_LT(std::abs(same["value"].number() - 0.5), same["floor_95"].number());
  const JsonValue other =
      figure(validated({path("other.h5"), "--against", data})["generated"].list()[0], "auc");
  EXPECT_GT(other["value"].number(), 0.65);
  EXPECT_GT(other["value"].number() - 0.5, other["floor_95"].number());
}

// The topology names the figure; the checkpoint that is kept and everything else follow it.
TEST_F(Validate, BestIsThatOfTheFigureThatTheTopologyNames) {
  const auto best_of = [&](const std::string& run) {
    return parse_json(read_text(path(run + "/checkpoints/best.json")));
  };
  const auto distance = [](const JsonValue& line, const char* figure) {
    const auto& rows = line["fields"]["rows"].list();
    return std::string(figure) == "merit" ? rows.back()["comparison"]["merit"]["total"].number()
                                          : rows.back()["chosen"]["distance"].number();
  };
  run("a", {"--set",
            "actors.validator={every: 1 iterations, events: 20, best: longitudinal, energy_bins: "
            "[[10, 250], [250, 500]], hit_threshold: 0.01}",
            "--set", "actors.checkpointer.keep=1", "--set", "train.iterations=12"});
  EXPECT_EQ(best_of("a")["figure"].text(), "longitudinal");
  double least = 1e9, least_merit = 1e9;
  std::uint64_t step = 0, step_of_merit = 0;
  for (const JsonValue& line : json_lines(path("a/metrics.jsonl"))) {
    if (line["kind"].text() != "validation") continue;
    EXPECT_EQ(line["fields"]["rows"].list().back()["chosen"]["figure"].text(), "longitudinal");
    const auto at = static_cast<std::uint64_t>(line["step"].integer());
    if (distance(line, "chosen") < least)
      std::tie(least, step) = std::pair(distance(line, "chosen"), at);
    if (distance(line, "merit") < least_merit) {
      std::tie(least_merit, step_of_merit) = std::pair(distance(line, "merit"), at);
    }
  }
  EXPECT_NE(step, step_of_merit);  // else this tells nothing
  EXPECT_EQ(static_cast<std::uint64_t>(best_of("a")["step"].integer()), step);
  EXPECT_NEAR(best_of("a")["distance"].number(), least, 1e-5 * least);
  EXPECT_EQ(std::filesystem::read_symlink(path("a/checkpoints/best")).string(),
            best_of("a")["file"].text());

  // Against the run's own test data and measured like it, its best is first again, with one figure
  // and the showers of another seed.
  const JsonValue ranked = validated({path("a")});
  EXPECT_EQ(ranked["by"].text(), "longitudinal");
  EXPECT_EQ(ranked["events"].integer(), 20);
  const ProcessEnd watched = call({"watch", path("a")});
  EXPECT_THAT(watched.out, HasSubstr("best so far  energy missing, extra or misplaced along z: "));
}

TEST_F(Validate, BestMayBeOfAFigureThatTakesMoreThanSums) {
  for (const std::string figure : {"auc", "nearest", "hits.wasserstein"}) {
    run(figure,
        {"--set", "actors.validator={every: 1 iterations, events: 20, best: " + figure + "}",
         "--set", "train.iterations=2"});
    EXPECT_EQ(parse_json(read_text(path(figure + "/checkpoints/best.json")))["figure"].text(),
              figure);
  }
}

TEST_F(Validate, ReportOfACheckpointHasWhatItsDiscriminatorSays) {
  run("a", {"--set", "actors.validator={every: 1 epoch, events: 10}"});
  EXPECT_EQ(call({"validate", checkpoint("a", 0), "--against", path("toy.h5"), "--replicas", "5",
                  "--report", path("report.html")})
                .exit_code,
            0);
  const std::string html = read_text(path("report.html"));
  EXPECT_THAT(html, HasSubstr("What the discriminator says"));
  EXPECT_THAT(html, HasSubstr("Probability that the shower is real (generation)"));
  EXPECT_THAT(html, HasSubstr("Error of the estimated energy of the primary"));
  EXPECT_THAT(html, HasSubstr("chi-square / degrees of freedom "));
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
  // With as few as Geant4's, the mean of the drawn energies would move the profiles by percents.
  const JsonValue fixed = against("lcd-fixed-25", "10000", "geant4_fixed25.h5");
  const JsonValue tilted = against("lcd-angle-51", "6000", "geant4_angle51.h5");
  for (const JsonValue& showers : {fixed, tilted}) {
    EXPECT_NEAR(figure(showers, "response")["value"].number(), 1.0, 0.01);
    EXPECT_NEAR(figure(showers, "response_width")["value"].number(), 1.0, 0.1);
    EXPECT_LT(figure(showers, "longitudinal")["value"].number(), 3.0);
    EXPECT_LT(figure(showers, "transverse_x")["value"].number(), 3.0);
    EXPECT_LT(figure(showers, "transverse_y")["value"].number(), 2.5);
    EXPECT_NEAR(figure(showers, "depth")["value"].number(), 0.0, 0.15);
    EXPECT_NEAR(figure(showers, "width_x")["value"].number(), 1.0, 0.04);
    EXPECT_NEAR(figure(showers, "hits")["value"].number(), 1.0, 0.05);
    EXPECT_LT(figure(showers, "share_correlations")["value"].number(), 0.1);
  }
}

}  // namespace
}  // namespace troupe
