#pragma once

// For the compiler's backward passes alone.

#include <cstddef>
#include <vector>

#include "model/instruction_writer.h"

namespace troupe::model {

// The gradients of a graph's values while their parts arrive. A value that several computations
// read gets the sum of their parts, in reverse order of the layers, and of the gradients that the
// caller gave for it as an output. Tensors that were given are never written.
class GradientSums {
 public:
  GradientSums(const Graph& graph, InstructionWriter& writer)
      : graph_(graph), writer_(writer), gradients_(graph.values.size()) {}

  void give(int value, int tensor) { gradients_[index(value)].given.push_back(tensor); }
  bool arrives(int value) const {
    return gradients_[index(value)].sum >= 0 || !gradients_[index(value)].given.empty();
  }

  int new_tensor(int value) {
    const int layer = graph_.values[index(value)].layer;
    if (layer < 0 && writer_.pass() == Pass::kBackwardInput) {
      return writer_.lists().gradient_of(layer);
    }
    const std::string name = layer < 0 ? "input" : writer_.layer_name(layer);
    return writer_.new_tensor(name + " gradient", graph_.values[index(value)].elements);
  }

  // Lets `emit` write one part of the gradient. The first part becomes the sum itself, without a
  // tensor in between.
  template <class Emit>
  void add_part(int value, Emit emit) {
    int& sum = gradients_[index(value)].sum;
    if (sum < 0) {
      sum = new_tensor(value);
      emit(InstructionWriter::write(sum));
      return;
    }
    const int part = writer_.new_tensor(writer_.layer_name(writer_.layer()) + " gradient part",
                                        graph_.values[index(value)].elements);
    emit(InstructionWriter::write(part));
    accumulate(part, sum);
  }

  // The tensor of the complete gradient, when all readers of the value are done.
  int complete(int value) {
    Gradient& gradient = gradients_[index(value)];
    std::size_t next = 0;
    if (gradient.sum < 0) {
      if (gradient.given.size() == 1) return gradient.given.front();
      gradient.sum = new_tensor(value);
      writer_.copy(writer_.layer(), gradient.given[next++], gradient.sum);
    }
    for (; next < gradient.given.size(); ++next) accumulate(gradient.given[next], gradient.sum);
    gradient.given.clear();
    return gradient.sum;
  }

  // Brings the gradients of the network's inputs to where the caller reads them.
  void finish_inputs() {
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const int layer = graph_.values[i].layer;
      if (layer < 0 && writer_.lists().gradient_of(layer) >= 0) finish(static_cast<int>(i));
    }
  }

 private:
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }

  void finish(int input) {
    const int target = writer_.lists().gradient_of(graph_.values[index(input)].layer);
    if (!arrives(input)) {
      writer_.add(-1, ZeroFill{writer_.tensor_elements(target)},
                  {InstructionWriter::write(target)});
    } else if (const int found = complete(input); found != target) {
      writer_.copy(-1, found, target);
    }
  }

  struct Gradient {
    int sum = -1;            // tensor of this pass; -1 as long as nothing was computed for it
    std::vector<int> given;  // tensors of others that belong to the sum
  };

  void accumulate(int from, int into) {
    writer_.add(Accumulate{writer_.tensor_elements(into)},
                {InstructionWriter::read(from), InstructionWriter::update(into)});
  }

  const Graph& graph_;
  InstructionWriter& writer_;
  std::vector<Gradient> gradients_;
};

}  // namespace troupe::model
