// The `train` section: batches, steps, optimisers and rates.

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"
#include "pipeline/steps/view.h"

namespace troupe::config {
namespace {

using model::FakeConditions;
using model::LearningRateKind;
using model::LearningRateOptions;
using model::LearningRatePart;
using model::OptimiserKind;
using model::OptimiserOptions;
using model::RateScaling;
using model::SlotKind;
using model::TrainingSpan;
using pipeline::Remainder;
using pipeline::TrainingOptions;

constexpr std::uint64_t kMostIterations = 4'000'000'000;  // random positions count in 32 bits

template <class Options = LearningRateOptions>
std::function<bool(const Options&)> with_policy(LearningRateKind kind) {
  return [kind](const Options& options) { return options.kind == kind; };
}

// "5 epochs" or "500 iterations"; one of 0 is not written.
CodecOf<TrainingSpan> span() {
  const CodecOf<Every> content = every();
  TypeDescription type = content->describe();
  type.name = "\"5 epochs\" or \"500 iterations\"";
  type.pattern = "^[1-9][0-9]* *(epochs?|iterations?)$";
  return codec_of<TrainingSpan>(
      type,
      [content, type](const YamlValue& value, TrainingSpan& into, Reader& reader) {
        Every given{Every::Unit::kNever, 0};
        content->read(value, given, reader);
        if (value.scalar == "none") reader.expected(value, type.name);
        if (given.count > kMostIterations) {
          reader.expected(value, fmt::format("at most {}", kMostIterations));
        }
        into = {given.count, given.unit == Every::Unit::kEpochs};
      },
      [content](const TrainingSpan& value, Selection selection) {
        if (value.count == 0) return YamlValue{};
        const auto unit = value.epochs ? Every::Unit::kEpochs : Every::Unit::kIterations;
        return content->write({unit, value.count}, selection);
      });
}

// What a plateau reads, in a policy and in a part of one.
template <class Options>
void add_plateau_fields(Record<Options>& record) {
  const auto plateau = with_policy<Options>(LearningRateKind::kPlateau);
  const NumberRange from_zero{.least = 0.0};
  record
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
      .used_if("policy: plateau", plateau);
}

// A time that never comes is a slip of the pen. Iterations and epochs are not compared with each
// other here, as what an epoch has follows from the data.
void check_times(const LearningRatePart& part, Reader& reader) {
  const std::string path = reader.path() + ".";
  if (part.at.empty()) {
    reader.broken_rule({path + "at", path + "policy"}, "steps need `at`: after what times");
  }
  for (std::size_t i = 0; i < part.at.size(); ++i) {
    const TrainingSpan& time = part.at[i];
    const std::string at = fmt::format("{}at.{}", path, i);
    if (std::find(part.at.begin(), part.at.begin() + static_cast<std::ptrdiff_t>(i), time) !=
        part.at.begin() + static_cast<std::ptrdiff_t>(i)) {
      reader.broken_rule({at}, "is given twice; give a smaller factor for a larger step");
    }
    const bool is_beyond = part.length.count > 0 && part.length.epochs == time.epochs &&
                           time.count > part.length.count;
    if (is_beyond) {
      reader.broken_rule({at, path + "for"}, "is beyond `for`, which is when the part ends");
    }
  }
}

RecordOf<LearningRatePart> part_record() {
  using Part = LearningRatePart;
  using Kind = LearningRateKind;
  auto record = std::make_shared<Record<Part>>("a part of a learning rate");
  const NumberRange share{0.0, 1.0, true};
  record->shared("learning_rate_part")
      .required("policy", &Part::kind,
                word<Kind>({{"constant", Kind::kConstant},
                            {"warmup", Kind::kWarmup},
                            {"cosine", Kind::kCosine},
                            {"exponential", Kind::kExponential},
                            {"steps", Kind::kSteps},
                            {"plateau", Kind::kPlateau}}),
                Scope::kState, "How the rate changes.")
      .field("for", &Part::length, span(), Scope::kState,
             "How long; only the last part goes on without it.")
      .field("to", &Part::to, number(0.0, 1.0), Scope::kState,
             "Share of the rate that is left at the end of half a cosine.")
      .used_if("policy: cosine", with_policy<Part>(Kind::kCosine))
      .field("decay", &Part::decay, number(share), Scope::kState, "Factor after each `every`.")
      .used_if("policy: exponential", with_policy<Part>(Kind::kExponential))
      .field("every", &Part::every, span(), Scope::kState, "Time between two decays.")
      .used_if("policy: exponential", with_policy<Part>(Kind::kExponential))
      .field("at", &Part::at, list(span(), 0, 100), Scope::kState,
             "Times from the part's beginning after each of which the rate is multiplied.")
      .used_if("policy: steps", with_policy<Part>(Kind::kSteps))
      .field("factor", &Part::factor, number(share), Scope::kState,
             "Factor on the rate at each step, or when the epoch's loss no longer falls.")
      .used_if("policy: steps or plateau", [](const Part& part) {
        return part.kind == Kind::kSteps || part.kind == Kind::kPlateau;
      });
  add_plateau_fields(*record);
  record->check([](const YamlValue&, const Part& part, Reader& reader) {
    const bool has_length = part.kind == Kind::kWarmup || part.kind == Kind::kCosine;
    if (has_length && part.length.count == 0) {
      reader.broken_rule({reader.path() + ".for", reader.path() + ".policy"},
                         "a warm-up and a cosine need `for`: how long they last");
    }
    if (part.kind == Kind::kSteps) check_times(part, reader);
  });
  return record;
}

void check_rate(const YamlValue&, const LearningRateOptions& options, Reader& reader) {
  const std::string path = reader.path() + ".";
  const auto& parts = options.parts;
  if (options.kind == LearningRateKind::kWarmup && options.length.count == 0) {
    reader.broken_rule({path + "warmup_iterations", path + "policy"},
                       "policy warmup needs warmup_iterations of at least 1");
  }
  if (options.kind != LearningRateKind::kConstant && !parts.empty()) {
    reader.broken_rule({path + "parts", path + "policy"}, "give either a policy or parts");
  }
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i].length.count > 0) continue;
    reader.broken_rule({fmt::format("{}parts.{}", path, i)},
                       "a part that others follow needs `for`: how long it lasts");
  }
  if (options.scaled != RateScaling::kNone && options.per_events == 0) {
    reader.broken_rule({path + "per_events", path + "scaled"},
                       "a rate that is scaled needs per_events: for how many events it is meant");
  }
}

RecordOf<LearningRateOptions> rate_record() {
  using Options = LearningRateOptions;
  auto record = std::make_shared<Record<Options>>("a learning rate");
  const auto exponential = with_policy(LearningRateKind::kExponential);
  const auto plateau = with_policy(LearningRateKind::kPlateau);
  record->shared("learning_rate")
      .short_form("rate")
      .field("rate", &Options::rate, positive(), Scope::kState, "The rate the policy begins with.")
      .field("policy", &Options::kind,
             word<LearningRateKind>({{"constant", LearningRateKind::kConstant},
                                     {"warmup", LearningRateKind::kWarmup},
                                     {"exponential", LearningRateKind::kExponential},
                                     {"plateau", LearningRateKind::kPlateau}},
                                    {"cosine", "steps"},
                                    "it is one of parts, as in parts: [{policy: cosine, for: 10 "
                                    "epochs}]"),
             Scope::kState, "How the rate changes.")
      .field("warmup_iterations", within(&Options::length, &TrainingSpan::count),
             integer<std::uint64_t>(0, kMostIterations), Scope::kState,
             "Iterations in which it grows linearly to the full rate.")
      .used_if("policy: warmup", with_policy(LearningRateKind::kWarmup))
      .field("decay", &Options::decay, number(NumberRange{0.0, 1.0, true}), Scope::kState,
             "Factor every decay_iterations.")
      .used_if("policy: exponential", exponential)
      .field("decay_iterations", within(&Options::every, &TrainingSpan::count),
             integer<std::uint64_t>(1, kMostIterations), Scope::kState, "Iterations per decay.")
      .used_if("policy: exponential", exponential)
      .field("factor", &Options::factor, number(NumberRange{0.0, 1.0, true}), Scope::kState,
             "Factor on the rate when the epoch's loss no longer falls.")
      .used_if("policy: plateau", plateau);
  add_plateau_fields(*record);
  record
      ->field("parts", &Options::parts,
              newer(list(CodecOf<LearningRatePart>(part_record()), 0, 16),
                    std::vector<LearningRatePart>{}),
              Scope::kState,
              "In place of a policy: policies that follow one another, each from the rate that the "
              "one before has left.")
      .field("scaled", &Options::scaled,
             newer(word<RateScaling>({{"none", RateScaling::kNone},
                                      {"linear", RateScaling::kLinear},
                                      {"sqrt", RateScaling::kSqrt}}),
                   RateScaling::kNone),
             Scope::kState,
             "Whether the rate is multiplied by (M x b) / per_events, or by the root of that.")
      .field("per_events", &Options::per_events, integer<std::uint64_t>(0, kMostIterations),
             Scope::kState, "Events of an iteration that the rate is meant for.")
      .used_if("scaled: linear or sqrt",
               [](const Options& options) { return options.scaled != RateScaling::kNone; })
      .check(check_rate);
  return record;
}

RecordOf<pipeline::MeanOptions> mean_record() {
  auto record = std::make_shared<Record<pipeline::MeanOptions>>("a mean of weights");
  record->short_form("decay").field(
      "decay", &pipeline::MeanOptions::decay, number(NumberRange{0.0, 0.9999999, false}),
      Scope::kState, "Share of the mean before in the mean after an update, once it has begun.");
  return record;
}

// Adadelta's usual rho is another than RMSprop's, and LARS is SGD with momentum.
void set_optimiser_defaults(const YamlValue& section, OptimiserOptions& options) {
  const YamlValue* kind = section.find("kind");
  if (kind == nullptr) return;
  if (kind->scalar == "adadelta") options.rho = 0.95;
  if (kind->scalar == "lars") options.momentum = 0.9;
}

RecordOf<OptimiserOptions> optimiser_record() {
  using Options = OptimiserOptions;
  const auto one_of = [](std::vector<OptimiserKind> kinds) {
    return [kinds](const Options& options) {
      return std::ranges::find(kinds, options.kind) != kinds.end();
    };
  };
  const auto adam = one_of({OptimiserKind::kAdam, OptimiserKind::kLamb});
  const NumberRange share{0.0, 0.999999, false};
  auto record = std::make_shared<Record<Options>>("an optimiser");
  record->shared("optimiser")
      .before(set_optimiser_defaults)
      .short_form("kind")
      .field("kind", &Options::kind,
             word<OptimiserKind>({{"rmsprop", OptimiserKind::kRmsprop},
                                  {"adam", OptimiserKind::kAdam},
                                  {"sgd", OptimiserKind::kSgd},
                                  {"adadelta", OptimiserKind::kAdadelta},
                                  {"lars", OptimiserKind::kLars},
                                  {"lamb", OptimiserKind::kLamb}}),
             Scope::kState,
             "The algorithm, in Keras' arithmetic. lars and lamb are for large batches: they scale "
             "a tensor's step by its norm, and update weights on the host.")
      .field("momentum", &Options::momentum, number(share), Scope::kState,
             "m = momentum m + update; w -= m. 0.9 for lars unless given.")
      .used_if("kind: sgd, rmsprop or lars",
               one_of({OptimiserKind::kSgd, OptimiserKind::kRmsprop, OptimiserKind::kLars}))
      .field("rho", &Options::rho, number(share), Scope::kState,
             "Share of the mean square that stays; 0.95 for adadelta unless given.")
      .used_if("kind: rmsprop or adadelta",
               one_of({OptimiserKind::kRmsprop, OptimiserKind::kAdadelta}))
      .field("beta_1", &Options::beta_1, number(share), Scope::kState,
             "Share of the mean that stays.")
      .used_if("kind: adam or lamb", adam)
      .field("beta_2", &Options::beta_2, number(share), Scope::kState,
             "Share of the mean square that stays.")
      .used_if("kind: adam or lamb", adam)
      .field("epsilon", &Options::epsilon, positive(), Scope::kState,
             "Added to the root of the mean square (adadelta: under both roots).")
      .used_if("kind: rmsprop, adam, adadelta or lamb",
               one_of({OptimiserKind::kRmsprop, OptimiserKind::kAdam, OptimiserKind::kAdadelta,
                       OptimiserKind::kLamb}))
      .field(
          "trust", &Options::trust, newer(positive(), 1e-3), Scope::kState,
          "A step changes a tensor by this share of its norm, times the learning rate. A tensor of "
          "zeros, as biases are at first, takes the gradient times the rate, as with sgd.")
      .used_if("kind: lars", one_of({OptimiserKind::kLars}))
      .field("decay", &Options::decay, newer(number(share), 0.0), Scope::kState,
             "This share of the weights is added to the gradient (lars) or to the step (lamb).")
      .used_if("kind: lars or lamb", one_of({OptimiserKind::kLars, OptimiserKind::kLamb}));
  return record;
}

// One section per network of the task.
template <class T>
RecordOf<Topology> per_network(const std::string& what, RecordOf<T> of_one,
                               T TrainingOptions::*generator, T TrainingOptions::*discriminator) {
  auto record = std::make_shared<Record<Topology>>(what + " for each network");
  const auto options = [](T TrainingOptions::*network) {
    return within(&Topology::train, &TrainSection::options, network);
  };
  record->section("g", options(generator), of_one, "For the generator.")
      .used_if("model.task: gan", is_gan)
      .section("d", options(discriminator), of_one, "For the discriminator.")
      .used_if("model.task: gan", is_gan)
      .section("network", options(discriminator), of_one, "For the network.")
      .used_if("model.task: supervised or diffusion", has_network);
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
             "b: events computed as one; batch norm's statistics are theirs, unless it has `sync`.")
      .field("micro_batches",
             within(&Topology::train, &TrainSection::options, &TrainingOptions::micro_batches),
             integer<std::uint32_t>(1, pipeline::kMostMicroBatches), Scope::kState,
             "M: micro-batches of an iteration; a step uses M x b events.")
      .field("scaling", within(&Topology::train, &TrainSection::scaling),
             word<Scaling>({{"strong", Scaling::kStrong}, {"weak", Scaling::kWeak}}), Scope::kState,
             "`strong`: M whatever the number of workers, so that the result does not depend on "
             "it; `weak`: M for each worker.")
      .field("remainder", within(&Topology::train, &TrainSection::remainder),
             newer(word<Remainder>({{"drop", Remainder::kDrop},
                                    {"carry", Remainder::kCarry},
                                    {"partial", Remainder::kPartial}}),
                   Remainder::kDrop),
             Scope::kState,
             "Events at the end of an epoch that fill no iteration: `drop` leaves them out, with "
             "`carry` they begin the next iteration, with `partial` a last iteration takes the "
             "micro-batches that they fill.")
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
  auto record = std::make_shared<Record<Topology>>("training");
  add_batch_fields(*record);
  record
      ->section("learning_rate", within(),
                per_network("a learning rate", rate_record(), &TrainingOptions::generator_rate,
                            &TrainingOptions::discriminator_rate),
                "For each network: a number, or a policy.")
      .section(
          "optimiser", within(),
          per_network("an optimiser", optimiser_record(), &TrainingOptions::generator_optimiser,
                      &TrainingOptions::discriminator_optimiser),
          "For each network: a word, or a section.")
      .field("schedule",
             within(&Topology::train, &TrainSection::options, &TrainingOptions::schedule),
             list(word<SlotKind>({{"d_real", SlotKind::kDReal},
                                  {"d_fake", SlotKind::kDFake},
                                  {"g", SlotKind::kG},
                                  {"d_both", SlotKind::kDBoth},
                                  {"fit", SlotKind::kFit},
                                  {"denoise", SlotKind::kDenoise}}),
                  1, 100),
             Scope::kState,
             "The steps of an iteration, in order. `d_both` is one step of the discriminator on "
             "real and generated events together: batch norm sees them as one batch. A supervised "
             "task has only `fit`, and a diffusion task only `denoise`.")
      .section("strategy",
               within(&Topology::train, &TrainSection::options, &TrainingOptions::strategy),
               strategy_record(), "When members exchange what they have learned: a word, or more.")
      .field("stop", within(), stop_codec(), Scope::kState,
             "Ends training before its last epoch; not given: it does not.")
      .field("mean", within(&Topology::train, &TrainSection::options, &TrainingOptions::mean),
             optional(CodecOf<pipeline::MeanOptions>(mean_record())), Scope::kState,
             "Keeps an exponential mean of the weights of the generator, or of the network of a "
             "task that has one, beside them. Training does not read it. It is what is validated, "
             "and what `generate`, `validate` and `export` take; not given: there is none.")
      .field("fake_conditions",
             within(&Topology::model, &ModelSection::gan, &model::GanDescription::fake_conditions),
             word<FakeConditions>(
                 {{"batch", FakeConditions::kBatch}, {"uniform", FakeConditions::kUniform}}),
             Scope::kState,
             "Where the conditions of fakes come from: the real batch, or uniform numbers.")
      .used_if("model.task: gan", is_gan)
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
      .used_if("model.task: gan", is_gan)
      .field("empty_iterations_limit",
             within(&Topology::train, &TrainSection::options,
                    &TrainingOptions::empty_iterations_limit),
             integer<std::uint32_t>(1, 1'000'000), Scope::kState,
             "Iterations in a row whose fakes are all empty before the run counts as diverged.")
      .used_if("model.task: gan", is_gan);
  return record;
}

}  // namespace troupe::config
