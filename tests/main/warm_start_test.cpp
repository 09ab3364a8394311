// Trainings that begin with weights from elsewhere.

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class WarmStart : public ToyRun {
 protected:
  std::string origin_of(const std::string& checkpoint) const {
    const JsonValue told = last_line(call({"inspect", checkpoint, "--json"}));
    return told["origin"].is_null() ? "" : told["origin"].text();
  }
  std::string hash_in(const std::string& checkpoint) const {
    return last_line(call({"inspect", checkpoint, "--json"}))["state_hash"].text();
  }
};

// Rates, schedule, optimiser and data are its own.
TEST_F(WarmStart, RunFromACheckpointHasItsWeightsAndNothingElse) {
  run("a");
  ToyData(120).write(path("other.h5"));
  const Words other{"--set", "train.optimiser={g: adam, d: adam}",
                    "--set", "train.schedule=[d_real, g]",
                    "--set", "train.learning_rate={g: 1e-4, d: 1e-4}",
                    "--set", "data.train=" + path("other.h5"),
                    "--set", "train.iterations=3",
                    "--set", "data.test_one_in=10"};
  const std::string began = hash_of("b", other + Words{"--from", path("a")});
  EXPECT_NE(began, hash_of("c", other));
  // The same for whoever computes.
  EXPECT_EQ(began, hash_of("d", other + Words{"--from", checkpoint("a", 0), "--workers", "2"}));
  EXPECT_THAT(origin_of(checkpoint("b", 0)),
              AllOf(HasSubstr("both networks from the checkpoint " + checkpoint("a", 0)),
                    HasSubstr("state hash " + hash_in(checkpoint("a", 0)))));
  EXPECT_EQ(origin_of(checkpoint("c", 0)), "");
  // It goes on, and says where it came from, when that is gone.
  std::filesystem::remove_all(path("a"));
  const std::string origin = origin_of(checkpoint("b", 0));
  EXPECT_EQ(resumed("b", {"--set", "train.iterations=5"})["iterations"].integer(), 5);
  EXPECT_EQ(origin_of(checkpoint("b", 0)), origin);
}

TEST_F(WarmStart, RunFromWeightsOfKerasIsTheRunFromTheirCheckpoint) {
  run("a");
  ASSERT_EQ(call({"export", path("a"), "--keras", path("w.h5")}).exit_code, 0);
  const Words few{"--set", "train.iterations=2"};
  const std::string from_checkpoint = hash_of("b", few + Words{"--from", checkpoint("a", 0)});
  EXPECT_EQ(hash_of("c", few + Words{"--from", path("w.h5")}), from_checkpoint);
  EXPECT_THAT(origin_of(checkpoint("c", 0)),
              AllOf(HasSubstr("the generator from the Keras file " + path("w.h5")),
                    HasSubstr("the discriminator from " + path("w_discriminator.h5"))));
  std::filesystem::remove(path("w_discriminator.h5"));
  EXPECT_NE(hash_of("d", few + Words{"--from", path("w.h5")}), from_checkpoint);
  EXPECT_THAT(origin_of(checkpoint("d", 0)), HasSubstr("the discriminator by the seed"));
}

TEST_F(WarmStart, ImportedWeightsMakeACheckpoint) {
  run("a");
  ASSERT_EQ(call({"export", path("a"), "--keras", path("w.h5")}).exit_code, 0);
  const ProcessEnd end =
      call({"import", path("w.h5"), "--model", path("toy.yaml"), "--out", path("i.h5"), "--json"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["origin"].text(), origin_of(path("i.h5")));
  for (const char* const read : {"w.h5", "w_discriminator.h5"}) {
    expect_refused(
        call({"import", path("w.h5"), "--model", path("toy.yaml"), "--out", path(read), "--force"}),
        2, {path(read) + " is read itself"});
  }
  const Words few{"--set", "train.iterations=2"};
  EXPECT_EQ(hash_of("b", few + Words{"--from", path("i.h5")}),
            hash_of("c", few + Words{"--from", checkpoint("a", 0)}));
  const ProcessEnd made = call({"generate", path("i.h5"), "--events", "5", "--out", path("g.h5")});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const ProcessEnd local =
      call({"import", path("w.h5"), "--model", path("toy.yaml"), "--set",
            "train.strategy={kind: local, workers: 1}", "--out", path("l.h5")});
  EXPECT_EQ(local.exit_code, 0) << local.err;
  const ProcessEnd others =
      call({"generate", path("l.h5"), "--events", "5", "--out", path("h.h5")});
  EXPECT_EQ(others.exit_code, 0) << others.err;
}

TEST_F(WarmStart, WeightsThatDoNotFitAreRefusedByCheckAndRun) {
  write_text(path("text"), "no weights");
  run("a");
  const auto both = [&](const std::string& from, const std::string& part) {
    expect_refused(call({"check", path("toy.yaml"), "--set", "train.from=" + from}), 4,
                   {"train.from", part});
    expect_refused(run("b", {"--from", from}), 4, {"train.from", part});
    std::filesystem::remove_all(path("b"));
  };
  expect_refused(run("b", {"--from", path("none.h5")}), 4,
                 {"train.from: cannot open " + path("none.h5")});
  EXPECT_FALSE(std::filesystem::exists(path("b")));
  both(path("none.h5"), "cannot open " + path("none.h5"));
  both(path("text"), path("text") + ": its HDF5 part cannot be opened");
  // Another model of the same kind.
  expect_refused(
      call({"run", "quickstart", "--out", path("q"), "--from", checkpoint("a", 0), "--set",
            "data.synthetic.events=100", "--set", "data.synthetic.folder=" + path("data")}),
      4, {"weights of another model: it has /generator/dense1/kernel of shape (3, 8)"});
  expect_refused(call({"run", "--resume", path("a"), "--from", path("text")}), 2,
                 {"--from is for a run that begins"});
  expect_refused(
      call({"import", path("toy.h5"), "--model", path("toy.yaml"), "--out", path("i.h5")}), 4,
      {"/ has no attribute layer_names"});
}

}  // namespace
}  // namespace troupe
