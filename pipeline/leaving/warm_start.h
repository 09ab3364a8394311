#pragma once

// Weights that come from elsewhere, for a training or a checkpoint that starts from them.

#include <string>

#include "model/gan.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Where the discriminator's weights of Keras stand: beside the generator's, "W_discriminator.h5".
std::string keras_discriminator_path(const std::string& path);

// Sets weights and moving statistics of `state`, which was made for the model, and begins their
// mean anew where one is kept; all else stays as it is. From a checkpoint the weights are taken,
// and no mean of them. `path` is a checkpoint of any run with these networks, whatever its data,
// rates, schedule and optimisers; both networks are taken. Or it is a file of Keras with the
// generator's weights; the discriminator's are taken from the file beside it, if there is one, and
// stay else.
//
// Returns for people what was taken, with hashes. Errors are kData, name the file and what is
// wrong: unreadable, damaged, or which parameter differs, with the shapes found and expected.
runtime::Result<std::string> take_weights(const std::string& path, const model::GanDescription& gan,
                                          runtime::Disk& disk, TrainingState& state);

}  // namespace troupe::pipeline
