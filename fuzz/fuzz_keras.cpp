// Weights of Keras. The first byte of an input says by its first bit what the others are: changes
// that forge a sound file (hostile_hdf5.h), or the names in one; by its second bit which network
// reads it, and by its third whether lists of names are spread over several attributes. Bytes that
// only the HDF5 library interprets are not changed: the library is known to crash at them.

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fuzz/hostile_hdf5.h"
#include "fuzz/memory_meter.h"
#include "pipeline/data/hdf5_writer.h"
#include "pipeline/leaving/keras_file.h"

namespace {

using namespace troupe;
using pipeline::NetworkState;
using Names = std::vector<std::string>;

// The HDF5 library keeps so much for any file.
constexpr std::size_t kConstantBytes = std::size_t{4} << 20;

model::Layer layer(const char* name, model::LayerKind kind) { return {name, std::move(kind), {}}; }

NetworkState numbered(const model::NetworkDescription& network) {
  const auto layout = model::layout_parameters(network, model::infer_shapes(network));
  NetworkState state;
  for (std::int64_t i = 0; i < layout.weights_size; ++i) {
    state.weights.push_back(static_cast<float>(i));
  }
  state.moving.assign(static_cast<std::size_t>(layout.moving_size), 0.5f);
  return state;
}

// A generator, and a discriminator with heads.
struct Example {
  Example() {
    model::Convolution convolution;
    convolution.filters = 2;
    convolution.kernel = {2, 2, 2};
    gan.generator = {"generator", model::Shape::features(3), {}, {}};
    gan.generator.layers = {layer("dense", model::Dense{27}),
                            layer("reshape", model::Reshape{model::Shape::image({3, 3, 3}, 1)}),
                            layer("convolution", convolution), layer("norm", model::BatchNorm{})};
    gan.discriminator = {"discriminator", model::Shape::image({2, 2, 2}, 2), {}, {}};
    gan.discriminator.layers = {layer("norm", model::BatchNorm{}), layer("flat", model::Flatten{}),
                                layer("generation_logit", model::Dense{1})};
    state.generator = numbered(gan.generator);
    state.discriminator = numbered(gan.discriminator);
    for (const std::size_t network : {pipeline::kGenerator, pipeline::kDiscriminator}) {
      files[network] = pipeline::keras_file({gan, state, {}}, network).value();
    }
  }

  model::GanDescription gan;
  pipeline::TrainingState state;
  std::array<runtime::Buffer, 2> files;
};

// Lists of lines, one behind the other, with an empty line between.
std::vector<Names> lists_in(std::span<const std::byte> bytes) {
  std::vector<Names> lists(1);
  std::string line;
  const auto end_line = [&] {
    if (line.empty()) {
      lists.emplace_back();
    } else {
      lists.back().push_back(line);
    }
    line.clear();
  };
  for (const std::byte byte : bytes) {
    if (byte == std::byte{'\n'}) {
      end_line();
    } else {
      line += static_cast<char>(byte);
    }
  }
  if (!line.empty()) end_line();
  return lists;
}

void add_names(pipeline::Hdf5Writer& file, const std::string& object, const std::string& name,
               const Names& names, bool spread) {
  if (!spread) return file.add_attribute(object, name, names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    file.add_attribute(object, name + std::to_string(i), Names{names[i]});
  }
}

// A group with the generator's weights, called as the first list says or as somebody else might
// have called them. Empty: the library refuses the names.
runtime::Buffer named_file(std::span<const std::byte> script, bool spread) {
  const std::vector<Names> lists = lists_in(script);
  pipeline::Hdf5Writer file(pipeline::Hdf5Writer::Order::kByName);
  file.add_group("layers");
  const auto add = [&](const char* name, const std::vector<std::int64_t>& shape) {
    std::int64_t size = 1;
    for (const std::int64_t extent : shape) size *= extent;
    file.add_dataset("layers/" + std::string(name), shape,
                     std::vector<float>(static_cast<std::size_t>(size), 1.5f));
  };
  add("dense_1/kernel:0", {3, 27});
  add("dense_1/bias:0", {27});
  add("conv3d_1/kernel:0", {2, 2, 2, 1, 2});
  add("conv3d_1/bias:0", {2});
  for (const char* name : {"gamma:0", "beta:0", "moving_mean:0", "moving_variance:0"}) {
    add((std::string("norm_1/") + name).c_str(), {2});
  }
  add_names(file, "/", "layer_names", lists.front(), spread);
  add_names(file, "layers", "weight_names", lists.size() > 1 ? lists[1] : Names{}, spread);
  if (!file.result().ok()) return {};
  auto image = file.image();
  return image.ok() ? std::move(*image) : runtime::Buffer{};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Example kExample;
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t network = (data[0] & 2) == 0 ? pipeline::kGenerator : pipeline::kDiscriminator;
  const runtime::Buffer file = (data[0] & 1) == 0
                                   ? fuzz::edit_hdf5(kExample.files[network].bytes(), input)
                                   : named_file(input, (data[0] & 4) != 0);
  if (file.size() == 0) return 0;
  const bool generator = network == pipeline::kGenerator;
  const auto& description = generator ? kExample.gan.generator : kExample.gan.discriminator;
  NetworkState state;
  const fuzz::MemoryMeter meter;
  const auto read = pipeline::read_keras_file(file, "fuzz.h5", description, state);
  meter.check(file.size(), kConstantBytes);
  if (!read.ok()) return 0;
  pipeline::TrainingState taken = kExample.state;
  (generator ? taken.generator : taken.discriminator) = state;
  NetworkState again;
  const auto written = pipeline::keras_file({kExample.gan, taken, {}}, network);
  CHECK(written.ok());
  CHECK(pipeline::read_keras_file(*written, "fuzz.h5", description, again).ok());
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  };
  CHECK(same(again.weights, state.weights) && same(again.moving, state.moving));
  return 0;
}
