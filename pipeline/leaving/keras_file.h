#pragma once

// Weights as Keras stores them in HDF5 (save_weights(), and "model_weights" of save()): attributes
// `layer_names` of the root and `weight_names` of each layer's group tell the order, by which Keras
// reads them; names do not matter to it.
//
// 3DGAN's networks are models around a model, whose weights stand in one group: first what is
// trained, layer by layer, then the moving statistics. The generator is all in one such group
// ("sequential_1"). The discriminator has its layers up to the flattening in one ("model_1"), and
// its heads in groups of their own ("generation", "auxiliary").
//
// An attribute holds less than 64 KiB. As Keras does, longer lists are spread over attributes
// `weight_names0`, `weight_names1` and so on, and long facts of ours likewise.

#include <cstddef>
#include <set>
#include <string>

#include "pipeline/leaving/trained_model.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// `network`: kGenerator or kDiscriminator. Errors are kInternal.
runtime::Result<runtime::Buffer> keras_file(const TrainedModel& trained, std::size_t network);

// Keras' batch normalisation adds this to the variance where a network says nothing.
inline constexpr double kKerasEpsilon = 1e-3;

// The numbers that batch normalisation of these networks adds instead, each once: files of weights
// do not hold them.
std::set<double> epsilons_unlike_keras(const model::GanDescription& gan);

// Sets weights and moving statistics of `state` to those of the file. It may hold one group around
// all layers, or one per layer, or both; order counts, and kernel, bias, gamma, beta, moving_mean
// and moving_variance in the names. Errors are kData, name the file and what is wrong: no Keras
// file, which parameter of the network differs, with the shapes found and expected, or which has
// numbers that are not finite.
runtime::Result<void> read_keras_file(const runtime::Buffer& file, const std::string& path,
                                      const model::NetworkDescription& network,
                                      NetworkState& state);

}  // namespace troupe::pipeline
