#pragma once

// Convolution as direct loops over cells inside the image, upsampled first where the geometry says
// so: padded cells are skipped, not multiplied by zero. Order of accumulation for one element, in
// T:
//   y        over kx, ky, kz, input channel, each ascending; then the bias; then the activation
//   dx       the same loops over dy with the kernel mirrored in space and its channels swapped
//   dkernel  over y and z of one x plane of one sample in T, over samples and planes in double
//   dbias    over all cells in double

#include <cstddef>

#include "model/backend/kernel_call.h"
#include "model/operation.h"

namespace troupe::model::reference {

template <class T>
void run(const ConvolutionForward& convolution, const KernelCall& call);
template <class T>
void run(const ConvolutionBackwardInput& convolution, const KernelCall& call);
template <class T>
void run(const ConvolutionBackwardParameters& convolution, const KernelCall& call);

// The upsampled image.
template <class T>
std::size_t scratch_bytes(const ConvolutionForward& convolution);
// Its derivative and the mirrored kernel.
template <class T>
std::size_t scratch_bytes(const ConvolutionBackwardInput& convolution);
// One plane's and the total gradient of one kernel position, and the upsampled image.
template <class T>
std::size_t scratch_bytes(const ConvolutionBackwardParameters& convolution);

// dbias[c] = sum of column c of dy (rows, channels), in double; `sums` has room for `channels`.
template <class T>
void sum_columns(const T* dy, std::int64_t rows, std::int64_t channels, double* sums, T* dbias);

// The geometry of the convolution that maps dy to dx (without upsampling), and its kernel: mirrored
// in space, input and output channels swapped.
ConvolutionGeometry mirrored(const ConvolutionGeometry& geometry);
template <class T>
void mirror_kernel(const ConvolutionGeometry& geometry, const T* kernel, T* out);

}  // namespace troupe::model::reference
