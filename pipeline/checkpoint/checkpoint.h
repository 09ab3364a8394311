#pragma once

// A TrainingState as a file: HDF5 that h5py opens, whole or refused.
//
// Layout: a 512-byte user block (pipeline/checkpoint/checkpoint_seal.h: magic "TROUPECK", format
// version, length and XXH3-128 of the rest), then HDF5, whose groups keep the order in which
// members were made:
//   /generator/<layer>/<parameter> and /discriminator/...: one float32 dataset per parameter, Keras
//     names, order and shapes
//   /optimizer/{generator,discriminator}/<array>/<layer>/<parameter>: the same per optimiser array
//   /state: an attribute per number of the state
//   /state/scales/<slot>: int16 per contribution tensor
//   /topology: the effective topology's text
//   attributes of the root: format_version, numerics_version, state_hash, topology_hash, model, and
//     origin, where training did not begin with weights by the seed
// The bytes are a function of the Checkpoint alone: no times, no host.
//
// Pure functions; any thread. Writing is runtime::Disk::replace of the encoded bytes, which leaves
// the older file or the newer one. A reader tries checkpoints_newest_first() (see
// checkpoint_folder.h) until one decodes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/gan.h"
#include "pipeline/steps/state_layout.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// The newest version that is read. 2 adds what early stopping remembers, 3 what the outer optimiser
// keeps, 4 the mean of the weights, 5 workers that take turns, and 6 what micro-batches share;
// states without these are written as 1.
inline constexpr std::uint32_t kCheckpointVersion = 6;

struct Checkpoint {
  TrainingState state;
  std::string topology;  // the effective topology file it was trained with, as text
  runtime::Hash128 topology_hash;
  runtime::Hash128 state_hash;  // as stored; reading verifies it, writing computes it anew
  std::string model;            // the zoo's name, or that of a model of the user's own
  std::string origin;           // of the weights that training began with; empty: by the seed
};

// Composes the file in memory, which takes its size, and twice that while HDF5 hands it over.
// Errors are kInternal: the HDF5 library refused something.
runtime::Result<runtime::Buffer> encode_checkpoint(const Checkpoint& checkpoint,
                                                   const StateLayout& layout,
                                                   const TrainingOptions& options);

// Checks magic, version, length, hash before anything is interpreted, then every shape against the
// networks, then the state's hash. Errors are kData, name the path and what is wrong (truncated by
// how much, damaged, version newer than this build reads, another model: which tensor, shapes found
// and expected; another schedule, seed, micro_batch or micro_batches than `options`).
runtime::Result<Checkpoint> decode_checkpoint(const runtime::Buffer& file, const std::string& path,
                                              const StateLayout& layout,
                                              const TrainingOptions& options);

// One dataset, and its elements' place in the vector of its part (ParameterPart).
struct CheckpointTensor {
  std::string path;  // "/generator/conv1/kernel"
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;
  std::size_t size = 0;
};

// Everything that a file tells without a model.
struct CheckpointSummary : Checkpoint {
  std::string path;
  std::uint32_t version = 0;              // of the format
  std::uint32_t numerics_version = 0;     // runtime::kRandomVersion of the build that wrote it
  runtime::Hash128 recomputed_hash;       // of the state as it was read
  std::vector<CheckpointTensor> tensors;  // every parameter and optimiser array, in their order
};
// Errors as decode_checkpoint's, without those that compare with a model.
runtime::Result<CheckpointSummary> inspect_checkpoint(const runtime::Buffer& file,
                                                      const std::string& path);

}  // namespace troupe::pipeline
