#pragma once

// The common part of kernels that make images from planes (plane_convolution.h): weights, the way
// from sums to cells, and the order of the work. A derived kernel forms the sums of a plane.

#include "model/backend/cpu/input_planes.h"
#include "model/backend/cpu/sample_kernel.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// y = activation(conv(x, kernel) + bias); backward to the input with the mirrored geometry and
// `mirror` set.
struct ImageConvolution {
  ConvolutionGeometry geometry;  // with long rows
  Activation activation;
  bool mirror = false;
  std::size_t x = 0, kernel = 1, bias = 2, y = 3;  // indices of the operands
};

class PlaneImageKernel : public SampleKernel {
 public:
  std::size_t scratch_bytes() const final { return plan_.bytes(); }
  // A part is an x plane of the output.
  bool tells_parts() const final { return true; }
  void run_in_parts(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& crew, const PartDone& part_done) const final {
    run_samples(operands, random, crew, &part_done);
  }

 protected:
  struct Weights {
    const float* plain = nullptr;
    std::byte* scratch = nullptr;  // in which they are arranged; of another thread, perhaps
  };

  // Computes as many samples at a time as the tiling has side by side.
  PlaneImageKernel(const ImageConvolution& convolution, const Tiling& tiling);

  std::int64_t shares() const final { return shares_of(g_.batch, tiling_.samples); }
  std::int64_t taps() const { return g_.kernel[0] * g_.kernel[1] * tiling_.taps_in_z; }
  // Numbers of one point in the weights.
  std::int64_t weights_size() const {
    return taps() * tiling_.parts * g_.in_channels * g_.out_channels;
  }
  // [point][output][position] of one x plane of the output.
  float* sums(std::byte* scratch) const { return scratch_at<float>(scratch, sums_); }

  PlaneImageKernel(const PlaneImageKernel&) = delete;
  PlaneImageKernel& operator=(const PlaneImageKernel&) = delete;

  const ImageConvolution convolution_;
  const ConvolutionGeometry& g_ = convolution_.geometry;
  const Tiling tiling_;
  ScratchPlan plan_;

 private:
  // Once, before form_sums(), from [point][tap][part][channel][output].
  virtual void arrange(const float* weights, std::byte* scratch) const = 0;
  // Fills sums() for output plane `ox` of samples of `images`. For each `ox` rises from 0; `made`
  // counts the planes of the input that exist.
  virtual void form_sums(const float* images, const Samples& samples, std::int64_t ox,
                         std::int64_t& made, const Weights& weights, std::byte* scratch) const = 0;

  void prepare(const KernelCall& call) const final;
  void run_share(const KernelCall& call, std::int64_t share, std::byte* scratch) const final;
  // [point][tap][part][channel][output], as prepare() has left them.
  const float* weights_of(const KernelCall& call) const;
  void transform_weights(const float* kernel, float* weights) const;
  void finish(const float* bias, std::int64_t samples, float* y, std::byte* scratch) const;
  void finish_side_by_side(const float* bias, std::int64_t samples, float* sums, float* y) const;

  std::size_t mirrored_ = 0, weights_ = 0, sums_ = 0;
};

}  // namespace troupe::model::cpu
