#include <algorithm>

#include <fmt/format.h>

#include "model/backend/device/device.h"
#include "model/backend/device/kernel_text.h"

namespace troupe::model::device {

std::string program_text() {
  static constexpr std::string_view kOrder[] = {
      "prelude.cl", "sizes.cl",      "math.cl",         "bfloat16.cl",    "elementwise.cl",
      "windows.cl", "dense.cl",      "channel_sums.cl", "batch_norm.cl",  "heads.cl",
      "layers.cl",  "group_norm.cl", "attention.cl",    "convolution.cl", "upsampled.cl",
      "tensor.cl",  "sums.cl",       "optimiser.cl"};
  const auto files = embedded_kernels();
  std::string text;
  for (const std::string_view name : kOrder) {
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const EmbeddedFile& each) { return each.name == name; });
    CHECK(file != files.end(), name);
    text += file->text;
  }
  return text;
}

std::string tensor_cores_option(const DeviceFacts& facts) {
  if (facts.tensor_cores > 0) return fmt::format("-DTENSOR_CORES={}", facts.tensor_cores);
  return facts.is_gpu ? "" : "-DPLAYED_TENSOR_CORES";
}

std::vector<std::string> kernel_names(const DeviceFacts& facts) {
  constexpr std::string_view kBegin = "KERNEL void ";
  const bool with_tensor_cores = !tensor_cores_option(facts).empty();
  const std::string text = program_text();
  std::vector<std::string> names;
  for (std::size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    std::string name = text.substr(at, text.find('(', at) - at);
    if (with_tensor_cores || !name.starts_with("tensor_")) names.push_back(std::move(name));
  }
  return names;
}

int tensor_cores(int major, int minor) {
  return major >= 8 ? 10 * major + minor : 0;  // the first that know bfloat16 and tf32
}

}  // namespace troupe::model::device
