// Showers from a checkpoint, through the binary.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <numeric>

#include "pipeline/data/dataset.h"
#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// The images of files of the toy, one behind the other.
std::vector<float> cells_of(const std::vector<std::string>& paths) {
  pipeline::DatasetOptions options;
  options.paths = paths;
  options.preprocessing = pipeline::Preprocessing{};
  auto dataset = pipeline::Dataset::open(options);
  CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
  std::vector<std::uint64_t> ids(dataset->size());
  std::iota(ids.begin(), ids.end(), 0u);
  pipeline::Batch batch;
  CHECK(dataset->read(ids, batch).ok());
  const auto values = batch.images.as<float>();
  return {values.begin(), values.end()};
}

TEST_F(ToyRun, GeneratedShowersDoNotDependOnThreadsAndAreReadAsData) {
  run("a");
  const auto generate = [&](const std::string& name, const Words& more) {
    Words words =
        Words{"generate", checkpoint("a", 0), "--out", path(name), "--events", "50"} + more;
    const ProcessEnd end = call(words);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return read_text(path(name));
  };
  const std::string bytes = generate("1.h5", {"--energy", "60", "--threads", "1"});
  EXPECT_EQ(generate("3.h5", {"--energy", "60", "--threads", "3"}), bytes);
  EXPECT_NE(generate("seed.h5", {"--energy", "60", "--seed", "2"}), bytes);
  EXPECT_NE(generate("energy.h5", {"--energy", "61"}), bytes);
  const JsonValue made = last_line(
      call({"generate", checkpoint("a", 0), "--out", path("told.h5"), "--events", "50", "--json"}));
  ASSERT_EQ(made["devices"].list().size(), 1U);
  EXPECT_EQ(made["devices"].list()[0]["device"].text(), "cpu");
  EXPECT_EQ(made["devices"].list()[0]["events"].integer(), 50);
  const JsonValue info = last_line(call({"data", "info", path("1.h5"), "--json"}));
  EXPECT_EQ(info["schema"].text(), "lcd-fixed");
  EXPECT_EQ(info["events"].integer(), 50);
  EXPECT_NEAR(info["energy_gev"]["min"].number(), 60.0, 1e-4);
  EXPECT_EQ(info["bad_events"].integer(), 0);
}

// A shower is a function of the seed and its number: not of the call, the file or the threads.
TEST_F(ToyRun, GeneratedEventsAreTheSameInWhateverFileTheyCome) {
  run("a");
  const auto cells = [&](const std::string& name, const std::vector<std::string>& files,
                         const Words& more) {
    const ProcessEnd end =
        call(Words{"generate", path("a"), "--out", path(name), "--energy", "10:500"} + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return cells_of(files);
  };
  const auto whole = cells("w.h5", {path("w.h5")}, {"--events", "60", "--threads", "1"});
  EXPECT_EQ(cells("f.h5", {path("f_0.h5"), path("f_1.h5"), path("f_2.h5")},
                  {"--events", "60", "--threads", "3", "--files", "3"}),
            whole);
  const auto later = cells("l.h5", {path("l.h5")}, {"--events", "20", "--first", "40"});
  const auto image = static_cast<std::ptrdiff_t>(whole.size()) / 60;
  EXPECT_EQ(later, std::vector<float>(whole.begin() + 40 * image, whole.end()));
  // Numbers go on beyond 32 bits.
  EXPECT_NE(cells("m.h5", {path("m.h5")}, {"--events", "20", "--first", "4294967336"}), later);
}

TEST_F(ToyRun, GeneratedEnergiesFollowTheLawThatWasAskedFor) {
  run("a");
  write_text(path("spectrum.txt"), "# GeV\n50 60 1\n\n90 100 3\n");
  const auto energies = [&](const std::string& law, const std::string& events) {
    const ProcessEnd end = call({"generate", path("a"), "--out", path("g.h5"), "--energy", law,
                                 "--events", events, "--force"});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    std::vector<float> rows = rows_of(path("g.h5"), "target", std::stoull(events), 2);
    std::vector<float> values;
    for (std::size_t i = 1; i < rows.size(); i += 2) values.push_back(rows[i]);
    return values;
  };
  EXPECT_EQ(energies("50,100,200", "5"), (std::vector<float>{50, 100, 200, 50, 100}));
  const auto histogram = energies(path("spectrum.txt"), "400");
  const auto low = std::count_if(histogram.begin(), histogram.end(),
                                 [](float energy) { return energy >= 50 && energy <= 60; });
  const auto high = std::count_if(histogram.begin(), histogram.end(),
                                  [](float energy) { return energy >= 90 && energy <= 100; });
  EXPECT_EQ(low + high, 400);
  EXPECT_NEAR(static_cast<double>(low), 100.0, 35.0);  // 4 sigma
}

TEST_F(ToyRun, GenerateRefusesEnergiesThatItDoesNotUnderstand) {
  run("a");
  write_text(path("bad.txt"), "1 2 3\n5 4 1\n");
  const auto refused = [&](const std::string& law, int code, const std::string& part) {
    expect_refused(call({"generate", checkpoint("a", 0), "--out", path("g.h5"), "--energy", law}),
                   code, {part});
  };
  refused("many", 2, "many is no number");
  refused("500:10", 2, "a range ends above its beginning");
  refused("10:1e9", 2, "0.001 to 1000000 GeV");
  refused(path("bad.txt"), 4, path("bad.txt") + ":2: a bin has LOW < HIGH");
  EXPECT_FALSE(std::filesystem::exists(path("g.h5")));
}

// The toy with a convolution of several channels to several, as int8 knows them alone.
constexpr const char* kWide = R"(name: wide
model:
  generator:
    latent: {size: 8, conditions: [energy], mode: prepend}
    layers:
      - dense: 32
      - reshape: [2, 2, 2, 4]
      - activation: leaky_relu
      - batch_norm
      - upsample: [2, 2, 2]
      - convolution: {filters: 4, kernel: [2, 2, 2], padding: same}
      - activation: leaky_relu
      - convolution: {filters: 1, kernel: [2, 2, 2], padding: same}
      - activation: leaky_relu
  discriminator:
    input: [4, 4, 4, 1]
    layers:
      - flatten
      - dense: {units: 1, name: generation_logit}
      - activation: {kind: sigmoid, name: generation}
    outputs: [generation]
  losses:
    generation: {kind: bce, target: label, weight: 2}
data: {train: synthetic, schema: lcd-fixed}
train: {iterations: 2, micro_batch: 4, micro_batches: 1}
actors: {validator: {every: none}}
)";

// A model that is asked for further numbers, and one that learns from its showers.
TEST_F(ToyRun, GeneratedShowersHaveTheNumbersThatTheyWereAskedFor) {
  std::string two = kWide;
  two.replace(two.find("[energy]"), 8, "[energy, target, eta]");
  write_text(path("two.yaml"), two);
  {
    const ToyData data(60);
    pipeline::Hdf5Scribe file(path("two.h5"));
    file.add("ECAL", {60, 4, 4, 4}, data.cells);
    file.add("target", {60, 2}, data.target);
    file.add("eta", {60}, std::vector<float>(60, 0.5F));
  }
  const Words run{"run", path("two.yaml"), "--set", "train.iterations=1", "--out"};
  const ProcessEnd trained =
      call(run + Words{path("a"), "--set", "data.train=[" + path("two.h5") + "]"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Words asked{"generate",      path("a"),     "--events",      "8",    "--condition",
                    "target=22,211", "--condition", "eta=0.25:0.75", "--out"};
  const ProcessEnd made = call(asked + Words{path("g.h5"), "--energy", "50"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(
      rows_of(path("g.h5"), "target", 8, 2),
      (std::vector<float>{22, 50, 211, 50, 22, 50, 211, 50, 22, 50, 211, 50, 22, 50, 211, 50}));
  for (const float eta : rows_of(path("g.h5"), "eta", 8, 1)) {
    EXPECT_GE(eta, 0.25F);
    EXPECT_LE(eta, 0.75F);
  }
  const ProcessEnd again = call(run + Words{path("b"), "--set", "data.train=[" + path("g.h5") + "]",
                                            "--set", "data.preprocessing.min_ecal=-1"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(ToyRun, ShowersInInt8DoNotDependOnThreadsOrTheCallAndAreNearlyTheSame) {
  write_text(path("wide.yaml"), kWide);
  const ProcessEnd trained = call({"run", path("wide.yaml"), "--out", path("a"), "--set",
                                   "data.train=[" + path("toy.h5") + "]"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto cells = [&](const std::string& name, const Words& more) {
    const ProcessEnd end =
        call(Words{"generate", path("a"), "--out", path(name), "--energy", "10:500"} + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return cells_of({path(name)});
  };
  const auto exact = cells("e.h5", {"--events", "50"});
  const auto int8 = cells("i.h5", {"--events", "50", "--int8", "--threads", "1"});
  EXPECT_EQ(cells("t.h5", {"--events", "50", "--int8", "--threads", "3"}), int8);
  const auto later = cells("l.h5", {"--events", "20", "--int8", "--first", "30"});
  const auto image = static_cast<std::ptrdiff_t>(int8.size()) / 50;
  EXPECT_EQ(later, std::vector<float>(int8.begin() + 30 * image, int8.end()));
  EXPECT_NE(int8, exact);
  EXPECT_THAT(call({"generate", path("a"), "--out", path("o.h5"), "--int8"}).err,
              HasSubstr("troupe: 1 of 2 convolutions in int8"));
  double difference = 0.0, sum = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::abs(static_cast<double>(exact[i] - int8[i]));
    sum += static_cast<double>(exact[i]);
  }
  EXPECT_LT(difference, 0.1 * sum);
  for (const Words& other : {Words{"--precision", "bf16"}, Words{"--device", "cpu"}}) {
    expect_refused(call(Words{"generate", path("a"), "--out", path("r.h5"), "--int8"} + other), 2,
                   {"--int8 and " + other.front() + ": only one of them"});
  }
}

TEST_F(ToyRun, GenerateRefusesADeviceThatIsGivenTwice) {
  run("a");
  expect_refused(
      call({"generate", path("a"), "--out", path("r.h5"), "--device", "cpu", "--device", "cpu"}), 2,
      {"--device cpu is given twice"});
}

TEST_F(ToyRun, GenerateThatIsStoppedOrFindsAFullDiskLeavesNothing) {
  run("a");
  const auto names = folder_.names();
  const Words endless{"generate",   checkpoint("a", 0), "--out",
                      path("g.h5"), "--events",         "1000000000"};
  const ProcessEnd full = call(endless, {.largest_file_bytes = 1 << 20});
  expect_refused(full, 4, {path("g.h5") + ".part: File too large"});
  EXPECT_EQ(folder_.names(), names);
  Process process(command(endless));
  EXPECT_TRUE(process.wait_until([&] { return std::filesystem::exists(path("g.h5.part")); }));
  process.send(SIGTERM);
  const ProcessEnd stopped = process.wait();
  EXPECT_EQ(stopped.exit_code, 143) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("stopped by signal 15"));
  EXPECT_EQ(folder_.names(), names);
}

TEST_F(ToyRun, MakingDataThatIsStoppedLeavesNothing) {
  const auto names = folder_.names();
  for (const int signal : {SIGTERM, SIGINT}) {
    Process process(command(
        {"data", "make", path("g.h5"), "--events", "100000000", "--detector", "lcd-fixed-12"}));
    EXPECT_TRUE(process.wait_until([&] { return std::filesystem::exists(path("g.h5.part")); }));
    process.send(signal);
    const ProcessEnd stopped = process.wait();
    EXPECT_EQ(stopped.exit_code, 128 + signal) << stopped.err;
    EXPECT_THAT(stopped.err, HasSubstr("stopped by signal " + std::to_string(signal)));
    EXPECT_EQ(folder_.names(), names);
  }
}

TEST_F(ToyRun, GenerateRefusesWhatIsNoCheckpoint) {
  expect_refused(call({"generate", path("toy.h5"), "--out", path("g.h5")}), 4,
                 {path("toy.h5"), "not a checkpoint"});
  EXPECT_FALSE(std::filesystem::exists(path("g.h5")));
}

TEST_F(ToyRun, GenerateLooksAtItsOutputFirst) {
  run("a");
  const std::string newest = checkpoint("a", 0);
  const std::string before = read_text(newest);
  const auto refused = [&](const std::string& out, int code, const std::string& part) {
    expect_refused(call({"generate", newest, "--out", out, "--events", "4294967295"}), code,
                   {out, part});
  };
  refused(newest, 2, "is read itself");
  refused(path("a/../a/checkpoints/") + checkpoints("a").front(), 2, "is read itself");
  refused(path("none/x.h5"), 4, "No such file or directory");
  EXPECT_EQ(read_text(newest), before);
}

}  // namespace
}  // namespace troupe
