#pragma once

// One iteration of a conditional GAN for calorimeter showers, micro-batch by micro-batch: which
// numbers each step of the schedule contributes, and their computation from the state. Pure: a
// contribution depends on the state, the events and the RandomPosition, and on nothing else.
//
// The losses, their weights and the order of the steps are those of 3DGAN (svalleco/3Dgan).
//
// With a hinge loss or Wasserstein's the generator minimises -D(G(z)), and the discriminator what
// LossKind says. A gradient penalty, w mean((|grad D(x)| - 1)^2) over points x between real and
// generated events (Gulrajani et al., arXiv:1704.00028), needs the derivative of a gradient by the
// weights. It is taken in the finite form: along the gradient's direction v,
//   d|grad D(x)| / d weights = (d D(x + e v) / d weights - d D(x - e v) / d weights) / 2e + O(e^2)
// with v and e held (SlopeProbes). So two further passes take the place of a second-order one.
//
// A supervised network is what is left of a GAN without its generator and without fakes: the
// network stands in the discriminator's place, and its one kind of step, kFit, learns from the real
// batch. So does the network of a diffusion task (model/diffusion.h), whose step, kDenoise, adds
// noise to that batch. Everything that a task brings is in the description and in the tables of the
// slots.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/backend.h"
#include "model/diffusion.h"
#include "model/latent.h"
#include "model/network.h"
#include "model/program.h"
#include "model/shared_norm.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {

enum class Task : std::uint8_t { kGan, kSupervised, kDiffusion };
std::string task_name(Task task);  // "gan", "supervised", "diffusion"

// The number an output is compared with: 1 for real and 0 for fake, E / 100, the angle in rad, the
// sum of all cells (in the units of the data before any power), the real image's bin counts (empty
// ones 1), a column of the data, the velocity of a diffusion task.
enum class Target : std::uint8_t { kLabel, kEnergy, kAngle, kEcal, kBins, kColumn, kVelocity };
std::string target_name(Target target);  // "label", ... as users have them; "" of a column

struct LossTerm {
  std::string output;  // name of the discriminator's output layer
  LossKind kind = LossKind::kBinaryCrossentropy;
  Target target = Target::kLabel;
  double weight = 1.0;
  std::string column = {};  // of kColumn: its name
  // The column's number for each class; empty: as stored, and classes are counted from 0.
  std::vector<double> classes = {};

  bool tells_classes() const { return kind == LossKind::kClassCrossentropy; }
  // Binary cross-entropy: the output tells how probable the second of two classes is, or its logit.
  bool tells_probability() const {
    return kind == LossKind::kBinaryCrossentropy || kind == LossKind::kLogisticCrossentropy;
  }
  // The score of a critic has no range.
  bool tells_score() const { return kind == LossKind::kHinge || kind == LossKind::kWasserstein; }
  // Metrics call the term so: by its output, of which a gradient penalty is another term.
  std::string name() const {
    return kind == LossKind::kGradientPenalty ? output + "_penalty" : output;
  }
};

// The fault of the term, or of an output of this shape for it: "target energy is (1) per event, but
// ...". "" if there is none. `image`: the shape of the data's images.
std::string term_fault(const LossTerm& term, const Shape& output, const Shape& image);
// The numbers that a term's column may have: those of the classes of an output of this shape; empty
// if any number will do.
std::vector<double> values_of(const LossTerm& term, const Shape& output);
// The target of an event whose column has this number, where `values` are the term's values_of():
// the number as stored, or that of its class; beyond all of them if it is none of a class.
float target_of_column(std::span<const float> values, float number);

// Fakes get their conditions from the real batch, or each event draws its own: E / 100 uniform in
// fake_energy and ecal = E x response(E) x data_scale, with E in 100 GeV. Drawn conditions have no
// angle, and no real image to take bin counts from.
enum class FakeConditions : std::uint8_t { kBatch, kUniform };

struct GanDescription {
  Task task = Task::kGan;
  NetworkDescription generator;      // of kGan alone
  NetworkDescription discriminator;  // of other tasks: the network
  LatentDescription latent;          // of kDiffusion: its conditions alone
  DiffusionOptions diffusion;
  std::vector<LossTerm> losses;
  FakeConditions fake_conditions = FakeConditions::kBatch;
  std::array<double, 2> fake_energy{0.1, 5.0};
  // Sampling fraction in per cent as a polynomial of E in 100 GeV, constant term first.
  std::array<double, 5> response{2.21, -0.28, 0.11, -0.023, 0.0018};
  double data_scale = 1.0;
  double flip_probability = 0.05;  // of each label of the discriminator's steps
  bool judges_both = false;        // the schedule has kDBoth, which takes memory
  // Workers make steps alone, and a step is of their changes (kWorkers): how many arrays of the
  // weights' size the optimisers of generator and discriminator keep.
  std::optional<std::array<int, 2>> worker_arrays = {};
};

// Chooses the network that makes showers, or what belongs to it. CHECKs that the task has one.
template <class T>
const T& maker_of(Task task, const T& generator, const T& discriminator) {
  CHECK(task != Task::kSupervised, "a supervised task makes no showers");
  return task == Task::kDiffusion ? discriminator : generator;
}
// The generator as it is computed: its outputs are the image and, if it makes columns, all of these
// in the discriminator's order. Its parameters are those of the description. Tasks without one have
// a network that does nothing.
NetworkDescription computed_generator(const GanDescription& gan);
// The shape of the data's images.
Shape image_shape(const GanDescription& gan);
// The fault of the input or the losses of a diffusion task's network. "" if there is none, or for
// other tasks.
std::string diffusion_fault(const GanDescription& gan);

// The fault of the conditions of the network that judges: one that a GAN's showers are not asked
// for, or any of a diffusion task. "" if there is none.
std::string conditions_fault(const GanDescription& gan);

// The fault of the columns that the generator makes and the discriminator reads. "" if there is
// none.
std::string columns_fault(const GanDescription& gan);
// The fault of a term whose target is one of them. "" if it is none.
std::string made_target_fault(const GanDescription& gan, const LossTerm& term);

// The fault of a model with a gradient penalty: that of a discriminator which mixes events, say. ""
// if it has none, or no penalty.
std::string penalty_fault(const GanDescription& gan);

// The loss terms that a step tells. With worker_arrays those of a GAN's generator, as "g/NAME", and
// then those of its discriminator, as "d/NAME".
std::vector<LossTerm> told_losses(const GanDescription& gan);

// An embedding that reads a condition of events, whose numbers are then its classes.
struct EmbeddedCondition {
  std::string condition;  // as LatentDescription::conditions
  std::string layer;
  std::int64_t classes = 0;
};
// Those of the model's networks, but for one that has problems.
std::vector<EmbeddedCondition> embedded_conditions(const GanDescription& gan);

// The columns of the data that a model reads: those of its latent, of its network's conditions and
// columns, and of its losses, each once.
std::vector<std::string> columns_of(const GanDescription& gan);

// A step of the schedule. kDReal: discriminator on the real batch; kDFake: discriminator on fakes
// the generator makes in inference mode; kG: generator through a fixed discriminator; kDBoth:
// discriminator on the real batch and as many fakes in one pass, which batch norm sees as one batch
// and over which losses are means; kFit: the network of a supervised task; kDenoise: that of a
// diffusion task; kWorkers: what many steps of workers that trained alone have changed, of any task
// (pipeline/steps/strategy.h); kStatistics: a round of the step behind it, of any task
// (model/shared_statistics.h).
enum class SlotKind : std::uint8_t {
  kDReal,
  kDFake,
  kG,
  kDBoth,
  kFit,
  kDenoise,
  kWorkers,
  kStatistics
};
inline constexpr std::array kSlotKinds{SlotKind::kDReal,   SlotKind::kDFake,     SlotKind::kG,
                                       SlotKind::kDBoth,   SlotKind::kFit,       SlotKind::kDenoise,
                                       SlotKind::kWorkers, SlotKind::kStatistics};

// "d_real", "d_fake", "g", "d_both", "fit", "denoise", "workers", "statistics"
std::string slot_name(SlotKind slot);
// The name of what learns in such a step: "generator", "discriminator", "network" of other tasks,
// "workers"; "" of a round.
std::string learner_name(SlotKind slot);
Task task_of(SlotKind slot);
// The only step of a task of one network. CHECKs that the task is one.
SlotKind only_slot(Task task);
// Whether the step begins with make_fakes(); a gradient penalty acts in such steps.
constexpr bool makes_fakes(SlotKind slot) {
  return slot == SlotKind::kDFake || slot == SlotKind::kDBoth;
}

// Parts of the state a step touches, as bits.
enum StatePart : std::uint8_t {
  kGeneratorWeights = 1,
  kGeneratorMoving = 2,
  kDiscriminatorWeights = 4,
  kDiscriminatorMoving = 8,
  kSharedStatistics = 16,
};
struct SlotAccess {
  std::uint8_t prepare_reads = 0;  // by the part that may run ahead: make_fakes, begin_generator
  // The whole computation reads these. Training passes normalise by their batch, so only fakes,
  // which are made in inference mode, read moving statistics.
  std::uint8_t reads = 0;
  std::uint8_t writes = 0;  // when the step is applied
};
SlotAccess slot_access(SlotKind slot);

// One tensor of a step's contribution vector.
struct ContributionTensor {
  enum class Role : std::uint8_t {
    kGeneratorGradient,  // of kWorkers: the weights before minus those after
    kDiscriminatorGradient,
    kGeneratorOptimiser,  // of kWorkers alone: what an optimiser's array is after
    kDiscriminatorOptimiser,
    kGeneratorMoving,  // of kWorkers: what moving statistics are after
    kDiscriminatorMoving,
    kGeneratorShares,  // of kStatistics: an array of ShareArray, laid out as moving statistics
    kDiscriminatorShares,
    kLoss,         // one loss term, unweighted
    kEmptyImages,  // number of fakes of the micro-batch without energy
  };
  std::string name;  // "generator/conv1/kernel", "loss/generation", "empty_images"
  Role role = Role::kLoss;
  // Into the layout's tensors, those of array k behind k times all of them, or into told_losses().
  int index = 0;
  std::int64_t offset = 0;  // in elements, in the contribution vector
  std::int64_t size = 0;
};

struct ContributionLayout {
  std::vector<ContributionTensor> tensors;  // in order of offset, without gaps
  std::int64_t size = 0;
  int find(const std::string& name) const;  // -1 when there is none
};

// The networks' flat buffers on the host, in the backend's data type.
struct GanParameters {
  const void* generator_weights = nullptr;
  const void* generator_moving = nullptr;
  const void* discriminator_weights = nullptr;
  const void* discriminator_moving = nullptr;
  bool weights_placed = false;  // both networks' weights are in the backend's memory instead
  // Arrays that micro-batches share (model/shared_norm.h); null where none do.
  const void* generator_shared = nullptr;
  const void* discriminator_shared = nullptr;
};

// The events of one micro-batch, on the host; every array has `batch` entries. angle and columns
// may be null for models without them.
struct EventBatch {
  const float* images = nullptr;  // (batch, x, y, z, 1), preprocessed
  const float* energy = nullptr;  // E / 100, GeV
  const float* angle = nullptr;   // rad
  const float* ecal = nullptr;    // sum of cells before any power
  // (column, batch): those of columns_of(), in order.
  const float* columns = nullptr;
};

// How many numbers the target `bins` has, which no other target exceeds.
inline constexpr std::int64_t kBinCount = 8;

class Gan;

// Memory of one compute stream: both networks' workspaces and the conditions in use. One thread at
// a time, which others may help.
class GanStream {
 public:
  explicit GanStream(const Gan& gan);
  // The backend's memory that a stream takes.
  static MemorySize size_for(const Gan& gan);
  // Workspace::compute_with() for both networks, with those of `others`.
  void compute_with(runtime::ThreadTeam* team, std::span<GanStream* const> others);

 private:
  friend class Gan;
  template <class T>
  friend struct GanMemory;
  template <class T>
  friend struct GanPlaces;
  template <class T>
  friend struct GanRounds;
  template <class T>
  friend struct GanArithmetic;
  Workspace generator_;
  Workspace discriminator_;
  std::optional<Workspace> both_;     // of kDBoth
  std::vector<float> energy_, ecal_;  // conditions drawn for fakes, one per event
  // On the host: values on their way to the backend's memory.
  std::shared_ptr<std::byte> staged_;
  // In the backend's memory, of all micro-batches of a group:
  std::shared_ptr<std::byte> targets_;  // [loss term][event][value]
  // Real ones, for their bin counts or a gradient penalty; of kDenoise the velocities.
  std::shared_ptr<std::byte> images_;
  std::shared_ptr<std::byte> probes_, slopes_, penalties_;  // of a gradient penalty
  std::shared_ptr<std::byte> generator_statistics_;         // from begin_ to finish_generator
  // Null where that is the host's: copies of what the caller has there.
  std::shared_ptr<std::byte> indices_;
  std::array<std::shared_ptr<std::byte>, 6> parameters_;
  // All that the micro-batches of a step with rounds contribute, and how far it is.
  std::shared_ptr<std::byte> whole_;
  struct Begun {
    SlotKind slot = SlotKind::kDReal;
    runtime::RandomPosition position;
    std::vector<std::uint32_t> micro_batches;
    int next_round = 0;
    int run = 0;  // of a program, in which the last round has ended
  };
  std::optional<Begun> begun_;
};

// A micro-batch to compute.
struct GanMicroBatch {
  EventBatch events;
  std::uint32_t index = 0;  // in the global batch
  // In the backend's memory, Gan::fake_elements() in the data type: fakes for d_fake and d_both,
  // which make_fakes wrote for the same events and position: (batch, x, y, z, 1), and behind all
  // images (batch, columns).
  void* images = nullptr;
  // In the backend's memory: receives contributions(slot).size elements of data_type(), from its
  // end to its front. Those of a group stand side by side, in the group's order.
  void* contributions = nullptr;
};

// One micro-batch or a group of them: inputs, results, their place, the memory to compute in.
struct GanWork {
  const GanParameters& parameters;
  std::span<const GanMicroBatch> micro_batches;  // up to Gan::group()
  runtime::RandomPosition position;              // `slot` is the place in the schedule
  GanStream& stream;
  // Called on the way, as Bindings::gradients_final is: on a device when the work is given to it,
  // which is before it is done. Null: nobody asks.
  const FinalFrom* final_from = nullptr;
  // A round of the step (model/shared_statistics.h), of which contributions(kStatistics) come then;
  // -1: the step itself, behind its rounds.
  int round = -1;
};

class Gan {
 public:
  // Errors (kTopology) name the network and the layer, or the loss term whose output or condition
  // is missing.
  static runtime::Result<std::unique_ptr<const Gan>> compile(const GanDescription& description,
                                                             const Backend& backend,
                                                             std::int64_t batch);

  const GanDescription& description() const { return description_; }
  const Program& generator() const { return *generator_; }
  const Program& discriminator() const { return *discriminator_; }
  Shape image_shape() const { return model::image_shape(description_); }
  std::int64_t batch() const { return generator_->batch(); }
  DataType data_type() const { return generator_->data_type(); }
  Memory& memory() const { return generator_->memory(); }     // the backend's
  std::int64_t group() const { return generator_->group(); }  // the backend's
  const Backend& backend() const { return *backend_; }
  const ContributionLayout& contributions(SlotKind slot) const;
  // In which a step is made (model/shared_statistics.h); none for most.
  const std::vector<StatisticsRound>& rounds(SlotKind slot) const {
    return rounds_[static_cast<std::size_t>(slot)];
  }
  // The networks' layers whose statistics micro-batches share.
  const std::vector<SharedNorm>& shared_norms(bool of_generator) const {
    return shared_norms_[of_generator ? 0 : 1];
  }

  // Elements of a micro-batch's fakes.
  std::int64_t fake_elements() const {
    return batch() * (image_shape().elements() + std::ssize(description_.discriminator.columns));
  }
  // How many columns an EventBatch has.
  std::size_t columns() const { return columns_.size(); }

  // Every call below runs on the calling thread, with the help of the threads that the stream
  // computes with, and allocates nothing itself.

  // The part of a step that reads only the generator (slot_access()). kDFake and kDBoth: makes
  // fakes, by the generator in inference mode. kG: its forward pass, whose result stays in the
  // stream until learn() is called for the same events and position. Nothing where the stream is in
  // the midst of the step, or a step of kG has rounds.
  void prepare(SlotKind slot, const GanWork& work) const;
  // The rest of the step, or one of its rounds. CHECKs that the description has the step, and that
  // it is not kWorkers or kStatistics.
  void learn(SlotKind slot, const GanWork& work) const;

 private:
  friend class GanStream;
  template <class T>
  friend struct GanPlaces;
  template <class T>
  friend struct GanRounds;
  template <class T>
  friend struct GanArithmetic;
  // The three ways to judge have losses of their own.
  enum Judging : std::uint8_t { kDiscriminator, kGenerator, kBoth };
  explicit Gan(const Backend& backend) : backend_(&backend) {}
  runtime::Result<void> bind_losses(const Backend& backend);
  runtime::Result<void> bind_loss(const LossTerm& term, const Backend& backend);
  runtime::Result<void> bind_penalty(const Backend& backend);
  void lay_out_contributions();
  bool goes_on(SlotKind slot, const GanWork& work) const;
  // Where a column stands in an EventBatch.
  std::size_t place_of(const std::string& column) const;

  const Backend* backend_;
  GanDescription description_;
  std::unique_ptr<const Program> generator_;  // of tasks without one: a program without parameters
  std::unique_ptr<const Program> discriminator_;
  std::unique_ptr<const Program> both_;  // the discriminator on twice as many; null: no kDBoth
  std::vector<std::string> columns_;
  std::vector<int> loss_outputs_;                // per loss term, the discriminator's output index
  std::vector<std::vector<float>> loss_values_;  // per loss term, values_of()
  std::array<ContributionLayout, kSlotKinds.size()> contributions_;
  std::array<std::vector<SharedNorm>, 2> shared_norms_;
  std::array<std::vector<StatisticsRound>, kSlotKinds.size()> rounds_;
  std::array<std::vector<std::unique_ptr<Kernel>>, 3> losses_;  // by Judging, per loss term
  std::unique_ptr<Kernel> bins_;                                // null: no term compares counts
  std::unique_ptr<Kernel> empty_images_;
  int penalty_ = -1;  // the loss term that is a gradient penalty; -1: there is none
  std::unique_ptr<Kernel> mix_, probe_, scale_, add_, no_penalty_;  // of the penalty
};

}  // namespace troupe::model
