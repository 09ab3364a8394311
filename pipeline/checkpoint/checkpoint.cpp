#include "pipeline/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/checkpoint/checkpoint_seal.h"
#include "pipeline/checkpoint/hdf5_tree.h"
#include "pipeline/data/hdf5_writer.h"
#include "pipeline/steps/state_fields.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr const char* kState = "/state";
constexpr const char* kScales = "/state/scales";
constexpr const char* kOrigin = "origin";

// Weights and moving statistics share a group, as in Keras; their names tell them apart.
bool is_moving(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("moving_");
}

// Only workers of the strategy gem have such a part.
bool is_only_of_gem(ParameterPart part) {
  return part == ParameterPart::kMoment || part == ParameterPart::kStale;
}

bool has_moving(ParameterPart part) {
  return part == ParameterPart::kMoving || part == ParameterPart::kMeanMoving ||
         part == ParameterPart::kShared;
}

// By model::SharedArray.
constexpr std::array<const char*, model::kSharedArrays> kSharedNames{
    "statistics", "deviations", "slopes", "moving", "gradients", "shifts"};

std::string group_of(std::size_t network, ParameterPart part) {
  const bool mean = part == ParameterPart::kMeanWeights || part == ParameterPart::kMeanMoving;
  const char* parent = part == ParameterPart::kOptimiserArrays ? "/optimizer/"
                       : part == ParameterPart::kOuterVelocity ? "/outer/"
                       : part == ParameterPart::kMoment        ? "/moment/"
                       : part == ParameterPart::kStale         ? "/stale/"
                       : part == ParameterPart::kShared        ? "/shared/"
                       : mean                                  ? "/mean/"
                                                               : "/";
  return std::string(parent) + kNetworkNames[network];
}

// The datasets that one part must have for this model and these options, in order. Their offsets
// follow one another without gaps.
std::vector<CheckpointTensor> expected_tensors(const StateLayout& layout,
                                               const TrainingOptions& options, std::size_t network,
                                               ParameterPart part, const std::string& within = "") {
  const model::ParameterLayout& parameters = layout.networks[network].parameters;
  const auto& optimiser =
      network == kGenerator ? options.generator_optimiser : options.discriminator_optimiser;
  const bool of_optimiser = part == ParameterPart::kOptimiserArrays;
  const bool shared = part == ParameterPart::kShared;
  const int arrays = of_optimiser ? model::optimiser_arrays(optimiser)
                     : shared     ? static_cast<int>(kSharedNames.size())
                                  : 1;
  std::vector<CheckpointTensor> tensors;
  for (int array = 0; array < arrays; ++array) {
    std::string prefix = within + group_of(network, part) + "/";
    if (of_optimiser) prefix += model::optimiser_array_name(optimiser, array) + "/";
    if (shared) prefix += std::string(kSharedNames.at(static_cast<std::size_t>(array))) + "/";
    const std::int64_t base =
        array * (has_moving(part) ? parameters.moving_size : parameters.weights_size);
    for (const auto& tensor : has_moving(part) ? parameters.moving : parameters.weights) {
      tensors.push_back({prefix + tensor.name, tensor.shape,
                         static_cast<std::size_t>(base + tensor.offset),
                         static_cast<std::size_t>(tensor.size)});
    }
  }
  return tensors;
}

// The group of a worker that takes turns.
std::string group_of_worker(std::size_t i) { return fmt::format("/workers/{}", i); }

// A state that does not fit its own layout is a defect, not bad input: CHECK.
struct WriteVisitor {
  const StateLayout& layout;
  const TrainingOptions& options;
  Hdf5Writer& file;
  std::string within{};  // a worker's group

  void parameters(std::size_t network, ParameterPart part, const std::vector<float>& values) {
    if (is_only_of_gem(part) && values.empty()) return;
    file.add_group(within + group_of(network, part));
    std::size_t end = 0;
    for (const CheckpointTensor& tensor :
         expected_tensors(layout, options, network, part, within)) {
      CHECK(tensor.offset == end, "parameters with gaps");
      end += tensor.size;
      CHECK(end <= values.size(), "a state of another model");
      file.add_dataset(tensor.path, tensor.shape,
                       std::span(values).subspan(tensor.offset, tensor.size));
    }
    CHECK(end == values.size(), "a state of another model");
  }
  void scales(const std::vector<std::vector<std::int16_t>>& slots) {
    file.add_group(kScales);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::int64_t size = static_cast<std::int64_t>(slots[i].size());
      file.add_dataset(fmt::format("{}/{}", kScales, i), std::span(&size, 1), slots[i]);
    }
  }
  template <class T>
  void number(const std::string& name, const T& value) {
    file.add_attribute(kState, name, value);
  }
  void text(const std::string& name, const std::string& value) {
    file.add_attribute(kState, name, value);
  }
  void hash(const std::string& name, const runtime::Hash128& value) {
    file.add_attribute(kState, name, value.text());
  }
  void workers(const std::string& name, const std::vector<WorkerState>& values, auto each) {
    file.add_attribute(kState, name, static_cast<std::uint32_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      within = group_of_worker(i);
      each(i, values[i]);
    }
    within.clear();
  }
  void perhaps(const std::string&, const auto& value, auto each) {
    if (value) each(*value);
  }
};

bool parse_hash(const std::string& text, runtime::Hash128& hash) {
  const auto word = [&](std::size_t begin, std::uint64_t& value) {
    const char* end = text.data() + begin + 16;
    const auto parsed = std::from_chars(text.data() + begin, end, value, 16);
    return parsed.ec == std::errc{} && parsed.ptr == end;
  };
  return text.size() == 32 && word(0, hash.high) && word(16, hash.low);
}

void read_hash(Hdf5TreeReader& file, const std::string& object, const std::string& name,
               runtime::Hash128& hash) {
  std::string text;
  file.read_attribute(object, name, text);
  if (!parse_hash(text, hash)) file.fail(fmt::format("{} of {} is no hash", name, object));
}

// Groups keep the order of writing, so the datasets of a part, one behind the other, are its
// vector.
struct ReadVisitor {
  Hdf5TreeReader& file;
  std::vector<CheckpointTensor>& tensors;
  std::string within{};  // a worker's group

  void parameters(std::size_t network, ParameterPart part, std::vector<float>& values) {
    const std::string group = within + group_of(network, part);
    if (is_only_of_gem(part) && !file.contains(group)) return;
    for (const Hdf5TreeEntry& entry : file.entries(group)) {
      if (part != ParameterPart::kOptimiserArrays && is_moving(entry.path) != has_moving(part)) {
        continue;
      }
      const std::string path = group + "/" + entry.path;
      tensors.push_back({path, entry.shape, values.size(), static_cast<std::size_t>(entry.size())});
      file.read(path, values);
    }
  }
  void scales(std::vector<std::vector<std::int16_t>>& slots) {
    for (const Hdf5TreeEntry& entry : file.entries(kScales)) {
      file.read(fmt::format("{}/{}", kScales, entry.path), slots.emplace_back());
    }
  }
  template <class T>
  void number(const std::string& name, T& value) {
    file.read_attribute(kState, name, value);
  }
  void text(const std::string& name, std::string& value) {
    file.read_attribute(kState, name, value);
  }
  void hash(const std::string& name, runtime::Hash128& value) {
    read_hash(file, kState, name, value);
  }
  void workers(const std::string& name, std::vector<WorkerState>& values, auto each) {
    std::uint32_t count = 0;
    file.read_attribute(kState, name, count);
    if (count > kMostWorkersInTurns) {
      return file.fail(
          fmt::format("{} workers, at most {} are possible", count, kMostWorkersInTurns));
    }
    values.resize(count);
    for (std::size_t i = 0; i < values.size(); ++i) {
      within = group_of_worker(i);
      each(i, values[i]);
    }
    within.clear();
  }
  void perhaps(const std::string& first, auto& value, auto each) {
    if (file.has_attribute(kState, first)) each(value.emplace());
  }
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

Error refusal(const std::string& path, const std::string& what) {
  return {ErrorKind::kData, path + ": " + what};
}

// The first version that has all of the state, so that earlier builds read what they know.
std::uint32_t version_for(const TrainingState& state) {
  if (state.shared) return 6;
  if (state.turns) return 5;
  if (state.mean) return 4;
  if (state.outer) return 3;
  return state.stopping ? 2 : 1;
}

void add_tensors_of_workers(const StateLayout& layout, const TrainingOptions& options,
                            std::vector<CheckpointTensor>& all) {
  const bool is_gem = options.strategy.kind == StrategyKind::kGem;
  for (std::size_t i = 0; i < options.strategy.workers; ++i) {
    for (const std::size_t network : {kGenerator, kDiscriminator}) {
      for (const ParameterPart part :
           {ParameterPart::kWeights, ParameterPart::kOptimiserArrays, ParameterPart::kMoving,
            ParameterPart::kMoment, ParameterPart::kStale}) {
        if (is_only_of_gem(part) && !is_gem) continue;
        for (auto& tensor : expected_tensors(layout, options, network, part, group_of_worker(i))) {
          all.push_back(std::move(tensor));
        }
      }
    }
  }
}

// In the order in which visit_state comes to the parts.
std::vector<CheckpointTensor> all_expected_tensors(const StateLayout& layout,
                                                   const TrainingOptions& options) {
  std::vector<CheckpointTensor> all;
  const auto add = [&](std::size_t network, ParameterPart part) {
    std::ranges::move(expected_tensors(layout, options, network, part), std::back_inserter(all));
  };
  for (const ParameterPart part : {ParameterPart::kWeights, ParameterPart::kOptimiserArrays,
                                   ParameterPart::kMoving, ParameterPart::kOuterVelocity}) {
    if (part == ParameterPart::kOuterVelocity && !options.has_outer()) continue;
    add(kGenerator, part);
    add(kDiscriminator, part);
  }
  if (options.has_turns()) add_tensors_of_workers(layout, options, all);
  if (options.mean) {
    const std::size_t network =
        layout.networks[kGenerator].parameters.weights_size == 0 ? kDiscriminator : kGenerator;
    add(network, ParameterPart::kMeanWeights);
    add(network, ParameterPart::kMeanMoving);
  }
  if (options.has_rounds()) {
    add(kGenerator, ParameterPart::kShared);
    add(kDiscriminator, ParameterPart::kShared);
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

}  // namespace

Result<runtime::Buffer> encode_checkpoint(const Checkpoint& checkpoint, const StateLayout& layout,
                                          const TrainingOptions& options) {
  Hdf5Writer content(Hdf5Writer::Order::kAsMade, kSealBytes);
  const std::uint32_t version = version_for(checkpoint.state);
  content.add_attribute("/", "format_version", version);
  content.add_attribute("/", "numerics_version", runtime::kRandomVersion);
  content.add_attribute("/", "model", checkpoint.model);
  content.add_attribute("/", "topology_hash", checkpoint.topology_hash.text());
  content.add_attribute("/", "state_hash", hash_of_state(checkpoint.state).text());
  if (!checkpoint.origin.empty()) content.add_attribute("/", kOrigin, checkpoint.origin);
  content.add_text("/topology", checkpoint.topology);
  content.add_group(kState);
  WriteVisitor visitor{layout, options, content};
  visit_state(checkpoint.state, visitor);
  ASSIGN_OR_RETURN(runtime::Buffer file, content.image(kSealBytes));
  seal_checkpoint(version, file);
  return file;
}

Result<Checkpoint> decode_checkpoint(const runtime::Buffer& file, const std::string& path,
                                     const StateLayout& layout, const TrainingOptions& options) {
  ASSIGN_OR_RETURN(CheckpointSummary found, inspect_checkpoint(file, path));
  if (found.numerics_version != runtime::kRandomVersion) {
    return refusal(path, fmt::format("trained with numerics version {}, this build computes with "
                                     "{}: its bits cannot be continued",
                                     found.numerics_version, runtime::kRandomVersion));
  }
  const auto refused = [&](const Error& error) { return refusal(path, error.message); };
  // These checks come before the hash, as "another model" tells more than "the hash differs", and
  // workers, a mean and what is shared before the model, as they bring tensors with them.
  for (const auto check : {check_workers, check_mean, check_shared}) {
    const auto checked = check(found.state, options);
    if (!checked.ok()) return refused(checked.error());
  }
  RETURN_IF_ERROR(check_tensors(found.tensors, all_expected_tensors(layout, options), path));
  if (const auto checked = check_state(found.state, layout, options); !checked.ok()) {
    return refused(checked.error());
  }
  if (found.recomputed_hash != found.state_hash) {
    return refusal(path, fmt::format("its state has hash {}, it says {}: a defect wrote it",
                                     found.recomputed_hash.text(), found.state_hash.text()));
  }
  return Checkpoint(std::move(found));
}

Result<CheckpointSummary> inspect_checkpoint(const runtime::Buffer& file, const std::string& path) {
  CheckpointSummary found;
  found.path = path;
  ASSIGN_OR_RETURN(found.version, verify_checkpoint_seal(file, path, kCheckpointVersion));
  Hdf5TreeReader content(file.bytes().subspan(kSealBytes), path);
  content.read_attribute("/", "numerics_version", found.numerics_version);
  content.read_attribute("/", "model", found.model);
  if (content.has_attribute("/", kOrigin)) content.read_attribute("/", kOrigin, found.origin);
  read_hash(content, "/", "topology_hash", found.topology_hash);
  read_hash(content, "/", "state_hash", found.state_hash);
  content.read_text("/topology", found.topology);
  ReadVisitor visitor{content, found.tensors};
  visit_state(found.state, visitor);
  RETURN_IF_ERROR(content.result());
  found.recomputed_hash = hash_of_state(found.state);
  return found;
}

}  // namespace troupe::pipeline
