#include "model/backend/device/optimiser.h"

#include <cstring>
#include <utility>

namespace troupe::model::device {

static_assert(static_cast<int>(OptimiserKind::kSgd) == OPTIMISER_SGD &&
              static_cast<int>(OptimiserKind::kRmsprop) == OPTIMISER_RMSPROP &&
              static_cast<int>(OptimiserKind::kAdam) == OPTIMISER_ADAM);

DeviceOptimiser::DeviceOptimiser(std::shared_ptr<Device> device, const OptimiserOptions& options,
                                 std::int64_t weights)
    : device_(std::move(device)),
      options_(options),
      size_(weights),
      update_weights_(*device_, "update_weights", Queue::kBeside),
      values_(device_->allocate(bytes() * static_cast<std::size_t>(1 + optimiser_arrays(options)))),
      gradients_there_(device_->allocate(bytes())),
      gradients_(device_->allocate_host(bytes())) {
  std::memset(gradients_.get(), 0, bytes());
}

void DeviceOptimiser::place(std::span<const float> weights, std::span<const float> arrays) {
  device_->write(weights.data(), values_.get(), weights.size_bytes());
  device_->write(arrays.data(), values_.get() + weights.size_bytes(), arrays.size_bytes());
  device_->wait_for(device_->mark());
}

void DeviceOptimiser::update(const UpdateFactors& factors, std::span<float> weights,
                             std::span<float> arrays) {
  const OptimiserSizes sizes{static_cast<int>(options_.kind),
                             options_.momentum > 0.0 ? 1 : 0,
                             factors.rate,
                             factors.momentum,
                             factors.rho,
                             factors.rest_of_rho,
                             factors.beta_1,
                             factors.rest_of_beta_1,
                             factors.beta_2,
                             factors.rest_of_beta_2,
                             factors.epsilon};
  const auto array = [&](int number) -> const float* {
    return number < optimiser_arrays(options_) ? floats(values_) + (1 + number) * size_ : nullptr;
  };
  device_->write_pinned(Queue::kBeside, gradients_.get(), gradients_there_.get(), bytes());
  Arguments arguments;
  update_weights_(size_, 1,
                  arguments.operand<float>(floats(gradients_there_))
                      .operand<float>(floats(values_))
                      .operand(array(0))
                      .operand(array(1))
                      .value(long{size_})
                      .value(sizes));
  device_->read(Queue::kBeside, values_.get(), weights.data(), weights.size_bytes());
  device_->read(Queue::kBeside, values_.get() + weights.size_bytes(), arrays.data(),
                arrays.size_bytes());
}

}  // namespace troupe::model::device
