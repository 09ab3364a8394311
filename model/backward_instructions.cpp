#include <algorithm>
#include <optional>

#include "model/instruction_writer.h"
#include "model/streams.h"

namespace troupe::model {
namespace {

// The derivative of the loss with respect to one value, while its parts arrive. A value read
// several times gets the sum of what its readers pass back, readers in reverse order of the layers,
// and of the gradients the caller gave for it as an output. Tensors given from outside are never
// written.
struct Gradient {
  int sum = -1;            // tensor of this pass, -1 as long as nothing was computed for it
  std::vector<int> given;  // tensors of others that belong to the sum
  bool arrives() const { return sum >= 0 || !given.empty(); }
};

class BackwardWriter {
 public:
  BackwardWriter(const Graph& graph, const ForwardTensors& forward, InstructionWriter writer)
      : graph_(graph), forward_(forward), writer_(writer), gradients_(graph.values.size()) {}

  void write() {
    find_wanted();
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      gradients_[at(graph_.outputs[i])].given.push_back(writer_.lists().output_gradients[i]);
    }
    for (index_ = graph_.computations.size(); index_-- > 0;) {
      computation_ = &graph_.computations[index_];
      const bool useful = wants_input_gradient() || wants_weight_gradients();
      if (useful && gradients_[at(computation_->output)].arrives()) {
        std::visit(*this, computation_->kind);
      }
    }
    if (for_input()) {
      finish_input_gradient();
    } else {
      zero_weights_without_gradient();
    }
  }

  void operator()(const Dense& dense) {
    const int dy = arrived();
    if (wants_weight_gradients()) {
      add(DenseBackwardParameters{writer_.batch(), in().elements(), dense.units, dense.bias},
          {x(), read(dy), gradient(ParameterRole::kKernel), gradient(ParameterRole::kBias)});
    }
    pass_on([&](Operand dx) {
      add(DenseBackwardInput{writer_.batch(), in().elements(), dense.units},
          {read(dy), weight(ParameterRole::kKernel), dx});
    });
  }

  void operator()(const Convolution&) {
    const ConvolutionGeometry geometry = convolution_geometry(*computation_, writer_.batch());
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
    const BatchNormBackward operation{writer_.batch() * in().cells(), in().channels};
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
      backward(InstructionWriter::write(new_gradient(computation_->input)));
    }
  }

  void operator()(const Pad& pad) {
    through(PadBackward{writer_.batch(), in().channels, in().space, pad.amount});
  }
  void operator()(const Upsample& upsample) {
    through(UpsampleBackward{writer_.batch(), in().channels, in().space, upsample.factor});
  }
  void operator()(const AveragePool& pool) {
    through(AveragePoolBackward{writer_.batch(), in().channels, in().space, pool.size});
  }
  void operator()(const Dropout& dropout) {
    through(DropoutBackward{elements(), dropout.rate,
                            dropout_stream(writer_.input().options.network_number, layer())});
  }
  void operator()(const Sum&) { through(SumBackward{writer_.batch(), in().elements()}); }

  void operator()(const Power& power) {
    const int dy = arrived();
    pass_on([&](Operand dx) {
      add(PowerBackward{elements(), power.exponent}, {x(), read(dy), dx});
    });
  }
  void operator()(const Angle&) {
    const int dy = arrived();
    pass_on([&](Operand dx) {
      add(AngleBackward{writer_.batch(), in().space}, {x(), read(dy), dx});
    });
  }
  void operator()(const Activation& activation) {
    const int dy = arrived();
    if (activation.kind == ActivationKind::kLinear) {
      gradients_[at(computation_->input)].given.push_back(dy);
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
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  static Operand read(int tensor) { return InstructionWriter::read(tensor); }
  bool for_input() const { return writer_.pass() == Pass::kBackwardInput; }

  // kBackwardInput: every value depends on the input. kBackwardParameters: values that depend on a
  // weight.
  void find_wanted() {
    wanted_.assign(graph_.values.size(), for_input());
    if (for_input()) return;
    for (const Computation& computation : graph_.computations) {
      wanted_[at(computation.output)] = has_weights(computation) || wanted_[at(computation.input)];
    }
  }
  static bool has_weights(const Computation& computation) {
    return std::holds_alternative<Dense>(computation.kind) ||
           std::holds_alternative<Convolution>(computation.kind) ||
           std::holds_alternative<BatchNorm>(computation.kind);
  }
  bool wants_input_gradient() const { return wanted_[at(computation_->input)]; }
  bool wants_weight_gradients() const { return !for_input() && has_weights(*computation_); }

  int new_gradient(int value) {
    const int layer = graph_.values[at(value)].layer;
    if (layer < 0 && for_input()) return writer_.lists().input_gradient;
    const std::string name = layer < 0 ? "input" : writer_.layer_name(layer);
    return writer_.new_tensor(name + " gradient", graph_.values[at(value)].elements);
  }

  void accumulate(int from, int into) {
    add(Accumulate{writer_.tensor_elements(into)}, {read(from), InstructionWriter::update(into)});
  }

  // The complete gradient of a value whose readers are all done.
  int complete(int value) {
    Gradient& gradient = gradients_[at(value)];
    std::size_t next = 0;
    if (gradient.sum < 0) {
      if (gradient.given.size() == 1) return gradient.given.front();
      gradient.sum = new_gradient(value);
      writer_.copy(layer(), gradient.given[next++], gradient.sum);
    }
    for (; next < gradient.given.size(); ++next) accumulate(gradient.given[next], gradient.sum);
    gradient.given.clear();
    return gradient.sum;
  }
  int arrived() { return complete(computation_->output); }

  // Lets `emit` write this computation's part of the gradient of the value it reads.
  template <class Emit>
  void pass_on(Emit emit) {
    if (!wants_input_gradient()) return;
    Gradient& gradient = gradients_[at(computation_->input)];
    if (gradient.sum < 0) {
      gradient.sum = new_gradient(computation_->input);
      emit(InstructionWriter::write(gradient.sum));
      return;
    }
    const int part = writer_.new_tensor(writer_.layer_name(layer()) + " gradient part",
                                        graph_.values[at(computation_->input)].elements);
    emit(InstructionWriter::write(part));
    accumulate(part, gradient.sum);
  }

  // A computation whose backward operation takes dy alone.
  void through(Operation operation) {
    const int dy = arrived();
    pass_on([&](Operand dx) { add(std::move(operation), {read(dy), dx}); });
  }

  int before_fused_activation(int dy) {
    const Activation& fused = computation_->fused;
    if (fused.kind == ActivationKind::kLinear) return dy;
    const int before = writer_.new_tensor(
        writer_.layer_name(layer()) + " gradient before activation", writer_.tensor_elements(dy));
    add(ActivationBackward{writer_.tensor_elements(dy), fused},
        {y(), read(dy), InstructionWriter::write(before)});
    return before;
  }

  void finish_input_gradient() {
    Gradient& gradient = gradients_[0];
    const int target = writer_.lists().input_gradient;
    if (!gradient.arrives()) {
      writer_.add(-1, ZeroFill{writer_.tensor_elements(target)},
                  {InstructionWriter::write(target)});
    } else if (const int complete_gradient = complete(0); complete_gradient != target) {
      writer_.copy(-1, complete_gradient, target);
    }
  }

  // One fill per range of neighbours.
  void zero_weights_without_gradient() {
    std::vector<bool> written(writer_.input().layout.weights.size(), false);
    const auto& weights = writer_.input().layout.weights;
    for (const Instruction& instruction : writer_.lists().passes[at(kParameters)]) {
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
        writer_.add(weights[i].layer, ZeroFill{elements},
                    {{Location::kGradients, Access::kWrite, -1, weights[i].offset}});
      }
      i = std::max(end, i + 1);
    }
  }

  static constexpr int kParameters = static_cast<int>(Pass::kBackwardParameters);

  int layer() const { return computation_->layer; }
  const Shape& in() const { return computation_->input_shape; }
  std::int64_t elements() const { return writer_.batch() * in().elements(); }
  Operand x() const { return read(forward_.values[at(computation_->input)]); }
  Operand y() const { return read(forward_.values[at(computation_->output)]); }
  Operand weight(ParameterRole role) const { return writer_.weight(layer(), role); }
  Operand gradient(ParameterRole role) const { return writer_.gradient(layer(), role); }
  void add(Operation operation, std::vector<Operand> operands) {
    writer_.add(layer(), std::move(operation), std::move(operands));
  }

  const Graph& graph_;
  const ForwardTensors& forward_;
  InstructionWriter writer_;
  std::vector<Gradient> gradients_;
  std::vector<bool> wanted_;  // values whose gradient somebody needs
  const Computation* computation_ = nullptr;
  std::size_t index_ = 0;
};

}  // namespace

void write_backward(const Graph& graph, const ForwardTensors& forward, InstructionWriter writer) {
  BackwardWriter(graph, forward, writer).write();
}

}  // namespace troupe::model
