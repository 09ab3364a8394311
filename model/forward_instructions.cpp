#include "model/instruction_writer.h"
#include "model/layer_rules.h"
#include "model/streams.h"

namespace troupe::model {
namespace {

class ForwardWriter {
 public:
  ForwardWriter(const Graph& graph, InstructionWriter writer) : graph_(graph), writer_(writer) {}

  ForwardTensors write() {
    add_values();
    tensors_.means.assign(graph_.computations.size(), -1);
    tensors_.inverse_deviations.assign(graph_.computations.size(), -1);
    for (index_ = 0; index_ < graph_.computations.size(); ++index_) {
      computation_ = &graph_.computations[index_];
      std::visit(*this, computation_->kind);
    }
    return std::move(tensors_);
  }

  void operator()(const Dense& dense) {
    add(DenseForward{writer_.batch(), in().elements(), dense.units, dense.bias},
        {x(), weight(ParameterRole::kKernel), weight(ParameterRole::kBias), y()});
  }
  void operator()(const Convolution&) {
    add(ConvolutionForward{convolution_geometry(*computation_, writer_.batch()),
                           computation_->fused},
        {x(), weight(ParameterRole::kKernel), weight(ParameterRole::kBias), y()});
  }
  void operator()(const Pad& pad) {
    add(PadForward{writer_.batch(), in().channels, in().space, pad.amount}, {x(), y()});
  }
  void operator()(const Upsample& upsample) {
    add(UpsampleForward{writer_.batch(), in().channels, in().space, upsample.factor}, {x(), y()});
  }
  void operator()(const AveragePool& pool) {
    add(AveragePoolForward{writer_.batch(), in().channels, in().space, pool.size}, {x(), y()});
  }
  void operator()(const BatchNorm& norm) {
    if (writer_.pass() == Pass::kForwardTraining) {
      batch_norm_training(norm);
    } else {
      add(BatchNormInference{rows(), in().channels, norm.epsilon},
          {x(), weight(ParameterRole::kGamma), weight(ParameterRole::kBeta),
           writer_.moving(layer(), ParameterRole::kMovingMean),
           writer_.moving(layer(), ParameterRole::kMovingVariance), y()});
    }
  }
  void operator()(const Dropout& dropout) {
    add(DropoutForward{elements(), dropout.rate,
                       dropout_stream(writer_.input().options.network_number, layer())},
        {x(), y()});
  }
  void operator()(const Activation& activation) {
    add(ActivationForward{elements(), activation}, {x(), y()});
  }
  void operator()(const Power& power) { add(PowerForward{elements(), power.exponent}, {x(), y()}); }
  void operator()(const Sum&) { add(SumForward{writer_.batch(), in().elements()}, {x(), y()}); }
  void operator()(const Angle&) { add(AngleForward{writer_.batch(), in().space}, {x(), y()}); }
  void operator()(const Bins&) { add(BinsForward{writer_.batch(), in().elements()}, {x(), y()}); }
  void operator()(const Reshape&) { CHECK(false, "a reshape computes nothing"); }
  void operator()(const Flatten&) { CHECK(false, "a flatten computes nothing"); }

 private:
  void add_values() {
    for (const Value& value : graph_.values) {
      if (value.layer < 0) {
        tensors_.values.push_back(writer_.lists().input);
      } else if (value.output >= 0) {
        tensors_.values.push_back(writer_.lists().outputs[static_cast<std::size_t>(value.output)]);
      } else {
        tensors_.values.push_back(
            writer_.new_tensor(writer_.layer_name(value.layer), value.elements));
      }
    }
  }

  void batch_norm_training(const BatchNorm& norm) {
    const std::string& name = writer_.layer_name(layer());
    const int mean = writer_.new_tensor(name + " mean", in().channels);
    const int deviation = writer_.new_tensor(name + " inverse deviation", in().channels);
    tensors_.means[index_] = mean;
    tensors_.inverse_deviations[index_] = deviation;
    add(BatchNormTraining{rows(), in().channels, norm.epsilon},
        {x(), weight(ParameterRole::kGamma), weight(ParameterRole::kBeta), y(),
         InstructionWriter::write(mean), InstructionWriter::write(deviation),
         writer_.statistic(layer(), ParameterRole::kMovingMean),
         writer_.statistic(layer(), ParameterRole::kMovingVariance)});
  }

  int layer() const { return computation_->layer; }
  const Shape& in() const { return computation_->input_shape; }
  std::int64_t rows() const { return writer_.batch() * in().cells(); }
  std::int64_t elements() const { return writer_.batch() * in().elements(); }
  Operand x() const {
    return InstructionWriter::read(tensors_.values[static_cast<std::size_t>(computation_->input)]);
  }
  Operand y() const {
    return InstructionWriter::write(
        tensors_.values[static_cast<std::size_t>(computation_->output)]);
  }
  Operand weight(ParameterRole role) const { return writer_.weight(layer(), role); }
  void add(Operation operation, std::vector<Operand> operands) {
    writer_.add(layer(), std::move(operation), std::move(operands));
  }

  const Graph& graph_;
  InstructionWriter writer_;
  ForwardTensors tensors_;
  const Computation* computation_ = nullptr;
  std::size_t index_ = 0;
};

}  // namespace

ConvolutionGeometry convolution_geometry(const Computation& computation, std::int64_t batch) {
  const auto& convolution = std::get<Convolution>(computation.kind);
  ConvolutionGeometry geometry;
  geometry.batch = batch;
  geometry.in = computation.input_shape.space;
  geometry.kernel = convolution.kernel;
  geometry.upsample = computation.upsample;
  for (int axis = 0; axis < 3; ++axis) {
    const AxisPadding own = convolution_padding(convolution, axis);
    geometry.pad_before[axis] = own.before + computation.extra_pad[axis];
    geometry.pad_after[axis] = own.after + computation.extra_pad[axis];
    geometry.out[axis] = geometry.in[axis] * geometry.upsample[axis] + geometry.pad_before[axis] +
                         geometry.pad_after[axis] - geometry.kernel[axis] + 1;
  }
  geometry.in_channels = computation.input_shape.channels;
  geometry.out_channels = convolution.filters;
  geometry.bias = convolution.bias;
  return geometry;
}

ForwardTensors write_forward(const Graph& graph, InstructionWriter writer) {
  return ForwardWriter(graph, writer).write();
}

}  // namespace troupe::model
