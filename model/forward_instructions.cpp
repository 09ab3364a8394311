#include "model/instruction_writer.h"
#include "model/layer_rules.h"
#include "model/streams.h"

namespace troupe::model {
namespace {

// Visits the computations in their order.
class ForwardWriter : InstructionWriter {
 public:
  ForwardWriter(const Graph& graph, InstructionWriter writer)
      : InstructionWriter(writer), graph_(graph) {}

  ForwardTensors write_all() {
    add_values();
    tensors_.means.assign(graph_.computations.size(), -1);
    tensors_.inverse_deviations.assign(graph_.computations.size(), -1);
    for (index_ = 0; index_ < graph_.computations.size(); ++index_) {
      go_to(graph_.computations[index_]);
      std::visit(*this, computation().kind);
    }
    return std::move(tensors_);
  }

  void operator()(const Dense& dense) {
    add(DenseForward{batch(), in().elements(), dense.units, dense.bias},
        {x(), weight(ParameterRole::kKernel), weight(ParameterRole::kBias), y()});
  }
  void operator()(const Convolution&) {
    add(ConvolutionForward{convolution_geometry(computation(), batch()), computation().fused},
        {x(), weight(ParameterRole::kKernel), weight(ParameterRole::kBias), y()});
  }
  void operator()(const Pad& pad) {
    add(PadForward{batch(), in().channels, in().space, pad.amount}, {x(), y()});
  }
  void operator()(const Upsample& upsample) {
    add(UpsampleForward{batch(), in().channels, in().space, upsample.factor}, {x(), y()});
  }
  void operator()(const AveragePool& pool) {
    add(AveragePoolForward{batch(), in().channels, in().space, pool.size}, {x(), y()});
  }
  void operator()(const BatchNorm& norm) {
    if (pass() == Pass::kForwardTraining) {
      batch_norm_training(norm);
    } else {
      add(BatchNormInference{rows(), in().channels, norm.epsilon},
          {x(), weight(ParameterRole::kGamma), weight(ParameterRole::kBeta),
           moving(ParameterRole::kMovingMean), moving(ParameterRole::kMovingVariance), y()});
    }
  }
  void operator()(const Dropout& dropout) {
    add(DropoutForward{elements(), dropout.rate,
                       dropout_stream(input().options.network_number, layer())},
        {x(), y()});
  }
  void operator()(const Activation& activation) {
    add(ActivationForward{elements(), activation}, {x(), y()});
  }
  void operator()(const Power& power) { add(PowerForward{elements(), power.exponent}, {x(), y()}); }
  void operator()(const Sum&) { add(SumForward{batch(), in().elements()}, {x(), y()}); }
  void operator()(const Angle&) { add(AngleForward{batch(), in().space}, {x(), y()}); }
  void operator()(const Bins&) { add(BinsForward{batch(), in().elements()}, {x(), y()}); }
  void operator()(const Reshape&) { CHECK(false, "a reshape computes nothing"); }
  void operator()(const Flatten&) { CHECK(false, "a flatten computes nothing"); }

 private:
  void add_values() {
    for (const Value& value : graph_.values) {
      if (value.layer < 0) {
        tensors_.values.push_back(lists().input);
      } else if (value.output >= 0) {
        tensors_.values.push_back(lists().outputs[static_cast<std::size_t>(value.output)]);
      } else {
        tensors_.values.push_back(new_tensor(layer_name(value.layer), value.elements));
      }
    }
  }

  void batch_norm_training(const BatchNorm& norm) {
    const std::string& name = layer_name(layer());
    const int mean = new_tensor(name + " mean", in().channels);
    const int deviation = new_tensor(name + " inverse deviation", in().channels);
    tensors_.means[index_] = mean;
    tensors_.inverse_deviations[index_] = deviation;
    add(BatchNormTraining{rows(), in().channels, norm.epsilon},
        {x(), weight(ParameterRole::kGamma), weight(ParameterRole::kBeta), y(), write(mean),
         write(deviation), statistic(ParameterRole::kMovingMean),
         statistic(ParameterRole::kMovingVariance)});
  }

  std::int64_t rows() const { return batch() * in().cells(); }
  Operand x() const { return read(tensors_.values[static_cast<std::size_t>(computation().input)]); }
  Operand y() const {
    return write(tensors_.values[static_cast<std::size_t>(computation().output)]);
  }

  const Graph& graph_;
  ForwardTensors tensors_;
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
  return ForwardWriter(graph, writer).write_all();
}

}  // namespace troupe::model
