#include <algorithm>
#include <utility>

#include "model/gradient_sums.h"
#include "model/instruction_writer.h"
#include "model/layer_rules.h"
#include "model/streams.h"

namespace troupe::model {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool has_weights(const ParameterLayout& layout, const Computation& computation) {
  const auto own = [&](const ParameterTensor& each) { return each.layer == computation.layer; };
  return std::any_of(layout.weights.begin(), layout.weights.end(), own);
}

// Per value, whether the pass needs its gradient. kBackwardInput: those that depend on the input or
// the columns. kBackwardParameters: those that depend on a weight.
std::vector<bool> wanted_values(const Graph& graph, const ParameterLayout& layout, Pass pass) {
  std::vector<bool> wanted(graph.values.size(), false);
  const bool of_input = pass == Pass::kBackwardInput;
  for (std::size_t i = 0; i < graph.values.size() && of_input; ++i) {
    const int layer = graph.values[i].layer;
    wanted[i] = layer == kOfInput || layer == kOfColumns;
  }
  for (const Computation& computation : graph.computations) {
    bool depends = wanted[at(computation.input)];
    if (!of_input) depends = depends || has_weights(layout, computation);
    for (const int other : computation.others) depends = depends || wanted[at(other)];
    wanted[at(computation.output)] = depends;
  }
  return wanted;
}

// Null where several computations read the value, or the network's caller does.
const Computation* sole_reader(const Graph& graph, int value) {
  if (graph.values[at(value)].output >= 0) return nullptr;
  const Computation* found = nullptr;
  for (const Computation& each : graph.computations) {
    const auto reads =
        (each.input == value ? 1 : 0) + std::count(each.others.begin(), each.others.end(), value);
    if (reads == 0) continue;
    if (found != nullptr || reads > 1) return nullptr;
    found = &each;
  }
  return found;
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

// Writes the computations' derivatives, in reverse order.
class BackwardWriter : public InstructionWriter {
 public:
  BackwardWriter(const Graph& graph, const ForwardTensors& forward, InstructionWriter writer)
      : InstructionWriter(writer),
        graph_(graph),
        forward_(forward),
        wanted_(wanted_values(graph, input().layout, pass())),
        sums_(graph, *this) {}

  void write_all();

  bool wants(int value) const { return wanted_[at(value)]; }
  bool wants_weight_gradients() const {
    return pass() != Pass::kBackwardInput && has_weights(input().layout, computation());
  }
  // The gradient of the value this computation makes.
  int arrived() { return sums_.complete(computation().output); }

  // Lets `emit` write this computation's part of the gradient of a value it reads.
  template <class Emit>
  void pass_on(int value, Emit emit) {
    if (wants(value)) sums_.add_part(value, emit);
  }
  template <class Emit>
  void pass_on(Emit emit) {
    pass_on(computation().input, emit);
  }
  // The gradient of a value it reads is that of its output.
  void give(int value, int dy) { sums_.give(value, dy); }

  // A computation whose backward operation takes dy alone.
  void through(Operation operation) {
    const int dy = arrived();
    pass_on([&](Operand dx) { add(std::move(operation), {read(dy), dx}); });
  }
  // One whose backward operation takes x too.
  void through_with_input(Operation operation) {
    const int dy = arrived();
    pass_on([&](Operand dx) { add(std::move(operation), {x(), read(dy), dx}); });
  }

  int before_fused_activation(int dy);
  // A norm's backward operation writes dx whether or not anybody reads it.
  void add_norm_backward(const Operation& operation);

  Operand x() const { return read(forward_.values[at(computation().input)]); }
  Operand y() const { return read(forward_.values[at(computation().output)]); }
  // What tells the slope of an activation.
  Operand known_of(const Activation& activation) const;
  Operand other(std::size_t number) const {
    return read(forward_.values[at(computation().others[number])]);
  }

 private:
  bool wants_any() const {
    if (wants_weight_gradients() || wants(computation().input)) return true;
    const std::vector<int>& others = computation().others;
    return std::any_of(others.begin(), others.end(), [this](int other) { return wants(other); });
  }

  const Graph& graph_;
  const ForwardTensors& forward_;
  const std::vector<bool> wanted_;
  GradientSums sums_;
  std::size_t index_ = 0;
};

void add_backward(BackwardWriter& w, const Dense& dense) {
  const int dy = w.arrived();
  if (w.wants_weight_gradients()) {
    w.add(
        DenseBackwardParameters{w.batch(), w.in().elements(), dense.units, dense.bias},
        {w.x(), w.read(dy), w.gradient(ParameterRole::kKernel), w.gradient(ParameterRole::kBias)});
  }
  w.pass_on([&](Operand dx) {
    w.add(DenseBackwardInput{w.batch(), w.in().elements(), dense.units},
          {w.read(dy), w.weight(ParameterRole::kKernel), dx});
  });
}

void add_bias_gradient(BackwardWriter& w, int dy) {
  w.add(SumRows{1, w.batch() * w.out().cells(), w.out().channels},
        {w.read(dy), w.gradient(ParameterRole::kBias)});
}

void add_grouped_backward(BackwardWriter& w) {
  const GroupedGeometry geometry = grouped_geometry(w.computation(), w.batch());
  const int dy = w.arrived();
  if (w.wants_weight_gradients()) {
    w.add(GroupedConvolutionBackwardParameters{geometry},
          {w.x(), w.read(dy), w.gradient(ParameterRole::kKernel)});
    if (geometry.bias) add_bias_gradient(w, dy);
  }
  w.pass_on([&](Operand dx) {
    w.add(GroupedConvolutionBackwardInput{geometry},
          {w.read(dy), w.weight(ParameterRole::kKernel), dx});
  });
}

// Phases of the image and of the kernel are split anew, which costs less than keeping them.
void add_backward(BackwardWriter& w, const Convolution& convolution) {
  if (is_cell_by_cell(convolution)) return add_grouped_backward(w);
  const ConvolutionPlan plan = plan_convolution(w.computation(), w.batch());
  const Operand dy = split(w, plan.of_output, w.read(w.before_fused_activation(w.arrived())),
                           "output gradient phases");
  if (w.wants_weight_gradients()) {
    const Operand image = split(w, plan.of_image, w.x(), "phases");
    join(w, plan.of_kernel, w.gradient(ParameterRole::kKernel), "kernel gradient phases",
         [&](Operand dkernel) {
           w.add(ConvolutionBackwardParameters{plan.geometry},
                 {image, dy, dkernel, w.gradient(ParameterRole::kBias)});
         });
  }
  w.pass_on([&](Operand dx) {
    const Operand taps =
        split(w, plan.of_kernel, w.weight(ParameterRole::kKernel), "kernel phases");
    join(w, plan.of_image, dx, "gradient phases", [&](Operand phases) {
      w.add(ConvolutionBackwardInput{plan.geometry}, {dy, taps, phases});
    });
  });
}

void add_grouped_backward(BackwardWriter& w, const TransposedConvolution& convolution) {
  const GroupedGeometry geometry = grouped_transposed(w.computation(), w.batch());
  const int dy = w.arrived();
  if (w.wants_weight_gradients()) {
    w.add(GroupedConvolutionBackwardParameters{geometry},
          {w.read(dy), w.x(), w.gradient(ParameterRole::kKernel)});
    if (convolution.bias) add_bias_gradient(w, dy);
  }
  w.pass_on([&](Operand dx) {
    w.add(GroupedConvolutionForward{geometry},
          {w.read(dy), w.weight(ParameterRole::kKernel), {}, dx});
  });
}

// The convolution from the output to the input: its derivatives with image and output exchanged.
void add_backward(BackwardWriter& w, const TransposedConvolution& convolution) {
  if (is_cell_by_cell(convolution)) return add_grouped_backward(w, convolution);
  const ConvolutionPlan plan = plan_transposed(w.computation(), w.batch());
  const int dy = w.arrived();
  const Operand image = split(w, plan.of_image, w.read(dy), "output gradient phases");
  if (w.wants_weight_gradients()) {
    const Operand x = split(w, plan.of_output, w.x(), "input phases");
    join(w, plan.of_kernel, w.gradient(ParameterRole::kKernel), "kernel gradient phases",
         [&](Operand dkernel) {
           w.add(ConvolutionBackwardParameters{plan.geometry}, {image, x, dkernel, {}});
         });
    if (convolution.bias) add_bias_gradient(w, dy);
  }
  w.pass_on([&](Operand dx) {
    const Operand taps =
        split(w, plan.of_kernel, w.weight(ParameterRole::kKernel), "kernel phases");
    join(w, plan.of_output, dx, "gradient phases", [&](Operand y) {
      w.add(ConvolutionForward{plan.geometry, {}}, {image, taps, {}, y});
    });
  });
}

// With n the normalised x and means over all micro-batches,
//   dx = gamma * inverse deviation * (dy - mean(dy) - n * mean(dy * n)),
// which is two normalisations: of x, with the factor -mean(dy * n) and -mean(dy) added, and, dy
// being added, of that. The layer's round finds the sums of dy and of dy * n.
void add_shared_norm_backward(BackwardWriter& w, const BatchNorm& norm) {
  const std::int64_t rows = w.rows(), channels = w.in().channels;
  const auto shared = [&](SharedArray array, ParameterRole role) { return w.shared(array, role); };
  const Operand mean = shared(SharedArray::kStatistics, ParameterRole::kMovingMean);
  const Operand variance = shared(SharedArray::kStatistics, ParameterRole::kMovingVariance);
  const Operand zeros = shared(SharedArray::kDeviations, ParameterRole::kMovingMean);
  const int dy = w.arrived();
  const int centred = w.new_tensor(w.layer_name(w.layer()) + " centred gradient", w.elements());
  w.add_of_round(BatchNormBackward{rows, channels},
                 {w.x(), w.read(dy), w.weight(ParameterRole::kGamma), mean,
                  shared(SharedArray::kDeviations, ParameterRole::kMovingVariance),
                  w.write(centred), w.share(ShareArray::kSlopes, ParameterRole::kMovingVariance),
                  w.share(ShareArray::kSlopes, ParameterRole::kMovingMean)});
  w.pass_on([&](Operand dx) {
    const BatchNormInference normalise{rows, channels, norm.epsilon};
    w.add(normalise, {w.x(), shared(SharedArray::kSlopes, ParameterRole::kMovingVariance),
                      shared(SharedArray::kSlopes, ParameterRole::kMovingMean), mean, variance,
                      w.write(centred)});
    w.add(Accumulate{w.elements()}, {w.read(dy), w.update(centred)});
    w.add(normalise,
          {w.read(centred), w.weight(ParameterRole::kGamma), zeros, zeros, variance, dx});
  });
}

void add_backward(BackwardWriter& w, const BatchNorm& norm) {
  if (norm.sync) return add_shared_norm_backward(w, norm);
  w.add_norm_backward(BatchNormBackward{w.rows(), w.in().channels});
}
void add_group_norm_backward(BackwardWriter& w) {
  const GroupNormForward norm = group_norm(w.computation(), w.batch());
  w.add_norm_backward(GroupNormBackward{norm.samples, norm.rows, norm.channels, norm.groups});
}
void add_backward(BackwardWriter& w, const LayerNorm&) { add_group_norm_backward(w); }
void add_backward(BackwardWriter& w, const InstanceNorm&) { add_group_norm_backward(w); }
void add_backward(BackwardWriter& w, const GroupNorm&) { add_group_norm_backward(w); }

void add_backward(BackwardWriter& w, const Pad& pad) {
  w.through(PadBackward{w.batch(), w.in().channels, w.in().space, pad.amount});
}
void add_backward(BackwardWriter& w, const Crop& crop) {
  w.through(PadForward{w.batch(), w.in().channels, w.out().space, crop.amount});
}
void add_backward(BackwardWriter& w, const Upsample& upsample) {
  w.through(UpsampleBackward{w.batch(), w.in().channels, w.in().space, upsample.factor});
}
void add_average_pool_backward(BackwardWriter& w) {
  w.through(AveragePoolBackward{pool_geometry(w.computation(), w.batch())});
}
void add_max_pool_backward(BackwardWriter& w) {
  w.through_with_input(MaxPoolBackward{pool_geometry(w.computation(), w.batch())});
}
void add_backward(BackwardWriter& w, const AveragePool&) { add_average_pool_backward(w); }
void add_backward(BackwardWriter& w, const MaxPool&) { add_max_pool_backward(w); }
void add_backward(BackwardWriter& w, const GlobalAveragePool&) { add_average_pool_backward(w); }
void add_backward(BackwardWriter& w, const GlobalMaxPool&) { add_max_pool_backward(w); }

void add_backward(BackwardWriter& w, const Dropout& dropout) {
  w.through(DropoutBackward{w.elements(), dropout.rate,
                            dropout_stream(w.input().options.network_number, w.layer())});
}
void add_backward(BackwardWriter& w, const Activation& activation) {
  const int dy = w.arrived();
  if (activation.kind == ActivationKind::kLinear) return w.give(w.computation().input, dy);
  w.pass_on([&](Operand dx) {
    w.add(ActivationBackward{w.elements(), activation}, {w.known_of(activation), w.read(dy), dx});
  });
}
void add_backward(BackwardWriter& w, const Softmax&) {
  const int dy = w.arrived();
  w.pass_on([&](Operand dx) {
    w.add(SoftmaxBackward{w.rows(), w.in().channels}, {w.y(), w.read(dy), dx});
  });
}
void add_backward(BackwardWriter& w, const Power& power) {
  w.through_with_input(PowerBackward{w.elements(), power.exponent});
}

void add_backward(BackwardWriter& w, const Permute&) {
  const PermuteAxes forward = permuted(w.computation(), w.batch());
  PermuteAxes back{.batch = forward.batch};
  for (std::size_t axis = 0; axis < 4; ++axis) {
    const int from = forward.order[axis];
    back.in[axis] = forward.in[at(from)];
    back.order[at(from)] = static_cast<int>(axis);
  }
  w.through(back);
}

// The way back of a copied part.
CopyParts reversed(const CopyParts& parts) {
  return {.times = parts.times,
          .count = parts.count,
          .from_offset = parts.to_offset,
          .from_step = parts.to_step,
          .from_size = parts.to_size,
          .to_offset = parts.from_offset,
          .to_step = parts.from_step,
          .to_size = parts.from_size};
}
void add_backward(BackwardWriter& w, const Slice&) {
  const int dy = w.arrived();
  w.pass_on([&](Operand dx) {
    w.add(ZeroFill{w.elements()}, {dx});
    CopyParts back = reversed(sliced_part(w.computation(), w.batch()));
    back.begins = false;
    w.add(back, {w.read(dy), InstructionWriter::update(dx.tensor)});
  });
}
void add_backward(BackwardWriter& w, const Concatenate& concatenate) {
  const int dy = w.arrived();
  const auto part = [&](int number) {
    return reversed(concatenated_part(w.computation(), w.batch(), number));
  };
  w.pass_on([&](Operand dx) { w.add(part(-1), {w.read(dy), dx}); });
  for (std::size_t i = 0; i < concatenate.with.size(); ++i) {
    w.pass_on(w.computation().others[i], [&](Operand dx) {
      w.add(part(static_cast<int>(i)), {w.read(dy), dx});
    });
  }
}

SumRows over_cells(const BackwardWriter& w) { return {w.batch(), w.in().cells(), w.in().channels}; }
void add_backward(BackwardWriter& w, const Add& add) {
  const int dy = w.arrived();
  if (w.wants(w.computation().input)) w.give(w.computation().input, dy);
  for (std::size_t i = 0; i < add.with.size(); ++i) {
    const int other = w.computation().others[i];
    if (w.computation().other_shapes[i] == w.out()) {
      if (w.wants(other)) w.give(other, dy);
    } else {
      w.pass_on(other, [&](Operand dx) { w.add(over_cells(w), {w.read(dy), dx}); });
    }
  }
}
void add_backward(BackwardWriter& w, const Multiply&) {
  const int dy = w.arrived(), other = w.computation().others.front();
  const bool spread = !(w.computation().other_shapes.front() == w.out());
  const std::string& name = w.layer_name(w.layer());
  w.pass_on([&](Operand dx) {
    Operand factor = w.other(0);
    if (spread) {
      const int repeated = w.new_tensor(name + " repeated", w.elements());
      w.add(RepeatRows{w.batch(), w.in().cells(), w.in().channels},
            {factor, InstructionWriter::write(repeated)});
      factor = InstructionWriter::read(repeated);
    }
    w.add(Product{w.elements()}, {w.read(dy), factor, dx});
  });
  w.pass_on(other, [&](Operand dx) {
    if (!spread) return w.add(Product{w.elements()}, {w.x(), w.read(dy), dx});
    const int products = w.new_tensor(name + " gradient of cells", w.elements());
    w.add(Product{w.elements()}, {w.x(), w.read(dy), InstructionWriter::write(products)});
    w.add(over_cells(w), {InstructionWriter::read(products), dx});
  });
}

void add_backward(BackwardWriter& w, const Embedding& embedding) {
  const int dy = w.arrived();
  if (!w.wants_weight_gradients()) return;
  w.add(EmbeddingBackward{w.batch(), embedding.classes, embedding.units},
        {w.x(), w.read(dy), w.gradient(ParameterRole::kKernel)});
}
void add_backward(BackwardWriter& w, const Attention& attention) {
  w.through_with_input(AttentionBackward{w.batch(), w.in().cells(), attention.heads,
                                         w.out().channels / attention.heads});
}

void add_backward(BackwardWriter& w, const Sum&) {
  w.through(RepeatRows{w.batch(), w.in().elements(), 1});
}
void add_backward(BackwardWriter& w, const Angle&) {
  w.through_with_input(AngleBackward{w.batch(), w.in().space});
}
void add_backward(BackwardWriter&, const Bins&) {}
void add_backward(BackwardWriter&, const Reshape&) { CHECK(false, "a reshape computes nothing"); }
void add_backward(BackwardWriter&, const Flatten&) { CHECK(false, "a flatten computes nothing"); }

void BackwardWriter::write_all() {
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
    sums_.give(graph_.outputs[i], lists().output_gradients[i]);
  }
  for (index_ = graph_.computations.size(); index_-- > 0;) {
    go_to(graph_.computations[index_]);
    if (!wants_any() || !sums_.arrives(computation().output)) continue;
    std::visit([this](const auto& kind) { add_backward(*this, kind); }, computation().kind);
  }
  if (pass() == Pass::kBackwardInput) {
    sums_.finish_inputs();
  } else {
    zero_weights_without_gradient(*this);
  }
}

int BackwardWriter::before_fused_activation(int dy) {
  const Activation& fused = computation().fused;
  if (fused.kind == ActivationKind::kLinear) return dy;
  const int before =
      new_tensor(layer_name(layer()) + " gradient before activation", tensor_elements(dy));
  add(ActivationBackward{tensor_elements(dy), fused}, {known_of(fused), read(dy), write(before)});
  return before;
}

// A rectifier's slope is told by a sign, which dropout keeps. What it drops has no gradient. Where
// dropout alone reads the rectifier's result, that result need not be kept for the backward pass.
Operand BackwardWriter::known_of(const Activation& activation) const {
  if (needs_argument(activation.kind)) return x();
  const bool rectifies = activation.kind == ActivationKind::kRelu ||
                         (activation.kind == ActivationKind::kLeakyRelu && activation.slope >= 0.0);
  const Computation* const reader = sole_reader(graph_, computation().output);
  if (!rectifies || reader == nullptr || !std::holds_alternative<Dropout>(reader->kind)) return y();
  return read(forward_.values[at(reader->output)]);
}

void BackwardWriter::add_norm_backward(const Operation& operation) {
  const int dy = arrived();
  const auto backward = [&](Operand dx) {
    const bool wanted = wants_weight_gradients();
    add(operation, {x(), read(dy), weight(ParameterRole::kGamma), read(forward_.means[index_]),
                    read(forward_.inverse_deviations[index_]), dx,
                    wanted ? gradient(ParameterRole::kGamma) : Operand{},
                    wanted ? gradient(ParameterRole::kBeta) : Operand{}});
  };
  if (wants(computation().input)) {
    pass_on(backward);
  } else {
    backward(write(sums_.new_tensor(computation().input)));
  }
}

}  // namespace

void write_backward(const Graph& graph, const ForwardTensors& forward, InstructionWriter writer) {
  BackwardWriter(graph, forward, writer).write_all();
}

}  // namespace troupe::model
