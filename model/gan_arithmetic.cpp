// The steps of a Gan.

#include <algorithm>
#include <array>

#include "model/gan_rounds.h"

namespace troupe::model {

// The computation in one data type; `Gan` chooses which.
template <class T>
struct GanArithmetic : GanRounds<T> {
  using Places = GanRounds<T>;
  using Places::gan, Places::micro_batches, Places::stream, Places::final_from, Places::batch,
      Places::count, Places::description, Places::memory, Places::on_host, Places::cells,
      Places::elements, Places::staged, Places::write, Places::copy, Places::at, Places::group,
      Places::write_indices, Places::run, Places::conditions, Places::column, Places::write_latents,
      Places::write_real_images, Places::write_noisy_images, Places::write_conditions,
      Places::write_real_columns, Places::column_numbers, Places::generator_bindings,
      Places::discriminator_bindings, Places::contributions, Places::given, Places::discriminator,
      Places::both, Places::round, Places::begin, Places::is_done, Places::pass, Places::give_all;
  using typename Places::Judge;

  void learn(SlotKind slot, bool goes_on) const {
    const auto& rounds = gan.rounds(slot);
    if (rounds.empty()) {
      stream.begun_.reset();
      return learn(slot);
    }
    if (!goes_on) begin(slot);
    if (round < 0) {
      learn(slot);
      give_all(slot);
      stream.begun_.reset();
      return;
    }
    const std::int64_t shares = count() * gan.contributions(SlotKind::kStatistics).size;
    const std::vector<T> zeros(static_cast<std::size_t>(shares));
    write(zeros.data(), shares, given());
    learn(slot);
    stream.begun_->run = rounds.at(static_cast<std::size_t>(round)).run;
    stream.begun_->next_round = round + 1;
    memory().flush();
  }

  void learn(SlotKind slot) const {
    switch (slot) {
      case SlotKind::kDReal:
        return learn_from_data(slot, description().flip_probability);
      case SlotKind::kDFake:
        return d_fake();
      case SlotKind::kDBoth:
        return d_both();
      case SlotKind::kG:
        return finish_generator();
      case SlotKind::kFit:
        return learn_from_data(slot, 0.0);
      case SlotKind::kDenoise:
        return denoise();
      case SlotKind::kWorkers:
      case SlotKind::kStatistics:
        break;
    }
    CHECK(false, "workers learn by steps of other kinds, and rounds are of these");
  }

  void make_fakes() const {
    write_indices();
    write_latents();
    gan.generator_->run(Pass::kForwardInference, generator_bindings(), stream.generator_);
    const auto made = gan.generator_->template output<T>(stream.generator_, 0);
    const std::int64_t size = batch() * cells(), columns = column_numbers();
    for (std::int64_t i = 0; i < count(); ++i) {
      T* const fakes = static_cast<T*>(micro_batches[i].images);
      copy(made.data() + i * size, size, fakes);
      if (columns == 0) continue;
      const auto numbers = gan.generator_->template output<T>(stream.generator_, 1);
      copy(numbers.data() + i * columns, columns, fakes + size);
    }
    memory().flush();
  }

  // False: the round ends in it.
  bool begin_generator() const {
    if (!is_done(0)) {
      write_indices();
      write_latents();
    }
    Bindings bindings = generator_bindings();
    bindings.statistics = elements(stream.generator_statistics_);
    bindings.group.stride = gan.generator_->parameters().moving_size;
    const bool made = pass(0, *gan.generator_, Pass::kForwardTraining, bindings, stream.generator_);
    memory().flush();
    return made;
  }

  // Expects the images in the judge's input, and the targets.
  void d_step(const Judge& judge, Bindings bindings, const ContributionLayout& layout,
              bool penalised = false) const {
    bindings.gradients = contributions();
    bindings.statistics = contributions() + gan.discriminator_->parameters().weights_size;
    bindings.group.stride = layout.size;
    if (!pass(0, judge.program, Pass::kForwardTraining, bindings, judge.workspace)) return;
    if (!is_done(1)) losses(judge, layout, penalised);
    backward(1, judge.program, bindings, judge.workspace, penalised ? &layout : nullptr);
  }

  // The elements behind the gradients are final before the backward pass begins. With `penalised`
  // the penalty's are added behind it.
  void backward(int run, const Program& program, Bindings bindings, Workspace& workspace,
                const ContributionLayout* penalised = nullptr) const {
    const std::int64_t weights = program.parameters().weights_size;
    const bool tells = final_from != nullptr && !stream.begun_;
    if (tells) (*final_from)(weights);
    if (penalised == nullptr && tells) bindings.gradients_final = final_from;
    pass(run, program, Pass::kBackwardParameters, bindings, workspace);
    if (penalised != nullptr) {
      Places::run(*gan.add_, {{penalties(0), weights}, {contributions(), penalised->size}});
      if (tells) (*final_from)(0);
    }
    memory().flush();
  }

  // Places of a gradient penalty.
  T* penalties(std::int64_t side) const {
    return elements(stream.penalties_) +
           side * gan.group() * gan.discriminator_->parameters().weights_size;
  }
  T* probes(std::int64_t i) const {
    return elements(stream.probes_) + i * gan.group() * batch() * cells();
  }
  T* slopes(std::int64_t i) const { return elements(stream.slopes_) + i * gan.group() * batch(); }

  // The derivative of every output's sum is 0, but for that of the penalised one.
  void write_output_gradients(T of_penalised) const {
    const Program& program = *gan.discriminator_;
    const int penalised = gan.loss_outputs_[static_cast<std::size_t>(gan.penalty_)];
    for (int output = 0; output < program.outputs(); ++output) {
      const std::int64_t size = count() * batch() * program.output_shape(output).elements();
      std::fill_n(staged(), size, output == penalised ? of_penalised : T{0});
      write(staged(), size,
            program.template output_gradient<T>(stream.discriminator_, output).data());
    }
  }

  // A gradient penalty (model/gan.h): its value goes to the contributions, and its gradient to
  // penalties(0). `judge` has the targets.
  void penalise(const Judge& judge, Bindings bindings, const ContributionLayout& layout) const {
    const Program& program = *gan.discriminator_;
    const auto term = static_cast<std::size_t>(gan.penalty_);
    const std::int64_t size = batch() * cells(), weights = program.parameters().weights_size;
    T *const above = probes(0), *const mixed = probes(1), *const below = elements(stream.images_);
    T *const drawn = slopes(0), *const slope = slopes(1), *const excess = slopes(2);
    mix(above, below, drawn, mixed);
    copy(mixed, count() * size, discriminator().input());
    write_conditions(discriminator(),
                     [this](std::int64_t i, std::int64_t) { return conditions(i); });
    bindings.statistics = penalties(0);  // there are none
    program.run(Pass::kForwardTraining, bindings, stream.discriminator_);
    write_output_gradients(T{1});
    program.run(Pass::kBackwardInput, bindings, stream.discriminator_);
    run(*gan.probe_, {{mixed, size},
                      {program.template input_gradient<T>(stream.discriminator_).data(), size},
                      {slope, batch()},
                      {above, size},
                      {below, size},
                      {slopes(3), 2 * batch()}});
    run(*judge.losses[term], {{slope, batch()},
                              {targets(term, judge.halves), judge.halves * batch()},
                              {contributions() + loss_offset(layout, term), layout.size},
                              {excess, batch()}});
    for (const std::int64_t side : {0, 1}) {
      copy(side == 0 ? above : below, count() * size, discriminator().input());
      bindings.gradients = penalties(side);
      bindings.group.stride = weights;
      program.run(Pass::kForwardTraining, bindings, stream.discriminator_);
      write_output_gradients(T{0});
      const auto gradient =
          program.template output_gradient<T>(stream.discriminator_, gan.loss_outputs_[term]);
      run(*gan.scale_, {{excess, batch()},
                        {slopes(3) + side * batch(), 2 * batch()},
                        {gradient.data(), batch()}});
      program.run(Pass::kBackwardParameters, bindings, stream.discriminator_);
    }
    run(*gan.add_, {{penalties(1), weights}, {penalties(0), weights}});
  }

  // Points on the lines from fakes to real events, in places for all of these.
  void mix(T* fakes, T* real, T* drawn, T* mixed) const {
    const std::int64_t size = batch() * cells();
    write_real_images(real, size);
    for (std::int64_t i = 0; i < count(); ++i) {
      copy(static_cast<const T*>(micro_batches[i].images), size, fakes + i * size);
      for (std::int64_t event = 0; event < batch(); ++event) {
        staged()[i * batch() + event] = static_cast<T>(runtime::random_uniform(
            at(kMixStream, micro_batches[i]), static_cast<std::uint32_t>(event)));
      }
    }
    write(staged(), count() * batch(), drawn);
    run(*gan.mix_, {{fakes, size}, {real, size}, {drawn, batch()}, {mixed, size}});
  }

  static std::int64_t loss_offset(const ContributionLayout& layout, std::size_t term) {
    for (const ContributionTensor& tensor : layout.tensors) {
      const bool is_loss = tensor.role == ContributionTensor::Role::kLoss;
      if (is_loss && static_cast<std::size_t>(tensor.index) == term) return tensor.offset;
    }
    CHECK(false, "every step has every loss");
  }

  void denoise() const {
    const Judge judge = discriminator();
    if (!is_done(0)) {
      write_indices();
      write_noisy_images(judge.input(), elements(stream.images_));
    }
    d_step(judge, discriminator_bindings(), gan.contributions(SlotKind::kDenoise));
  }

  void learn_from_data(SlotKind slot, double flip_probability) const {
    const ContributionLayout& layout = gan.contributions(slot);
    const Judge judge = discriminator();
    if (!is_done(0)) {
      write_indices();
      write_real_images(judge.input(), batch() * cells());
      write_real_columns(judge);
      write_wanted(judge, [this](std::int64_t i, std::int64_t) { return micro_batches[i].events; },
                   {{1.0}, flip_probability});
      count_bins(judge.input(), 1);
    }
    d_step(judge, discriminator_bindings(), layout);
  }

  void d_fake() const {
    const ContributionLayout& layout = gan.contributions(SlotKind::kDFake);
    if (!is_done(0)) {
      write_indices();
      write_wanted(discriminator(), [this](std::int64_t i, std::int64_t) { return conditions(i); },
                   {{0.0}, description().flip_probability});
      count_bins_of_real_images();
    }
    d_step_on_fakes(discriminator(), 0, discriminator_bindings(), layout);
  }

  // Real events stand in front of as many fakes.
  void d_both() const {
    const ContributionLayout& layout = gan.contributions(SlotKind::kDBoth);
    const Judge judge = both();
    if (!is_done(0)) {
      write_indices();
      write_real_images(judge.input(), 2 * batch() * cells());
      write_real_columns(judge);
      write_wanted(judge,
                   [this](std::int64_t i, std::int64_t half) {
                     return half == 0 ? micro_batches[i].events : conditions(i);
                   },
                   {{1.0, 0.0}, description().flip_probability});
      count_bins(judge.input(), 2);
    }
    d_step_on_fakes(judge, 1, discriminator_bindings(), layout);
  }

  // The fakes come to this half of each micro-batch's inputs.
  void d_step_on_fakes(const Judge& judge, std::int64_t half, const Bindings& bindings,
                       const ContributionLayout& layout) const {
    const std::int64_t size = batch() * cells(), stride = judge.halves * size, begin = half * size;
    const std::int64_t columns = column_numbers();
    const bool penalised = gan.penalty_ >= 0;
    // It may use the same workspace, so it comes first.
    if (penalised) penalise(judge, bindings, layout);
    if (!is_done(0)) {
      for (std::int64_t i = 0; i < count(); ++i) {
        const T* const fakes = static_cast<const T*>(micro_batches[i].images);
        copy(fakes, size, judge.input() + i * stride + begin);
        if (columns == 0) continue;
        copy(fakes + size, columns, judge.columns() + (i * judge.halves + half) * columns);
      }
      run(*gan.empty_images_,
          {{judge.input() + begin, stride}, {contributions() + layout.size - 1, layout.size}});
    }
    d_step(judge, bindings, layout, penalised);
  }

  void finish_generator() const {
    const ContributionLayout& layout = gan.contributions(SlotKind::kG);
    const ParameterLayout& g = gan.generator_->parameters();
    if (stream.begun_ && !begin_generator()) return;
    if (!is_done(1)) write_fakes_to_judge();
    Bindings g_bindings = generator_bindings(), d_bindings = discriminator_bindings();
    g_bindings.gradients = contributions();
    d_bindings.statistics = contributions() + g.size();
    g_bindings.group.stride = d_bindings.group.stride = layout.size;

    // The discriminator judges in training mode and keeps its weights. The gradients of its inputs
    // are the gradients of the generator's outputs.
    const Program& judge = *gan.discriminator_;
    if (!pass(1, judge, Pass::kForwardTraining, d_bindings, stream.discriminator_)) return;
    if (!is_done(2)) losses(discriminator(Gan::kGenerator), layout, false);
    if (!pass(2, judge, Pass::kBackwardInput, d_bindings, stream.discriminator_)) return;
    if (!is_done(3)) write_gradients_of_fakes();
    for (std::int64_t i = 0; i < count(); ++i) {
      copy(elements(stream.generator_statistics_) + i * g.moving_size, g.moving_size,
           contributions() + i * layout.size + g.weights_size);
    }
    backward(3, *gan.generator_, g_bindings, stream.generator_);
  }

  void write_fakes_to_judge() const {
    write_indices();
    // All fakes are labelled real, and no label is flipped.
    write_wanted(discriminator(), [this](std::int64_t i, std::int64_t) { return conditions(i); },
                 {{1.0}, 0.0});
    count_bins_of_real_images();
    const auto images = gan.generator_->template output<T>(stream.generator_, 0);
    copy(images.data(), count() * batch() * cells(), discriminator().input());
    const std::int64_t columns = count() * column_numbers();
    if (columns == 0) return;
    copy(gan.generator_->template output<T>(stream.generator_, 1).data(), columns,
         discriminator().columns());
  }

  void write_gradients_of_fakes() const {
    const auto gradient = gan.discriminator_->template input_gradient<T>(stream.discriminator_);
    copy(gradient.data(), count() * batch() * cells(),
         gan.generator_->template output_gradient<T>(stream.generator_, 0).data());
    const std::int64_t columns = count() * column_numbers();
    if (columns == 0) return;
    copy(gan.discriminator_->template columns_gradient<T>(stream.discriminator_).data(), columns,
         gan.generator_->template output_gradient<T>(stream.generator_, 1).data());
  }

  struct Labels {
    std::array<double, 2> labels;  // of each half
    double flip_probability;
  };
  // `event` of the batch's `half`.
  double target_of(const LossTerm& term, const GanMicroBatch& micro_batch, const EventBatch& wanted,
                   std::int64_t half, std::int64_t event, const Labels& labels) const {
    if (term.kind == LossKind::kGradientPenalty) return 1.0;  // of slopes
    switch (term.target) {
      case Target::kLabel: {
        const double label = labels.labels[static_cast<std::size_t>(half)];
        const auto number = static_cast<std::uint32_t>(half * batch() + event);
        const bool flipped =
            labels.flip_probability > 0.0 &&
            runtime::random_uniform(at(kFlipStream, micro_batch), number) < labels.flip_probability;
        return flipped ? 1.0 - label : label;
      }
      case Target::kEnergy:
        return wanted.energy[event];
      case Target::kAngle:
        return wanted.angle[event];
      case Target::kEcal:
        return wanted.ecal[event];
      case Target::kBins:
      case Target::kColumn:
      case Target::kVelocity:
        break;
    }
    CHECK(false, "bins are counted, columns written at once, and velocities made with the noise");
  }

  // Writes the numbers of a micro-batch as stored, or those of their classes.
  void write_column(std::size_t term, const EventBatch& events, T* to) const {
    const float* numbers = column(events, description().losses[term].column);
    const std::vector<float>& values = gan.loss_values_[term];
    for (std::int64_t event = 0; event < batch(); ++event) {
      to[event] = static_cast<T>(target_of_column(values, numbers[event]));
    }
  }

  // Targets of a term, of the first micro-batch.
  T* targets(std::size_t term, std::int64_t halves) const {
    if (description().losses[term].target == Target::kVelocity) return elements(stream.images_);
    return elements(stream.targets_) +
           static_cast<std::int64_t>(term) * halves * count() * batch() * kBinCount;
  }

  // The judge's conditions, and the targets of all terms but bins. wanted(i, half) are the
  // conditions of micro-batch i's half.
  template <class Wanted>
  void write_wanted(const Judge& judge, const Wanted& wanted, const Labels& labels) const {
    write_conditions(judge, wanted);
    const std::int64_t halves = judge.halves;
    for (std::size_t number = 0; number < description().losses.size(); ++number) {
      const LossTerm& term = description().losses[number];
      if (term.target == Target::kBins) continue;
      T* to = staged();
      for (std::int64_t i = 0; i < count(); ++i) {
        for (std::int64_t half = 0; half < halves; ++half) {
          const EventBatch events = wanted(i, half);
          if (term.target == Target::kColumn) {
            write_column(number, events, to);
            to += batch();
            continue;
          }
          for (std::int64_t event = 0; event < batch(); ++event) {
            *to++ = static_cast<T>(target_of(term, micro_batches[i], events, half, event, labels));
          }
        }
      }
      write(staged(), to - staged(), targets(number, halves));
    }
  }

  void count_bins_of_real_images() const {
    if (gan.bins_ == nullptr) return;
    write_real_images(elements(stream.images_), batch() * cells());
    count_bins(elements(stream.images_), 1);
  }
  // Counts the bins of real images. With two halves as many other images follow them, which are
  // compared with the same counts.
  void count_bins(const T* images, std::int64_t halves) const {
    if (gan.bins_ == nullptr) return;
    const std::int64_t bins = batch() * kBinCount;
    for (std::size_t term = 0; term < description().losses.size(); ++term) {
      if (description().losses[term].target != Target::kBins) continue;
      for (std::int64_t half = 0; half < halves; ++half) {
        run(*gan.bins_, {{images, halves * batch() * cells()},
                         {targets(term, halves) + half * bins, halves * bins}});
      }
    }
  }

  // Writes each term's mean to its place in the contributions and its gradient to its output's.
  // But for a gradient penalty's, which `penalised` says are there.
  void losses(const Judge& judge, const ContributionLayout& layout, bool penalised) const {
    for (const ContributionTensor& tensor : layout.tensors) {
      if (tensor.role != ContributionTensor::Role::kLoss) continue;
      T* const value = contributions() + tensor.offset;
      if (tensor.index == gan.penalty_) {
        if (!penalised) run(*gan.no_penalty_, {{value, layout.size}});
        continue;
      }
      const auto term = static_cast<std::size_t>(tensor.index);
      const int output = gan.loss_outputs_[term];
      const std::int64_t size =
          judge.halves * batch() * judge.program.output_shape(output).elements();
      const bool classes = description().losses[term].tells_classes();
      const std::int64_t wanted = classes ? judge.halves * batch() : size;
      const auto outputs = judge.program.template output<T>(judge.workspace, output);
      const auto gradient = judge.program.template output_gradient<T>(judge.workspace, output);
      run(*judge.losses[term], {{outputs.data(), size},
                                {targets(term, judge.halves), wanted},
                                {value, layout.size},
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

bool Gan::goes_on(SlotKind slot, const GanWork& work) const {
  const auto& begun = work.stream.begun_;
  if (!begun || begun->slot != slot || begun->position != work.position) return false;
  const auto all = static_cast<int>(rounds(slot).size());
  return begun->next_round == (work.round < 0 ? all : work.round) &&
         std::ranges::equal(begun->micro_batches, work.micro_batches, {}, {},
                            &GanMicroBatch::index);
}

void Gan::prepare(SlotKind slot, const GanWork& work) const {
  CHECK(slot_access(slot).prepare_reads != 0, "the step has nothing to prepare");
  if (goes_on(slot, work)) return;
  if (slot == SlotKind::kG && !rounds(slot).empty()) return;
  // What is made takes the place of the pass that another step may have left in the stream.
  work.stream.begun_.reset();
  in_data_type(*this, work, [slot](auto step) {
    slot == SlotKind::kG ? void(step.begin_generator()) : step.make_fakes();
  });
}
void Gan::learn(SlotKind slot, const GanWork& work) const {
  const bool goes_on = this->goes_on(slot, work);
  in_data_type(*this, work, [&](auto step) { step.learn(slot, goes_on); });
}

}  // namespace troupe::model
