#include <algorithm>
#include <utility>

#include "model/instruction_writer.h"
#include "model/streams.h"

namespace troupe::model {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// The gradients of a graph's values while their parts arrive. A value that several computations
// read gets the sum of their parts, in reverse order of the layers, and of the gradients that the
// caller gave for it as an output. Tensors that were given are never written.
class GradientSums {
 public:
  GradientSums(const Graph& graph, InstructionWriter& writer)
      : graph_(graph), writer_(writer), gradients_(graph.values.size()) {}

  void give(int value, int tensor) { gradients_[at(value)].given.push_back(tensor); }
  bool arrives(int value) const {
    return gradients_[at(value)].sum >= 0 || !gradients_[at(value)].given.empty();
  }

  int new_tensor(int value) {
    const int layer = graph_.values[at(value)].layer;
    if (layer < 0 && writer_.pass() == Pass::kBackwardInput) return writer_.lists().input_gradient;
    const std::string name = layer < 0 ? "input" : writer_.layer_name(layer);
    return writer_.new_tensor(name + " gradient", graph_.values[at(value)].elements);
  }

  // Lets `emit` write one part of the gradient. The first part becomes the sum itself, without a
  // tensor in between.
  template <class Emit>
  void add_part(int value, Emit emit) {
    int& sum = gradients_[at(value)].sum;
    if (sum < 0) {
      sum = new_tensor(value);
      emit(InstructionWriter::write(sum));
      return;
    }
    const int part = writer_.new_tensor(writer_.layer_name(writer_.layer()) + " gradient part",
                                        graph_.values[at(value)].elements);
    emit(InstructionWriter::write(part));
    accumulate(part, sum);
  }

  // The tensor of the complete gradient, when all readers of the value are done.
  int complete(int value) {
    Gradient& gradient = gradients_[at(value)];
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

  // Brings the gradient of the network's input to where the caller reads it.
  void finish_input() {
    const int target = writer_.lists().input_gradient;
    if (!arrives(0)) {
      writer_.add(-1, ZeroFill{writer_.tensor_elements(target)},
                  {InstructionWriter::write(target)});
    } else if (const int found = complete(0); found != target) {
      writer_.copy(-1, found, target);
    }
  }

 private:
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

bool has_weights(const Computation& computation) {
  return std::holds_alternative<Dense>(computation.kind) ||
         std::holds_alternative<Convolution>(computation.kind) ||
         std::holds_alternative<BatchNorm>(computation.kind);
}

// Per value, whether the pass needs its gradient. kBackwardInput: every value depends on the input.
// kBackwardParameters: only values that depend on a weight count.
std::vector<bool> wanted_values(const Graph& graph, Pass pass) {
  std::vector<bool> wanted(graph.values.size(), pass == Pass::kBackwardInput);
  if (pass == Pass::kBackwardInput) return wanted;
  for (const Computation& computation : graph.computations) {
    wanted[at(computation.output)] = has_weights(computation) || wanted[at(computation.input)];
  }
  return wanted;
}

// Fills the gradients that no instruction writes with zeros, one fill per range of neighbours.
void zero_weights_without_gradient(InstructionWriter& writer) {
  const auto& weights = writer.input().layout.weights;
  std::vector<bool> written(weights.size(), false);
  for (const Instruction& instruction :
       writer.lists().passes[static_cast<std::size_t>(Pass::kBackwardParameters)]) {
    for (const Operand& operand : instruction.operands) {
      if (operand.location != Location::kGradients) continue;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i].offset == operand.offset) written[i] = true;
      }
    }
  }
  for (std::size_t i = 0; i < weights.size();) {
    std::size_t end = i;
    std::int64_t elements = 0;
    for (; end < weights.size() && !written[end]; ++end) elements += weights[end].size;
    if (end > i) {
      writer.add(weights[i].layer, ZeroFill{elements},
                 {{Location::kGradients, Access::kWrite, -1, weights[i].offset}});
    }
    i = std::max(end, i + 1);
  }
}

// Visits the computations in reverse order.
class BackwardWriter : InstructionWriter {
 public:
  BackwardWriter(const Graph& graph, const ForwardTensors& forward, InstructionWriter writer)
      : InstructionWriter(writer),
        graph_(graph),
        forward_(forward),
        wanted_(wanted_values(graph, pass())),
        sums_(graph, *this) {}

  void write_all() {
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      sums_.give(graph_.outputs[i], lists().output_gradients[i]);
    }
    for (index_ = graph_.computations.size(); index_-- > 0;) {
      go_to(graph_.computations[index_]);
      const bool useful = wants_input_gradient() || wants_weight_gradients();
      if (useful && sums_.arrives(computation().output)) std::visit(*this, computation().kind);
    }
    if (pass() == Pass::kBackwardInput) {
      sums_.finish_input();
    } else {
      zero_weights_without_gradient(*this);
    }
  }

  void operator()(const Dense& dense) {
    const int dy = arrived();
    if (wants_weight_gradients()) {
      add(DenseBackwardParameters{batch(), in().elements(), dense.units, dense.bias},
          {x(), read(dy), gradient(ParameterRole::kKernel), gradient(ParameterRole::kBias)});
    }
    pass_on([&](Operand dx) {
      add(DenseBackwardInput{batch(), in().elements(), dense.units},
          {read(dy), weight(ParameterRole::kKernel), dx});
    });
  }

  void operator()(const Convolution&) {
    const ConvolutionGeometry geometry = convolution_geometry(computation(), batch());
    const int dy = before_fused_activation(arrived());
    if (wants_weight_gradients()) {
      add(ConvolutionBackwardParameters{geometry},
          {x(), read(dy), gradient(ParameterRole::kKernel), gradient(ParameterRole::kBias)});
    }
    pass_on([&](Operand dx) {
      add(ConvolutionBackwardInput{geometry}, {read(dy), weight(ParameterRole::kKernel), dx});
    });
  }

  void operator()(const BatchNorm&) {
    const int dy = arrived();
    const BatchNormBackward operation{batch() * in().cells(), in().channels};
    const auto backward = [&](Operand dx) {
      const bool wanted = wants_weight_gradients();
      add(operation, {x(), read(dy), weight(ParameterRole::kGamma), read(forward_.means[index_]),
                      read(forward_.inverse_deviations[index_]), dx,
                      wanted ? gradient(ParameterRole::kGamma) : Operand{},
                      wanted ? gradient(ParameterRole::kBeta) : Operand{}});
    };
    if (wants_input_gradient()) {
      pass_on(backward);
    } else {
      // The kernel writes dx whether or not anybody reads it.
      backward(write(sums_.new_tensor(computation().input)));
    }
  }

  void operator()(const Pad& pad) {
    through(PadBackward{batch(), in().channels, in().space, pad.amount});
  }
  void operator()(const Upsample& upsample) {
    through(UpsampleBackward{batch(), in().channels, in().space, upsample.factor});
  }
  void operator()(const AveragePool& pool) {
    through(AveragePoolBackward{batch(), in().channels, in().space, pool.size});
  }
  void operator()(const Dropout& dropout) {
    through(DropoutBackward{elements(), dropout.rate,
                            dropout_stream(input().options.network_number, layer())});
  }
  void operator()(const Sum&) { through(SumBackward{batch(), in().elements()}); }

  void operator()(const Power& power) {
    const int dy = arrived();
    pass_on([&](Operand dx) {
      add(PowerBackward{elements(), power.exponent}, {x(), read(dy), dx});
    });
  }
  void operator()(const Angle&) {
    const int dy = arrived();
    pass_on([&](Operand dx) { add(AngleBackward{batch(), in().space}, {x(), read(dy), dx}); });
  }
  void operator()(const Activation& activation) {
    const int dy = arrived();
    if (activation.kind == ActivationKind::kLinear) {
      sums_.give(computation().input, dy);
      return;
    }
    pass_on([&](Operand dx) {
      add(ActivationBackward{elements(), activation}, {y(), read(dy), dx});
    });
  }
  void operator()(const Bins&) {}
  void operator()(const Reshape&) { CHECK(false, "a reshape computes nothing"); }
  void operator()(const Flatten&) { CHECK(false, "a flatten computes nothing"); }

 private:
  bool wants_input_gradient() const { return wanted_[at(computation().input)]; }
  bool wants_weight_gradients() const {
    return pass() != Pass::kBackwardInput && has_weights(computation());
  }
  // The gradient of the value this computation makes.
  int arrived() { return sums_.complete(computation().output); }

  // Lets `emit` write this computation's part of the gradient of the value it reads.
  template <class Emit>
  void pass_on(Emit emit) {
    if (wants_input_gradient()) sums_.add_part(computation().input, emit);
  }

  // A computation whose backward operation takes dy alone.
  void through(Operation operation) {
    const int dy = arrived();
    pass_on([&](Operand dx) { add(std::move(operation), {read(dy), dx}); });
  }

  int before_fused_activation(int dy) {
    const Activation& fused = computation().fused;
    if (fused.kind == ActivationKind::kLinear) return dy;
    const int before =
        new_tensor(layer_name(layer()) + " gradient before activation", tensor_elements(dy));
    add(ActivationBackward{tensor_elements(dy), fused}, {y(), read(dy), write(before)});
    return before;
  }

  Operand x() const { return read(forward_.values[at(computation().input)]); }
  Operand y() const { return read(forward_.values[at(computation().output)]); }

  const Graph& graph_;
  const ForwardTensors& forward_;
  const std::vector<bool> wanted_;
  GradientSums sums_;
  std::size_t index_ = 0;
};

}  // namespace

void write_backward(const Graph& graph, const ForwardTensors& forward, InstructionWriter writer) {
  BackwardWriter(graph, forward, writer).write_all();
}

}  // namespace troupe::model
