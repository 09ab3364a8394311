#pragma once

// A compiled network with everything a run needs, for tests: flat buffers, a workspace, values
// drawn from a seed.

#include <memory>
#include <string>
#include <vector>

#include "model/backend.h"
#include "model/program.h"

namespace troupe::model {

// T must be the backend's type.
template <class T>
class ProgramRunner {
 public:
  ProgramRunner(const NetworkDescription& network, const Backend& backend, std::int64_t batch,
                std::uint64_t seed = 1);

  const Program& program() const { return *program_; }
  Workspace& workspace() { return workspace_; }
  Bindings bindings();

  // Copies `input` and `conditions` to their places, runs, and copies the results away.
  void forward(Pass pass = Pass::kForwardTraining);
  // After forward(): fills the output gradients from `output_gradients`, runs, copies away.
  void backward(Pass pass);

  std::vector<T> input;                          // positive, as images are
  std::vector<T> conditions;                     // labels (random_network.h)
  std::vector<T> weights;                        // no two equal, none zero
  std::vector<T> moving;                         // means around 0, variances around 1
  std::vector<T> gradients;                      // results
  std::vector<T> statistics;                     // result
  std::vector<T> input_gradient;                 // result
  std::vector<std::vector<T>> outputs;           // results
  std::vector<std::vector<T>> output_gradients;  // random
  runtime::RandomPosition position{3, 1, 2, 1, 0};
  FinalFrom gradients_final;  // told, if it is set

 private:
  std::unique_ptr<const Program> program_;
  Workspace workspace_;
};

}  // namespace troupe::model
