// The `model` section: networks, losses, precision and kernels.

#include <fmt/format.h>

#include <algorithm>

#include "config/layer_kinds.h"
#include "config/list_codecs.h"
#include "config/network_check.h"
#include "config/network_fields.h"
#include "config/scalar_codecs.h"
#include "config/shipped.h"
#include "config/topology_fields.h"

namespace troupe::config {
namespace {

using model::GanDescription;
using model::LatentDescription;
using model::LatentMode;
using model::LossKind;
using model::LossTerm;
using model::Target;
using model::Task;

constexpr const char* kNumberOfData = "energy, angle or the name of a column of the data";
constexpr const char* kColumnOfData = "the name of a column of the data";

// A network that is told a number twice has an input that says nothing new.
CodecOf<std::vector<std::string>> numbers_of_events(const char* what) {
  const auto content = list(text(what), 0, model::kMostConditions);
  return codec_of<std::vector<std::string>>(
      content->describe(),
      [content](const YamlValue& value, std::vector<std::string>& into, Reader& reader) {
        content->read(value, into, reader);
        for (std::size_t i = 1; i < std::min(into.size(), value.items.size()); ++i) {
          const auto here = into.begin() + static_cast<std::ptrdiff_t>(i);
          if (here->empty() || std::find(into.begin(), here, *here) == here) continue;
          const Reader::Step step(reader, std::to_string(i));
          reader.problem(value.items[i].place,
                         fmt::format("{} is named twice; leave one out", shown(*here)));
        }
      },
      [content](const std::vector<std::string>& names, Selection selection) {
        return content->write(names, selection);
      });
}

CodecOf<std::vector<std::string>> conditions() { return numbers_of_events(kNumberOfData); }

// A section whose keys are columns of the data.
CodecOf<std::vector<model::MadeColumn>> made_columns() {
  const CodecOf<std::string> layer = text("the name of a layer");
  TypeDescription type = TypeDescription::of(
      TypeDescription::Kind::kNamed, "a layer for each column, such as {leakage: leakage_head}");
  type.parts = {layer->describe()};
  return codec_of<std::vector<model::MadeColumn>>(
      type,
      [layer, type](const YamlValue& value, std::vector<model::MadeColumn>& into, Reader& reader) {
        if (!value.is_map()) return reader.expected(value, type.name);
        into.clear();
        for (const YamlMember& member : value.members) {
          const Reader::Step step(reader, member.key);
          reader.remember(member.value.place);
          layer->read(member.value, into.emplace_back(model::MadeColumn{member.key, ""}).layer,
                      reader);
        }
      },
      [layer](const std::vector<model::MadeColumn>& made, Selection selection) {
        YamlValue section = YamlValue::map();
        for (const auto& [column, name] : made) section.add(column, layer->write(name, selection));
        return section;
      });
}

// One of the words, or the name of a column.
template <class Term>
CodecOf<Term> target() {
  const std::vector<Word<Target>> words{{"label", Target::kLabel}, {"energy", Target::kEnergy},
                                        {"angle", Target::kAngle}, {"ecal", Target::kEcal},
                                        {"bins", Target::kBins},   {"velocity", Target::kVelocity}};
  const CodecOf<std::string> name =
      text("label, energy, angle, ecal, bins, velocity or the name of a column of the data");
  return codec_of<Term>(
      name->describe(),
      [words, name](const YamlValue& value, Term& into, Reader& reader) {
        std::string given;
        name->read(value, given, reader);
        const auto word = std::ranges::find(words, given, &Word<Target>::word);
        into.target = word == words.end() ? Target::kColumn : word->value;
        into.column = word == words.end() ? given : "";
      },
      [words](const Term& term, Selection) {
        const auto word = std::ranges::find(words, term.target, &Word<Target>::value);
        return word == words.end() ? YamlValue::text(term.column) : YamlValue::plain(word->word);
      });
}

RecordOf<LatentDescription> latent_record() {
  auto record = std::make_shared<Record<LatentDescription>>("the generator's input");
  record->partial()
      .required("size", &LatentDescription::size, integer<std::int64_t>(1, kMostUnits),
                Scope::kState, "The generator's input features, conditions included.")
      .field(
          "conditions", &LatentDescription::conditions, conditions(), Scope::kState,
          "What showers are asked for: E / 100 GeV, the angle in rad, or a column of the data by "
          "its name, as stored (docs/data.md); [] for nothing.")
      .field("mode", &LatentDescription::mode,
             word<LatentMode>(
                 {{"prepend", LatentMode::kPrepend}, {"multiply", LatentMode::kMultiply}}),
             Scope::kState,
             "`prepend`: the conditions, then noise; `multiply`: the first condition times noise.")
      .check([](const YamlValue&, const LatentDescription& latent, Reader& reader) {
        const std::string path = reader.path() + ".";
        const auto conditions = static_cast<std::int64_t>(latent.conditions.size());
        if (latent.mode == LatentMode::kMultiply && conditions != 1) {
          reader.broken_rule({path + "mode", path + "conditions"},
                             "mode multiply takes exactly one condition");
        }
        if (latent.mode == LatentMode::kPrepend && latent.size > 0 && latent.size <= conditions) {
          reader.broken_rule(
              {path + "size", path + "conditions", path + "mode"},
              fmt::format("size {} leaves no noise beside {} conditions", latent.size, conditions));
        }
      });
  return record;
}

RecordOf<GanDescription> diffusion_record() {
  auto record = std::make_shared<Record<GanDescription>>("how showers are made of noise");
  record->partial()
      .field("conditions", within(&GanDescription::latent, &LatentDescription::conditions),
             conditions(), Scope::kState,
             "The conditions of a shower, as those of a latent. The network's input has a "
             "channel for each, behind those of the image and that of the level.")
      .field("steps", within(&GanDescription::diffusion, &model::DiffusionOptions::steps),
             integer<std::uint32_t>(1, 10'000), Scope::kFree,
             "Steps in which a shower is made; each computes the network once. Weights do not "
             "depend on them.");
  return record;
}

RecordOf<GanDescription> generator_record() {
  auto record = std::make_shared<Record<GanDescription>>("the generator");
  record->partial()
      .section("latent", &GanDescription::latent, latent_record(), "What the generator reads.")
      .must_be_given()
      .required("layers", within(&GanDescription::generator, &model::NetworkDescription::layers),
                layers(), Scope::kState,
                "From the latent features to the image, in the data's domain.")
      .field("makes", within(&GanDescription::generator, &model::NetworkDescription::makes),
             newer(made_columns(), std::vector<model::MadeColumn>{}), Scope::kState,
             "Columns of the data that are made with the image, as stored, and the layer of one "
             "number that makes each. The discriminator reads them as its `columns`.");
  return record;
}

// The networks of all tasks are at the same place of a description.
RecordOf<GanDescription> judge_record(const std::string& what, bool reads_columns) {
  auto record = std::make_shared<Record<GanDescription>>(what);
  record->partial()
      .required("input", within(&GanDescription::discriminator, &model::NetworkDescription::input),
                shape(), Scope::kState,
                "Shape of an image; the data must have it. That of a diffusion task's network has "
                "channels for the level and the conditions besides.")
      .required("layers",
                within(&GanDescription::discriminator, &model::NetworkDescription::layers),
                layers(), Scope::kState, "From the image to what is judged.")
      .required("outputs",
                within(&GanDescription::discriminator, &model::NetworkDescription::outputs),
                list(text("the name of a layer"), 1, 100), Scope::kState,
                "Names of the layers that are results.")
      .field(
          "conditions",
          within(&GanDescription::discriminator, &model::NetworkDescription::conditions),
          newer(conditions(), std::vector<std::string>{}), Scope::kState,
          "A second input, which layers read as `input: conditions`: a feature for each of these, "
          "as those of a latent. A discriminator has some of what showers are asked for.");
  if (!reads_columns) return record;
  record->field(
      "columns", within(&GanDescription::discriminator, &model::NetworkDescription::columns),
      newer(numbers_of_events(kColumnOfData), std::vector<std::string>{}), Scope::kState,
      "A third input, which layers read as `input: columns`: what `model.generator.makes` beside "
      "the image, in this order. Real events have their own.");
  return record;
}

// The terms of one output.
struct Loss : LossTerm {
  double gradient_penalty = 0.0;  // the weight of a term of its own; 0: there is none
};

RecordOf<Loss> loss_record() {
  auto record = std::make_shared<Record<Loss>>("a loss such as {kind: bce, target: label}");
  record->partial()
      .shared("loss")
      .required("kind", &LossTerm::kind,
                word<LossKind>({{"bce", LossKind::kBinaryCrossentropy},
                                {"mae", LossKind::kMeanAbsoluteError},
                                {"mape", LossKind::kMeanAbsolutePercentageError},
                                {"mse", LossKind::kMeanSquaredError},
                                {"huber", LossKind::kHuber},
                                {"bce_logits", LossKind::kLogisticCrossentropy},
                                {"hinge", LossKind::kHinge},
                                {"wasserstein", LossKind::kWasserstein},
                                {"cross_entropy", LossKind::kClassCrossentropy}}),
                Scope::kState,
                "Binary cross-entropy, mean absolute error, the latter in per cent of the target, "
                "mean squared error (the label of a least-squares GAN), Huber's, the "
                "cross-entropy of an output without a sigmoid, the hinge loss, Wasserstein's, "
                "which with the label's sign s is -s times the output, or the cross-entropy of "
                "classes, of an output without a softmax.")
      .required("target", within(), target<Loss>(), Scope::kState,
                "What the output is compared with: real or fake, E / 100 GeV, the angle in rad, "
                "the sum of all cells before any power, the counts of cells by energy, or a column "
                "of the data by its name, as stored; in a diffusion task the velocity.")
      .field("classes", &LossTerm::classes, newer(list(number(), 0, 1000), std::vector<double>{}),
             Scope::kState,
             "The column's number for each class, as [11, 211]; [] where they are 0, 1, ...")
      .used_if("kind: cross_entropy", [](const Loss& loss) { return loss.tells_classes(); })
      .field("weight", &LossTerm::weight, number(NumberRange{.least = 0.0}), Scope::kState,
             "Factor in the total loss; terms are reported without it.")
      .field("gradient_penalty", &Loss::gradient_penalty,
             newer(number(NumberRange{.least = 0.0}), 0.0), Scope::kState,
             "Weight of (|slope| - 1)^2, where the slope is the output's gradient by the cells "
             "between real and generated events. It is a term of its own in metrics, acts in "
             "d_fake and d_both, and needs a discriminator without batch_norm.")
      .used_if("target: label", [](const Loss& loss) { return loss.target == Target::kLabel; })
      .check([](const YamlValue&, const Loss& loss, Reader& reader) {
        std::vector<float> classes(loss.classes.begin(), loss.classes.end());
        std::ranges::sort(classes);
        if (std::ranges::adjacent_find(classes) == classes.end()) return;
        reader.broken_rule({reader.path() + ".classes"},
                           "two classes have the same number, as a 32-bit float");
      });
  return record;
}

// A section whose keys are names of the discriminator's outputs. Read after the networks: an output
// whose loss is null is taken out of them.
class LossesCodec final : public Codec<GanDescription> {
 public:
  void read(const YamlValue& value, GanDescription& into, Reader& reader) const override {
    if (!value.is_map() || value.members.empty()) {
      return reader.expected(value, "a loss for each output of " + judge_name(into));
    }
    into.losses.clear();
    for (const YamlMember& member : value.members) {
      const Reader::Step step(reader, member.key);
      if (member.value.is_null()) {
        take_out(member, into.discriminator, reader);
        continue;
      }
      // A loss of the zoo goes with its output.
      const auto& outputs = into.discriminator.outputs;
      const bool judged = std::find(outputs.begin(), outputs.end(), member.key) != outputs.end();
      if (!judged && is_from_zoo(member.value.place)) continue;
      reader.remember(member.value.place);
      Loss loss;
      record_->read(member.value, loss, reader);
      loss.output = member.key;
      const bool of_label = loss.target == Target::kLabel;
      if (into.task != Task::kGan && of_label && loss.gradient_penalty != 0.0) {
        reader.problem(member.value.place, "gradient_penalty is of a GAN's label");
      }
      take_as_column(into.task, loss);
      into.losses.push_back(loss);
      if (loss.gradient_penalty == 0.0) continue;
      into.losses.push_back(
          {member.key, LossKind::kGradientPenalty, Target::kLabel, loss.gradient_penalty});
    }
    if (into.losses.empty()) {
      reader.broken_rule({"model.losses", judge_path(into) + ".outputs"}, "no loss is left");
    }
    if (!reader.has_problem_below("model")) leave_out_unused(into, reader);
  }
  YamlValue write(const GanDescription& gan, Selection selection) const override {
    YamlValue section = YamlValue::map();
    for (const LossTerm& term : gan.losses) {
      if (term.kind == LossKind::kGradientPenalty) continue;
      Loss loss{term};
      for (const LossTerm& other : gan.losses) {
        const bool is_penalty = other.kind == LossKind::kGradientPenalty;
        if (is_penalty && other.output == term.output) loss.gradient_penalty = other.weight;
      }
      section.add(term.output, record_->write(loss, selection));
    }
    return section;
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kNamed,
                                               "a loss for each output of the discriminator");
    type.parts = {record_->describe()};
    return type;
  }

 private:
  // A word that means nothing to a task is the name of a column.
  static void take_as_column(Task task, LossTerm& loss) {
    const bool of_gans = loss.target == Target::kLabel || loss.target == Target::kBins;
    const bool of_diffusion = loss.target == Target::kVelocity;
    if (!(of_diffusion && task != Task::kDiffusion) && !(of_gans && task == Task::kSupervised)) {
      return;
    }
    loss.column = model::target_name(loss.target);
    loss.target = Target::kColumn;
  }

  static void take_out(const YamlMember& member, model::NetworkDescription& discriminator,
                       Reader& reader) {
    auto& outputs = discriminator.outputs;
    const bool known = std::any_of(discriminator.layers.begin(), discriminator.layers.end(),
                                   [&](const auto& layer) { return layer.name == member.key; });
    if (!known) {
      return reader.problem(member.key_place,
                            fmt::format("\"{}\" is no output to take out{}", shown(member.key),
                                        suggestion(member.key, outputs)));
    }
    outputs.erase(std::remove(outputs.begin(), outputs.end(), member.key), outputs.end());
  }

  // Layers of the zoo that only an output needed which the author took out.
  static void leave_out_unused(GanDescription& gan, Reader& reader) {
    model::NetworkDescription& discriminator = gan.discriminator;
    const std::vector<bool> used = model::infer_shapes(discriminator).used;
    const std::string path = judge_path(gan) + ".layers";
    for (std::size_t i = used.size(); i-- > 0;) {
      if (used[i] || !is_from_zoo(reader.origin(fmt::format("{}.{}", path, i)))) continue;
      discriminator.layers.erase(discriminator.layers.begin() + static_cast<std::ptrdiff_t>(i));
      reader.forget_item(path, i);
    }
  }

  RecordOf<Loss> record_ = loss_record();
};

// A task has a schedule that it is known for, which `train` may change.
CodecOf<Topology> task() {
  const CodecOf<Task> words = newer(word<Task>({{"gan", Task::kGan},
                                                {"supervised", Task::kSupervised},
                                                {"diffusion", Task::kDiffusion}}),
                                    Task::kGan);
  return codec_of<Topology>(
      words->describe(),
      [words](const YamlValue& value, Topology& into, Reader& reader) {
        words->read(value, into.model.gan.task, reader);
        if (has_network(into)) {
          into.train.options.schedule = {model::only_slot(into.model.gan.task)};
        }
      },
      [words](const Topology& topology, Selection selection) {
        return words->write(topology.model.gan.task, selection);
      });
}

CodecOf<std::string> zoo_name() {
  std::vector<Word<std::string>> words;
  for (const std::string& name : zoo_names()) words.push_back({name, name});
  return word(std::move(words));
}

}  // namespace

// Fields are read in this order, so losses come behind the networks, from which they take outputs
// and layers out.
std::shared_ptr<Record<Topology>> model_record() {
  auto record = std::make_shared<Record<Topology>>("the model");
  const auto gan = within(&Topology::model, &ModelSection::gan);
  record
      ->field("zoo", within(&Topology::model, &ModelSection::zoo), optional(zoo_name()),
              Scope::kFixed, "The model to begin with; what else the section says is laid over it.")
      .field("task", within(), task(), Scope::kState,
             "`gan`: a generator and a discriminator; `supervised`: one network learns numbers of "
             "the data from images; `diffusion`: one network learns to take noise out of images.")
      .section("generator", gan, generator_record(), "Makes showers from conditions and noise.")
      .used_if("task: gan", is_gan)
      .section("discriminator", gan, judge_record("the discriminator", true), "Judges showers.")
      .used_if("task: gan", is_gan)
      .section("network", gan, judge_record("the network", false),
               "Tells numbers from images, or noise from showers.")
      .used_if("task: supervised or diffusion", has_network)
      .section("diffusion", gan, diffusion_record(), "How showers are made of noise.")
      .used_if("task: diffusion", is_diffusion)
      .field("losses", gan, CodecOf<GanDescription>(std::make_shared<LossesCodec>()), Scope::kState,
             "A loss for each output of the discriminator, or of the network; null takes an output "
             "of the zoo's model out, with the layers that only it needs.")
      .field("precision", within(&Topology::model, &ModelSection::precision),
             word<Precision>({{"fp32", Precision::kFp32}, {"bf16", Precision::kBf16}}, {"fp16"}),
             Scope::kState,
             "`bf16`: convolutions and dense layers round what they multiply to bfloat16, and add "
             "in single precision. Not so are convolutions in groups, those that sum over one "
             "channel without a stride, but for gradients of their kernels, and dense layers with "
             "fewer than 16 inputs or whose units are no multiple of 16. All else, weights "
             "included, is in single precision. By `kernels: fastest` tensor cores round "
             "convolutions of one channel too and no dense layers, "
             "and devices without them round nothing.")
      .field("kernels", within(&Topology::model, &ModelSection::kernels),
             word<Kernels>({{"portable", Kernels::kPortable}, {"fastest", Kernels::kFastest}}),
             Scope::kState,
             "`portable`: our own, the same bits on every host that has AVX2 and on every device; "
             "`fastest`: on processors the library's where they are faster, on NVIDIA's cards "
             "tensor cores; the same bits on hosts or cards of one kind only.");
  return record;
}

}  // namespace troupe::config
