#pragma once

// A network as nodes of an ONNX graph, as it is used: batch normalisation with moving
// statistics, no dropout.

#include <string>
#include <vector>

#include "pipeline/leaving/onnx_graph.h"
#include "pipeline/leaving/trained_model.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Adds the network behind the value `input` and, where it is told conditions, the value
// "conditions" (N, conditions). Returns the names of its outputs' values, in their order. Features
// are (N, features), and images (N, x, y, z, channels), the order of Keras. Names of values begin
// with the layers'. An Error (kTopology) for a layer that has no counterpart in ONNX.
runtime::Result<std::vector<std::string>> add_network(OnnxGraph& graph,
                                                      const NetworkParameters& parameters,
                                                      const std::string& input);

}  // namespace troupe::pipeline
