#pragma once

// A trained network as an ONNX model (opset 17), written through the ONNX project's own messages.

#include <string>

#include "pipeline/leaving/trained_model.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Number N of events is free in both.
//
// k3dgan: the network as it is, as 3DGAN's generator.predict() has it.
//   latent (N, size): with conditions in front of the noise (prepend) or noise times the condition
//     (multiply), energy in 100 GeV, angle in rad -> shower (N, x, y, z, 1) in the units of
//     training, and each column that is made with it (N, 1) by its name, as the data have it
//     ("column NAME" of a name that a value of the graph may have).
//
// kPar04: what Geant4's example Par04 gives to a model and takes from it (Par04InferenceSetup):
//   input (N, noise + 4): normal noise, energy / 1.024 TeV, angle / 90 degrees, and two numbers
//   that
//     tell detectors apart, which are not used -> shower (N, x * y * z): energies of cells / energy
//     of the particle, x outermost and z innermost. Columns are left out.
//
// The network of a task that has no generator is written as it is, in the first flavour alone:
// input (N, x, y, z, channels) as the network reads it and, where it is told some, conditions
// (N, conditions), energy in 100 GeV, angle in rad -> each output by its name.
enum class OnnxFlavour : std::uint8_t { k3dgan, kPar04 };

// The file's bytes. `producer`: name and version of the program. Errors are kTopology: a layer has
// no counterpart in ONNX, or the task no flavour kPar04.
runtime::Result<std::string> onnx_model(const TrainedModel& trained, OnnxFlavour flavour,
                                        const std::string& producer);

}  // namespace troupe::pipeline
