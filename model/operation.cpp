#include "model/operation.h"

namespace troupe::model {
namespace {

struct Name {
  const char* operator()(const DenseForward&) const { return "dense_forward"; }
  const char* operator()(const DenseBackwardInput&) const { return "dense_backward_input"; }
  const char* operator()(const DenseBackwardParameters&) const {
    return "dense_backward_parameters";
  }
  const char* operator()(const ConvolutionForward&) const { return "convolution_forward"; }
  const char* operator()(const ConvolutionBackwardInput&) const {
    return "convolution_backward_input";
  }
  const char* operator()(const ConvolutionBackwardParameters&) const {
    return "convolution_backward_parameters";
  }
  const char* operator()(const PadForward&) const { return "pad_forward"; }
  const char* operator()(const PadBackward&) const { return "pad_backward"; }
  const char* operator()(const UpsampleForward&) const { return "upsample_forward"; }
  const char* operator()(const UpsampleBackward&) const { return "upsample_backward"; }
  const char* operator()(const AveragePoolForward&) const { return "average_pool_forward"; }
  const char* operator()(const AveragePoolBackward&) const { return "average_pool_backward"; }
  const char* operator()(const BatchNormTraining&) const { return "batch_norm_training"; }
  const char* operator()(const BatchNormInference&) const { return "batch_norm_inference"; }
  const char* operator()(const BatchNormBackward&) const { return "batch_norm_backward"; }
  const char* operator()(const DropoutForward&) const { return "dropout_forward"; }
  const char* operator()(const DropoutBackward&) const { return "dropout_backward"; }
  const char* operator()(const ActivationForward&) const { return "activation_forward"; }
  const char* operator()(const ActivationBackward&) const { return "activation_backward"; }
  const char* operator()(const PowerForward&) const { return "power_forward"; }
  const char* operator()(const PowerBackward&) const { return "power_backward"; }
  const char* operator()(const SumForward&) const { return "sum_forward"; }
  const char* operator()(const SumBackward&) const { return "sum_backward"; }
  const char* operator()(const AngleForward&) const { return "angle_forward"; }
  const char* operator()(const AngleBackward&) const { return "angle_backward"; }
  const char* operator()(const BinsForward&) const { return "bins_forward"; }
  const char* operator()(const Accumulate&) const { return "accumulate"; }
};

}  // namespace

std::string operation_name(const Operation& operation) { return std::visit(Name{}, operation); }

}  // namespace troupe::model
