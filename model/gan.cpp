#include "model/gan.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/loss.h"
#include "model/streams.h"

namespace troupe::model {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::RandomPosition;
using runtime::Result;

constexpr std::int64_t kBinCount = 8;

Error topology_error(std::string message) { return {ErrorKind::kTopology, std::move(message)}; }

// Drawn conditions are energies, so a model that needs any other condition is refused.
Result<void> check_fake_conditions(const GanDescription& gan) {
  if (gan.fake_conditions != FakeConditions::kUniform) return {};
  if (uses_angle(gan.latent)) {
    return topology_error(
        "fake_conditions: uniform draws energies only; a model with an angle needs batch");
  }
  for (const LossTerm& term : gan.losses) {
    if (term.target != Target::kAngle && term.target != Target::kBins) continue;
    return topology_error(fmt::format(
        "fake_conditions: uniform draws energies only; loss {} compares fakes with the real batch",
        term.output));
  }
  return {};
}

// The latent, the data and the images the networks exchange must fit each other.
Result<void> check_fit(const GanDescription& gan, const Program& generator,
                       const Program& discriminator) {
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

// The computation in one data type; `Gan` chooses which.
template <class T>
struct GanArithmetic : GanWork {
  const Gan& gan;

  std::int64_t batch() const { return gan.batch(); }
  const GanDescription& description() const { return gan.description_; }

  RandomPosition at(std::uint32_t random_stream) const {
    RandomPosition there = position;
    there.stream = random_stream;
    return there;
  }

  // The conditions fakes of these events are made for; drawn ones are the same on every call.
  EventBatch conditions() const {
    if (description().fake_conditions == FakeConditions::kBatch) return events;
    const auto& [low, high] = description().fake_energy;
    for (std::int64_t i = 0; i < batch(); ++i) {
      const double u = runtime::random_uniform(at(kConditionStream), static_cast<std::uint32_t>(i));
      const double energy = low + (high - low) * u;
      double per_cent = 0.0;
      for (std::size_t k = description().response.size(); k-- > 0;) {
        per_cent = per_cent * energy + description().response[k];
      }
      stream.energy_[i] = static_cast<float>(energy);
      stream.ecal_[i] = static_cast<float>(per_cent * energy * description().data_scale);
    }
    return {nullptr, stream.energy_.data(), nullptr, stream.ecal_.data()};
  }

  void load_latent(const EventBatch& wanted) const {
    make_latent(description().latent, wanted.energy, wanted.angle, batch(), at(kLatentStream),
                gan.generator_->template input<T>(stream.generator_).data());
  }

  Bindings generator_bindings() const {
    return {parameters.generator_weights, parameters.generator_moving, nullptr, nullptr, position};
  }
  Bindings discriminator_bindings() const {
    return {parameters.discriminator_weights, parameters.discriminator_moving, nullptr, nullptr,
            position};
  }

  void make_fakes(void* images) const {
    load_latent(conditions());
    gan.generator_->run(Pass::kForwardInference, generator_bindings(), stream.generator_);
    const auto made = gan.generator_->template output<T>(stream.generator_, 0);
    std::copy(made.begin(), made.end(), static_cast<T*>(images));
  }

  void begin_generator() const {
    load_latent(conditions());
    Bindings bindings = generator_bindings();
    bindings.statistics = statistics_sink();
    gan.generator_->run(Pass::kForwardTraining, bindings, stream.generator_);
  }

  // The generator's forward pass runs before there is a contribution vector, so its statistics wait
  // here.
  T* statistics_sink() const {
    return reinterpret_cast<T*>(stream.generator_statistics_.mutable_data());
  }

  // Expects the images in the discriminator's input.
  void d_step(const EventBatch& wanted, double label, const ContributionLayout& layout,
              T* contributions) const {
    const ParameterLayout& tensors = gan.discriminator_->parameters();
    Bindings bindings = discriminator_bindings();
    bindings.gradients = contributions;
    bindings.statistics = contributions + tensors.weights_size;
    gan.discriminator_->run(Pass::kForwardTraining, bindings, stream.discriminator_);
    losses(wanted, label, description().flip_probability, layout, contributions);
    backward(*gan.discriminator_, bindings, stream.discriminator_);
  }

  // The elements behind the gradients are final before the backward pass begins.
  void backward(const Program& program, Bindings bindings, Workspace& workspace) const {
    if (final_from != nullptr) (*final_from)(program.parameters().weights_size);
    bindings.gradients_final = final_from;
    program.run(Pass::kBackwardParameters, bindings, workspace);
  }

  void d_real(void* contributions) const {
    const auto input = gan.discriminator_->template input<T>(stream.discriminator_);
    std::copy(events.images, events.images + input.size(), input.begin());
    d_step(events, 1.0, gan.contributions(SlotKind::kDReal), static_cast<T*>(contributions));
  }

  void d_fake(const void* fakes, void* result) const {
    const T* images = static_cast<const T*>(fakes);
    T* contributions = static_cast<T*>(result);
    const ContributionLayout& layout = gan.contributions(SlotKind::kDFake);
    const auto input = gan.discriminator_->template input<T>(stream.discriminator_);
    std::copy(images, images + input.size(), input.begin());
    contributions[layout.size - 1] = static_cast<T>(empty_images(images));
    d_step(conditions(), 0.0, layout, contributions);
  }

  std::int64_t empty_images(const T* images) const {
    const std::int64_t cells = gan.discriminator_->input_shape().elements();
    std::int64_t empty = 0;
    for (std::int64_t i = 0; i < batch(); ++i) {
      const T* image = images + i * cells;
      empty += std::all_of(image, image + cells, [](T cell) { return cell == T{0}; }) ? 1 : 0;
    }
    return empty;
  }

  void finish_generator(void* result) const {
    T* contributions = static_cast<T*>(result);
    const ContributionLayout& layout = gan.contributions(SlotKind::kG);
    const ParameterLayout& g = gan.generator_->parameters();
    const auto images = gan.generator_->template output<T>(stream.generator_, 0);
    const auto input = gan.discriminator_->template input<T>(stream.discriminator_);
    std::copy(images.begin(), images.end(), input.begin());

    // The discriminator judges in training mode and keeps its weights. The gradient of its input is
    // the gradient of the generator's output. All fakes are labelled real, and no label is flipped.
    Bindings d_bindings = discriminator_bindings();
    d_bindings.statistics = contributions + g.size();
    gan.discriminator_->run(Pass::kForwardTraining, d_bindings, stream.discriminator_);
    losses(conditions(), 1.0, 0.0, layout, contributions);
    gan.discriminator_->run(Pass::kBackwardInput, d_bindings, stream.discriminator_);

    const auto gradient = gan.discriminator_->template input_gradient<T>(stream.discriminator_);
    const auto output_gradient = gan.generator_->template output_gradient<T>(stream.generator_, 0);
    std::copy(gradient.begin(), gradient.end(), output_gradient.begin());
    Bindings g_bindings = generator_bindings();
    g_bindings.gradients = contributions;
    std::copy_n(statistics_sink(), g.moving_size, contributions + g.weights_size);
    backward(*gan.generator_, g_bindings, stream.generator_);
  }

  double target_of(Target target, const EventBatch& wanted, std::int64_t event, double label,
                   double flip_probability) const {
    switch (target) {
      case Target::kLabel: {
        const bool flipped =
            flip_probability > 0.0 &&
            runtime::random_uniform(at(kFlipStream), static_cast<std::uint32_t>(event)) <
                flip_probability;
        return flipped ? 1.0 - label : label;
      }
      case Target::kEnergy:
        return wanted.energy[event];
      case Target::kAngle:
        return wanted.angle[event];
      case Target::kEcal:
        return wanted.ecal[event];
      case Target::kBins:
        break;
    }
    CHECK(false, "bins have eight targets");
  }

  // Counts of the real images, an empty bin counting one.
  void bin_targets() const {
    auto* real = reinterpret_cast<T*>(stream.images_.mutable_data());
    std::copy_n(events.images, batch() * gan.discriminator_->input_shape().elements(), real);
    void* operands[] = {real, stream.bins_.mutable_data()};
    gan.bins_->run(operands, position, nullptr);
    const T* counts = reinterpret_cast<const T*>(stream.bins_.data());
    for (std::int64_t i = 0; i < batch() * kBinCount; ++i) {
      stream.targets_[i] = std::max(1.0, static_cast<double>(counts[i]));
    }
  }

  // Writes each term's mean to its place in the contributions and its gradient to its output's.
  void losses(const EventBatch& wanted, double label, double flip_probability,
              const ContributionLayout& layout, T* contributions) const {
    for (const ContributionTensor& tensor : layout.tensors) {
      if (tensor.role != ContributionTensor::Role::kLoss) continue;
      const LossTerm& term = description().losses[tensor.index];
      const int output = gan.loss_outputs_[tensor.index];
      const auto outputs = gan.discriminator_->template output<T>(stream.discriminator_, output);
      if (term.target == Target::kBins) {
        bin_targets();
      } else {
        for (std::int64_t i = 0; i < batch(); ++i) {
          stream.targets_[i] = target_of(term.target, wanted, i, label, flip_probability);
        }
      }
      T* gradient =
          gan.discriminator_->template output_gradient<T>(stream.discriminator_, output).data();
      contributions[tensor.offset] = static_cast<T>(evaluate_loss<T>(
          term.kind, term.weight, outputs,
          std::span<const double>{stream.targets_.data(), outputs.size()}, gradient));
    }
  }
};

namespace {

// Calls use(arithmetic) with the arithmetic of the Gan's data type.
template <class Use>
void in_data_type(const Gan& gan, const GanWork& work, Use use) {
  if (gan.data_type() == DataType::kFloat32) {
    use(GanArithmetic<float>{work, gan});
  } else {
    use(GanArithmetic<double>{work, gan});
  }
}

}  // namespace

Shape target_shape(Target target) {
  return Shape::features(target == Target::kBins ? kBinCount : 1);
}

std::string slot_name(SlotKind slot) {
  switch (slot) {
    case SlotKind::kDReal:
      return "d_real";
    case SlotKind::kDFake:
      return "d_fake";
    case SlotKind::kG:
      return "g";
  }
  CHECK(false, "unknown slot");
}

SlotAccess slot_access(SlotKind slot) {
  switch (slot) {
    case SlotKind::kDReal:
      return {0, kDiscriminatorWeights, kDiscriminatorWeights | kDiscriminatorMoving};
    case SlotKind::kDFake:
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
  std::vector<Workspace*> generators, discriminators;
  for (GanStream* other : others) {
    generators.push_back(&other->generator_);
    discriminators.push_back(&other->discriminator_);
  }
  generator_.compute_with(team, generators);
  discriminator_.compute_with(team, discriminators);
}

GanStream::GanStream(const Gan& gan)
    : generator_(gan.generator()),
      discriminator_(gan.discriminator()),
      energy_(gan.batch()),
      ecal_(gan.batch()),
      targets_(gan.batch() * kBinCount),
      bins_(runtime::Buffer::zeroed(gan.batch() * kBinCount * bytes_of(gan.data_type()))),
      generator_statistics_(runtime::Buffer::zeroed(gan.generator().parameters().moving_size *
                                                    bytes_of(gan.data_type()))) {
  const auto& losses = gan.description().losses;
  const bool counts = std::any_of(losses.begin(), losses.end(), [](const LossTerm& term) {
    return term.target == Target::kBins;
  });
  if (!counts) return;
  images_ = runtime::Buffer::zeroed(gan.batch() * gan.discriminator().input_shape().elements() *
                                    bytes_of(gan.data_type()));
}

Result<std::unique_ptr<const Gan>> Gan::compile(const GanDescription& description,
                                                const Backend& backend, std::int64_t batch) {
  std::unique_ptr<Gan> gan(new Gan());
  gan->description_ = description;
  ProgramOptions options;
  options.batch = batch;
  options.backward_input = false;
  ASSIGN_OR_RETURN(gan->generator_, Program::compile(description.generator, backend, options));
  options.backward_input = true;
  options.network_number = 1;
  ASSIGN_OR_RETURN(gan->discriminator_,
                   Program::compile(description.discriminator, backend, options));
  RETURN_IF_ERROR(check_fit(description, *gan->generator_, *gan->discriminator_));
  RETURN_IF_ERROR(gan->bind_losses(backend));
  gan->lay_out_contributions();
  return std::unique_ptr<const Gan>(std::move(gan));
}

Result<void> Gan::bind_losses(const Backend& backend) {
  if (description_.losses.empty()) return topology_error("a model needs at least one loss term");
  for (const LossTerm& term : description_.losses) {
    const int output = discriminator_->find_output(term.output);
    if (output < 0) {
      return topology_error(
          fmt::format("loss {}: the discriminator has no output of this name", term.output));
    }
    const Shape found = discriminator_->output_shape(output);
    if (found != target_shape(term.target)) {
      return topology_error(fmt::format("loss {}: the output has shape {}, its target {}",
                                        term.output, found.text(),
                                        target_shape(term.target).text()));
    }
    loss_outputs_.push_back(output);
    if (term.target == Target::kBins) {
      ASSIGN_OR_RETURN(bins_, backend.make_kernel(
                                  BinsForward{batch(), discriminator_->input_shape().elements()}));
    }
  }
  return {};
}

void Gan::lay_out_contributions() {
  using Role = ContributionTensor::Role;
  const ParameterLayout& g = generator_->parameters();
  const ParameterLayout& d = discriminator_->parameters();
  for (const SlotKind slot : {SlotKind::kDReal, SlotKind::kDFake, SlotKind::kG}) {
    ContributionLayout& layout = contributions_[static_cast<std::size_t>(slot)];
    if (slot == SlotKind::kG) {
      append(layout, "generator/", Role::kGeneratorGradient, g.weights);
      append(layout, "generator/", Role::kGeneratorMoving, g.moving);
    } else {
      append(layout, "discriminator/", Role::kDiscriminatorGradient, d.weights);
    }
    append(layout, "discriminator/", Role::kDiscriminatorMoving, d.moving);
    for (std::size_t i = 0; i < description_.losses.size(); ++i) {
      append_number(layout, "loss/" + description_.losses[i].output, Role::kLoss,
                    static_cast<int>(i));
    }
    if (slot == SlotKind::kDFake) append_number(layout, "empty_images", Role::kEmptyImages, 0);
  }
}

const ContributionLayout& Gan::contributions(SlotKind slot) const {
  return contributions_[static_cast<std::size_t>(slot)];
}

void Gan::make_fakes(const GanWork& work, void* images) const {
  in_data_type(*this, work, [&](auto step) { step.make_fakes(images); });
}
void Gan::d_real(const GanWork& work, void* contributions) const {
  in_data_type(*this, work, [&](auto step) { step.d_real(contributions); });
}
void Gan::d_fake(const GanWork& work, const void* images, void* contributions) const {
  in_data_type(*this, work, [&](auto step) { step.d_fake(images, contributions); });
}
void Gan::begin_generator(const GanWork& work) const {
  in_data_type(*this, work, [](auto step) { step.begin_generator(); });
}
void Gan::finish_generator(const GanWork& work, void* contributions) const {
  in_data_type(*this, work, [&](auto step) { step.finish_generator(contributions); });
}

}  // namespace troupe::model
