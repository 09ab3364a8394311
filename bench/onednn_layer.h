#pragma once

// oneDNN's side of bench_layers: a network of one layer, called as the library likes it best. It
// chooses the layout of what convolutions and dense layers read and write, and what is copied into
// that is not timed. One thread calls it; the library may use several.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

#include "model/network.h"

namespace troupe::bench {

class OnednnLayer {
 public:
  // As ProgramRunner has them, for all events.
  struct Values {
    std::vector<float> input, weights, output_gradient;
  };
  // Null where the library has no such layer, forward and backward, or not in this precision.
  static std::unique_ptr<OnednnLayer> make(const model::NetworkDescription& network,
                                           std::int64_t events, const Values& values, bool bf16);

  // Output, gradient of the input, gradients of the parameters in our order; empty where there is
  // none.
  std::array<std::vector<float>, 3> results();
  // Means over `times` runs by that clock, of as many threads; nan where there is none. Where the
  // library has one primitive for all gradients, that is the time of the parameters'.
  std::array<double, 3> seconds(int times, int threads, const std::function<double()>& now);

 private:
  class Maker;
  using Arguments = std::unordered_map<int, dnnl::memory>;
  struct Pass {
    dnnl::primitive primitive;
    Arguments arguments;
  };
  // A result of a pass: the argument, and how it stands in our order.
  struct Result {
    int argument = 0;
    dnnl::memory::desc layout;
  };

  void run(const Pass& pass);
  std::vector<float> read(const Pass& pass, const Result& result);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Pass forward_;
  std::optional<Pass> to_input_, to_weights_;
  Result output_, input_gradient_;
  std::vector<Result> gradients_;
};

}  // namespace troupe::bench
