#pragma once

// The common part of forward kernels that make outputs phase by phase (upsampled_convolution.h):
// the collapsed kernel, the order of the work, and the way from sums to cells. A derived kernel has
// the image as planes of its elements, and multiplies them.

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/backend/cpu/coarse_planes.h"
#include "model/backend/cpu/sample_kernel.h"
#include "model/backend/cpu/scratch.h"
#include "model/operation.h"

namespace troupe::model::cpu {

class UpsampledForward : public SampleKernel {
 public:
  std::size_t scratch_bytes() const final { return plan_.bytes(); }
  double products() const final;

 protected:
  // The elements of planes: how many fill a lane (PlaneFormat), and the channels of the image with
  // those that fill the last pair.
  struct Elements {
    std::int64_t in_lane = 1, channels = 1;
  };
  // The taps that make one plane of outputs of a phase: in the image, and in the collapsed kernel.
  struct Taps {
    std::int64_t first_plane = 0, planes = 0, y = 0, z = 0;  // of the image
    std::int64_t first = 0;                                  // of all taps of the kernel
    std::int64_t count() const { return planes * y * z; }
  };

  // A geometry with long rows (with_long_rows).
  UpsampledForward(const ConvolutionForward& convolution, const Elements& elements);

  std::int64_t most_taps() const {
    return kernel_.axis(0).most_taps * kernel_.axis(1).most_taps * kernel_.axis(2).most_taps;
  }
  // Where the taps begin in an image whose x planes are `stride` elements apart. `to` has room for
  // most_taps().
  template <class Element>
  std::span<const Element* const> places(const Taps& taps, const Element* image,
                                         std::int64_t stride, const Element** to) const {
    std::size_t count = 0;
    for (std::int64_t i = 0; i < taps.planes; ++i) {
      const Element* plane = image + (taps.first_plane + i) * stride;
      for_each_pair(taps.y, taps.z, [&](std::int64_t jy, std::int64_t jz) {
        to[count++] = plane + jy * planes_.row + jz;
      });
    }
    return {to, count};
  }
  const float* collapsed(const std::byte* scratch) const {
    return scratch_at<float>(scratch, collapsed_);
  }

  UpsampledForward(const UpsampledForward&) = delete;
  UpsampledForward& operator=(const UpsampledForward&) = delete;

  const ConvolutionGeometry g_;
  const CollapsedKernel kernel_;
  const CoarsePlanes planes_;
  ScratchPlan plan_;

 private:
  // Once per run: from the collapsed kernel, [tap][channel][output].
  virtual void arrange(const float* collapsed, std::byte* scratch) const = 0;
  // `weights`: the scratch memory in which they were arranged; of another thread, perhaps.
  virtual void fill_image(const float* sample, const std::byte* weights,
                          std::byte* scratch) const = 0;
  // Sums [output][position].
  virtual void multiply(const Taps& taps, const std::byte* weights, float* sums,
                        std::byte* scratch) const = 0;

  std::int64_t shares() const final { return g_.batch; }
  void prepare(const KernelCall& call) const final;
  void run_share(const KernelCall& call, std::int64_t n, std::byte* scratch) const final;
  struct PlaneOfPhases {
    std::int64_t fx, c, fy;  // plane c of the phase along x, and the phase along y
  };
  void form_sums(const PlaneOfPhases& plane_of, const std::byte* weights, std::byte* scratch) const;
  float* sums_of(std::int64_t fz, std::byte* scratch) const {
    return scratch_at<float>(scratch, sums_) + fz * g_.out_channels * planes_.positions;
  }
  void finish(std::int64_t fy, const float* bias, float* y, std::byte* scratch) const;

  const Activation activation_;
  const std::int64_t channels_;
  std::size_t collapsed_ = 0, block_ = 0, sums_ = 0;
};

}  // namespace troupe::model::cpu
