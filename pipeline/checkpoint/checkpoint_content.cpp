#include "pipeline/checkpoint/checkpoint_content.h"

#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pipeline/checkpoint/hdf5_tree.h"
#include "pipeline/data/hdf5_writer.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

constexpr const char* kState = "/state";
constexpr const char* kScales = "/state/scales";

// Weights and moving statistics share a group, as in Keras; their names tell them apart.
bool is_moving(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("moving_");
}

std::string group_of(std::size_t network, ParameterPart part) {
  const char* parent = part == ParameterPart::kOptimiserArrays ? "/optimizer/" : "/";
  return std::string(parent) + kNetworkNames[network];
}

// A state that does not fit its own layout is a defect, not bad input: CHECK.
struct WriteVisitor {
  const StateLayout& layout;
  const TrainingOptions& options;
  Hdf5Writer& file;

  void parameters(std::size_t network, ParameterPart part, const std::vector<float>& values) {
    file.add_group(group_of(network, part));
    std::size_t end = 0;
    for (const CheckpointTensor& tensor : expected_tensors(layout, options, network, part)) {
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

  void parameters(std::size_t network, ParameterPart part, std::vector<float>& values) {
    const std::string group = group_of(network, part);
    for (const Hdf5TreeEntry& entry : file.entries(group)) {
      if (part != ParameterPart::kOptimiserArrays &&
          is_moving(entry.path) != (part == ParameterPart::kMoving)) {
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
};

}  // namespace

std::vector<CheckpointTensor> expected_tensors(const StateLayout& layout,
                                               const TrainingOptions& options, std::size_t network,
                                               ParameterPart part) {
  const model::ParameterLayout& parameters = layout.networks[network].parameters;
  const auto& optimiser =
      network == kGenerator ? options.generator_optimiser : options.discriminator_optimiser;
  const bool arrays = part == ParameterPart::kOptimiserArrays;
  std::vector<CheckpointTensor> tensors;
  for (int array = 0; array < (arrays ? model::optimiser_arrays(optimiser) : 1); ++array) {
    std::string prefix = group_of(network, part) + "/";
    if (arrays) prefix += model::optimiser_array_name(optimiser, array) + "/";
    const std::int64_t base = arrays ? array * parameters.weights_size : 0;
    for (const auto& tensor :
         part == ParameterPart::kMoving ? parameters.moving : parameters.weights) {
      tensors.push_back({prefix + tensor.name, tensor.shape,
                         static_cast<std::size_t>(base + tensor.offset),
                         static_cast<std::size_t>(tensor.size)});
    }
  }
  return tensors;
}

runtime::Result<runtime::Buffer> encode_content(const Checkpoint& checkpoint,
                                                const StateLayout& layout,
                                                const TrainingOptions& options,
                                                std::size_t bytes_before) {
  Hdf5Writer file(Hdf5Writer::Order::kAsMade, bytes_before);
  file.add_attribute("/", "format_version", kCheckpointVersion);
  file.add_attribute("/", "numerics_version", runtime::kRandomVersion);
  file.add_attribute("/", "model", checkpoint.model);
  file.add_attribute("/", "topology_hash", checkpoint.topology_hash.text());
  file.add_attribute("/", "state_hash", hash_of_state(checkpoint.state).text());
  file.add_text("/topology", checkpoint.topology);
  file.add_group(kState);
  WriteVisitor visitor{layout, options, file};
  visit_state(checkpoint.state, visitor);
  return file.image(bytes_before);
}

runtime::Result<CheckpointContent> decode_content(std::span<const std::byte> image,
                                                  const std::string& path) {
  Hdf5TreeReader file(image, path);
  CheckpointContent content;
  file.read_attribute("/", "numerics_version", content.numerics_version);
  file.read_attribute("/", "model", content.checkpoint.model);
  read_hash(file, "/", "topology_hash", content.checkpoint.topology_hash);
  read_hash(file, "/", "state_hash", content.checkpoint.state_hash);
  file.read_text("/topology", content.checkpoint.topology);
  ReadVisitor visitor{file, content.tensors};
  visit_state(content.checkpoint.state, visitor);
  RETURN_IF_ERROR(file.result());
  return content;
}

}  // namespace troupe::pipeline
