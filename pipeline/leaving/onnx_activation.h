#pragma once

// An activation as nodes of an ONNX graph.

#include <string>

#include "model/network.h"
#include "pipeline/leaving/onnx_graph.h"

namespace troupe::pipeline {

// Adds it behind the value x, and returns the name of its own. Names of values begin with `layer`,
// "conv1/" for instance.
std::string add_activation(OnnxGraph& graph, const model::Activation& activation,
                           const std::string& x, const std::string& layer);

}  // namespace troupe::pipeline
