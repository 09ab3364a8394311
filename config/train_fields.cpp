// The `train` section: batches, steps, optimisers and rates.

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"
#include "pipeline/steps/view.h"

namespace troupe::config {
namespace {

using model::FakeConditions;
using model::LearningRateKind;
using model::LearningRateOptions;
using model::OptimiserKind;
using model::OptimiserOptions;
using model::SlotKind;
using pipeline::Remainder;
using pipeline::TrainingOptions;

constexpr std::uint64_t kMostIterations = 4'000'000'000;  // random positions count in 32 bits

auto with_policy(LearningRateKind kind) {
  return [kind](const LearningRateOptions& options) { return options.kind == kind; };
}

RecordOf<LearningRateOptions> rate_record() {
  using Options = LearningRateOptions;
  auto record = std::make_shared<Record<Options>>("a learning rate");
  const auto exponential = with_policy(LearningRateKind::kExponential);
  const auto plateau = with_policy(LearningRateKind::kPlateau);
  const NumberRange from_zero{.least = 0.0};
  record->shared("learning_rate")
      .short_form("rate")
      .field("rate", &Options::rate, positive(), Scope::kState, "The rate the policy begins with.")
      .field("policy", &Options::kind,
             word<LearningRateKind>({{"constant", LearningRateKind::kConstant},
                                     {"warmup", LearningRateKind::kWarmup},
                                     {"exponential", LearningRateKind::kExponential},
                                     {"plateau", LearningRateKind::kPlateau}}),
             Scope::kState, "How the rate changes.")
      .field("warmup_iterations", &Options::warmup_iterations,
             integer<std::uint64_t>(0, kMostIterations), Scope::kState,
             "Iterations in which it grows linearly to the full rate.")
      .used_if("policy: warmup", with_policy(LearningRateKind::kWarmup))
      .field("decay", &Options::decay, number(NumberRange{0.0, 1.0, true}), Scope::kState,
             "Factor every decay_iterations.")
      .used_if("policy: exponential", exponential)
      .field("decay_iterations", &Options::decay_iterations,
             integer<std::uint64_t>(1, kMostIterations), Scope::kState, "Iterations per decay.")
      .used_if("policy: exponential", exponential)
      .field("factor", &Options::factor, number(NumberRange{0.0, 1.0, true}), Scope::kState,
             "Factor on the rate when the epoch's loss no longer falls.")
      .used_if("policy: plateau", plateau)
      .field("patience", &Options::patience, integer<std::uint32_t>(0, 1'000'000), Scope::kState,
             "Epochs without improvement before that.")
      .used_if("policy: plateau", plateau)
      .field("min_delta", &Options::min_delta, number(from_zero), Scope::kState,
             "The least fall of the loss that counts as an improvement.")
      .used_if("policy: plateau", plateau)
      .field("cooldown", &Options::cooldown, integer<std::uint32_t>(0, 1'000'000), Scope::kState,
             "Epochs after a reduction that do not count.")
      .used_if("policy: plateau", plateau)
      .field("min_rate", &Options::min_rate, number(from_zero), Scope::kState,
             "The rate is not reduced below it.")
      .used_if("policy: plateau", plateau)
      .check([](const YamlValue&, const Options& options, Reader& reader) {
        if (options.kind == LearningRateKind::kWarmup && options.warmup_iterations == 0) {
          reader.broken_rule({reader.path() + ".warmup_iterations", reader.path() + ".policy"},
                             "policy warmup needs warmup_iterations of at least 1");
        }
      });
  return record;
}

// Adadelta's usual rho is another than RMSprop's.
void set_optimiser_defaults(const YamlValue& section, OptimiserOptions& options) {
  const YamlValue* kind = section.find("kind");
  if (kind != nullptr && kind->scalar == "adadelta") options.rho = 0.95;
}

RecordOf<OptimiserOptions> optimiser_record() {
  using Options = OptimiserOptions;
  const auto one_of = [](OptimiserKind a, OptimiserKind b) {
    return [a, b](const Options& options) { return options.kind == a || options.kind == b; };
  };
  const auto adam = one_of(OptimiserKind::kAdam, OptimiserKind::kAdam);
  const NumberRange share{0.0, 0.999999, false};
  auto record = std::make_shared<Record<Options>>("an optimiser");
  record->shared("optimiser")
      .before(set_optimiser_defaults)
      .short_form("kind")
      .field("kind", &Options::kind,
             word<OptimiserKind>({{"rmsprop", OptimiserKind::kRmsprop},
                                  {"adam", OptimiserKind::kAdam},
                                  {"sgd", OptimiserKind::kSgd},
                                  {"adadelta", OptimiserKind::kAdadelta}}),
             Scope::kState, "The algorithm, in Keras' arithmetic.")
      .field("momentum", &Options::momentum, number(share), Scope::kState,
             "m = momentum m + update; w -= m.")
      .used_if("kind: sgd or rmsprop", one_of(OptimiserKind::kSgd, OptimiserKind::kRmsprop))
      .field("rho", &Options::rho, number(share), Scope::kState,
             "Share of the mean square that stays; 0.95 for adadelta unless given.")
      .used_if("kind: rmsprop or adadelta",
               one_of(OptimiserKind::kRmsprop, OptimiserKind::kAdadelta))
      .field("beta_1", &Options::beta_1, number(share), Scope::kState,
             "Share of the mean that stays.")
      .used_if("kind: adam", adam)
      .field("beta_2", &Options::beta_2, number(share), Scope::kState,
             "Share of the mean square that stays.")
      .used_if("kind: adam", adam)
      .field("epsilon", &Options::epsilon, positive(), Scope::kState,
             "Added to the root of the mean square (adadelta: under both roots).")
      .used_if("kind: rmsprop, adam or adadelta",
               [](const Options& options) { return options.kind != OptimiserKind::kSgd; });
  return record;
}

// One section per network.
template <class T>
RecordOf<TrainingOptions> per_network(const std::string& what, RecordOf<T> of_one,
                                      T TrainingOptions::*generator,
                                      T TrainingOptions::*discriminator) {
  auto record = std::make_shared<Record<TrainingOptions>>(what + " for each network");
  record->section("g", generator, of_one, "For the generator.")
      .section("d", discriminator, of_one, "For the discriminator.");
  return record;
}

void add_batch_fields(Record<Topology>& record) {
  record
      .field("epochs", within(&Topology::train, &TrainSection::epochs),
             integer<std::uint64_t>(1, 1'000'000), Scope::kFree, "Passes over the training events.")
      .field("iterations", within(&Topology::train, &TrainSection::iterations),
             optional(integer<std::uint64_t>(1, kMostIterations)), Scope::kFree,
             "Ends the run after so many iterations, if that is earlier.")
      .field("micro_batch",
             within(&Topology::train, &TrainSection::options, &TrainingOptions::micro_batch),
             integer<std::uint32_t>(1, 1 << 16), Scope::kState,
             "b: events computed as one; batch norm's statistics are theirs.")
      .field("micro_batches",
             within(&Topology::train, &TrainSection::options, &TrainingOptions::micro_batches),
             integer<std::uint32_t>(1, pipeline::kMostMicroBatches), Scope::kState,
             "M: micro-batches of an iteration; a step uses M x b events.")
      .field("scaling", within(&Topology::train, &TrainSection::scaling),
             word<Scaling>({{"strong", Scaling::kStrong}, {"weak", Scaling::kWeak}}), Scope::kState,
             "`strong`: M whatever the number of workers, so that the result does not depend on "
             "it; `weak`: M for each worker.")
      .field("remainder", within(&Topology::train, &TrainSection::remainder),
             newer(word<Remainder>({{"drop", Remainder::kDrop}, {"carry", Remainder::kCarry}}),
                   Remainder::kDrop),
             Scope::kState,
             "Events at the end of an epoch that fill no iteration: `drop` leaves them out, with "
             "`carry` they begin the next iteration.")
      .field("seed", within(&Topology::train, &TrainSection::options, &TrainingOptions::seed),
             integer<std::uint64_t>(0, INT64_MAX), Scope::kState,
             "Seed of every random number of the run.")
      .field("from", within(&Topology::train, &TrainSection::from),
             optional(path("a checkpoint, or weights of Keras")), Scope::kFixed,
             "File whose weights training begins with: a checkpoint of the same networks, from "
             "which nothing else is taken, or weights of Keras. Without it they follow from the "
             "seed.");
}

}  // namespace

// Conditions of fakes and flips of labels belong to the steps for people, and to the model in code,
// so their fields reach into the model's section.
std::shared_ptr<Record<Topology>> train_record() {
  const auto options = within(&Topology::train, &TrainSection::options);
  auto record = std::make_shared<Record<Topology>>("training");
  add_batch_fields(*record);
  record
      ->section("learning_rate", options,
                per_network("a learning rate", rate_record(), &TrainingOptions::generator_rate,
                            &TrainingOptions::discriminator_rate),
                "For each network: a number, or a policy.")
      .section(
          "optimiser", options,
          per_network("an optimiser", optimiser_record(), &TrainingOptions::generator_optimiser,
                      &TrainingOptions::discriminator_optimiser),
          "For each network: a word, or a section.")
      .field("schedule",
             within(&Topology::train, &TrainSection::options, &TrainingOptions::schedule),
             list(word<SlotKind>({{"d_real", SlotKind::kDReal},
                                  {"d_fake", SlotKind::kDFake},
                                  {"g", SlotKind::kG}}),
                  1, 100),
             Scope::kState, "The steps of an iteration, in order.")
      .field("fake_conditions",
             within(&Topology::model, &ModelSection::gan, &model::GanDescription::fake_conditions),
             word<FakeConditions>(
                 {{"batch", FakeConditions::kBatch}, {"uniform", FakeConditions::kUniform}}),
             Scope::kState,
             "Where the conditions of fakes come from: the real batch, or uniform numbers.")
      .field("fake_energy",
             within(&Topology::model, &ModelSection::gan, &model::GanDescription::fake_energy),
             array<2>(positive()), Scope::kState, "Range of the uniform energies, as E / 100 GeV.")
      .used_if("fake_conditions: uniform",
               [](const Topology& topology) {
                 return topology.model.gan.fake_conditions == FakeConditions::kUniform;
               })
      .field("flip_probability",
             within(&Topology::model, &ModelSection::gan, &model::GanDescription::flip_probability),
             number(0.0, 0.5), Scope::kState,
             "Probability that a label of the discriminator's steps is flipped.")
      .field("empty_iterations_limit",
             within(&Topology::train, &TrainSection::options,
                    &TrainingOptions::empty_iterations_limit),
             integer<std::uint32_t>(1, 1'000'000), Scope::kState,
             "Iterations in a row whose fakes are all empty before the run counts as diverged.");
  return record;
}

}  // namespace troupe::config
