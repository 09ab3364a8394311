// An iteration of each task, with the losses besides 3DGAN's, against PyTorch in float64
// (tests/oracle/tasks_case.py): in double by the reference backend, from the same numbers. Loss
// terms agree within 1e-6, and so does every step's gradient, and the weights that it leaves; a
// gradient penalty's, which is a difference here and a second-order pass there, within 1e-5.

#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "runtime/base/random.h"
#include "tests/support/fixture_vector.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using model::SlotKind;

constexpr std::uint64_t kSeed = 20;
constexpr std::uint32_t kMicroBatch = 3;
constexpr std::uint64_t kIteration = 5;
constexpr std::uint64_t kDataSeed = 77;

constexpr const char* kGan = R"(
model:
  generator:
    latent: {size: 6, conditions: [energy]}
    layers: [{dense: 32}, {activation: tanh}, {reshape: [4, 4, 2, 1]}]
  discriminator:
    input: [4, 4, 2, 1]
    layers:
      - convolution: {filters: 3, kernel: [2, 2, 2]}
      - activation: silu
      - flatten: {name: features}
      - dense: {units: 1, name: score, input: features}
      - dense: {units: 1, name: energy, input: features}
    outputs: [score, energy]
  losses:
    score: {kind: hinge, target: label, weight: 2}
    energy: {kind: mse, target: energy, weight: 0.1}
data: {train: none.h5, schema: custom, names: {energy: energy}}
train:
  micro_batch: 5
  micro_batches: 1
  seed: 20
  schedule: [d_real, d_fake, d_both, g]
  flip_probability: 0.3
  learning_rate: {g: 0.05, d: 0.05}
  optimiser: {g: sgd, d: sgd}
actors: {validator: {every: none}}
)";

// Its discriminator, told the energy.
constexpr const char* kTold =
    "model.discriminator={input: [4, 4, 2, 1], conditions: [energy], outputs: [score, energy], "
    "layers: "
    "[{dense: {units: 3, input: conditions}}, {activation: {kind: silu, name: asked}}, "
    "{convolution: {filters: 3, kernel: [2, 2, 2], input: input}}, {activation: silu}, "
    "{flatten: {}}, {concatenate: {with: [asked, conditions], name: features}}, "
    "{dense: {units: 1, name: score, input: features}}, "
    "{dense: {units: 1, name: energy, input: features}}]}";
constexpr const char* kPenalised =
    "model.losses.score={kind: wasserstein, target: label, weight: 2, gradient_penalty: 5}";

// Its networks, the generator of which makes columns.
constexpr const char* kMaking =
    "model.generator={latent: {size: 6, conditions: [energy]}, makes: {group/leak: leakage, depth: "
    "depth}, layers: [{dense: 7}, {activation: {kind: tanh, name: bent}}, {dense: {units: 1, name: "
    "leakage}}, {dense: {units: 1, input: bent}}, {activation: {kind: softplus, name: depth}}, "
    "{dense: {units: 32, input: bent}}, {activation: tanh}, {reshape: [4, 4, 2, 1]}]}";
constexpr const char* kReading =
    "model.discriminator={input: [4, 4, 2, 1], columns: [depth, group/leak], outputs: [score, "
    "energy], layers: "
    "[{dense: {units: 3, input: columns}}, {activation: {kind: silu, name: read}}, "
    "{convolution: {filters: 3, kernel: [2, 2, 2], input: input}}, {activation: silu}, "
    "{flatten: {}}, {concatenate: {with: [read, columns], name: features}}, "
    "{dense: {units: 1, name: score, input: features}}, "
    "{dense: {units: 1, name: energy, input: features}}]}";

constexpr const char* kSupervised = R"(
model:
  task: supervised
  network:
    input: [4, 4, 2, 1]
    layers:
      - convolution: {filters: 3, kernel: [2, 2, 2]}
      - activation: tanh
      - flatten: {name: features}
      - dense: {units: 3, name: kind, input: features}
      - dense: {units: 1, name: energy, input: features}
      - dense: {units: 1, name: share, input: features}
      - dense: {units: 1, name: angle, input: features}
      - dense: {units: 1, name: ecal, input: features}
      - dense: {units: 1, name: is_pion, input: features}
    outputs: [kind, energy, share, angle, ecal, is_pion]
  losses:
    kind: {kind: cross_entropy, target: pdg, classes: [11, 22, 211], weight: 0.7}
    energy: {kind: huber, target: energy}
    share: {kind: mse, target: group/share, weight: 2}
    angle: {kind: mae, target: angle}
    ecal: {kind: mape, target: ecal, weight: 0.1}
    is_pion: {kind: bce_logits, target: share.1}
data: {train: none.h5, schema: custom, names: {energy: energy}}
train:
  micro_batch: 5
  micro_batches: 1
  seed: 20
  learning_rate: {network: 0.05}
  optimiser: {network: sgd}
)";

constexpr const char* kDiffusion = R"(
model:
  task: diffusion
  diffusion: {conditions: [energy, angle, group/share]}
  network:
    input: [4, 4, 2, 5]
    layers:
      - slice: {begin: 1, count: 4, input: input}
      - global_max_pool
      - dense: 3
      - activation: {kind: silu, name: asked}
      - convolution: {filters: 3, kernel: [3, 3, 3], padding: same, name: fine, input: input}
      - convolution: {filters: 4, kernel: [2, 2, 2], stride: [2, 2, 2]}
      - group_norm: 2
      - activation: silu
      - transposed_convolution: {filters: 3, kernel: [2, 2, 2], stride: [2, 2, 2]}
      - add: [asked]
      - concatenate: [fine]
      - convolution: {filters: 1, kernel: [3, 3, 3], padding: same, name: velocity}
    outputs: [velocity]
  losses:
    velocity: {kind: mse, target: velocity, weight: 0.7}
data: {train: none.h5, schema: custom, names: {energy: energy}}
train:
  micro_batch: 5
  micro_batches: 1
  seed: 20
  schedule: [denoise, denoise]
  learning_rate: {network: 0.05}
  optimiser: {network: sgd}
actors: {validator: {every: none}}
)";

struct FixtureSlot {
  std::string kind;
  std::map<std::string, double> losses;
  FixtureVector gradient, weights;
};

std::vector<FixtureSlot> read_case(const std::string& name) {
  std::ifstream file(std::string(TROUPE_SOURCE_DIR) + "/tests/oracle/tasks.txt");
  CHECK(static_cast<bool>(file), "missing fixture; make it with tests/oracle/tasks_case.py");
  std::vector<FixtureSlot> slots;
  bool wanted = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, of;
    words >> word >> of;
    if (word == "slot") {
      wanted = of == name;
      if (wanted) words >> of >> slots.emplace_back().kind;
    } else if (wanted && word == "loss") {
      words >> slots.back().losses[of];
    } else if (wanted) {
      words >> word >> (of == "gradient" ? slots.back().gradient : slots.back().weights);
    }
  }
  return slots;
}

// Plays the steps of a case from weights that both draw.
class Play {
 public:
  explicit Play(const config::Topology& topology)
      : backend_(model::make_reference_backend(model::DataType::kFloat64)),
        gan_(model::Gan::compile(topology.model.gan, *backend_, 5).value()),
        stream_(*gan_),
        alone_(topology, model::make_reference_backend(model::DataType::kFloat32)),
        events_(alone_.micro_batch(kMicroBatch, kDataSeed)),
        state_(alone_.initial_state()) {
    const bool denoises = topology.model.gan.task == model::Task::kDiffusion;
    const std::array networks{&state_.generator, &state_.discriminator};
    for (std::uint32_t network = 0; network < 2; ++network) {
      std::vector<float>& weights = networks[network]->weights;
      for (std::uint32_t i = 0; i < weights.size(); ++i) {
        const double u = runtime::random_uniform({kSeed, 0, 0, 0, 40 + network}, i);
        weights[i] = static_cast<float>((denoises ? 0.25 : 0.8) * (2.0 * u - 1.0));
      }
    }
    state_.iteration = kIteration;
  }

  void expect_step(const FixtureSlot& want, double tolerance) {
    const SlotKind kind = alone_.options().schedule.at(state_.slot);
    ASSERT_EQ(model::slot_name(kind), want.kind);
    const std::vector<double> values = contributions(kind);
    const model::ContributionLayout& layout = gan_->contributions(kind);
    const std::string where = "slot " + std::to_string(state_.slot) + " " + want.kind;
    for (const auto& [term, loss] : want.losses) {
      const int index = layout.find("loss/" + term);
      ASSERT_GE(index, 0) << term;
      const auto offset = layout.tensors[static_cast<std::size_t>(index)].offset;
      EXPECT_NEAR(values[static_cast<std::size_t>(offset)], loss, tolerance * std::abs(loss))
          << where << " " << term;
    }
    const bool of_generator = kind == SlotKind::kG;
    const auto& weights = (of_generator ? state_.generator : state_.discriminator).weights;
    expect_vector(want.gradient, std::span(values).first(weights.size()), 0,
                  tolerance * want.gradient.norm, where + " gradient");
    const auto record = record_of(layout, values, state_.step(alone_.options().schedule.size()), 5);
    ASSERT_TRUE(pipeline::apply(alone_.gan(), alone_.options(), record, state_).ok());
    const std::vector<double> left(weights.begin(), weights.end());
    expect_vector(want.weights, left, 1, tolerance * want.weights.norm, where + " weights");
  }

 private:
  std::vector<double> contributions(SlotKind kind) {
    const pipeline::Batch& batch = events_.events;
    const auto numbers = batch.conditions.as<float>();
    const model::EventBatch events{batch.images.as<float>().data(), batch.energies().data(),
                                   batch.angles().data(), batch.ecals().data(),
                                   numbers.data() + std::size_t{3} * batch.events};
    const std::vector<double> g(state_.generator.weights.begin(), state_.generator.weights.end());
    const std::vector<double> d(state_.discriminator.weights.begin(),
                                state_.discriminator.weights.end());
    const model::GanParameters parameters{g.data(), nullptr, d.data(), nullptr};
    std::vector<double> values(static_cast<std::size_t>(gan_->contributions(kind).size));
    std::vector<double> fakes(static_cast<std::size_t>(gan_->fake_elements()));
    const std::vector<model::GanMicroBatch> one{{events, kMicroBatch, fakes.data(), values.data()}};
    const auto slot = static_cast<std::uint8_t>(state_.slot);
    const model::GanWork work{
        parameters, one, {kSeed, 0, static_cast<std::uint32_t>(kIteration), slot, 0}, stream_};
    if (model::slot_access(kind).prepare_reads != 0) gan_->prepare(kind, work);
    gan_->learn(kind, work);
    return values;
  }

  std::unique_ptr<model::Backend> backend_;
  std::unique_ptr<const model::Gan> gan_;
  model::GanStream stream_;
  Alone alone_;
  pipeline::MicroBatch events_;
  pipeline::TrainingState state_;
};

void expect_case(const std::string& name, const std::string& text,
                 const std::vector<std::string>& settings = {}, double tolerance = 1e-6) {
  const auto loaded = config::parse_topology(text, "test", ".", settings);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const auto slots = read_case(name);
  ASSERT_EQ(slots.size(), loaded->topology.train.options.schedule.size());
  Play play(loaded->topology);
  for (const FixtureSlot& slot : slots) play.expect_step(slot, tolerance);
}

TEST(TasksOracle, LeastSquaresAgreesWithPyTorchInDouble) {
  expect_case("least_squares", kGan, {"model.losses.score={kind: mse, target: label, weight: 2}"});
}

TEST(TasksOracle, HingeAgreesWithPyTorchInDouble) { expect_case("hinge", kGan); }

TEST(TasksOracle, WassersteinWithPenaltyAgreesWithASecondOrderPassOfPyTorch) {
  expect_case("wasserstein", kGan, {kPenalised}, 1e-5);
}

TEST(TasksOracle, CriticThatIsToldTheEnergyAgreesWithPyTorch) {
  expect_case("conditional", kGan, {kTold, kPenalised}, 1e-5);
}

TEST(TasksOracle, ColumnsThatAreMadeAndReadAgreeWithPyTorch) {
  expect_case("columns", kGan, {kMaking, kReading});
}

TEST(TasksOracle, EveryLossOfASupervisedTaskAgreesWithPyTorchInDouble) {
  expect_case("supervised", kSupervised);
}

TEST(TasksOracle, DiffusionAgreesWithPyTorchInDouble) { expect_case("diffusion", kDiffusion); }

}  // namespace
}  // namespace troupe::training_test
