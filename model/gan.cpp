#include "model/gan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/layer_rules.h"
#include "model/shared_statistics.h"

namespace troupe::model {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

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

// The latent, the data and the images the networks exchange must fit each other.
Result<void> check_fit(const GanDescription& gan, const Program& generator,
                       const Program& discriminator) {
  if (const std::string fault = diffusion_fault(gan); !fault.empty()) return topology_error(fault);
  for (const LossTerm& term : gan.losses) {
    const bool of_gans = term.target == Target::kLabel || term.target == Target::kBins;
    const bool fits = term.target == Target::kVelocity ? gan.task == Task::kDiffusion
                                                       : gan.task == Task::kGan || !of_gans;
    if (fits) continue;
    return topology_error(fmt::format("loss {}: target {} is of {}, and the task is {}",
                                      term.output, target_name(term.target),
                                      of_gans ? "GANs" : "diffusion", task_name(gan.task)));
  }
  if (const std::string fault = conditions_fault(gan); !fault.empty()) return topology_error(fault);
  for (const LossTerm& term : gan.losses) {
    if (const std::string fault = made_target_fault(gan, term); !fault.empty()) {
      return topology_error(fmt::format("loss {}: {}", term.output, fault));
    }
  }
  if (gan.task != Task::kGan) return {};
  const LatentDescription& latent = gan.latent;
  if (generator.input_shape() != Shape::features(latent.size)) {
    return topology_error(fmt::format("the generator takes {} but the latent has {} features",
                                      generator.input_shape().text(), latent.size));
  }
  const int outputs = gan.discriminator.columns.empty() ? 1 : 2;
  if (generator.outputs() != outputs) {
    return topology_error(
        fmt::format("the generator has {} outputs, and the discriminator reads {}",
                    generator.outputs(), outputs));
  }
  if (generator.output_shape(0) != discriminator.input_shape()) {
    return topology_error(told_apart("the generator makes", generator.output_shape(0),
                                     "the discriminator reads", discriminator.input_shape()));
  }
  const Shape columns = Shape::features(std::ssize(gan.discriminator.columns));
  if (outputs > 1 && generator.output_shape(1) != columns) {
    return topology_error(
        fmt::format("the generator makes {} of the columns, each of which is one "
                    "number of an event",
                    generator.output_shape(1).text()));
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

void append_arrays(ContributionLayout& layout, const std::string& prefix,
                   ContributionTensor::Role role, const std::vector<ParameterTensor>& tensors,
                   const std::vector<std::string>& arrays) {
  int index = 0;
  for (const std::string& array : arrays) {
    const std::size_t first = layout.tensors.size();
    append(layout, prefix + array + "/", role, tensors);
    for (std::size_t i = first; i < layout.tensors.size(); ++i) layout.tensors[i].index += index;
    index += static_cast<int>(tensors.size());
  }
}

std::vector<std::string> numbered_arrays(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("array {}", i));
  return names;
}

void append_number(ContributionLayout& layout, const std::string& name,
                   ContributionTensor::Role role, int index) {
  layout.tensors.push_back({name, role, index, layout.size, 1});
  layout.size += 1;
}

}  // namespace

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
  std::int64_t probes = 0, slopes = 0, penalties = 0, whole = 0;
  std::array<std::int64_t, 6> parameters{};  // on a device alone
};

StreamElements elements_of(const Gan& gan) {
  const auto& losses = gan.description().losses;
  const ParameterLayout &g = gan.generator().parameters(), &d = gan.discriminator().parameters();
  const std::int64_t events = gan.group() * gan.batch();
  const std::int64_t cells = gan.image_shape().elements();
  const auto has = [&](auto is_it) { return std::any_of(losses.begin(), losses.end(), is_it); };
  const bool counts = has([](const LossTerm& term) { return term.target == Target::kBins; });
  const bool penalises =
      has([](const LossTerm& term) { return term.kind == LossKind::kGradientPenalty; });
  const std::int64_t halves = gan.description().judges_both ? 2 : 1;
  StreamElements elements;
  elements.targets = static_cast<std::int64_t>(losses.size()) * halves * events * kBinCount;
  const bool denoises = gan.description().task == Task::kDiffusion;
  if (counts || penalises || denoises) elements.images = events * cells;
  if (penalises) {
    elements.probes = 2 * events * cells;
    elements.slopes = 5 * events;
    elements.penalties = 2 * gan.group() * d.weights_size;
  }
  elements.statistics = gan.group() * g.moving_size;
  const bool shares = gan.contributions(SlotKind::kStatistics).size > 0;
  for (const SlotKind slot : kSlotKinds) {
    if (shares) {
      elements.whole = std::max(elements.whole, gan.group() * gan.contributions(slot).size);
    }
  }
  if (gan.memory().is_of_host()) return elements;
  const std::int64_t shared = shares ? kSharedArrays : 0;
  elements.parameters = {g.weights_size, g.moving_size,          d.weights_size,
                         d.moving_size,  shared * g.moving_size, shared * d.moving_size};
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
  for (const std::int64_t each :
       {elements.targets, elements.images, elements.statistics, elements.probes, elements.slopes,
        elements.penalties, elements.whole}) {
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
  // Images are staged where they are not floats, or together with what noise makes of them.
  const std::int64_t cells = gan.image_shape().elements();
  const bool denoises = gan.description().task == Task::kDiffusion;
  std::int64_t images = gan.data_type() == DataType::kFloat32 ? 0 : gan.batch() * cells;
  if (denoises) {
    images = gan.batch() * (cells + gan.discriminator().input_shape().elements());
  }
  std::int64_t outputs = 2 * events * kBinCount;
  for (int i = 0; i < gan.discriminator().outputs(); ++i) {
    outputs = std::max(outputs, events * gan.discriminator().output_shape(i).elements());
  }
  std::int64_t further = 0;
  for (const FurtherInput& input : further_inputs(gan.description().discriminator)) {
    further = std::max(further, 2 * events * input.features);
  }
  staged_ = place(std::max({events * gan.description().latent.size, outputs, images, further}),
                  host_memory());
  const StreamElements elements = elements_of(gan);
  Memory& memory = gan.memory();
  targets_ = place(elements.targets, memory);
  images_ = place(elements.images, memory);
  probes_ = place(elements.probes, memory);
  slopes_ = place(elements.slopes, memory);
  penalties_ = place(elements.penalties, memory);
  generator_statistics_ = place(elements.statistics, memory);
  whole_ = place(elements.whole, memory);
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
  if (const std::string fault = columns_fault(description); !fault.empty()) {
    return topology_error(fault);
  }
  ProgramOptions options;
  options.batch = batch;
  options.backward_input = false;
  ASSIGN_OR_RETURN(gan->generator_,
                   Program::compile(computed_generator(description), backend, options));
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
  const auto shared = [](const Program& program) {
    return model::shared_norms(program.network(), program.shapes(), program.parameters());
  };
  gan->shared_norms_ = {shared(*gan->generator_), shared(*gan->discriminator_)};
  for (const SlotKind slot : kSlotKinds) {
    gan->rounds_[static_cast<std::size_t>(slot)] = statistics_rounds(description, slot);
  }
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
  if (const std::string fault = term_fault(term, found, image_shape()); !fault.empty()) {
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
  const std::string judge = description_.task == Task::kGan ? "discriminator/" : "network/";
  for (const SlotKind slot : kSlotKinds) {
    if (slot == SlotKind::kWorkers || slot == SlotKind::kStatistics ||
        task_of(slot) != description_.task) {
      continue;
    }
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
  if (!shared_norms_[0].empty() || !shared_norms_[1].empty()) {
    ContributionLayout& layout = contributions_[static_cast<std::size_t>(SlotKind::kStatistics)];
    const std::vector<std::string> shares{"statistics", "squares", "slopes"};  // by ShareArray
    append_arrays(layout, "generator/", Role::kGeneratorShares, g.moving, shares);
    append_arrays(layout, judge, Role::kDiscriminatorShares, d.moving, shares);
  }
  if (!description_.worker_arrays) return;
  ContributionLayout& layout = contributions_[static_cast<std::size_t>(SlotKind::kWorkers)];
  append(layout, "generator/", Role::kGeneratorGradient, g.weights);
  append(layout, judge, Role::kDiscriminatorGradient, d.weights);
  append_arrays(layout, "generator/", Role::kGeneratorOptimiser, g.weights,
                numbered_arrays((*description_.worker_arrays)[0]));
  append_arrays(layout, judge, Role::kDiscriminatorOptimiser, d.weights,
                numbered_arrays((*description_.worker_arrays)[1]));
  append(layout, "generator/", Role::kGeneratorMoving, g.moving);
  append(layout, judge, Role::kDiscriminatorMoving, d.moving);
  const auto losses = told_losses(description_);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    append_number(layout, "loss/" + losses[i].name(), Role::kLoss, static_cast<int>(i));
  }
  if (description_.task == Task::kGan) append_number(layout, "empty_images", Role::kEmptyImages, 0);
}

const ContributionLayout& Gan::contributions(SlotKind slot) const {
  return contributions_[static_cast<std::size_t>(slot)];
}

}  // namespace troupe::model
