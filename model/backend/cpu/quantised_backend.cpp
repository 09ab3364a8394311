#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/quad_vectors.h"
#include "model/backend/cpu/quantised_convolution.h"
#include "model/backend/kernel_call.h"
#include "model/int8.h"

namespace troupe::model {
namespace {

constexpr float kLeastRange = 1.0f / 64;

// Notes what a convolution reads.
class MeasuringKernel final : public Kernel {
 public:
  MeasuringKernel(const ConvolutionGeometry& geometry, std::unique_ptr<Kernel> kernel,
                  ChannelRanges& ranges)
      : geometry_(geometry), kernel_(std::move(kernel)), ranges_(ranges), place_(ranges.size()) {
    ranges.emplace_back(static_cast<std::size_t>(geometry.in_channels), kLeastRange);
  }

  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    kernel_->run(operands, random, scratch);
    const KernelCall call{operands, random, scratch};
    const std::int64_t channels = geometry_.in_channels, cells = model::cells(geometry_.in);
    std::vector<float> largest(static_cast<std::size_t>(cpu::find_largest_floats(channels)));
    for (std::int64_t n = 0; n < geometry_.batch; ++n) {
      cpu::find_largest(call.operand<const float>(0) + n * cells * channels, cells, channels,
                        largest.data());
      note(std::span(largest).first(static_cast<std::size_t>(channels)));
    }
  }

 private:
  void note(std::span<const float> largest) const {
    const float most = *std::max_element(largest.begin(), largest.end());
    if (!(most > 0.0f) || !std::isfinite(most)) return;
    const std::scoped_lock lock(mutex_);
    std::vector<float>& ranges = ranges_[place_];
    for (std::size_t c = 0; c < ranges.size(); ++c) {
      ranges[c] = std::max(ranges[c], largest[c] / most);
    }
  }

  const ConvolutionGeometry geometry_;
  const std::unique_ptr<Kernel> kernel_;
  ChannelRanges& ranges_;
  const std::size_t place_;
  mutable std::mutex mutex_;
};

// Portable kernels, but for convolutions.
class AroundPortable : public Backend {
 public:
  explicit AroundPortable(std::unique_ptr<Backend> portable) : portable_(std::move(portable)) {}
  DataType data_type() const final { return portable_->data_type(); }
  void prepare_thread() const final { portable_->prepare_thread(); }

  runtime::Result<std::unique_ptr<Kernel>> make_kernel(const Operation& operation) const final {
    ASSIGN_OR_RETURN(auto kernel, portable_->make_kernel(operation));
    const auto* convolution = std::get_if<ConvolutionForward>(&operation);
    if (convolution == nullptr) return kernel;
    return of_convolution(*convolution, std::move(kernel));
  }

 protected:
  const Backend& portable() const { return *portable_; }

 private:
  virtual std::unique_ptr<Kernel> of_convolution(const ConvolutionForward& convolution,
                                                 std::unique_ptr<Kernel> portable) const = 0;

  std::unique_ptr<Backend> portable_;
};

class MeasuringBackend final : public AroundPortable {
 public:
  MeasuringBackend(std::unique_ptr<Backend> portable, ChannelRanges& ranges)
      : AroundPortable(std::move(portable)), ranges_(ranges) {}
  std::string numerics_class() const override { return portable().numerics_class(); }

 private:
  std::unique_ptr<Kernel> of_convolution(const ConvolutionForward& convolution,
                                         std::unique_ptr<Kernel> portable) const override {
    return std::make_unique<MeasuringKernel>(convolution.geometry, std::move(portable), ranges_);
  }

  ChannelRanges& ranges_;
};

class Int8Backend final : public AroundPortable {
 public:
  Int8Backend(std::unique_ptr<Backend> portable, ChannelRanges ranges)
      : AroundPortable(std::move(portable)), ranges_(std::move(ranges)) {}
  std::string numerics_class() const override { return "portable int8 1"; }

 private:
  std::unique_ptr<Kernel> of_convolution(const ConvolutionForward& convolution,
                                         std::unique_ptr<Kernel> portable) const override {
    CHECK(next_ < ranges_.size(), "the network that was measured has fewer convolutions");
    const std::vector<float>& ranges = ranges_[next_++];
    if (ranges.empty() || !cpu::can_be_quantised(convolution)) return portable;
    return cpu::make_quantised_kernel(convolution, ranges);
  }

  ChannelRanges ranges_;
  mutable std::size_t next_ = 0;  // of ranges_; a program is compiled by one thread
};

}  // namespace

runtime::Result<std::unique_ptr<Backend>> make_measuring_backend(ChannelRanges& ranges) {
  ASSIGN_OR_RETURN(auto portable, make_portable_backend());
  return std::unique_ptr<Backend>(std::make_unique<MeasuringBackend>(std::move(portable), ranges));
}

runtime::Result<std::unique_ptr<Backend>> make_int8_backend(ChannelRanges ranges) {
  ASSIGN_OR_RETURN(auto portable, make_portable_backend());
  return std::unique_ptr<Backend>(
      std::make_unique<Int8Backend>(std::move(portable), std::move(ranges)));
}

}  // namespace troupe::model
