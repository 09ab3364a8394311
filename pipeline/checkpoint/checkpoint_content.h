#pragma once

// The content of a checkpoint's HDF5 part, without regard to a model.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/steps/state_fields.h"
#include "pipeline/steps/state_layout.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// One dataset, and its elements' place in the vector of its part.
struct CheckpointTensor {
  std::string path;  // "/generator/conv1/kernel"
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;
  std::size_t size = 0;
};

// The datasets that one part must have for this model and these options, in order. Their offsets
// follow one another without gaps.
std::vector<CheckpointTensor> expected_tensors(const StateLayout& layout,
                                               const TrainingOptions& options, std::size_t network,
                                               ParameterPart part);

struct CheckpointContent {
  Checkpoint checkpoint;
  std::uint32_t version = 0;  // of the format; not set by decode_content, as the seal has it
  std::uint32_t numerics_version = 0;
  std::vector<CheckpointTensor> tensors;  // of all parts, in the order of visit_state
};

// Makes everything behind the seal; kInternal errors.
runtime::Result<runtime::Buffer> encode_content(const Checkpoint& checkpoint,
                                                const StateLayout& layout,
                                                const TrainingOptions& options,
                                                std::size_t bytes_before);

// `image` is the part behind the seal, which has been verified. Errors (kData): a field that every
// checkpoint of this version has is missing.
runtime::Result<CheckpointContent> decode_content(std::span<const std::byte> image,
                                                  const std::string& path);

}  // namespace troupe::pipeline
