#pragma once

// Where the steps of a Gan have their values. For gan_arithmetic.cpp.

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <vector>

#include "model/condition_rows.h"
#include "model/gan.h"
#include "model/shared_statistics.h"
#include "model/streams.h"

namespace troupe::model {

// The memory of a step's values, in one data type: on the host, on their way to the backend's, and
// there.
template <class T>
struct GanMemory : GanWork {
  const Gan& gan;

  Memory& memory() const { return gan.memory(); }
  bool on_host() const { return memory().is_of_host(); }
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
  // Values of the host where kernels read them.
  const void* placed(std::size_t part, const void* values, std::int64_t size) const {
    if (on_host()) return values;
    T* const place = elements(stream.parameters_[part]);
    write(static_cast<const T*>(values), size, place);
    return place;
  }
};

// The places of a step's values.
template <class T>
struct GanPlaces : GanMemory<T> {
  using Base = GanMemory<T>;
  using Base::copy, Base::elements, Base::gan, Base::memory, Base::micro_batches, Base::on_host,
      Base::parameters, Base::placed, Base::position, Base::staged, Base::stream, Base::write;

  std::int64_t batch() const { return gan.batch(); }
  std::int64_t count() const { return std::ssize(micro_batches); }
  const GanDescription& description() const { return gan.description_; }
  std::int64_t cells() const { return gan.image_shape().elements(); }
  // That a micro-batch's events have in the discriminator's columns.
  std::int64_t column_numbers() const {
    return batch() * std::ssize(description().discriminator.columns);
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

  const float* column(const EventBatch& events, const std::string& name) const {
    CHECK(events.columns != nullptr, "the model reads columns of the data");
    return events.columns + static_cast<std::int64_t>(gan.place_of(name)) * batch();
  }
  // The numbers of the events, in the order of the conditions.
  std::array<const float*, kMostConditions> numbers(
      const EventBatch& events, const std::vector<std::string>& conditions) const {
    std::array<const float*, kMostConditions> values{};
    std::ranges::transform(conditions, values.begin(), [&](const std::string& condition) {
      const float* const found =
          numbers_of(condition, events.energy, events.angle,
                     [&](const std::string& name) { return column(events, name); });
      CHECK(found != nullptr, "the events have every condition, an angle if it is one");
      return found;
    });
    return values;
  }
  void write_latents() const {
    const std::int64_t size = batch() * description().latent.size;
    for (std::int64_t i = 0; i < count(); ++i) {
      const auto values = numbers(conditions(i), description().latent.conditions);
      make_latent(description().latent,
                  std::span(values).first(description().latent.conditions.size()), batch(),
                  at(kLatentStream, micro_batches[i]), staged() + i * size);
    }
    write(staged(), count() * size, gan.generator_->template input<T>(stream.generator_).data());
  }
  // Real images with noise, and the velocities that go with them.
  void write_noisy_images(T* inputs, T* velocities) const {
    const std::int64_t size = batch() * gan.discriminator_->input_shape().elements();
    T* const found = staged() + size;
    for (std::int64_t i = 0; i < count(); ++i) {
      const EventBatch& events = micro_batches[i].events;
      const auto values = numbers(events, description().latent.conditions);
      const CleanEvents clean{batch(), cells(), gan.image_shape().channels, events.images,
                              std::span(values).first(description().latent.conditions.size())};
      add_noise(clean, at(kLevelStream, micro_batches[i]), at(kNoiseStream, micro_batches[i]),
                staged(), found);
      write(staged(), size, inputs + i * size);
      write(found, batch() * cells(), velocities + i * batch() * cells());
    }
  }

  // `stride` elements from one micro-batch to the next.
  void write_real_images(T* to, std::int64_t stride) const {
    const std::int64_t size = batch() * cells();
    for (std::int64_t i = 0; i < count(); ++i, to += stride) {
      const float* images = micro_batches[i].events.images;
      if constexpr (std::is_same_v<T, float>) {
        write(images, size, to);
      } else {
        std::copy_n(images, size, staged());
        write(staged(), size, to);
      }
    }
  }

  Bindings bindings_of(const Program& program, std::size_t part, const void* weights,
                       const void* moving, const void* shared) const {
    const ParameterLayout& layout = program.parameters();
    Bindings bindings;
    bindings.weights =
        parameters.weights_placed ? weights : placed(part, weights, layout.weights_size);
    bindings.moving = placed(part + 1, moving, layout.moving_size);
    if (shared != nullptr) {
      bindings.shared = placed(4 + part / 2, shared, kSharedArrays * layout.moving_size);
    }
    bindings.random = at(0, micro_batches.front());
    bindings.group = group(0);
    return bindings;
  }
  Bindings generator_bindings() const {
    return bindings_of(*gan.generator_, 0, parameters.generator_weights,
                       parameters.generator_moving, parameters.generator_shared);
  }
  Bindings discriminator_bindings() const {
    return bindings_of(*gan.discriminator_, 2, parameters.discriminator_weights,
                       parameters.discriminator_moving, parameters.discriminator_shared);
  }

  // Those of a step with rounds are given out at its end.
  T* contributions() const { return stream.begun_ ? elements(stream.whole_) : given(); }
  T* given() const { return static_cast<T*>(micro_batches.front().contributions); }

  // What judges, and how many times the batch it judges at once.
  struct Judge {
    const Program& program;
    Workspace& workspace;
    const std::vector<std::unique_ptr<Kernel>>& losses;
    std::int64_t halves = 1;

    T* input() const { return program.template input<T>(workspace).data(); }
    T* conditions() const { return program.template conditions<T>(workspace).data(); }
    T* columns() const { return program.template columns<T>(workspace).data(); }
  };
  // A row of these numbers for each event. wanted(i, half) are the events, or what is asked for, of
  // the half of micro-batch i.
  template <class Wanted>
  void write_rows(const std::vector<std::string>& names, std::int64_t halves, const Wanted& wanted,
                  T* place) const {
    T* to = staged();
    for (std::int64_t i = 0; i < count(); ++i) {
      for (std::int64_t half = 0; half < halves; ++half) {
        const auto values = numbers(wanted(i, half), names);
        model::write_conditions(std::span(values).first(names.size()), batch(), to);
        to += batch() * std::ssize(names);
      }
    }
    write(staged(), to - staged(), place);
  }
  // Those of the judge's network.
  template <class Wanted>
  void write_conditions(const Judge& judge, const Wanted& wanted) const {
    const std::vector<std::string>& conditions = description().discriminator.conditions;
    if (!conditions.empty()) write_rows(conditions, judge.halves, wanted, judge.conditions());
  }
  // The data's, of every half.
  void write_real_columns(const Judge& judge) const {
    const std::vector<std::string>& columns = description().discriminator.columns;
    if (columns.empty()) return;
    write_rows(
        columns, judge.halves,
        [this](std::int64_t i, std::int64_t) { return micro_batches[i].events; }, judge.columns());
  }
  Judge discriminator(std::size_t losses = Gan::kDiscriminator) const {
    return {*gan.discriminator_, stream.discriminator_, gan.losses_[losses]};
  }
  Judge both() const {
    CHECK(gan.both_ != nullptr, "the description says that there is no d_both");
    return {*gan.both_, *stream.both_, gan.losses_[Gan::kBoth], 2};
  }
};

}  // namespace troupe::model
