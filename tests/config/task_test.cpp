// Supervised tasks, and columns of the data as conditions and targets.

#include <gmock/gmock.h>

#include <fmt/format.h>

#include "config/topology_identity.h"
#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kTask = R"(model:
  task: supervised
  network:
    input: [4, 4, 4, 1]
    layers: [flatten, {dense: {units: 2, name: kind}}, {dense: {units: 1, name: size}}]
    outputs: [kind, size]
  losses:
    kind: {kind: cross_entropy, target: pdg, classes: [11, 211]}
    size: {kind: mse, target: label}
data: {train: a.h5, schema: custom, names: {energy: energy}}
)";

std::string refusal(const std::string& text, const std::vector<std::string>& settings = {}) {
  return message_of(parse(text, settings));
}

TEST(Task, SupervisedHasOneNetworkThatFits) {
  const Topology t = parsed(kTask).topology;
  EXPECT_EQ(t.model.gan.task, model::Task::kSupervised);
  EXPECT_EQ(t.model.gan.discriminator.name, "network");
  EXPECT_EQ(t.train.options.schedule, std::vector{model::SlotKind::kFit});
  // There is neither real nor fake, so that the word is the name of a column.
  EXPECT_EQ(t.model.gan.losses[1].target, model::Target::kColumn);
  ASSERT_EQ(t.data.dataset.columns.size(), 2u);
  EXPECT_EQ(t.data.dataset.columns[0], (pipeline::DataColumn{"pdg", {11, 211}}));
  EXPECT_EQ(t.data.dataset.columns[1], (pipeline::DataColumn{"label", {}}));
  const Topology rated =
      parsed(kTask, {"train.learning_rate.network=0.5", "train.optimiser.network=adam"}).topology;
  EXPECT_EQ(rated.train.options.discriminator_rate.rate, 0.5);
  EXPECT_EQ(rated.train.options.discriminator_optimiser.kind, model::OptimiserKind::kAdam);
  // What is printed is read again.
  const std::string printed = values_of(rated);
  EXPECT_EQ(values_of(parsed(printed).topology), printed);
}

TEST(Task, SupervisedStopsByItsNetwork) {
  const Topology all = parsed(kTask, {"train.stop={patience: 2}"}).topology;
  EXPECT_EQ(all.train.options.stop->network, pipeline::kDiscriminator);
  EXPECT_THAT(values_of(all), HasSubstr("metric: network"));
  const Topology one = parsed(kTask, {"train.stop={patience: 2, metric: network/kind}"}).topology;
  EXPECT_EQ(one.train.options.stop->term, "kind");
  const Topology judged =
      parsed(kTask, {"train.stop={patience: 2, metric: validator/loss}"}).topology;
  EXPECT_EQ(judged.train.options.stop->figure, "loss");
  EXPECT_EQ(judged.train.options.stop->term, "");
  EXPECT_THAT(refusal(kTask, {"train.stop={patience: 2, metric: validator/merit}"}),
              HasSubstr("a supervised task has no merit; take one of loss, kind/loss, "
                        "kind/accuracy, kind/area, size/loss"));
  EXPECT_THAT(values_of(one), HasSubstr("metric: network/kind"));
  EXPECT_EQ(one.train.options.stop->whose, "network");
}

TEST(Task, ClassesThatNobodyNamesAreCountedFromZero) {
  const Topology t = parsed(kTask, {"model.losses.kind={kind: cross_entropy, target: n}"}).topology;
  EXPECT_EQ(t.data.dataset.columns[0], (pipeline::DataColumn{"n", {0, 1}}));
}

TEST(Task, MicroBatchesThatShareStatisticsTrainTogetherAndInNotTooManySteps) {
  const std::string norms =
      "model.network.layers=[{batch_norm: {sync: true}}, {batch_norm: {sync: true}}, flatten, "
      "{dense: {units: 2, name: kind}}, {dense: {units: 1, name: size}}]";
  EXPECT_EQ(refusal(kTask, {norms}), "");
  EXPECT_THAT(
      refusal(kTask, {norms, "train.strategy=local"}),
      AllOf(HasSubstr("model.network.layers"), HasSubstr("with local each worker trains alone")));
  std::string steps = "fit";
  for (int i = 1; i < 53; ++i) steps += ", fit";
  EXPECT_THAT(refusal(kTask, {norms, "train.schedule=[" + steps + "]"}),
              HasSubstr("an iteration takes 265 steps, of which 212 are rounds"));
}

TEST(Task, WhatIsOfTheOtherTaskIsRefused) {
  EXPECT_THAT(refusal(kTask, {"train.learning_rate.d=1e-3"}),
              HasSubstr("d acts only with model.task: gan"));
  EXPECT_THAT(refusal(kTask, {"train.flip_probability=0.1"}),
              HasSubstr("flip_probability acts only with model.task: gan"));
  EXPECT_THAT(refusal(kTask, {"train.schedule=[fit, g]"}),
              HasSubstr("g is no step of task supervised; it has fit"));
  EXPECT_THAT(refusal(kTask, {"model.discriminator.input=[4, 4, 4, 1]"}),
              HasSubstr("discriminator acts only with task: gan"));
  EXPECT_THAT(refusal(kTask, {"actors.validator.best=response"}),
              HasSubstr("a supervised task has no response; take one of loss, kind/loss"));
  EXPECT_THAT(refusal(kTask, {"actors.validator.best=size/accuracy"}),
              HasSubstr("a supervised task has no size/accuracy"));
  EXPECT_EQ(refusal(kTask, {"actors.validator.best=kind/accuracy"}), "");
  EXPECT_THAT(refusal(kTask, {"actors.validator.best=kinds"}), HasSubstr("expected merit"));
  EXPECT_THAT(refusal(kLeast, {"actors.validator.best=generation/accuracy"}),
              HasSubstr("only a supervised task is judged by its loss and its outputs"));
  EXPECT_THAT(refusal(kLeast, {"train.stop={patience: 2, metric: validator/generation/area}"}),
              HasSubstr("only a supervised task is judged by its loss and its outputs"));
  EXPECT_THAT(refusal(kTask, {"actors.validator.test_losses=false"}),
              HasSubstr("actors.validator.test_losses: a supervised task is judged by losses of "
                        "test events"));
  EXPECT_THAT(refusal(kTask, {"model.losses.size.gradient_penalty=10"}),
              HasSubstr("gradient_penalty is of a GAN's label"));
  EXPECT_THAT(
      refusal(kTask, {"train.stop={patience: 2, metric: d/kind}"}),
      HasSubstr(
          "expected network, a term of it such as network/kind, or a figure: validator/loss or "
          "validator/kind/accuracy of a supervised task"));
  EXPECT_THAT(refusal(kLeast, {"train.stop={patience: 2, metric: network}"}),
              HasSubstr("expected g or d, a term of one such as d/generation, or validator/merit"));
  EXPECT_THAT(refusal(kLeast, {"train.schedule=[d_real, fit]"}),
              HasSubstr("fit is no step of task gan; it has d_real, d_fake, g and d_both"));
  EXPECT_THAT(refusal(kLeast, {"train.learning_rate.network=1e-3"}),
              HasSubstr("network acts only with model.task: supervised"));
  EXPECT_THAT(refusal("model: {task: supervised}\ndata: {train: a.h5}\n", {}),
              HasSubstr("or network and losses"));
}

TEST(Task, ClassesFitTheirOutputsAndTheirColumns) {
  const auto refusal = [](const std::string& setting) {
    return message_of(parse(kTask, {setting}));
  };
  EXPECT_THAT(refusal("model.losses.kind.classes=[11, 22, 211]"),
              HasSubstr("3 classes are named, but output \"kind\" is 2"));
  EXPECT_THAT(refusal("model.losses.size={kind: cross_entropy, target: n}"),
              HasSubstr("classes need an output of two features or more, but \"size\" is 1"));
  EXPECT_THAT(refusal("model.losses.size.classes=[1]"),
              HasSubstr("classes acts only with kind: cross_entropy"));
  EXPECT_THAT(refusal("model.losses.kind={kind: cross_entropy, target: energy}"),
              HasSubstr("cross_entropy is of classes, which a column of the data has"));
  EXPECT_THAT(refusal("model.losses.kind.classes=[16777216, 16777217]"),
              HasSubstr("two classes have the same number, as a 32-bit float"));
  EXPECT_THAT(refusal("model.losses.size={kind: hinge, target: energy}"),
              HasSubstr("hinge and wasserstein are losses of a GAN's label, and not of energy"));
  EXPECT_THAT(refusal("model.losses.size={kind: wasserstein, target: pdg}"),
              HasSubstr("hinge and wasserstein are losses of a GAN's label, and not of pdg"));
  EXPECT_THAT(refusal("model.losses.kind={kind: mse, target: pdg}"),
              HasSubstr("target pdg is 1 per event, but output \"kind\" is 2"));
}

const std::string kDiffusion = R"(model:
  task: diffusion
  diffusion: {conditions: [energy, eta], steps: 8}
  network:
    input: [4, 4, 4, 5]
    layers: [{convolution: {filters: 2, kernel: [1, 1, 1], name: v}}]
    outputs: [v]
  losses:
    v: {kind: mse, target: velocity}
data: {train: a.h5, schema: custom, names: {energy: energy}}
actors: {validator: {every: none}}
)";

TEST(Task, DiffusionHasOneNetworkThatDenoises) {
  const Topology t = parsed(kDiffusion).topology;
  EXPECT_EQ(t.model.gan.task, model::Task::kDiffusion);
  EXPECT_EQ(t.model.gan.diffusion.steps, 8U);
  EXPECT_EQ(t.train.options.schedule, std::vector{model::SlotKind::kDenoise});
  EXPECT_EQ(t.model.gan.losses[0].target, model::Target::kVelocity);
  // Behind two channels of the image are the level and two conditions.
  EXPECT_EQ(model::image_shape(t.model.gan), model::Shape::image({4, 4, 4}, 2));
  EXPECT_EQ(t.data.dataset.expected_shape.channels, 2U);
  ASSERT_EQ(t.data.dataset.columns.size(), 1U);
  EXPECT_EQ(t.data.dataset.columns[0].name, "eta");
  const std::string printed = values_of(t);
  EXPECT_EQ(values_of(parsed(printed).topology), printed);
  // Weights do not depend on how showers are made of them.
  const Topology other = parsed(kDiffusion, {"model.diffusion.steps=50"}).topology;
  EXPECT_EQ(topology_hash(other), topology_hash(t));
}

TEST(Task, WhatIsNotOfDiffusionIsRefused) {
  const auto refusal = [](const std::string& setting) {
    return message_of(parse(kDiffusion, {setting}));
  };
  EXPECT_THAT(refusal("model.diffusion.conditions=[energy, angle, eta, phi]"),
              HasSubstr("the input 4x4x4x5 has no channels of an image beside the level and 4 "
                        "conditions"));
  EXPECT_THAT(message_of(parse(kDiffusion, {"model.diffusion.conditions=[energy]",
                                            "model.network.input=[4, 4, 4, 2]"})),
              testing::AllOf(HasSubstr("no channels of an image beside the level and 1 condition"),
                             testing::Not(HasSubstr("1 conditions"))));
  EXPECT_THAT(refusal("model.diffusion.conditions=[energy]"),
              HasSubstr("target velocity has 3 channels, but output \"v\" has 2 channels"));
  EXPECT_THAT(
      message_of(parse("model: {zoo: calo_unet_12}\ndata: {train: a.h5}\n",
                       {"model.network.input=[12, 12, 12, 4]"})),
      HasSubstr("--set model.network.input=[12, 12, 12, 4]: model.network.layers.70: target "
                "velocity has 2 channels"));
  EXPECT_THAT(refusal("model.losses.v.target=energy"),
              HasSubstr("a diffusion task has one loss, whose target is velocity"));
  EXPECT_THAT(refusal("model.losses.v.kind=bce"),
              HasSubstr("a velocity is learned by mse, mae or huber"));
  EXPECT_THAT(refusal("train.schedule=[fit]"),
              HasSubstr("fit is no step of task diffusion; it has denoise"));
  EXPECT_THAT(refusal("actors.validator.every=1 epoch"),
              HasSubstr("showers have one channel, and the images here 2"));
  EXPECT_THAT(message_of(parse(kTask, {"model.diffusion.steps=3"})),
              HasSubstr("diffusion acts only with task: diffusion"));
  // Elsewhere the word is the name of a column.
  const Topology t = parsed(kTask, {"model.losses.size.target=velocity"}).topology;
  EXPECT_EQ(t.model.gan.losses[1].column, "velocity");
}

// Whichever of them comes first.
TEST(Task, OutputsOfOneColumnHaveTheSameClasses) {
  const std::string two = R"(model:
  task: supervised
  network:
    input: [4, 4, 4, 1]
    layers: [flatten, {dense: {units: 2, name: a}}, {dense: {units: 2, name: b}}]
    outputs: [a, b]
  losses:
    a: {kind: cross_entropy, target: pdg}
    b: {kind: cross_entropy, target: pdg}
data: {train: a.h5, schema: custom, names: {energy: energy}}
)";
  EXPECT_EQ(message_of(parse(two, {"name=fine"})), "");
  for (const char* setting :
       {"model.losses.a.classes=[11, 211]", "model.losses.b.classes=[11, 211]"}) {
    EXPECT_THAT(message_of(parse(two, {setting})), HasSubstr("another loss has other classes"));
  }
}

TEST(Task, MisspeltKindIsNotToldAsOtherFieldsFault) {
  const std::string told =
      message_of(parse(kLeast, {"train.strategy={kind: quorom, workers: 3, of: 2}"}));
  EXPECT_THAT(told, HasSubstr("did you mean \"quorum\"?"));
  EXPECT_THAT(told, Not(HasSubstr("acts only with")));
}

TEST(Task, TargetsOfABinaryCrossEntropyAreProbabilities) {
  const Topology t = parsed(kTask, {"model.losses.size={kind: bce_logits, target: n}"}).topology;
  EXPECT_EQ(t.data.dataset.columns[1], (pipeline::DataColumn{"n", {}, true}));
}

// A number that is no class of an embedding makes an event bad.
TEST(Task, ConditionsThatAnEmbeddingReadsAreItsClasses) {
  const auto columns_of = [](const std::string& task, const std::string& network) {
    return parsed("model:\n  task: " + task + "\n" + network +
                  "data: {train: a.h5, schema: custom, names: {energy: energy}}\n")
        .topology.data.dataset.columns;
  };
  const auto supervised = columns_of("supervised", R"(  network:
    input: [4, 4, 4, 1]
    conditions: [eta, pdg]
    layers:
      - slice: {begin: 1, count: 1, input: conditions}
      - embedding: {classes: 5, units: 2, name: few}
      - slice: {begin: 1, count: 1, input: conditions}
      - embedding: {classes: 7, units: 2, name: many}
      - flatten: {input: input}
      - concatenate: [few, many, conditions]
      - dense: {units: 1, name: out}
    outputs: [out]
  losses: {out: {kind: mse, target: energy}}
)");
  EXPECT_THAT(supervised,
              ElementsAre(pipeline::DataColumn{"eta"}, pipeline::DataColumn{"pdg", {}, false, 5}));
  const auto gan = columns_of("gan", R"(  generator:
    latent: {size: 8, conditions: [energy, pdg]}
    layers:
      - slice: {begin: 1, count: 2}
      - slice: {count: 1}
      - embedding: {classes: 3, units: 64}
      - reshape: [4, 4, 4, 1]
  discriminator:
    input: [4, 4, 4, 1]
    layers: [flatten, {dense: {units: 1, name: out}}]
    outputs: [out]
  losses: {out: {kind: bce_logits, target: label}}
)");
  EXPECT_THAT(gan, ElementsAre(pipeline::DataColumn{"pdg", {}, false, 3}));
  const auto diffusion = columns_of("diffusion", R"(  network:
    input: [4, 4, 4, 3]
    layers:
      - slice: {begin: 2, count: 1}
      - global_max_pool
      - embedding: {classes: 4, units: 3, name: kind}
      - add: {with: [kind], input: input}
      - convolution: {filters: 1, kernel: [1, 1, 1], name: velocity}
    outputs: [velocity]
  diffusion: {conditions: [pdg]}
  losses: {velocity: {kind: mse, target: velocity}}
)");
  EXPECT_THAT(diffusion, ElementsAre(pipeline::DataColumn{"pdg", {}, false, 4}));
}

TEST(ColumnNames, AreWhatConditionsAndTargetsOfGansNameToo) {
  const Topology t = parsed(kLeast, {"model.generator.latent={size: 5, conditions: [eta, energy]}",
                                     "model.losses.auxiliary.target=pdg"})
                         .topology;
  EXPECT_THAT(t.model.gan.latent.conditions, ElementsAre("eta", "energy"));
  ASSERT_EQ(t.data.dataset.columns.size(), 2u);
  EXPECT_EQ(t.data.dataset.columns[0].name, "eta");
  EXPECT_EQ(t.data.dataset.columns[1].name, "pdg");
  EXPECT_THAT(parsed(kLeast).topology.data.dataset.columns, IsEmpty());
  EXPECT_NE(topology_hash(t), topology_hash(parsed(kLeast).topology));
  EXPECT_THAT(message_of(parse(
                  kLeast, {"model.losses.auxiliary.target=pdg", "train.fake_conditions=uniform"})),
              HasSubstr("compares fakes with pdg of the real batch"));
}

TEST(ColumnNames, ConditionsOfTheJudgingNetworkAreAmongThoseThatAreAskedFor) {
  const std::vector<std::string> told{"model.generator.latent={size: 5, conditions: [eta, energy]}",
                                      "model.discriminator.conditions=[energy, eta]"};
  const Topology t = parsed(kLeast, told).topology;
  EXPECT_THAT(t.model.gan.discriminator.conditions, ElementsAre("energy", "eta"));
  ASSERT_EQ(t.data.dataset.columns.size(), 1u);
  EXPECT_NE(topology_hash(t), topology_hash(parsed(kLeast, {told[0]}).topology));
  EXPECT_EQ(values_of(parsed(values_of(t)).topology), values_of(t));
  EXPECT_THAT(message_of(parse(kLeast, {"model.discriminator.conditions=[eta]"})),
              HasSubstr("model.discriminator.conditions: the discriminator has the condition eta, "
                        "which no shower is asked for"));
  // A network by itself is told any column.
  const Topology alone = parsed(kTask, {"model.network.conditions=[energy, n]"}).topology;
  EXPECT_EQ(alone.data.dataset.columns.front().name, "n");
  EXPECT_THAT(message_of(parse("model: {zoo: particle_12}\ndata: {train: synthetic, schema: "
                               "lcd-fixed}\n",
                               {"model.network.conditions=[mass]"})),
              HasSubstr("model.network.conditions: generated showers have no column \"mass\""));
}

// A generator that makes one column, the discriminator reads it.
const std::string kMaking = R"(model:
  generator:
    latent: {size: 5}
    layers:
      - dense: {units: 1, name: leakage}
      - dense: {units: 64, input: input}
      - reshape: [4, 4, 4, 1]
    makes: {leak: leakage}
  discriminator:
    input: [4, 4, 4, 1]
    columns: [leak]
    layers: [flatten, {concatenate: [columns]}, {dense: {units: 1, name: score}}]
    outputs: [score]
  losses: {score: {kind: bce_logits, target: label}}
data: {train: a.h5, schema: lcd-fixed}
)";

TEST(ColumnNames, OfAGeneratorAreReadByItsDiscriminator) {
  const Topology t = parsed(kMaking).topology;
  EXPECT_THAT(t.model.gan.generator.makes, ElementsAre(model::MadeColumn{"leak", "leakage"}));
  ASSERT_EQ(t.data.dataset.columns.size(), 1u);
  EXPECT_EQ(t.data.dataset.columns[0].name, "leak");
  EXPECT_EQ(values_of(parsed(values_of(t)).topology), values_of(t));
  const std::vector<std::string> other{"model.generator.makes={tail: leakage}",
                                       "model.discriminator.columns=[tail]"};
  EXPECT_NE(topology_hash(t), topology_hash(parsed(kMaking, other).topology));
}

TEST(ColumnNames, ThatAGeneratorCannotMakeAreToldWhereTheyStand) {
  const auto refused = [](const std::vector<std::string>& settings, const std::string& why) {
    EXPECT_THAT(message_of(parse(kMaking, settings)), HasSubstr(why));
  };
  std::string two = kMaking;
  two.replace(two.find("units: 1"), 8, "units: 2");
  EXPECT_THAT(message_of(parse(two)),
              HasSubstr("t.yaml:8:19: model.generator.makes.leak: the layer leakage of the column "
                        "leak makes 2 for an event; a column is (1), one number"));
  refused({"model.generator.makes.leak=leakag"}, "is no layer; did you mean leakage?");
  refused({"model.generator.makes=leakage"},
          "expected a layer for each column, such as {leakage: leakage_head}");
  refused({"model.discriminator.columns=[leak, tail]"},
          "model.discriminator.columns: the discriminator reads the column tail, which the "
          "generator does not make; name the layer that makes it in model.generator.makes");
  refused({"model.generator.makes={leak: leakage, tail: leakage}"}, "is an output already");
  refused({"model.discriminator.columns=[leak, leak]"}, "leak is named twice");
  refused({"model.generator.latent.conditions=[energy, leak]"},
          "the generator makes leak, which showers are asked for");
  refused({"model.discriminator.layers=[flatten, {dense: {units: 1, name: score}}]"},
          "no layer reads the network's columns");
  refused({"model.losses.score={kind: wasserstein, target: label, gradient_penalty: 5}"},
          "gradient_penalty: is of images alone, and the discriminator reads the column leak");
  refused({"model.losses.score={kind: mse, target: leak}"},
          "model.losses.score.target: leak is made by the generator");
  EXPECT_THAT(message_of(parse(kTask, {"model.network.columns=[n]"})),
              HasSubstr("unknown key \"columns\""));
  EXPECT_THAT(message_of(parse(kMaking, {"data={train: synthetic, schema: lcd-fixed}"})),
              HasSubstr("generated showers have no column \"leak\""));
}

TEST(ColumnNames, ConditionsOfADiffusionTaskAreChannels) {
  EXPECT_THAT(message_of(parse("model: {zoo: calo_unet_12}\ndata: {train: a.h5}\n",
                               {"model.network.conditions=[energy]"})),
              HasSubstr("model.network.conditions: the network of a diffusion task has its "
                        "conditions in the channels of its input"));
}

TEST(ColumnNames, SumOfConditionsIsNoSumOfCells) {
  const std::string told = R"(model:
  task: supervised
  network:
    input: [4, 4, 4, 1]
    conditions: [energy]
    layers: [{sum: {name: told, input: conditions}}, {sum: {name: seen, input: input}}]
    outputs: [told, seen]
  losses: {told: {kind: mse, target: ecal}, seen: {kind: mse, target: energy}}
data: {train: a.h5, schema: lcd-fixed, preprocessing: {power: 0.5}}
)";
  EXPECT_EQ(message_of(parse(told, {"name=fine"})), "");
  EXPECT_THAT(message_of(parse(told, {"model.network.layers.0={sum: {name: told, input: input}}"})),
              HasSubstr("the output \"told\" reads cells to the power"));
  EXPECT_THAT(message_of(parse(told, {"model.network.layers.0={sum: {name: told, input: "
                                      "condition}}"})),
              HasSubstr("reads condition, which is no layer; did you mean conditions?"));
}

TEST(ColumnNames, OfGeneratedShowersAreKnownBeforehand) {
  const auto message = [](const std::string& setting) {
    return message_of(parse(
        "model: {zoo: particle_12}\ndata: {train: synthetic, schema: lcd-fixed}\n", {setting}));
  };
  EXPECT_EQ(message("name=fine"), "");
  EXPECT_EQ(message("model.losses.particle.target=target"), "") << "the first of several";
  EXPECT_THAT(message("model.losses.particle.target=target.9"),
              HasSubstr("no column \"target.9\"; did you mean \"target.0\"?"));
  EXPECT_THAT(message("model.losses.particle.target=mass"),
              HasSubstr("no column \"mass\"; known here: target.0, target.1"));
}

const std::string kMadeShowers = "data: {train: synthetic}\n";
const std::string kGanOfShowers = "model: {zoo: gan3d_25}\n" + kMadeShowers;

TEST(Columns, NamedTwiceAsConditionsAreRefusedWhereTheyStand) {
  EXPECT_THAT(refusal("model: {zoo: gan3d_25, generator: {latent: {mode: prepend, conditions: "
                      "[energy, eta, energy]}}}\n" +
                      kMadeShowers),
              HasSubstr("t.yaml:1:86: model.generator.latent.conditions.2: energy is named twice"));
  EXPECT_THAT(refusal("model: {zoo: calo_unet_12, diffusion: {conditions: [energy, energy]}}\n" +
                      kMadeShowers),
              HasSubstr("t.yaml:1:61: model.diffusion.conditions.1: energy is named twice"));
  EXPECT_THAT(
      refusal("model: {zoo: gan3d_12_dense, discriminator: {conditions: [energy, energy]}}\n" +
              kMadeShowers),
      HasSubstr("model.discriminator.conditions.1: energy is named twice"));
}

TEST(StopByAFigure, ThatNoValidationFindsIsRefused) {
  const auto refused = [](const std::string& metric, const std::string& actors = "") {
    return refusal(kGanOfShowers + "train: {stop: {metric: " + metric + ", patience: 2}}\n" +
                   actors);
  };
  EXPECT_THAT(refused("validator/merit", "actors: {validator: {every: none}}\n"),
              HasSubstr("t.yaml:3:24: train.stop.metric: no validation finds a figure: "
                        "actors.validator.every is none"));
  EXPECT_THAT(refused("validator/merrit"),
              HasSubstr("t.yaml:3:24: train.stop.metric: the validator has no figure \"merrit\" "
                        "(docs/physics.md lists them); did you mean \"merit\"?"));
  EXPECT_THAT(refused("validator/loss"),
              HasSubstr("only a supervised task is judged by its loss and its outputs"));
  EXPECT_THAT(refused("validator/angle.wasserstein"),
              HasSubstr("t.yaml:3:24: train.stop.metric: this model is told no angle"));
}

TEST(StopByAFigure, IsPrintedAsItIsRead) {
  const Topology stops =
      parsed(kGanOfShowers, {"train.stop={patience: 2, metric: validator/sampling_fraction}"})
          .topology;
  EXPECT_EQ(stops.train.options.stop->figure, "sampling_fraction");
  EXPECT_THAT(values_of(stops), HasSubstr("metric: validator/sampling_fraction"));
  EXPECT_EQ(values_of(parsed(values_of(stops)).topology), values_of(stops));
}

}  // namespace
}  // namespace troupe::config
