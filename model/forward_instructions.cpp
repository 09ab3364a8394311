#include "model/instruction_writer.h"
#include "model/layer_rules.h"
#include "model/streams.h"

namespace troupe::model {
namespace {

// Writes the computations in their order.
class ForwardWriter : public InstructionWriter {
 public:
  ForwardWriter(const Graph& graph, InstructionWriter writer)
      : InstructionWriter(writer), graph_(graph) {}

  ForwardTensors write_all();

  Operand x() const { return value(computation().input); }
  Operand other(std::size_t number) const { return value(computation().others[number]); }
  Operand y() const {
    return write(tensors_.values[static_cast<std::size_t>(computation().output)]);
  }

  Operand updated_y() const { return update(y().tensor); }

  // Tensors of the computation's statistics, of so many numbers each.
  struct Statistics {
    Operand mean, inverse_deviation;
  };
  Statistics keep_statistics(std::int64_t count) {
    const std::string& name = layer_name(layer());
    const int mean = new_tensor(name + " mean", count);
    const int deviation = new_tensor(name + " inverse deviation", count);
    tensors_.means[index_] = mean;
    tensors_.inverse_deviations[index_] = deviation;
    return {write(mean), write(deviation)};
  }

 private:
  Operand value(int index) const { return read(tensors_.values[static_cast<std::size_t>(index)]); }
  void add_values();

  const Graph& graph_;
  ForwardTensors tensors_;
  std::size_t index_ = 0;
};

void add_forward(ForwardWriter& w, const Dense& dense) {
  w.add(DenseForward{w.batch(), w.in().elements(), dense.units, dense.bias},
        {w.x(), w.weight(ParameterRole::kKernel), w.weight(ParameterRole::kBias), w.y()});
}

void add_forward(ForwardWriter& w, const Convolution& convolution) {
  const Operand kernel = w.weight(ParameterRole::kKernel), bias = w.weight(ParameterRole::kBias);
  if (is_cell_by_cell(convolution)) {
    return w.add(GroupedConvolutionForward{grouped_geometry(w.computation(), w.batch())},
                 {w.x(), kernel, bias, w.y()});
  }
  const ConvolutionPlan plan = plan_convolution(w.computation(), w.batch());
  const Operand image = split(w, plan.of_image, w.x(), "phases");
  const Operand taps = split(w, plan.of_kernel, kernel, "kernel phases");
  join(w, plan.of_output, w.y(), "output phases", [&](Operand y) {
    w.add(ConvolutionForward{plan.geometry, w.computation().fused}, {image, taps, bias, y});
  });
}

void add_forward(ForwardWriter& w, const TransposedConvolution& convolution) {
  const Operand kernel = w.weight(ParameterRole::kKernel);
  if (is_cell_by_cell(convolution)) {
    w.add(GroupedConvolutionBackwardInput{grouped_transposed(w.computation(), w.batch())},
          {w.x(), kernel, w.y()});
  } else {
    const ConvolutionPlan plan = plan_transposed(w.computation(), w.batch());
    const Operand x = split(w, plan.of_output, w.x(), "input phases");
    const Operand taps = split(w, plan.of_kernel, kernel, "kernel phases");
    join(w, plan.of_image, w.y(), "phases", [&](Operand y) {
      w.add(ConvolutionBackwardInput{plan.geometry}, {x, taps, y});
    });
  }
  if (!convolution.bias) return;
  w.add(AddBias{w.batch() * w.out().cells(), w.out().channels},
        {w.weight(ParameterRole::kBias), w.updated_y()});
}

void add_forward(ForwardWriter& w, const Pad& pad) {
  w.add(PadForward{w.batch(), w.in().channels, w.in().space, pad.amount}, {w.x(), w.y()});
}
void add_forward(ForwardWriter& w, const Crop& crop) {
  w.add(PadBackward{w.batch(), w.in().channels, w.out().space, crop.amount}, {w.x(), w.y()});
}
void add_forward(ForwardWriter& w, const Upsample& upsample) {
  w.add(UpsampleForward{w.batch(), w.in().channels, w.in().space, upsample.factor}, {w.x(), w.y()});
}
void add_average_pool(ForwardWriter& w) {
  w.add(AveragePoolForward{pool_geometry(w.computation(), w.batch())}, {w.x(), w.y()});
}
void add_max_pool(ForwardWriter& w) {
  w.add(MaxPoolForward{pool_geometry(w.computation(), w.batch())}, {w.x(), w.y()});
}
void add_forward(ForwardWriter& w, const AveragePool&) { add_average_pool(w); }
void add_forward(ForwardWriter& w, const MaxPool&) { add_max_pool(w); }
void add_forward(ForwardWriter& w, const GlobalAveragePool&) { add_average_pool(w); }
void add_forward(ForwardWriter& w, const GlobalMaxPool&) { add_max_pool(w); }

// The statistics of a micro-batch are found in the layer's round, and the values normalised by
// those of all.
void add_shared_norm(ForwardWriter& w, const BatchNorm& norm) {
  const std::int64_t rows = w.rows(), channels = w.in().channels;
  const Operand gamma = w.weight(ParameterRole::kGamma), beta = w.weight(ParameterRole::kBeta);
  const std::string& name = w.layer_name(w.layer());
  const int mean = w.new_tensor(name + " mean", channels);
  const int deviation = w.new_tensor(name + " inverse deviation", channels);
  w.add_of_round(BatchNormTraining{rows, channels, norm.epsilon},
                 {w.x(), gamma, beta, w.y(), InstructionWriter::write(mean),
                  InstructionWriter::write(deviation),
                  w.share(ShareArray::kStatistics, ParameterRole::kMovingMean),
                  w.share(ShareArray::kStatistics, ParameterRole::kMovingVariance)});
  w.add_of_round(Accumulate{channels}, {w.shared(SharedArray::kShifts, ParameterRole::kMovingMean),
                                        InstructionWriter::update(mean)});
  w.add_of_round(Product{channels}, {InstructionWriter::read(mean), InstructionWriter::read(mean),
                                     w.share(ShareArray::kSquares, ParameterRole::kMovingMean)});
  w.add(BatchNormInference{rows, channels, norm.epsilon},
        {w.x(), gamma, beta, w.shared(SharedArray::kStatistics, ParameterRole::kMovingMean),
         w.shared(SharedArray::kStatistics, ParameterRole::kMovingVariance), w.y()});
}

void add_forward(ForwardWriter& w, const BatchNorm& norm) {
  const Operand gamma = w.weight(ParameterRole::kGamma), beta = w.weight(ParameterRole::kBeta);
  if (w.pass() == Pass::kForwardTraining && norm.sync) return add_shared_norm(w, norm);
  if (w.pass() == Pass::kForwardTraining) {
    const auto kept = w.keep_statistics(w.in().channels);
    return w.add(
        BatchNormTraining{w.rows(), w.in().channels, norm.epsilon},
        {w.x(), gamma, beta, w.y(), kept.mean, kept.inverse_deviation,
         w.statistic(ParameterRole::kMovingMean), w.statistic(ParameterRole::kMovingVariance)});
  }
  w.add(BatchNormInference{w.rows(), w.in().channels, norm.epsilon},
        {w.x(), gamma, beta, w.moving(ParameterRole::kMovingMean),
         w.moving(ParameterRole::kMovingVariance), w.y()});
}

void add_group_norm(ForwardWriter& w) {
  const GroupNormForward norm = group_norm(w.computation(), w.batch());
  const auto kept = w.keep_statistics(norm.samples * norm.groups);
  w.add(norm, {w.x(), w.weight(ParameterRole::kGamma), w.weight(ParameterRole::kBeta), w.y(),
               kept.mean, kept.inverse_deviation});
}
void add_forward(ForwardWriter& w, const LayerNorm&) { add_group_norm(w); }
void add_forward(ForwardWriter& w, const InstanceNorm&) { add_group_norm(w); }
void add_forward(ForwardWriter& w, const GroupNorm&) { add_group_norm(w); }

void add_forward(ForwardWriter& w, const Dropout& dropout) {
  w.add(DropoutForward{w.elements(), dropout.rate,
                       dropout_stream(w.input().options.network_number, w.layer())},
        {w.x(), w.y()});
}
void add_forward(ForwardWriter& w, const Activation& activation) {
  w.add(ActivationForward{w.elements(), activation}, {w.x(), w.y()});
}
void add_forward(ForwardWriter& w, const Softmax&) {
  w.add(SoftmaxForward{w.rows(), w.in().channels}, {w.x(), w.y()});
}
void add_forward(ForwardWriter& w, const Power& power) {
  w.add(PowerForward{w.elements(), power.exponent}, {w.x(), w.y()});
}

void add_forward(ForwardWriter& w, const Permute&) {
  w.add(permuted(w.computation(), w.batch()), {w.x(), w.y()});
}
void add_forward(ForwardWriter& w, const Slice&) {
  w.add(sliced_part(w.computation(), w.batch()), {w.x(), w.y()});
}

// Another input with the shape of the output: features are repeated for all cells.
Operand spread(ForwardWriter& w, std::size_t number) {
  if (w.computation().other_shapes[number] == w.out()) return w.other(number);
  const int repeated = w.new_tensor(w.layer_name(w.layer()) + " repeated", w.elements());
  w.add(RepeatRows{w.batch(), w.in().cells(), w.in().channels},
        {w.other(number), InstructionWriter::write(repeated)});
  return InstructionWriter::read(repeated);
}
void add_forward(ForwardWriter& w, const Add& add) {
  w.copy(w.layer(), w.x().tensor, w.y().tensor);
  for (std::size_t i = 0; i < add.with.size(); ++i) {
    const Operand other = spread(w, i);
    w.add(Accumulate{w.elements()}, {other, w.updated_y()});
  }
}
void add_forward(ForwardWriter& w, const Multiply&) {
  const Operand other = spread(w, 0);
  w.add(Product{w.elements()}, {w.x(), other, w.y()});
}
void add_forward(ForwardWriter& w, const Concatenate& concatenate) {
  w.add(concatenated_part(w.computation(), w.batch(), -1), {w.x(), w.y()});
  for (std::size_t i = 0; i < concatenate.with.size(); ++i) {
    w.add(concatenated_part(w.computation(), w.batch(), static_cast<int>(i)),
          {w.other(i), w.updated_y()});
  }
}

void add_forward(ForwardWriter& w, const Embedding& embedding) {
  w.add(EmbeddingForward{w.batch(), embedding.classes, embedding.units},
        {w.x(), w.weight(ParameterRole::kKernel), w.y()});
}
void add_forward(ForwardWriter& w, const Attention& attention) {
  w.add(AttentionForward{w.batch(), w.in().cells(), attention.heads,
                         w.out().channels / attention.heads},
        {w.x(), w.y()});
}

void add_forward(ForwardWriter& w, const Sum&) {
  w.add(SumRows{w.batch(), w.in().elements(), 1}, {w.x(), w.y()});
}
void add_forward(ForwardWriter& w, const Angle&) {
  w.add(AngleForward{w.batch(), w.in().space}, {w.x(), w.y()});
}
void add_forward(ForwardWriter& w, const Bins&) {
  w.add(BinsForward{w.batch(), w.in().elements()}, {w.x(), w.y()});
}
void add_forward(ForwardWriter&, const Reshape&) { CHECK(false, "a reshape computes nothing"); }
void add_forward(ForwardWriter&, const Flatten&) { CHECK(false, "a flatten computes nothing"); }

ForwardTensors ForwardWriter::write_all() {
  add_values();
  tensors_.means.assign(graph_.computations.size(), -1);
  tensors_.inverse_deviations.assign(graph_.computations.size(), -1);
  for (index_ = 0; index_ < graph_.computations.size(); ++index_) {
    go_to(graph_.computations[index_]);
    std::visit([this](const auto& kind) { add_forward(*this, kind); }, computation().kind);
  }
  return std::move(tensors_);
}

void ForwardWriter::add_values() {
  for (const Value& value : graph_.values) {
    if (value.layer < 0) {
      tensors_.values.push_back(lists().input_of(value.layer));
    } else if (value.output >= 0) {
      tensors_.values.push_back(lists().outputs[static_cast<std::size_t>(value.output)]);
    } else {
      tensors_.values.push_back(new_tensor(layer_name(value.layer), value.elements));
    }
  }
}

}  // namespace

ForwardTensors write_forward(const Graph& graph, InstructionWriter writer) {
  return ForwardWriter(graph, writer).write_all();
}

}  // namespace troupe::model
