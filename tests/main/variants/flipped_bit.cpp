// Kernels as ever, but for one bit of one gradient, once in the life of the process: where
// TROUPE_TEST_FLIP="ITERATION SLOT MICRO_BATCH" says, the lowest bit of the mantissa of an element
// is another. As memory does it, and nothing but a second computation can tell.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "launch/run/backend_choice.h"

namespace troupe::launch {
namespace {

struct Place {
  std::uint32_t iteration = 0, slot = 0, micro_batch = 0;
};

Place place_to_flip() {
  const char* text = std::getenv("TROUPE_TEST_FLIP");
  CHECK(text != nullptr, "where is the bit?");
  Place place;
  std::istringstream(text) >> place.iteration >> place.slot >> place.micro_batch;
  return place;
}

class FlippingKernel final : public model::Kernel {
 public:
  FlippingKernel(std::unique_ptr<model::Kernel> kernel, const Place& place,
                 std::atomic<bool>& flipped)
      : kernel_(std::move(kernel)), place_(place), flipped_(flipped) {}

  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  // Operands of DenseBackwardParameters: x, dy -> dkernel.
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    kernel_->run(operands, random, scratch);
    const bool here = random.iteration == place_.iteration && random.slot == place_.slot &&
                      random.micro_batch == place_.micro_batch;
    if (!here || flipped_.exchange(true)) return;
    auto& element = static_cast<std::uint32_t*>(operands[2])[0];
    CHECK(element != 0, "a bit of no weight would be flipped");
    element ^= 1U;
  }

 private:
  const std::unique_ptr<model::Kernel> kernel_;
  const Place place_;
  std::atomic<bool>& flipped_;
};

class FlippingBackend final : public model::Backend {
 public:
  explicit FlippingBackend(std::unique_ptr<model::Backend> backend)
      : backend_(std::move(backend)), place_(place_to_flip()) {}

  model::DataType data_type() const override { return backend_->data_type(); }
  std::string numerics_class() const override { return backend_->numerics_class(); }
  void prepare_thread() const override { backend_->prepare_thread(); }
  runtime::Result<std::unique_ptr<model::Kernel>> make_kernel(
      const model::Operation& operation) const override {
    auto kernel = backend_->make_kernel(operation);
    if (!kernel.ok() || !std::holds_alternative<model::DenseBackwardParameters>(operation)) {
      return kernel;
    }
    return std::unique_ptr<model::Kernel>(
        std::make_unique<FlippingKernel>(std::move(*kernel), place_, flipped_));
  }

 private:
  const std::unique_ptr<model::Backend> backend_;
  const Place place_;
  mutable std::atomic<bool> flipped_ = false;
};

}  // namespace

runtime::Result<std::unique_ptr<model::Backend>> make_backend(const config::Topology& topology,
                                                              std::int64_t) {
  const config::ModelSection& section = topology.model;
  CHECK(section.kernels == config::Kernels::kPortable, "the test's topology has portable kernels");
  ASSIGN_OR_RETURN(auto backend, model::make_portable_backend(section.precision));
  return std::unique_ptr<model::Backend>(std::make_unique<FlippingBackend>(std::move(backend)));
}

}  // namespace troupe::launch
