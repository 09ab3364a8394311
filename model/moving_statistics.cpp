#include "model/moving_statistics.h"

#include <variant>

#include "runtime/base/error.h"

namespace troupe::model {

std::vector<double> moving_momenta(const NetworkDescription& network,
                                   const ParameterLayout& layout) {
  std::vector<double> momenta;
  for (const ParameterTensor& tensor : layout.moving) {
    const auto& layer = network.layers.at(static_cast<std::size_t>(tensor.layer));
    const auto* norm = std::get_if<BatchNorm>(&layer.kind);
    CHECK(norm != nullptr, "moving statistics of a layer without a momentum");
    momenta.push_back(norm->momentum);
  }
  return momenta;
}

void update_moving(double momentum, std::span<const float> batch, std::span<float> moving) {
  CHECK(batch.size() == moving.size(), "statistics of another tensor");
  const auto keep = static_cast<float>(momentum);
  const auto take = static_cast<float>(1.0 - momentum);
  for (std::size_t i = 0; i < batch.size(); ++i) moving[i] = keep * moving[i] + take * batch[i];
}

}  // namespace troupe::model
