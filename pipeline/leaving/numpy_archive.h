#pragma once

// Weights as a NumPy archive (.npz): a zip file with a .npy file per parameter.

#include <string>

#include "pipeline/leaving/trained_model.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// The file's bytes, the same for the same weights. numpy.load() gives arrays of float32 by names
// such as "generator/dense1/kernel", or "network/dense1/kernel" of a task without a generator, in
// the shapes of Keras, and the facts as text in "facts/<name>". Errors are kInternal: libzip
// refused something.
runtime::Result<std::string> numpy_archive(const TrainedModel& trained);

}  // namespace troupe::pipeline
