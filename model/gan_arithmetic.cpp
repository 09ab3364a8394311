// The steps of a Gan.

#include <algorithm>
#include <array>
#include <initializer_list>

#include "model/gan.h"
#include "model/streams.h"

namespace troupe::model {

// The places of a step's values, in one data type: on the host, on their way to the backend's
// memory, and there.
template <class T>
struct GanPlaces : GanWork {
  const Gan& gan;

  std::int64_t batch() const { return gan.batch(); }
  std::int64_t count() const { return std::ssize(micro_batches); }
  const GanDescription& description() const { return gan.description_; }
  Memory& memory() const { return gan.memory(); }
  bool on_host() const { return memory().is_of_host(); }
  std::int64_t cells() const { return gan.discriminator_->input_shape().elements(); }

  static T* elements(const std::shared_ptr<std::byte>& place) {
    return reinterpret_cast<T*>(place.get());
  }
  T* staged() const { return elements(stream.staged_); }
  void write(const T* from, std::int64_t count, T* to) const {
    memory().write(from, to, static_cast<std::size_t>(count) * sizeof(T));
  }
  void copy(const T* from, std::int64_t count, T* to) const {
    memory().copy(from, to, static_cast<std::size_t>(count) * sizeof(T));
  }

  runtime::RandomPosition at(std::uint32_t random_stream, const GanMicroBatch& micro_batch) const {
    runtime::RandomPosition there = position;
    there.micro_batch = micro_batch.index;
    there.stream = random_stream;
    return there;
  }

  Group group(std::int64_t stride) const {
    return {count(), reinterpret_cast<const std::uint32_t*>(stream.indices_.get()), stride};
  }
  // The indices of the group's micro-batches, where kernels read them.
  void write_indices() const {
    if (on_host()) return;
    auto* indices = reinterpret_cast<std::uint32_t*>(stream.staged_.get());
    for (std::int64_t i = 0; i < count(); ++i) indices[i] = micro_batches[i].index;
    memory().write(indices, stream.indices_.get(),
                   static_cast<std::size_t>(count()) * sizeof(std::uint32_t));
  }

  struct Argument {
    const void* first;    // of the first micro-batch
    std::int64_t stride;  // elements to the next one's
  };
  void run(const Kernel& kernel, std::initializer_list<Argument> arguments) const {
    std::array<void*, kMostOperands> operands{};
    std::array<std::int64_t, kMostOperands> strides{};
    std::size_t used = 0;
    for (const Argument& argument : arguments) {
      operands[used] = const_cast<void*>(argument.first);
      strides[used++] = argument.stride;
    }
    if (on_host()) return kernel.run({operands.data(), used}, position, nullptr);
    kernel.run_group({operands.data(), used}, {strides.data(), used}, position, group(0), nullptr);
  }

  // The conditions fakes of a micro-batch are made for; drawn ones are the same on every call.
  EventBatch conditions(std::int64_t i) const {
    const GanMicroBatch& micro_batch = micro_batches[i];
    if (description().fake_conditions == FakeConditions::kBatch) return micro_batch.events;
    const auto& [low, high] = description().fake_energy;
    float* const energies = stream.energy_.data() + i * batch();
    float* const ecals = stream.ecal_.data() + i * batch();
    for (std::int64_t event = 0; event < batch(); ++event) {
      const double u = runtime::random_uniform(at(kConditionStream, micro_batch),
                                               static_cast<std::uint32_t>(event));
      const double energy = low + (high - low) * u;
      double per_cent = 0.0;
      for (std::size_t k = description().response.size(); k-- > 0;) {
        per_cent = per_cent * energy + description().response[k];
      }
      energies[event] = static_cast<float>(energy);
      ecals[event] = static_cast<float>(per_cent * energy * description().data_scale);
    }
    return {nullptr, energies, nullptr, ecals};
  }

  void write_latents() const {
    const std::int64_t size = batch() * description().latent.size;
    for (std::int64_t i = 0; i < count(); ++i) {
      const EventBatch wanted = conditions(i);
      make_latent(description().latent, wanted.energy, wanted.angle, batch(),
                  at(kLatentStream, micro_batches[i]), staged() + i * size);
    }
    write(staged(), count() * size, gan.generator_->template input<T>(stream.generator_).data());
  }

  void write_real_images(T* to) const {
    const std::int64_t size = batch() * cells();
    for (std::int64_t i = 0; i < count(); ++i, to += size) {
      const float* images = micro_batches[i].events.images;
      if constexpr (std::is_same_v<T, float>) {
        write(images, size, to);
      } else {
        std::copy_n(images, size, staged());
        write(staged(), size, to);
      }
    }
  }

  // Values of the host where kernels read them.
  const void* placed(std::size_t part, const void* values, std::int64_t size) const {
    if (on_host()) return values;
    T* const place = elements(stream.parameters_[part]);
    write(static_cast<const T*>(values), size, place);
    return place;
  }
  Bindings bindings_of(const Program& program, std::size_t part, const void* weights,
                       const void* moving) const {
    const ParameterLayout& layout = program.parameters();
    Bindings bindings;
    bindings.weights =
        parameters.weights_placed ? weights : placed(part, weights, layout.weights_size);
    bindings.moving = placed(part + 1, moving, layout.moving_size);
    bindings.random = at(0, micro_batches.front());
    bindings.group = group(0);
    return bindings;
  }
  Bindings generator_bindings() const {
    return bindings_of(*gan.generator_, 0, parameters.generator_weights,
                       parameters.generator_moving);
  }
  Bindings discriminator_bindings() const {
    return bindings_of(*gan.discriminator_, 2, parameters.discriminator_weights,
                       parameters.discriminator_moving);
  }

  T* contributions() const { return static_cast<T*>(micro_batches.front().contributions); }
};

// The computation in one data type; `Gan` chooses which.
template <class T>
struct GanArithmetic : GanPlaces<T> {
  using Places = GanPlaces<T>;
  using Places::gan, Places::micro_batches, Places::stream, Places::final_from, Places::batch,
      Places::count, Places::description, Places::memory, Places::on_host, Places::cells,
      Places::elements, Places::staged, Places::write, Places::copy, Places::at, Places::group,
      Places::write_indices, Places::run, Places::conditions, Places::write_latents,
      Places::write_real_images, Places::generator_bindings, Places::discriminator_bindings,
      Places::contributions;

  void make_fakes() const {
    write_indices();
    write_latents();
    gan.generator_->run(Pass::kForwardInference, generator_bindings(), stream.generator_);
    const auto made = gan.generator_->template output<T>(stream.generator_, 0);
    const std::int64_t size = batch() * cells();
    for (std::int64_t i = 0; i < count(); ++i) {
      copy(made.data() + i * size, size, static_cast<T*>(micro_batches[i].images));
    }
    memory().flush();
  }

  void begin_generator() const {
    write_indices();
    write_latents();
    Bindings bindings = generator_bindings();
    bindings.statistics = elements(stream.generator_statistics_);
    bindings.group.stride = gan.generator_->parameters().moving_size;
    gan.generator_->run(Pass::kForwardTraining, bindings, stream.generator_);
    memory().flush();
  }

  T* discriminator_input() const {
    return gan.discriminator_->template input<T>(stream.discriminator_).data();
  }

  // Expects the images in the discriminator's input, and the targets.
  void d_step(Bindings bindings, const ContributionLayout& layout) const {
    bindings.gradients = contributions();
    bindings.statistics = contributions() + gan.discriminator_->parameters().weights_size;
    bindings.group.stride = layout.size;
    gan.discriminator_->run(Pass::kForwardTraining, bindings, stream.discriminator_);
    losses(layout);
    backward(*gan.discriminator_, bindings, stream.discriminator_);
  }

  // The elements behind the gradients are final before the backward pass begins.
  void backward(const Program& program, Bindings bindings, Workspace& workspace) const {
    if (final_from != nullptr) {
      (*final_from)(program.parameters().weights_size);
      bindings.gradients_final = final_from;
    }
    program.run(Pass::kBackwardParameters, bindings, workspace);
    memory().flush();
  }

  void d_real() const {
    const ContributionLayout& layout = gan.contributions(SlotKind::kDReal);
    write_indices();
    write_real_images(discriminator_input());
    write_targets([this](std::int64_t i) { return micro_batches[i].events; },
                  {1.0, description().flip_probability});
    const Bindings bindings = discriminator_bindings();
    if (gan.bins_ != nullptr) count_bins(discriminator_input());
    d_step(bindings, layout);
  }

  void d_fake() const {
    const ContributionLayout& layout = gan.contributions(SlotKind::kDFake);
    write_indices();
    write_targets([this](std::int64_t i) { return conditions(i); },
                  {0.0, description().flip_probability});
    const Bindings bindings = discriminator_bindings();
    count_bins_of_real_images();
    const std::int64_t size = batch() * cells();
    for (std::int64_t i = 0; i < count(); ++i) {
      copy(static_cast<const T*>(micro_batches[i].images), size, discriminator_input() + i * size);
    }
    run(*gan.empty_images_,
        {{discriminator_input(), size}, {contributions() + layout.size - 1, layout.size}});
    d_step(bindings, layout);
  }

  void finish_generator() const {
    const ContributionLayout& layout = gan.contributions(SlotKind::kG);
    const ParameterLayout& g = gan.generator_->parameters();
    write_indices();
    // All fakes are labelled real, and no label is flipped.
    write_targets([this](std::int64_t i) { return conditions(i); }, {1.0, 0.0});
    Bindings g_bindings = generator_bindings(), d_bindings = discriminator_bindings();
    g_bindings.gradients = contributions();
    d_bindings.statistics = contributions() + g.size();
    g_bindings.group.stride = d_bindings.group.stride = layout.size;
    count_bins_of_real_images();
    const auto images = gan.generator_->template output<T>(stream.generator_, 0);
    copy(images.data(), count() * batch() * cells(), discriminator_input());

    // The discriminator judges in training mode and keeps its weights. The gradient of its input is
    // the gradient of the generator's output.
    gan.discriminator_->run(Pass::kForwardTraining, d_bindings, stream.discriminator_);
    losses(layout);
    gan.discriminator_->run(Pass::kBackwardInput, d_bindings, stream.discriminator_);

    const auto gradient = gan.discriminator_->template input_gradient<T>(stream.discriminator_);
    copy(gradient.data(), count() * batch() * cells(),
         gan.generator_->template output_gradient<T>(stream.generator_, 0).data());
    for (std::int64_t i = 0; i < count(); ++i) {
      copy(elements(stream.generator_statistics_) + i * g.moving_size, g.moving_size,
           contributions() + i * layout.size + g.weights_size);
    }
    backward(*gan.generator_, g_bindings, stream.generator_);
  }

  struct Labels {
    double label, flip_probability;
  };
  double target_of(Target target, const GanMicroBatch& micro_batch, const EventBatch& wanted,
                   std::int64_t event, const Labels& labels) const {
    switch (target) {
      case Target::kLabel: {
        const bool flipped =
            labels.flip_probability > 0.0 &&
            runtime::random_uniform(at(kFlipStream, micro_batch),
                                    static_cast<std::uint32_t>(event)) < labels.flip_probability;
        return flipped ? 1.0 - labels.label : labels.label;
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
    CHECK(false, "bins are counted");
  }

  // Targets of a term, of the first micro-batch.
  T* targets(std::size_t term) const {
    return elements(stream.targets_) + static_cast<std::int64_t>(term) * count() * batch() *
                                           target_shape(Target::kBins).channels;
  }

  // All terms' but bins. wanted(i) are the conditions of micro-batch i.
  template <class Wanted>
  void write_targets(const Wanted& wanted, const Labels& labels) const {
    for (std::size_t term = 0; term < description().losses.size(); ++term) {
      const Target target = description().losses[term].target;
      if (target == Target::kBins) continue;
      for (std::int64_t i = 0; i < count(); ++i) {
        const EventBatch events = wanted(i);
        for (std::int64_t event = 0; event < batch(); ++event) {
          staged()[i * batch() + event] =
              static_cast<T>(target_of(target, micro_batches[i], events, event, labels));
        }
      }
      write(staged(), count() * batch(), targets(term));
    }
  }

  void count_bins_of_real_images() const {
    if (gan.bins_ == nullptr) return;
    write_real_images(elements(stream.images_));
    count_bins(elements(stream.images_));
  }
  void count_bins(const T* images) const {
    for (std::size_t term = 0; term < description().losses.size(); ++term) {
      if (description().losses[term].target != Target::kBins) continue;
      run(*gan.bins_, {{images, batch() * cells()},
                       {targets(term), batch() * target_shape(Target::kBins).channels}});
    }
  }

  // Writes each term's mean to its place in the contributions and its gradient to its output's.
  void losses(const ContributionLayout& layout) const {
    for (const ContributionTensor& tensor : layout.tensors) {
      if (tensor.role != ContributionTensor::Role::kLoss) continue;
      const auto term = static_cast<std::size_t>(tensor.index);
      const int output = gan.loss_outputs_[term];
      const std::int64_t size = batch() * gan.discriminator_->output_shape(output).elements();
      const auto outputs = gan.discriminator_->template output<T>(stream.discriminator_, output);
      const auto gradient =
          gan.discriminator_->template output_gradient<T>(stream.discriminator_, output);
      run(*gan.losses_[term], {{outputs.data(), size},
                               {targets(term), size},
                               {contributions() + tensor.offset, layout.size},
                               {gradient.data(), size}});
    }
  }
};

namespace {

// Calls use(arithmetic) with the arithmetic of the Gan's data type.
template <class Use>
void in_data_type(const Gan& gan, const GanWork& work, Use use) {
  CHECK(!work.micro_batches.empty() && std::ssize(work.micro_batches) <= gan.group(),
        "no more micro-batches than the backend computes side by side");
  if (gan.data_type() == DataType::kFloat32) {
    use(GanArithmetic<float>{{work, gan}});
  } else {
    use(GanArithmetic<double>{{work, gan}});
  }
}

}  // namespace

void Gan::make_fakes(const GanWork& work) const {
  in_data_type(*this, work, [](auto step) { step.make_fakes(); });
}
void Gan::d_real(const GanWork& work) const {
  in_data_type(*this, work, [](auto step) { step.d_real(); });
}
void Gan::d_fake(const GanWork& work) const {
  in_data_type(*this, work, [](auto step) { step.d_fake(); });
}
void Gan::begin_generator(const GanWork& work) const {
  in_data_type(*this, work, [](auto step) { step.begin_generator(); });
}
void Gan::finish_generator(const GanWork& work) const {
  in_data_type(*this, work, [](auto step) { step.finish_generator(); });
}

}  // namespace troupe::model
