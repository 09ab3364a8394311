#include "study/study_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/yaml_value.h"
#include "study/trial_run.h"
#include "tests/study/study_support.h"
#include "tests/support/fails_with.h"

namespace troupe::study {
namespace {

using runtime::ErrorKind;
using testing::HasSubstr;

constexpr const char* kWhole = R"(name: search
topology: toy
space:
  train.learning_rate.g: {log: [1e-4, 1e-2]}
  train.optimiser.g.kind: {choice: [rmsprop, adam]}
  train.micro_batch: {integer: [8, 60], step: 8}
  model.discriminator.layers.3.dropout: {linear: [0.1, 0.5]}
  train.iterations: {choice: [40]}
objective: {maximise: events_per_second, of: metrics}
method: {kind: genetic, trials: 60, seed: 7, population: 12, crossover: 0.5, mutation: 0.25}
repeat: {seeds: 3}
parallel: 4
)";

TEST(StudyFile, EveryFieldIsRead) {
  const LoadedStudy loaded = parsed(kWhole);
  const Study& study = loaded.study;
  EXPECT_EQ(study.name, "search");
  EXPECT_EQ(study.topology, "toy");
  ASSERT_EQ(study.space.size(), 5u);
  EXPECT_EQ(study.space[0], logarithmic("train.learning_rate.g", 1e-4, 1e-2));
  EXPECT_EQ(study.space[1], words("train.optimiser.g.kind", {"rmsprop", "adam"}));
  EXPECT_EQ(study.space[2], whole("train.micro_batch", 8, 60, 8));
  EXPECT_EQ(study.space[3], linear("model.discriminator.layers.3.dropout", 0.1, 0.5));
  EXPECT_EQ(study.objective.figure(), "events_per_second");
  EXPECT_EQ(study.objective.of, FigureSource::kMetrics);
  EXPECT_EQ(study.objective.cost(2.0), -2.0);
  EXPECT_EQ(study.method.kind, MethodKind::kGenetic);
  EXPECT_EQ(study.method.trials, 60u);
  EXPECT_EQ(study.method.seed, 7u);
  EXPECT_EQ(study.method.population, 12u);
  EXPECT_EQ(study.method.crossover, 0.5);
  EXPECT_EQ(study.method.mutation, 0.25);
  EXPECT_EQ(study.seeds, 3u);
  EXPECT_EQ(study.parallel, 4u);
  EXPECT_EQ(loaded.train_seed, 1u);
}

TEST(StudyFile, PrintedStudyIsTheSame) {
  const LoadedStudy loaded = parsed(kWhole);
  const LoadedStudy again = parsed(print_study(loaded.study));
  EXPECT_EQ(again.study, loaded.study);
  EXPECT_EQ(study_hash(again), study_hash(loaded));
}

TEST(StudyFile, ChoiceMayBeOfListsAndSections) {
  const Study study = parsed(
                          "topology: toy\nobjective: {minimise: merit}\nspace:\n"
                          "  train.optimiser.g: {choice: [rmsprop, {kind: adam, beta_1: 0.5}]}\n"
                          "  train.schedule: {choice: [[d_real, g], [d_real, d_fake, g, g]]}\n"
                          "  name: {choice: [\"16\", b]}\n")
                          .study;
  EXPECT_EQ(*study.space[0].choice,
            (std::vector<std::string>{"rmsprop", "{kind: adam, beta_1: 0.5}"}));
  EXPECT_EQ(study.space[1].choice->front(), "[d_real, g]");
  EXPECT_EQ(study.space[2].choice->front(), "\"16\"");
  EXPECT_EQ(parsed(print_study(study)).study, study);
}

constexpr const char* kHanging = R"(topology: toy
space:
  train.optimiser.g.kind: {choice: [rmsprop, adam, sgd]}
  train.optimiser.g.beta_1: {linear: [0.1, 0.9], only_with: {train.optimiser.g.kind: adam}}
  train.optimiser.g.momentum: {linear: [0, 0.9], only_with: {train.optimiser.g.kind: [rmsprop, sgd]}}
objective: {minimise: merit}
)";

TEST(StudyFile, FieldMayHangOnAChoice) {
  const LoadedStudy loaded = parsed(kHanging);
  const Space& space = loaded.study.space;
  ASSERT_EQ(space.size(), 3u);
  EXPECT_EQ(space[1].only_with, (Condition{"train.optimiser.g.kind", {"adam"}}));
  EXPECT_EQ(space[2].only_with, (Condition{"train.optimiser.g.kind", {"rmsprop", "sgd"}}));
  const LoadedStudy again = parsed(print_study(loaded.study));
  EXPECT_EQ(again.study, loaded.study);
  EXPECT_EQ(study_hash(again), study_hash(loaded));
  const Point point{1.0, 0.5, kAbsent};
  EXPECT_EQ(
      overrides_of(loaded, point, {}),
      (std::vector<std::string>{"train.optimiser.g.kind=adam", "train.optimiser.g.beta_1=0.5"}));
}

TEST(StudyFile, FoldsSetWhichEventsAreForTesting) {
  const LoadedStudy loaded = parsed(kLeast + "repeat: {folds: 4}\n");
  EXPECT_EQ(loaded.study.repeats(), 4u);
  EXPECT_EQ(overrides_of(loaded, {1e-3}, {0, 0, 2}),
            (std::vector<std::string>{"train.learning_rate.g=0.001", "data.test_one_in=4",
                                      "data.test_part=2"}));
  EXPECT_NE(study_hash(loaded), study_hash(parsed(kLeast)));
  EXPECT_EQ(study_hash(parsed(kLeast + "repeat: {folds: 1}\n")), study_hash(parsed(kLeast)));
}

TEST(StudyFile, OnlyTheNumberOfTrialsAndNamesLeaveTheHashAlone) {
  const std::string hash = study_hash(parsed(kLeast));
  EXPECT_EQ(study_hash(parsed(kLeast + "method: {trials: 60}\nname: other\n")), hash);
  EXPECT_NE(study_hash(parsed(kLeast + "method: {seed: 2}\n")), hash);
  EXPECT_NE(study_hash(parsed(kLeast + "parallel: 2\n")), hash);
  LoadedStudy other = parsed(kLeast);
  other.topology_text += "\n# touched\n";
  EXPECT_NE(study_hash(other), hash);
}

// Wrong in as many ways as a file can be by itself.
constexpr const char* kAllWrong = R"(name: a b
topology: [toy]
space:
  train.learning_rate.g: {log: [1e-2, 1e-4]}
  train.learning_rate.g.rate: {log: [0, 1]}
  train.seed: {integer: [1, 9], choice: [1, 2]}
  train.epochs: {choice: [1, 1]}
  train.micro_batch: {linear: [1, 2], step: 2}
  train.scaling: [strong, weak]
  train.optimiser.d: {choise: [adam]}
objective: {minimise: merit, maximise: merit, of: everything}
method: {kind: bayesian, trials: 501, population: 3}
repeat: {folds: 5, seeds: 2}
parallel: 0
)";

TEST(StudyErrors, EveryProblemOfAFileIsReportedAtOnceWithItsPlace) {
  const auto result = parse(kAllWrong);
  ASSERT_THAT(result, FailsWith(ErrorKind::kTopology, "s.yaml"));
  std::istringstream lines(result.error().message);
  for (const char* part : {
           "s.yaml:1:7: name: expected a name of at most 100 letters",
           "s.yaml:2:11: topology: expected a topology's path",
           "s.yaml:4:32: space.train.learning_rate.g.log: the lower bound comes first, and 0.01 is "
           "not below 0.0001",
           "s.yaml:5:3: space.train.learning_rate.g.rate: train.learning_rate.g varies a part of "
           "the same",
           "s.yaml:5:38: space.train.learning_rate.g.rate.log.0: expected a number above 0",
           "s.yaml:6:15: space.train.seed: give one of log, linear, integer and choice",
           "s.yaml:7:26: space.train.epochs.choice: a value stands here twice",
           "s.yaml:8:39: space.train.micro_batch: step acts only with integer",
           "s.yaml:9:18: space.train.scaling: expected a section (log, linear, integer, step, "
           "choice, only_with), found a list",
           "s.yaml:10:23: space.train.optimiser.d: unknown key \"choise\"; did you mean "
           "\"choice\"?",
           "s.yaml:11:51: objective.of: expected one of validation, metrics, summary",
           "s.yaml:12:39: method: population acts only with kind: genetic",
           "s.yaml:13:9: repeat: give one of seeds and folds",
           "s.yaml:14:11: parallel: expected a whole number from 1 to 256",
       }) {
    std::string line;
    std::getline(lines, line);
    EXPECT_THAT(line, HasSubstr(part));
  }
  std::string rest;
  EXPECT_FALSE(std::getline(lines, rest)) << rest;
}

struct Mistake {
  std::string text;
  std::string message;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.text; }

class StudyMistake : public testing::TestWithParam<Mistake> {};

TEST_P(StudyMistake, IsReportedOnceWithItsPlace) {
  const auto result = parse(GetParam().text);
  ASSERT_THAT(result, FailsWith(ErrorKind::kTopology, GetParam().message));
  EXPECT_THAT(result.error().message, testing::Not(HasSubstr("\n")));
}

std::string with_space(const std::string& space) {
  return "topology: toy\nobjective: {minimise: merit}\nspace: {" + space + "}\n";
}

INSTANTIATE_TEST_SUITE_P(
    All, StudyMistake,
    testing::Values(
        Mistake{"", "s.yaml: is empty; a study needs at least topology, space and objective"},
        Mistake{"topology: toy\nspace: {train.seed: {integer: [1, 2]}}\n",
                "\"objective\" is missing: The figure by which trials are judged."},
        Mistake{"topology: toy\nobjective: {}\nspace: {train.seed: {integer: [1, 2]}}\n",
                "s.yaml:2:12: objective: give one of minimise and maximise"},
        Mistake{with_space(""),
                "s.yaml:3:8: space: expected a section of 1 to 50 fields of the topology"},
        // No path of a field, or one that can be written in another way.
        Mistake{with_space("train.seed=3: {integer: [1, 2]}"),
                "s.yaml:3:9: space.train.seed=3: expected a field's path"},
        Mistake{with_space("train.schedule.00: {choice: [g]}"),
                "space.train.schedule.00: expected a field's path"},
        Mistake{with_space("train..seed: {integer: [1, 2]}"), "expected a field's path"},
        // What the study sets itself.
        Mistake{with_space("train: {choice: [{seed: 3}]}") + "repeat: {seeds: 2}\n",
                "s.yaml:3:9: space.train: repeat.seeds gives every trial the same seeds"},
        Mistake{with_space("train: {choice: [{epochs: 3}, {epochs: 4}]}") +
                    "stop: {kind: halving, from: 1 epoch}\n",
                "s.yaml:3:9: space.train: halving sets from rung to rung how far a trial trains"},
        Mistake{with_space("train.iterations: {choice: [30]}") +
                    "stop: {kind: halving, from: 1 epoch}\n",
                "s.yaml:3:9: space.train.iterations: halving sets from rung to rung how far"},
        Mistake{with_space("actors.validator.every: {choice: [1 epoch, none]}"),
                "s.yaml:3:9: space.actors.validator.every: with none a trial has no validation"},
        Mistake{with_space("data.test_one_in: {choice: [3, 4]}") + "repeat: {folds: 2}\n",
                "s.yaml:3:9: space.data.test_one_in: repeat.folds sets which events are for "
                "testing"},
        Mistake{kLeast + "workers: 2\nparallel: 3\n",
                "s.yaml:4:10: workers: each of 3 trials at a time needs a worker, and there are 2"},
        Mistake{with_space("train.scaling: {choice: [strong, weak]}") + "workers: 2\n",
                "s.yaml:3:9: space.train.scaling: workers may come and go only with "
                "train.scaling: strong"},
        // No grid of a space that is wrong.
        Mistake{with_space("train.seed: {}") + "method: {kind: grid}\n",
                "s.yaml:3:21: space.train.seed: give one of log, linear, integer and choice"},
        Mistake{with_space("train.optimiser.g.beta_1: {linear: [0.1, 0.9], only_with: "
                           "{train.optimiser.g.kind: adam}}") +
                    "method: {kind: grid}\n",
                "no choice of train.optimiser.g.kind stands before it"},
        // Fields that hang on what is not there.
        Mistake{with_space("train.optimiser.g.beta_1: {linear: [0.1, 0.9], only_with: "
                           "{train.optimiser.g.kind: adam}}"),
                "space.train.optimiser.g.beta_1.only_with: no choice of train.optimiser.g.kind "
                "stands before it"},
        Mistake{with_space("train.optimiser.g.kind: {choice: [rmsprop, adam]}, "
                           "train.optimiser.g.beta_1: {linear: [0.1, 0.9], only_with: "
                           "{train.optimiser.g.kind: [sgd]}}"),
                "only_with: sgd is none of the choices of train.optimiser.g.kind"},
        Mistake{with_space("train.optimiser.g.kind: {choice: [rmsprop, adam]}, "
                           "train.optimiser.g.beta_1: {linear: [0.1, 0.9], only_with: adam}"),
                "only_with: expected a field of the space with one of its values"},
        // It does not act there.
        Mistake{with_space("train.optimiser.g.kind: {choice: [rmsprop, adam]}, "
                           "train.optimiser.g.beta_1: {linear: [0.1, 0.9], only_with: "
                           "{train.optimiser.g.kind: rmsprop}}"),
                "space.train.optimiser.g.beta_1: the topology does not take 0.1 here: "
                "train.optimiser.g: beta_1 acts only with kind: adam"},
        // Another file in another folder.
        Mistake{with_space("data.synthetic.folder: {choice: [/a, b]}"),
                "s.yaml:3:9: space.data.synthetic.folder: b depends on the folder in which"},
        Mistake{with_space("name: {choice: [" + std::string(20'000, 'a') + "]}"),
                "s.yaml:3:25: space.name.choice.0: the value has 20000 bytes, more than 16384"},
        // No field of the topology.
        Mistake{with_space("train.learning_rat.g: {log: [1e-4, 1e-2]}"),
                "s.yaml:3:9: space.train.learning_rat.g: the topology does not take 0.0001 here: "
                "train: unknown key \"learning_rat\"; did you mean \"learning_rate\"?"},
        Mistake{with_space("train.schedule.7: {choice: [g]}"),
                "s.yaml:3:9: space.train.schedule.7: the topology does not take g here: the list "
                "has 4 items"},
        // A field that does not act.
        Mistake{with_space("train.learning_rate.g.factor: {linear: [0.1, 0.5]}"),
                "s.yaml:3:9: space.train.learning_rate.g.factor: the topology does not take 0.1 "
                "here: train.learning_rate.g: factor acts only with policy: plateau"},
        // A value that a field does not take.
        Mistake{with_space("train.micro_batch: {integer: [0, 64]}"),
                "the topology does not take 0 here: train.micro_batch: expected a whole number"},
        Mistake{with_space("train.optimiser.g: {choice: [rmsprop, adamm]}"),
                "the topology does not take adamm here: train.optimiser.g.kind: expected one of"},
        Mistake{with_space("train.learning_rate.g: {choice: [1e-3, 0.001]}"),
                "0.001 makes the same topology as a value before it"},
        Mistake{kLeast + "method: {trials: 501}\n",
                "s.yaml:4:18: method.trials: a Gaussian process learns from 500 trials at most"},
        Mistake{with_space("train.seed: {integer: [1, 9]}") + "repeat: {seeds: 2}\n",
                "s.yaml:3:9: space.train.seed: repeat.seeds gives every trial the same seeds"},
        Mistake{with_space("train.learning_rate.g: {log: [1e-4, 1e-2]}, train.micro_batch: "
                           "{integer: [1, 6000]}") +
                    "method: {kind: grid}\n",
                "the grid has more than 10000 trials; widen steps"},
        Mistake{with_space("actors.validator.every: {choice: [1 epoch, none]}") +
                    "method: {kind: random, first: 3}\n",
                "s.yaml:4:24: method: first acts only with kind: bayesian"},
        Mistake{"space: {train.seed: {integer: [1, 2]}}\nobjective: {minimise: merit}\ntopology: "
                "nowhere.yaml\n",
                "/folder/nowhere.yaml: cannot be opened"},
        Mistake{"a: [\n", "s.yaml:2"}));

TEST(StudyErrors, ObjectiveOfValidationNeedsOne) {
  const TemporaryFolder folder;
  write_text(folder / "t.yaml",
             "model: {zoo: toy}\ndata: {train: [a.h5]}\nactors: {validator: {every: none}}\n");
  const std::string text =
      "topology: t.yaml\nspace: {train.seed: {integer: [1, 2]}}\nobjective: {minimise: x";
  EXPECT_THAT(parse_study(text + "}\n", "s.yaml", folder.path()),
              FailsWith(ErrorKind::kTopology, "s.yaml:3:12: objective: a run of "));
  EXPECT_TRUE(parse_study(text + ", of: metrics}\n", "s.yaml", folder.path()).ok());
}

TEST(StudyErrors, TrialsHaveNoPlaceOnAServerInCommon) {
  const TemporaryFolder folder;
  write_text(folder / "t.yaml",
             "model: {zoo: toy}\ndata: {train: [a.h5]}\n"
             "actors: {checkpointer: {copies: \"s3://bucket/a\"}}\n");
  EXPECT_THAT(
      parse_study("topology: t.yaml\nspace: {train.seed: {integer: [1, 2]}}\n"
                  "objective: {minimise: merit}\n",
                  "s.yaml", folder.path()),
      FailsWith(ErrorKind::kTopology, "s.yaml:1:11: topology: its actors.checkpointer.copies"));
}

// The toy with a pool of processes, and of hosts.
class StudyOfPools : public testing::Test {
 protected:
  std::string error_of(const std::string& cluster, const std::string& study) const {
    write_text(
        folder_ / "t.yaml",
        "model: {zoo: toy}\ndata: {train: [a.h5]}\ncluster:\n  listen: \"127.0.0.1:8500\"\n" +
            cluster);
    const std::string rest =
        study.starts_with("space:") ? study : "space: {train.seed: {integer: [1, 2]}}\n" + study;
    return message_of(
        parse_study("topology: t.yaml\nobjective: {minimise: x, of: metrics}\n" + rest, "s.yaml",
                    folder_.path()));
  }
  static constexpr const char* kCloud =
      "  pools: [{name: own, launcher: command, nodes: 2, start: up, stop: down}]\n";
  static constexpr const char* kHosts =
      "  pools: [{name: far, launcher: ssh, nodes: 1, hosts: [node-a, node-b]}]\n";

  const TemporaryFolder folder_;
};

TEST_F(StudyOfPools, TrialsShareNodesWhereTheStudyHasWorkers) {
  const std::string cloud = kCloud, hosts = kHosts;
  EXPECT_EQ(error_of(cloud, "workers: 2\nparallel: 2\n"), "");
  EXPECT_EQ(error_of(cloud, "parallel: 1\n"), "");
  EXPECT_EQ(error_of(hosts, "workers: 1\n"), "");
  EXPECT_THAT(error_of(cloud, "parallel: 2\n"),
              HasSubstr("workers: each of 2 trials at a time would take all nodes of the pools"));
  EXPECT_EQ(error_of(hosts, "workers: 2\nparallel: 2\n"), "");
  EXPECT_THAT(error_of(cloud + "  burst: {finish_within: 1h}\n", "workers: 2\n"),
              HasSubstr("workers: trials share the nodes of the pools, and cluster.burst would"));
  EXPECT_THAT(error_of(cloud, "space: {cluster.pools.0.nodes: {choice: [1, 2]}}\nworkers: 2\n"),
              HasSubstr("space.cluster.pools.0.nodes: all trials share cluster.pools"));
  EXPECT_THAT(error_of(cloud, "space: {cluster.joiners: {choice: [1, 2]}}\nworkers: 2\n"),
              HasSubstr("space.cluster.joiners: all trials share cluster.pools"));
  EXPECT_EQ(error_of(cloud, "space: {cluster.joiners: {choice: [1, 2]}}\n"), "");
}

TEST(StudyFile, RungsGoFromTheFirstToWhatTheTopologyTrains) {
  const std::string halving = "stop: {kind: halving, from: ";
  const std::string space =
      "topology: toy\nspace: {train.seed: {integer: [1, 9]}}\n"
      "objective: {minimise: merit}\n";
  EXPECT_THAT(parsed(space).rungs, testing::ElementsAre(0));
  // The toy trains four epochs.
  EXPECT_THAT(parsed(space + halving + "1 epoch, keep_one_in: 3}\n").rungs,
              testing::ElementsAre(1, 3, 4));
  EXPECT_THAT(parsed(space + halving + "1 epoch, keep_one_in: 2}\n").rungs,
              testing::ElementsAre(1, 2, 4));
  EXPECT_THAT(parse(space + halving + "4 epochs}\n"),
              FailsWith(ErrorKind::kTopology, "stop.from: trials train no further than that"));
  EXPECT_THAT(parse(space + halving + "50 iterations}\n"),
              FailsWith(ErrorKind::kTopology, "stop.from: the topology has no train.iterations"));
  EXPECT_THAT(parse(space + halving + "none}\n"),
              FailsWith(ErrorKind::kTopology, "stop.from: expected \"1 epoch\""));
  EXPECT_THAT(parse("topology: toy\nspace: {train.epochs: {integer: [2, 9]}}\n"
                    "objective: {minimise: merit}\n" +
                    halving + "1 epoch}\n"),
              FailsWith(ErrorKind::kTopology, "s.yaml:2:9: space.train.epochs: halving sets "));
  const TemporaryFolder folder;
  write_text(folder / "t.yaml",
             "model: {zoo: toy}\ndata: {train: [a.h5]}\ntrain: {epochs: 4, iterations: 9}\n");
  EXPECT_THAT(
      parse_study("topology: t.yaml\nspace: {train.seed: {integer: [1, 9]}}\n"
                  "objective: {minimise: merit}\n" +
                      halving + "1 epoch}\n",
                  "s.yaml", folder.path()),
      FailsWith(ErrorKind::kTopology, "the topology's train.iterations ends trials after 9"));
}

TEST(StudyErrors, TopologyThatIsWrongByItselfSaysSo) {
  const TemporaryFolder folder;
  write_text(folder / "t.yaml", "model: {zoo: toy}\ndata: {train: [a.h5], cach: none}\n");
  EXPECT_THAT(parse_study("topology: t.yaml\nspace: {train.seed: {integer: [1, 2]}}\n"
                          "objective: {minimise: merit}\n",
                          "s.yaml", folder.path()),
              FailsWith(ErrorKind::kTopology, "t.yaml:2:23: data: unknown key \"cach\""));
}

TEST(StudyErrors, HostileTextIsRefusedNotTrusted) {
  std::string deep = "space: ", wide = "topology: toy\nobjective: {minimise: merit}\nspace:\n";
  for (int i = 0; i < 10'000; ++i) deep += "{a: ";
  for (int i = 0; i < 1000; ++i) wide += fmt::format("  a{}: {{log: [1, 2]}}\n", i);
  EXPECT_FALSE(parse(deep).ok());
  EXPECT_THAT(parse(wide), FailsWith(ErrorKind::kTopology, "1 to 50 fields"));
  EXPECT_FALSE(parse("topology: \"\\e[31m\"\n").ok());
}

// Compares a committed text with the generated one; says how to bring it up to date.
void expect_committed(const std::string& committed, const std::string& generated,
                      const std::string& name) {
  if (committed == generated) return;
  const std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << generated;
  ADD_FAILURE() << name << " is not what the table of fields says; the new text is in " << path;
}

TEST(StudyLanguage, CommittedSchemaIsTheGeneratedOne) {
  expect_committed(read_text(source_path("study/study.schema.json")), study_schema_json(),
                   "study.schema.json");
}

TEST(StudyLanguage, CommittedReferenceIsTheGeneratedOne) {
  const std::string text = read_text(source_path("docs/studies.md"));
  const std::string begin = "<!-- fields: generated -->\n", end = "<!-- end of fields -->\n";
  const std::size_t from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to);
  expect_committed(text.substr(from + begin.size(), to - from - begin.size()), study_reference(),
                   "study_fields.md");
}

TEST(StudyLanguage, ShippedAndDocumentedStudiesAreRight) {
  std::size_t checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("config/studies"))) {
    const auto loaded = load_study(entry.path().string());
    EXPECT_TRUE(loaded.ok()) << message_of(loaded);
    ++checked;
  }
  std::istringstream text(read_text(source_path("docs/studies.md")));
  std::string block;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (inside && line == "```") {
      const auto loaded = parse_study(block, "docs/studies.md", source_path("docs"));
      EXPECT_TRUE(loaded.ok()) << message_of(loaded) << "\n" << block;
      ++checked;
    }
    inside = line == "```yaml study" || (inside && line != "```");
    block = line == "```yaml study" ? "" : block + line + "\n";
  }
  EXPECT_GE(checked, 2u);
}

}  // namespace
}  // namespace troupe::study
