#pragma once

// Shared by the makers of a device's kernels: a Kernel is a function that launches.

#include <climits>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "model/backend.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/device/device.h"
#include "model/backend/device/kernel_sizes.h"
#include "model/operation.h"

namespace troupe::model::device {

// A kernel's maker throws it, and the backend tells of it.
struct LayerTooLarge {};

// Kernels count it in 32 bits.
inline int as_int(std::int64_t value) {
  if (value > INT_MAX) throw LayerTooLarge();
  return static_cast<int>(value);
}

// One run of a Kernel for a group.
struct GroupCall {
  std::span<void* const> operands;  // as the Operation's comment lists them
  std::span<const std::int64_t> strides;
  const runtime::RandomPosition& random;
  const Group& group;
  std::byte* scratch;

  // Adds these operands, floats, in this order.
  Arguments& add(Arguments& arguments, std::initializer_list<std::size_t> indices) const {
    for (const std::size_t i : indices) {
      arguments.operand(static_cast<const float*>(operands[i]), strides[i]);
    }
    return arguments;
  }
  Arguments with(std::initializer_list<std::size_t> indices) const {
    Arguments arguments;
    add(arguments, indices);
    return arguments;
  }
};

// A kernel of a device's program.
class Launcher {
 public:
  static constexpr std::int64_t kItems = BLOCK_ITEMS;

  Launcher(Device& device, std::string_view name, Queue queue = Queue::kMain)
      : device_(&device), queue_(queue), id_(device.kernel(name)) {}

  // One item for each of `items`, and for each micro-batch of the group.
  void operator()(std::int64_t items, std::int64_t group, const Arguments& arguments) const {
    blocks((items + kItems - 1) / kItems, kItems, group, arguments);
  }
  // For kernels whose items have ITEM_ELEMENTS elements each.
  void elements(std::int64_t count, std::int64_t group, const Arguments& arguments) const {
    constexpr std::int64_t kOfBlock = kItems * ITEM_ELEMENTS;
    blocks((count + kOfBlock - 1) / kOfBlock, kItems, group, arguments);
  }
  void blocks(std::int64_t count, std::int64_t items, std::int64_t group,
              const Arguments& arguments) const {
    CHECK(count * items <= INT_MAX, "kernels number items in 32 bits");
    device_->launch(queue_, id_, {count, items, group}, arguments);
  }

 private:
  Device* device_;
  Queue queue_;
  int id_;
};

// Places in scratch memory. Arrays that are the same for all micro-batches are kept once.
class GroupScratch {
 public:
  explicit GroupScratch(std::int64_t group) : group_(group) {}
  template <class T>
  std::size_t add(std::int64_t elements) {
    return plan_.add_array<T>(elements * group_);
  }
  template <class T>
  std::size_t add_shared(std::int64_t elements) {
    return plan_.add_array<T>(elements);
  }
  std::size_t bytes() const { return plan_.bytes(); }

 private:
  std::int64_t group_;
  cpu::ScratchPlan plan_;
};

template <class Launch>
class OperationKernel final : public Kernel {
 public:
  OperationKernel(std::size_t scratch, Launch launch)
      : scratch_(scratch), launch_(std::move(launch)) {}
  std::size_t scratch_bytes() const override { return scratch_; }
  void run(std::span<void* const>, const runtime::RandomPosition&, std::byte*) const override {
    CHECK(false, "a device computes groups");
  }
  void run_group(std::span<void* const> operands, std::span<const std::int64_t> strides,
                 const runtime::RandomPosition& random, const Group& group,
                 std::byte* scratch) const override {
    launch_(GroupCall{operands, strides, random, group, scratch});
  }

 private:
  std::size_t scratch_;
  Launch launch_;
};

// `launch` is called with a GroupCall.
template <class Launch>
std::unique_ptr<Kernel> operation_kernel(std::size_t scratch, Launch launch) {
  return std::make_unique<OperationKernel<Launch>>(scratch, std::move(launch));
}

// The maker of kernels for groups of up to `group` micro-batches.
struct Maker {
  Device& device;
  std::int64_t group;
  Precision precision;                    // of products by ordinary arithmetic
  std::optional<Precision> tensor_cores;  // of convolutions, where these make them

  Launcher kernel(std::string_view name) const { return {device, name}; }
};

// Never null.
std::unique_ptr<Kernel> make_kernel(const Maker& make, const ConvolutionForward& convolution);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const ConvolutionBackwardInput& convolution);
std::unique_ptr<Kernel> make_kernel(const Maker& make,
                                    const ConvolutionBackwardParameters& convolution);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const DenseForward& dense);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const DenseBackwardInput& dense);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const DenseBackwardParameters& dense);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const PadForward& pad);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const PadBackward& pad);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const UpsampleForward& upsample);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const UpsampleBackward& upsample);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AveragePoolForward& pool);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AveragePoolBackward& pool);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const BatchNormTraining& norm);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const BatchNormInference& norm);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const BatchNormBackward& norm);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const DropoutForward& dropout);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const DropoutBackward& dropout);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const ActivationForward& activation);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const ActivationBackward& activation);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const PowerForward& power);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const PowerBackward& power);
std::unique_ptr<Kernel> make_kernel(const Maker& make,
                                    const GroupedConvolutionForward& convolution);
std::unique_ptr<Kernel> make_kernel(const Maker& make,
                                    const GroupedConvolutionBackwardInput& convolution);
std::unique_ptr<Kernel> make_kernel(const Maker& make,
                                    const GroupedConvolutionBackwardParameters& convolution);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const SplitPhases& split);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const JoinPhases& join);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AddBias& add);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const SumRows& sum);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const RepeatRows& repeat);
PoolSizes pool_sizes(const PoolGeometry& pool);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const MaxPoolForward& pool);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const MaxPoolBackward& pool);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const GroupNormForward& norm);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const GroupNormBackward& norm);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const SoftmaxForward& softmax);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const SoftmaxBackward& softmax);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AttentionForward& attention);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AttentionBackward& attention);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const EmbeddingForward& embedding);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const EmbeddingBackward& embedding);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const Product& product);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const PermuteAxes& permute);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const CopyParts& parts);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AngleForward& angle);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AngleBackward& angle);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const BinsForward& bins);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const Accumulate& accumulate);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const ZeroFill& fill);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const MeanLoss& loss);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const ClassCrossentropy& loss);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const CountEmpty& images);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const MixEvents& mix);
std::unique_ptr<Kernel> make_kernel(const Maker& make, const SlopeProbes& probes);

}  // namespace troupe::model::device
