#pragma once

// A network compiled for one batch size and backend: a flat list of kernel calls for each way of
// running it, over one arena with fixed offsets. Compiled once, shared by every thread; what a run
// writes lives in a Workspace, one per compute stream.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/backend.h"
#include "model/network.h"
#include "runtime/base/random.h"

namespace troupe::model {

// A backward pass runs once, right after kForwardTraining in the same workspace (it may overwrite
// what was kept for it): forward again before another one.
enum class Pass : std::uint8_t {
  kForwardTraining,     // batch statistics, dropout; keeps what either backward pass needs
  kForwardInference,    // moving statistics, no dropout
  kBackwardParameters,  // after kForwardTraining: gradients of all weights, none of the input
  kBackwardInput,       // after kForwardTraining: those of input and columns, none of the weights
};
inline constexpr int kPasses = 4;

struct ProgramOptions {
  std::int64_t batch = 1;
  int network_number = 0;  // 0 generator, 1 discriminator: chooses the dropout streams
  // Passes to compile besides inference; without forward_training there are no backward ones.
  bool forward_training = true;
  bool backward_parameters = true;
  bool backward_input = true;
};

// From this element to the end everything is what it will be.
using FinalFrom = std::function<void(std::int64_t element)>;

// Flat buffers a run reads and writes, in the backend's data type and the order of ParameterLayout.
// Only those a pass needs may be set: forward passes read weights; inference reads moving; training
// writes statistics (batch mean and unbiased variance); kBackwardParameters writes gradients.
// Networks with a batch norm whose statistics micro-batches share (model/shared_statistics.h) read
// `shared` in training. A run in which `round` is such a layer ends where its shares are written.
struct Bindings {
  const void* weights = nullptr;
  const void* moving = nullptr;
  void* gradients = nullptr;
  void* statistics = nullptr;
  runtime::RandomPosition random;  // stream is ignored
  // The micro-batches of the run, if the backend computes several side by side.
  Group group = {};
  // kBackwardParameters calls it while it runs, on its thread, with falling numbers: gradients from
  // that element to the end are final. The last number is 0 if there are weights.
  const FinalFrom* gradients_final = nullptr;
  const void* shared = nullptr;
  void* shares = nullptr;
  std::int64_t shares_stride = 0;  // elements to those of a group's next micro-batch
  int round = -1;
  // Goes on where the workspace's last run, a round of the same pass, has ended.
  bool resumes = false;
};

class Program;

// The memory of one compute stream: arena and scratch. One thread at a time. The Program must
// outlive it.
class Workspace {
 public:
  explicit Workspace(const Program& program);
  // From now on all threads of `team` compute the runs in this workspace; the team's caller starts
  // them. `others` are workspaces of the same program, one for each further thread. Only their
  // scratch memory is used, so a forward pass may wait in one of them, but nothing may run in them
  // meanwhile. Null: the caller computes alone, as in the beginning. The bits are the same.
  void compute_with(runtime::ThreadTeam* team, std::span<Workspace* const> others);
  // In the backend's memory.
  std::byte* arena() { return arena_.get(); }
  std::byte* scratch() { return scratch_.get(); }

 private:
  friend class Program;
  const Program* program_;
  std::shared_ptr<std::byte> arena_, scratch_;
  bool ready_for_backward_ = false;  // the last run was a forward pass in training
  std::size_t next_call_ = 0;        // of the pass that was run last
  runtime::ThreadTeam* team_ = nullptr;
  std::vector<std::byte*> scratches_;  // of its threads
};

class Program {
 public:
  // `network` must have no problems (infer_shapes), else its first problem comes back as kTopology.
  static runtime::Result<std::unique_ptr<const Program>> compile(const NetworkDescription& network,
                                                                 const Backend& backend,
                                                                 const ProgramOptions& options);
  ~Program();

  // Allocates nothing. CHECKs that the pass was compiled, that its bindings are set, that
  // the workspace is of this Program, and that a backward pass follows a forward pass in training.
  void run(Pass pass, const Bindings& bindings, Workspace& workspace) const;

  // Places in a workspace's arena, which is in the backend's memory, in elements of data_type(),
  // batch-major, and in a group one micro-batch behind the other. The caller fills
  // input(), conditions() and columns() before a forward pass and output_gradient(i) of every
  // output before a backward pass (outputs that pass no gradient, such as bins, ignore it); the
  // rest is valid until the next forward pass.
  template <class T>
  std::span<T> input(Workspace& workspace) const;
  // (batch, conditions) of a network that has some, and (batch, columns).
  template <class T>
  std::span<T> conditions(Workspace& workspace) const;
  template <class T>
  std::span<T> columns(Workspace& workspace) const;
  template <class T>
  std::span<const T> output(Workspace& workspace, int index) const;
  template <class T>
  std::span<T> output_gradient(Workspace& workspace, int index) const;
  template <class T>
  std::span<const T> input_gradient(Workspace& workspace) const;
  template <class T>
  std::span<const T> columns_gradient(Workspace& workspace) const;

  const ParameterLayout& parameters() const;
  const NetworkShapes& shapes() const;
  const NetworkDescription& network() const;
  int outputs() const;
  // Index of a named output, -1 when there is none.
  int find_output(const std::string& name) const;
  Shape input_shape() const;
  Shape output_shape(int index) const;
  std::int64_t batch() const;
  DataType data_type() const;
  // The backend's.
  Memory& memory() const;
  std::int64_t group() const;
  std::size_t arena_bytes() const;
  std::size_t scratch_bytes() const;
  // The arena's tensors with their offsets, and the instructions of each pass with their operands
  // ("{tensor}@byte", "weights[element]", "->" written, "+>" added to, "none" left out): for
  // people.
  std::string print() const;

 private:
  struct Place;
  struct Call;
  struct Content;
  class Compiler;
  explicit Program(std::unique_ptr<Content> content);
  static std::int64_t stride(const Place& place, const Bindings& bindings);
  template <class T>
  std::span<T> tensor(Workspace& workspace, int index) const;

  std::unique_ptr<Content> content_;
};

}  // namespace troupe::model
