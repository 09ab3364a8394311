#include "pipeline/checkpoint/checkpoint.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/checkpoint/checkpoint_content.h"
#include "pipeline/checkpoint/checkpoint_seal.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

Error refusal(const std::string& path, const std::string& what) {
  return {ErrorKind::kData, path + ": " + what};
}

// In the order in which visit_state comes to the parts.
std::vector<CheckpointTensor> all_expected_tensors(const StateLayout& layout,
                                                   const TrainingOptions& options) {
  std::vector<CheckpointTensor> all;
  for (const ParameterPart part :
       {ParameterPart::kWeights, ParameterPart::kOptimiserArrays, ParameterPart::kMoving}) {
    for (const std::size_t network : {kGenerator, kDiscriminator}) {
      for (auto& tensor : expected_tensors(layout, options, network, part)) {
        all.push_back(std::move(tensor));
      }
    }
  }
  return all;
}

// The first difference in order is named, as later ones follow from it.
Result<void> check_tensors(const std::vector<CheckpointTensor>& found,
                           const std::vector<CheckpointTensor>& expected, const std::string& path) {
  for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    if (i == found.size()) {
      return refusal(path, fmt::format("of another model or optimiser: it has no {} of shape {}",
                                       expected[i].path, shape_text(expected[i].shape)));
    }
    if (i == expected.size()) {
      return refusal(path, fmt::format("of another model or optimiser: its {} of shape {} is not "
                                       "in this one",
                                       found[i].path, shape_text(found[i].shape)));
    }
    if (found[i].path != expected[i].path || found[i].shape != expected[i].shape) {
      return refusal(path, fmt::format("of another model or optimiser: it has {} of shape {} where "
                                       "this one has {} of shape {}",
                                       found[i].path, shape_text(found[i].shape), expected[i].path,
                                       shape_text(expected[i].shape)));
    }
  }
  return {};
}

// The seal verified, the rest interpreted.
Result<CheckpointContent> open_content(const runtime::Buffer& file, const std::string& path) {
  ASSIGN_OR_RETURN(const std::uint32_t version,
                   verify_checkpoint_seal(file, path, kCheckpointVersion));
  ASSIGN_OR_RETURN(CheckpointContent content,
                   decode_content(file.bytes().subspan(kSealBytes), path));
  content.version = version;
  return content;
}

}  // namespace

Result<runtime::Buffer> encode_checkpoint(const Checkpoint& checkpoint, const StateLayout& layout,
                                          const TrainingOptions& options) {
  ASSIGN_OR_RETURN(runtime::Buffer file, encode_content(checkpoint, layout, options, kSealBytes));
  seal_checkpoint(kCheckpointVersion, file);
  return file;
}

Result<runtime::Buffer> encode_checkpoint(const Checkpoint& checkpoint, const model::Gan& gan,
                                          const TrainingOptions& options) {
  return encode_checkpoint(checkpoint, state_layout(gan), options);
}

Result<Checkpoint> decode_checkpoint(const runtime::Buffer& file, const std::string& path,
                                     const StateLayout& layout, const TrainingOptions& options) {
  ASSIGN_OR_RETURN(CheckpointContent content, open_content(file, path));
  const TrainingState& state = content.checkpoint.state;
  if (content.numerics_version != runtime::kRandomVersion) {
    return refusal(path, fmt::format("trained with numerics version {}, this build computes with "
                                     "{}: its bits cannot be continued",
                                     content.numerics_version, runtime::kRandomVersion));
  }
  // This check comes before the hash: "another model" tells more than "the hash differs".
  RETURN_IF_ERROR(check_tensors(content.tensors, all_expected_tensors(layout, options), path));
  if (const auto checked = check_state(state, layout, options); !checked.ok()) {
    return refusal(path, checked.error().message);
  }
  if (hash_of_state(state) != content.checkpoint.state_hash) {
    return refusal(path,
                   fmt::format("its state has hash {}, it says {}: a defect wrote it",
                               hash_of_state(state).text(), content.checkpoint.state_hash.text()));
  }
  return std::move(content.checkpoint);
}

Result<Checkpoint> decode_checkpoint(const runtime::Buffer& file, const std::string& path,
                                     const model::Gan& gan, const TrainingOptions& options) {
  return decode_checkpoint(file, path, state_layout(gan), options);
}

Result<CheckpointSummary> inspect_checkpoint(const runtime::Buffer& file, const std::string& path) {
  ASSIGN_OR_RETURN(CheckpointContent content, open_content(file, path));
  Checkpoint& checkpoint = content.checkpoint;
  const TrainingState& state = checkpoint.state;
  CheckpointSummary summary;
  summary.path = path;
  summary.version = content.version;
  summary.epoch = state.epoch;
  summary.iteration = state.iteration;
  summary.seed = state.seed;
  summary.slot = state.slot;
  summary.micro_batch = state.micro_batch;
  summary.micro_batches = state.micro_batches;
  summary.data_fingerprint = state.data_fingerprint;
  summary.numerics_class = state.numerics_class;
  summary.topology_hash = checkpoint.topology_hash;
  summary.state_hash = checkpoint.state_hash;
  summary.recomputed_hash = hash_of_state(state);
  summary.model = std::move(checkpoint.model);
  summary.topology = std::move(checkpoint.topology);
  for (auto& tensor : content.tensors) {
    summary.tensors.push_back({std::move(tensor.path), std::move(tensor.shape)});
  }
  return summary;
}

}  // namespace troupe::pipeline
