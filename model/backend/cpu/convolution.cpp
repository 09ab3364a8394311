#include "model/backend/cpu/convolution.h"

#include "model/backend/cpu/plane_convolution.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/upsampled_convolution.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model::cpu {

template <AnyConvolution Convolution>
std::unique_ptr<Kernel> make_portable_kernel(const Convolution& convolution, Precision precision) {
  return upsamples(convolution.geometry) ? make_upsampled_kernel(convolution, precision)
                                         : make_plane_kernel(convolution, precision);
}

template <AnyConvolution Convolution>
std::unique_ptr<Kernel> make_kernel(const Convolution& convolution, const dnnl::engine& engine) {
  const bool upsampling = upsamples(convolution.geometry);
  if (plane_vectors_supported() && (upsampling || prefers_planes(convolution))) {
    return make_portable_kernel(convolution, Precision::kFp32);
  }
  // The library does not upsample.
  if (upsampling) return reference::make_kernel<float>(convolution);
  try {
    return make_onednn_kernel(convolution, engine);
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
    return reference::make_kernel<float>(convolution);
  }
}

#define TROUPE_INSTANTIATE_MAKERS(Convolution)                                          \
  template std::unique_ptr<Kernel> make_portable_kernel(const Convolution&, Precision); \
  template std::unique_ptr<Kernel> make_kernel(const Convolution&, const dnnl::engine&)
TROUPE_INSTANTIATE_MAKERS(ConvolutionForward);
TROUPE_INSTANTIATE_MAKERS(ConvolutionBackwardInput);
TROUPE_INSTANTIATE_MAKERS(ConvolutionBackwardParameters);

}  // namespace troupe::model::cpu
