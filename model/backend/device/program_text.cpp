#include <algorithm>

#include "model/backend/device/device.h"
#include "model/backend/device/kernel_text.h"

namespace troupe::model::device {

std::string program_text() {
  static constexpr std::string_view kOrder[] = {
      "prelude.cl", "sizes.cl",      "math.cl",  "bfloat16.cl",    "elementwise.cl", "windows.cl",
      "dense.cl",   "batch_norm.cl", "heads.cl", "convolution.cl", "upsampled.cl",   "sums.cl"};
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

}  // namespace troupe::model::device
