#pragma once

// How a step of a Gan is computed in rounds (model/shared_statistics.h). For gan_arithmetic.cpp.

#include <vector>

#include "model/gan_places.h"

namespace troupe::model {

// The runs of a step's programs, in their order, each as far as a round needs it.
template <class T>
struct GanRounds : GanPlaces<T> {
  using Places = GanPlaces<T>;
  using Places::gan, Places::micro_batches, Places::stream, Places::count, Places::memory,
      Places::copy, Places::generator_bindings, Places::discriminator_bindings,
      Places::contributions, Places::given, Places::round, Places::position;

  // The step from its inputs on, whatever the stream was in the midst of.
  void begin(SlotKind slot) const {
    stream.begun_.emplace(GanStream::Begun{slot, position, {}, 0, -1});
    for (const GanMicroBatch& each : micro_batches) {
      stream.begun_->micro_batches.push_back(each.index);
    }
  }

  // Whether everything in front of this run of a program is done already.
  bool is_done(int run) const { return stream.begun_ && stream.begun_->run >= run; }

  // Run number `run` of the step, or the rest of it. False: the round ends in it.
  bool pass(int run, const Program& program, Pass pass, Bindings bindings,
            Workspace& workspace) const {
    if (!stream.begun_) {
      program.run(pass, bindings, workspace);
      return true;
    }
    if (stream.begun_->run > run) return true;
    bindings.resumes = stream.begun_->run == run;
    const bool ends = round >= 0 && here().run == run;
    if (ends) {
      const std::int64_t of_generator = kShareArrays * gan.generator_->parameters().moving_size;
      bindings.round = here().layer;
      bindings.shares = given() + (here().of_generator ? 0 : of_generator);
      bindings.shares_stride = gan.contributions(SlotKind::kStatistics).size;
    }
    program.run(pass, bindings, workspace);
    return !ends;
  }
  StatisticsRound here() const {
    return gan.rounds(stream.begun_->slot)[static_cast<std::size_t>(round)];
  }

  // Each micro-batch contributes what all of them share.
  void give_all(SlotKind slot) const {
    const ContributionLayout& layout = gan.contributions(slot);
    const ParameterLayout &g = gan.generator_->parameters(), &d = gan.discriminator_->parameters();
    const bool of_both = slot == SlotKind::kG;
    for (std::int64_t i = 0; i < count(); ++i) {
      T* const whole = contributions() + i * layout.size;
      if (of_both) {
        give_shared(true, whole, whole + g.weights_size);
        give_shared(false, nullptr, whole + g.size());
      } else {
        give_shared(false, whole, whole + d.weights_size);
      }
      copy(whole, layout.size, given() + i * layout.size);
    }
    memory().flush();
  }
  void give_shared(bool of_generator, T* gradients, T* moving) const {
    const auto& program = of_generator ? *gan.generator_ : *gan.discriminator_;
    const std::int64_t size = program.parameters().moving_size;
    const Bindings bindings = of_generator ? generator_bindings() : discriminator_bindings();
    const auto shared = [&](SharedArray array, std::int64_t offset) {
      return static_cast<const T*>(bindings.shared) + static_cast<std::int64_t>(array) * size +
             offset;
    };
    for (const SharedNorm& norm : gan.shared_norms(of_generator)) {
      for (const std::int64_t offset : {norm.mean, norm.variance}) {
        copy(shared(SharedArray::kMoving, offset), norm.channels, moving + offset);
      }
      if (gradients == nullptr) continue;
      copy(shared(SharedArray::kGradients, norm.mean), norm.channels, gradients + norm.beta);
      copy(shared(SharedArray::kGradients, norm.variance), norm.channels, gradients + norm.gamma);
    }
  }
};

}  // namespace troupe::model
