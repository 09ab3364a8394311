#include "model/gan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace troupe::model {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// Names of targets, as users have them.
const char* word_of(Target target) {
  switch (target) {
    case Target::kLabel:
      return "label";
    case Target::kEnergy:
      return "energy";
    case Target::kAngle:
      return "angle";
    case Target::kEcal:
      return "ecal";
    case Target::kBins:
      return "bins";
    case Target::kColumn:
      return "";
  }
  CHECK(false, "unknown target");
}

Error topology_error(std::string message) { return {ErrorKind::kTopology, std::move(message)}; }

// Drawn conditions are energies, so a model that needs any other condition is refused.
Result<void> check_fake_conditions(const GanDescription& gan) {
  if (gan.fake_conditions != FakeConditions::kUniform) return {};
  if (uses_angle(gan.latent)) {
    return topology_error(
        "fake_conditions: uniform draws energies only; a model with an angle needs batch");
  }
  if (const auto columns = columns_of(gan.latent); !columns.empty()) {
    return topology_error(fmt::format(
        "fake_conditions: uniform draws energies only; a model with {} needs batch", columns[0]));
  }
  for (const LossTerm& term : gan.losses) {
    if (term.target != Target::kAngle && term.target != Target::kBins &&
        term.target != Target::kColumn) {
      continue;
    }
    return topology_error(fmt::format(
        "fake_conditions: uniform draws energies only; loss {} compares fakes with the real batch",
        term.output));
  }
  return {};
}

// A supervised task has no generator to make fakes, and a program in its place that does nothing.
NetworkDescription generator_of(const GanDescription& gan) {
  if (gan.task == Task::kGan) return gan.generator;
  return {"generator", Shape::features(1), {{"none", Flatten{}, ""}}, {}};
}

// The latent, the data and the images the networks exchange must fit each other.
Result<void> check_fit(const GanDescription& gan, const Program& generator,
                       const Program& discriminator) {
  if (gan.task == Task::kSupervised) {
    for (const LossTerm& term : gan.losses) {
      if (term.target != Target::kLabel && term.target != Target::kBins) continue;
      return topology_error(fmt::format("loss {}: target {} is of GANs; a supervised task has none",
                                        term.output, word_of(term.target)));
    }
    return {};
  }
  const LatentDescription& latent = gan.latent;
  if (generator.input_shape() != Shape::features(latent.size)) {
    return topology_error(fmt::format("the generator takes {} but the latent has {} features",
                                      generator.input_shape().text(), latent.size));
  }
  if (generator.outputs() != 1 || generator.output_shape(0) != discriminator.input_shape()) {
    return topology_error(
        fmt::format("the generator makes {} but the discriminator reads {}; they must be equal",
                    generator.output_shape(0).text(), discriminator.input_shape().text()));
  }
  RETURN_IF_ERROR(check_latent(latent));
  return check_fake_conditions(gan);
}

void append(ContributionLayout& layout, const std::string& prefix, ContributionTensor::Role role,
            const std::vector<ParameterTensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    layout.tensors.push_back(
        {prefix + tensors[i].name, role, static_cast<int>(i), layout.size, tensors[i].size});
    layout.size += tensors[i].size;
  }
}

void append_number(ContributionLayout& layout, const std::string& name,
                   ContributionTensor::Role role, int index) {
  layout.tensors.push_back({name, role, index, layout.size, 1});
  layout.size += 1;
}

}  // namespace

std::string term_fault(const LossTerm& term, const Shape& output) {
  const std::string target = term.target == Target::kColumn ? term.column : word_of(term.target);
  if (term.tells_score() && term.target != Target::kLabel) {
    return fmt::format("hinge and wasserstein are losses of a GAN's label, and not of {}", target);
  }
  if (term.tells_classes()) {
    const std::int64_t classes = output.channels;
    if (output != Shape::features(classes) || classes < 2) {
      return fmt::format("classes need an output of two features or more, but \"{}\" is {}",
                         term.output, output.text());
    }
    if (term.classes.empty() || std::cmp_equal(term.classes.size(), classes)) return {};
    return fmt::format("{} classes are named, but output \"{}\" is {}", term.classes.size(),
                       term.output, output.text());
  }
  const Shape expected = Shape::features(term.target == Target::kBins ? kBinCount : 1);
  if (output == expected) return {};
  return fmt::format("target {} is {} per event, but output \"{}\" is {}", target, expected.text(),
                     term.output, output.text());
}

std::string penalty_fault(const GanDescription& gan) {
  const auto is_penalty = [](const LossTerm& term) {
    return term.kind == LossKind::kGradientPenalty;
  };
  const auto penalty = std::ranges::find_if(gan.losses, is_penalty);
  if (penalty == gan.losses.end()) return {};
  if (std::any_of(penalty + 1, gan.losses.end(), is_penalty)) {
    return "a model has one gradient penalty";
  }
  if (std::ranges::find(gan.discriminator.outputs, penalty->name()) !=
      gan.discriminator.outputs.end()) {
    return fmt::format("an output has the name of the penalty's term, \"{}\"; rename it",
                       penalty->name());
  }
  if (std::ranges::any_of(gan.discriminator.layers, [](const auto& layer) {
        return std::holds_alternative<BatchNorm>(layer.kind);
      })) {
    return "is of single events, which batch_norm of the discriminator mixes; take layer_norm in "
           "its place";
  }
  return {};
}

std::vector<double> values_of(const LossTerm& term, const Shape& output) {
  std::vector<double> values = term.classes;
  if (!term.tells_classes() || !values.empty()) return values;
  values.resize(static_cast<std::size_t>(output.channels));
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

float target_of_column(std::span<const float> values, float number) {
  if (values.empty()) return number;
  return static_cast<float>(std::ranges::find(values, number) - values.begin());
}

std::vector<std::string> columns_of(const GanDescription& gan) {
  std::vector<std::string> columns;
  if (gan.task == Task::kGan) columns = columns_of(gan.latent);
  for (const LossTerm& term : gan.losses) {
    if (term.target != Target::kColumn) continue;
    if (std::ranges::find(columns, term.column) == columns.end()) columns.push_back(term.column);
  }
  return columns;
}

std::string slot_name(SlotKind slot) {
  switch (slot) {
    case SlotKind::kDReal:
      return "d_real";
    case SlotKind::kDFake:
      return "d_fake";
    case SlotKind::kG:
      return "g";
    case SlotKind::kDBoth:
      return "d_both";
    case SlotKind::kFit:
      return "fit";
  }
  CHECK(false, "unknown slot");
}

Task task_of(SlotKind slot) { return slot == SlotKind::kFit ? Task::kSupervised : Task::kGan; }

SlotAccess slot_access(SlotKind slot) {
  switch (slot) {
    case SlotKind::kDReal:
    case SlotKind::kFit:
      return {0, kDiscriminatorWeights, kDiscriminatorWeights | kDiscriminatorMoving};
    case SlotKind::kDFake:
    case SlotKind::kDBoth:
      return {kGeneratorWeights | kGeneratorMoving,
              kGeneratorWeights | kGeneratorMoving | kDiscriminatorWeights,
              kDiscriminatorWeights | kDiscriminatorMoving};
    case SlotKind::kG:
      return {kGeneratorWeights, kGeneratorWeights | kDiscriminatorWeights,
              kGeneratorWeights | kGeneratorMoving | kDiscriminatorMoving};
  }
  CHECK(false, "unknown slot");
}

int ContributionLayout::find(const std::string& name) const {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

void GanStream::compute_with(runtime::ThreadTeam* team, std::span<GanStream* const> others) {
  std::vector<Workspace*> generators, discriminators, both;
  for (GanStream* other : others) {
    generators.push_back(&other->generator_);
    discriminators.push_back(&other->discriminator_);
    if (other->both_) both.push_back(&*other->both_);
  }
  generator_.compute_with(team, generators);
  discriminator_.compute_with(team, discriminators);
  if (both_) both_->compute_with(team, both);
}

namespace {

// Elements of a stream's places in the backend's memory, besides its workspaces.
struct StreamElements {
  std::int64_t targets = 0, images = 0, statistics = 0;
  std::int64_t probes = 0, slopes = 0, penalties = 0;
  std::array<std::int64_t, 4> parameters{};  // on a device alone
};

StreamElements elements_of(const Gan& gan) {
  const auto& losses = gan.description().losses;
  const ParameterLayout &g = gan.generator().parameters(), &d = gan.discriminator().parameters();
  const std::int64_t events = gan.group() * gan.batch();
  const std::int64_t cells = gan.discriminator().input_shape().elements();
  const auto has = [&](auto is_it) { return std::any_of(losses.begin(), losses.end(), is_it); };
  const bool counts = has([](const LossTerm& term) { return term.target == Target::kBins; });
  const bool penalises =
      has([](const LossTerm& term) { return term.kind == LossKind::kGradientPenalty; });
  const std::int64_t halves = gan.description().judges_both ? 2 : 1;
  StreamElements elements;
  elements.targets = static_cast<std::int64_t>(losses.size()) * halves * events * kBinCount;
  if (counts || penalises) elements.images = events * cells;
  if (penalises) {
    elements.probes = 2 * events * cells;
    elements.slopes = 5 * events;
    elements.penalties = 2 * gan.group() * d.weights_size;
  }
  elements.statistics = gan.group() * g.moving_size;
  if (gan.memory().is_of_host()) return elements;
  elements.parameters = {g.weights_size, g.moving_size, d.weights_size, d.moving_size};
  return elements;
}

}  // namespace

MemorySize GanStream::size_for(const Gan& gan) {
  MemorySize size;
  const auto add = [&](std::uint64_t bytes) {
    size.all += bytes;
    size.largest = std::max(size.largest, bytes);
  };
  for (const auto* program : {&gan.generator(), &gan.discriminator(), gan.both_.get()}) {
    if (program == nullptr) continue;
    add(program->arena_bytes());
    add(program->scratch_bytes());
  }
  const StreamElements elements = elements_of(gan);
  for (const std::int64_t each : {elements.targets, elements.images, elements.statistics,
                                  elements.probes, elements.slopes, elements.penalties}) {
    add(static_cast<std::uint64_t>(each) * bytes_of(gan.data_type()));
  }
  for (const std::int64_t each : elements.parameters) {
    add(static_cast<std::uint64_t>(each) * bytes_of(gan.data_type()));
  }
  return size;
}

GanStream::GanStream(const Gan& gan)
    : generator_(gan.generator()),
      discriminator_(gan.discriminator()),
      energy_(static_cast<std::size_t>(gan.group() * gan.batch())),
      ecal_(energy_.size()) {
  if (gan.both_ != nullptr) both_.emplace(*gan.both_);
  const std::size_t element = bytes_of(gan.data_type());
  const auto place = [&](std::int64_t elements, Memory& memory) {
    return memory.allocate(static_cast<std::size_t>(elements) * element);
  };
  const std::int64_t events = gan.group() * gan.batch();
  // Images are staged where they are not floats.
  const std::int64_t cells = gan.discriminator().input_shape().elements();
  const std::int64_t images = gan.data_type() == DataType::kFloat32 ? 0 : gan.batch() * cells;
  std::int64_t outputs = 2 * events * kBinCount;
  for (int i = 0; i < gan.discriminator().outputs(); ++i) {
    outputs = std::max(outputs, events * gan.discriminator().output_shape(i).elements());
  }
  staged_ =
      place(std::max({events * gan.description().latent.size, outputs, images}), host_memory());
  const StreamElements elements = elements_of(gan);
  Memory& memory = gan.memory();
  targets_ = place(elements.targets, memory);
  images_ = place(elements.images, memory);
  probes_ = place(elements.probes, memory);
  slopes_ = place(elements.slopes, memory);
  penalties_ = place(elements.penalties, memory);
  generator_statistics_ = place(elements.statistics, memory);
  if (memory.is_of_host()) return;
  indices_ = memory.allocate(static_cast<std::size_t>(gan.group()) * sizeof(std::uint32_t));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i] = place(elements.parameters[i], memory);
  }
}

Result<std::unique_ptr<const Gan>> Gan::compile(const GanDescription& description,
                                                const Backend& backend, std::int64_t batch) {
  std::unique_ptr<Gan> gan(new Gan(backend));
  gan->description_ = description;
  gan->columns_ = columns_of(description);
  ProgramOptions options;
  options.batch = batch;
  options.backward_input = false;
  ASSIGN_OR_RETURN(gan->generator_, Program::compile(generator_of(description), backend, options));
  options.backward_input = description.task == Task::kGan;
  options.network_number = 1;
  ASSIGN_OR_RETURN(gan->discriminator_,
                   Program::compile(description.discriminator, backend, options));
  RETURN_IF_ERROR(check_fit(description, *gan->generator_, *gan->discriminator_));
  if (description.judges_both) {
    options.batch = 2 * batch;
    options.backward_input = false;
    ASSIGN_OR_RETURN(gan->both_, Program::compile(description.discriminator, backend, options));
  }
  RETURN_IF_ERROR(gan->bind_losses(backend));
  gan->lay_out_contributions();
  return std::unique_ptr<const Gan>(std::move(gan));
}

Result<void> Gan::bind_losses(const Backend& backend) {
  if (description_.losses.empty()) return topology_error("a model needs at least one loss term");
  for (const LossTerm& term : description_.losses) RETURN_IF_ERROR(bind_loss(term, backend));
  const std::int64_t cells = discriminator_->input_shape().elements();
  ASSIGN_OR_RETURN(empty_images_, backend.make_kernel(CountEmpty{batch(), cells}));
  return {};
}

Result<void> Gan::bind_loss(const LossTerm& term, const Backend& backend) {
  const int output = discriminator_->find_output(term.output);
  if (output < 0) {
    return topology_error(fmt::format("loss {}: the {} has no output of this name", term.output,
                                      description_.discriminator.name));
  }
  const Shape found = discriminator_->output_shape(output);
  if (const std::string fault = term_fault(term, found); !fault.empty()) {
    return topology_error(fmt::format("loss {}: {}", term.output, fault));
  }
  if (term.tells_classes() && term.target != Target::kColumn) {
    return topology_error(fmt::format("loss {}: classes are those of a column", term.output));
  }
  loss_outputs_.push_back(output);
  const std::vector<double> values = values_of(term, found);
  loss_values_.emplace_back(values.begin(), values.end());
  MeanLoss loss{batch() * found.elements(), term.kind, term.weight};
  if (term.target == Target::kBins) {
    const std::int64_t cells = discriminator_->input_shape().elements();
    ASSIGN_OR_RETURN(bins_, backend.make_kernel(BinsForward{batch(), cells}));
    loss.least_target = 1.0;  // an empty bin counts one
  }
  const bool is_penalty = term.kind == LossKind::kGradientPenalty;
  if (is_penalty) {
    RETURN_IF_ERROR(bind_penalty(backend));
    penalty_ = static_cast<int>(loss_outputs_.size()) - 1;
    loss.kind = LossKind::kMeanSquaredError;  // of the slopes, which are to be 1
  }
  for (const Judging judging : {kDiscriminator, kGenerator, kBoth}) {
    const std::int64_t times = judging == kBoth && !is_penalty ? 2 : 1;
    MeanLoss own = loss;
    own.elements *= times;
    if (judging == kGenerator && own.kind == LossKind::kHinge) own.kind = LossKind::kWasserstein;
    const Operation operation =
        term.tells_classes()
            ? Operation(ClassCrossentropy{times * batch(), found.channels, term.weight})
            : Operation(own);
    ASSIGN_OR_RETURN(auto kernel, backend.make_kernel(operation));
    losses_[judging].push_back(std::move(kernel));
  }
  return {};
}

Result<void> Gan::bind_penalty(const Backend& backend) {
  if (const std::string fault = penalty_fault(description_); !fault.empty()) {
    return topology_error("gradient penalty: " + fault);
  }
  const std::int64_t cells = discriminator_->input_shape().elements();
  const std::int64_t weights = discriminator_->parameters().weights_size;
  ASSIGN_OR_RETURN(mix_, backend.make_kernel(MixEvents{batch(), cells}));
  ASSIGN_OR_RETURN(probe_, backend.make_kernel(SlopeProbes{batch(), cells}));
  ASSIGN_OR_RETURN(scale_, backend.make_kernel(Product{batch()}));
  ASSIGN_OR_RETURN(add_, backend.make_kernel(Accumulate{weights}));
  ASSIGN_OR_RETURN(no_penalty_, backend.make_kernel(ZeroFill{1}));
  return {};
}

std::size_t Gan::place_of(const std::string& column) const {
  const auto found = std::ranges::find(columns_, column);
  CHECK(found != columns_.end(), "the model reads this column");
  return static_cast<std::size_t>(found - columns_.begin());
}

void Gan::lay_out_contributions() {
  using Role = ContributionTensor::Role;
  const ParameterLayout& g = generator_->parameters();
  const ParameterLayout& d = discriminator_->parameters();
  for (const SlotKind slot : kSlotKinds) {
    if (task_of(slot) != description_.task) continue;
    const std::string judge = slot == SlotKind::kFit ? "network/" : "discriminator/";
    ContributionLayout& layout = contributions_[static_cast<std::size_t>(slot)];
    if (slot == SlotKind::kG) {
      append(layout, "generator/", Role::kGeneratorGradient, g.weights);
      append(layout, "generator/", Role::kGeneratorMoving, g.moving);
    } else {
      append(layout, judge, Role::kDiscriminatorGradient, d.weights);
    }
    append(layout, judge, Role::kDiscriminatorMoving, d.moving);
    for (std::size_t i = 0; i < description_.losses.size(); ++i) {
      append_number(layout, "loss/" + description_.losses[i].name(), Role::kLoss,
                    static_cast<int>(i));
    }
    if (makes_fakes(slot)) append_number(layout, "empty_images", Role::kEmptyImages, 0);
  }
}

const ContributionLayout& Gan::contributions(SlotKind slot) const {
  return contributions_[static_cast<std::size_t>(slot)];
}

}  // namespace troupe::model
