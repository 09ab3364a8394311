#pragma once

// Shared by the makers of convolutions (convolution.cpp, tensor_convolution.cpp).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/device/channel_totals.h"

namespace troupe::model::device {

inline std::int64_t blocks_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

template <class T>
const T* at(const GroupCall& call, std::size_t place) {
  return reinterpret_cast<const T*>(call.scratch + place);
}

// The geometry and the activation; the sizes of planes are left at zero.
ConvolutionSizes sizes_of(const ConvolutionGeometry& geometry, bool pairs,
                          const Activation& activation);

inline std::int64_t kernel_size(const ConvolutionGeometry& g) {
  return cells(g.kernel) * g.in_channels * g.out_channels;
}

// Which of a call's operands a convolution of images reads and writes. `mirror`: it is the one that
// maps dy to dx, of the mirrored geometry.
struct ImageOperands {
  bool mirror = false;
  std::size_t x = 0, kernel = 1, bias = 2, y = 3;
};

// Mirrors a kernel for the convolution that maps dy to dx; without `mirror` it stays as it is.
class MirroredKernel {
 public:
  MirroredKernel(const Maker& make, const ConvolutionGeometry& geometry, bool mirror,
                 GroupScratch& scratch)
      : size_(kernel_size(geometry)),
        mirror_(mirror),
        at_(scratch.add_shared<float>(mirror ? size_ : 0)),
        launch_(make.kernel("convolution_mirror")) {}

  const float* operator()(const GroupCall& call, std::size_t operand,
                          const ConvolutionSizes& sizes) const {
    const auto* kernel = static_cast<const float*>(call.operands[operand]);
    if (!mirror_) return kernel;
    const auto* mirrored = at<float>(call, at_);
    Arguments arguments;
    launch_(size_, 1, arguments.operand(kernel).operand(mirrored).value(sizes));
    return mirrored;
  }

 private:
  std::int64_t size_;
  bool mirror_;
  std::size_t at_;
  Launcher launch_;
};

// Sums the derivatives dy, operand 1, over all cells to the gradient of the bias, operand 3; does
// nothing without bias.
class BiasGradient {
 public:
  BiasGradient(const Maker& make, const ConvolutionGeometry& g, GroupScratch& scratch) {
    if (g.bias) totals_.emplace(make, g.batch * cells(g.out), g.out_channels, 1, scratch);
  }
  void operator()(const GroupCall& call) const {
    if (totals_) (*totals_)(call, 1, 3);
  }

 private:
  std::optional<ChannelTotals> totals_;
};

// By tensor cores (kernels/tensor.cl), for `kernels: fastest`; null where a tile of the image does
// not fit a block.
std::unique_ptr<Kernel> tensor_image_kernel(const Maker& make, const ConvolutionGeometry& geometry,
                                            const Activation& activation,
                                            const ImageOperands& operands);
std::unique_ptr<Kernel> tensor_gradient_kernel(const Maker& make,
                                               const ConvolutionGeometry& geometry);

}  // namespace troupe::model::device
