#pragma once

// The functions of NVIDIA's driver (libcuda) and of its compiler (libnvrtc) that are called, opened
// when they are first needed: neither has to be there when Troupe is built or runs without them.
// Declared here as CUDA's Driver API and NVRTC document them.

#include <cstddef>
#include <string>

namespace troupe::model::device {

using CudaResult = int;  // 0: success
using CudaDevice = int;
using CudaAddress = unsigned long long;
using CudaHandle = void*;  // of a context, stream, event, module, function, program

struct CudaApi {
  bool found = false;
  std::string missing;  // the reason, for people

// clang-format off
#define TROUPE_CUDA_FUNCTIONS(use) \
  use(cuInit, (unsigned)) \
  use(cuDriverGetVersion, (int*)) \
  use(cuDeviceGetCount, (int*)) \
  use(cuDeviceGet, (CudaDevice*, int)) \
  use(cuDeviceGetName, (char*, int, CudaDevice)) \
  use(cuDeviceGetPCIBusId, (char*, int, CudaDevice)) \
  use(cuDeviceTotalMem_v2, (std::size_t*, CudaDevice)) \
  use(cuDeviceGetAttribute, (int*, int, CudaDevice)) \
  use(cuDevicePrimaryCtxRetain, (CudaHandle*, CudaDevice)) \
  use(cuDevicePrimaryCtxRelease_v2, (CudaDevice)) \
  use(cuCtxSetCurrent, (CudaHandle)) \
  use(cuStreamCreate, (CudaHandle*, unsigned)) \
  use(cuStreamDestroy_v2, (CudaHandle)) \
  use(cuStreamSynchronize, (CudaHandle)) \
  use(cuMemAlloc_v2, (CudaAddress*, std::size_t)) \
  use(cuMemFree_v2, (CudaAddress)) \
  use(cuMemsetD8Async, (CudaAddress, unsigned char, std::size_t, CudaHandle)) \
  use(cuMemcpyHtoDAsync_v2, (CudaAddress, const void*, std::size_t, CudaHandle)) \
  use(cuMemcpyDtoHAsync_v2, (void*, CudaAddress, std::size_t, CudaHandle)) \
  use(cuMemcpyDtoDAsync_v2, (CudaAddress, CudaAddress, std::size_t, CudaHandle)) \
  use(cuMemAllocHost_v2, (void**, std::size_t)) \
  use(cuMemFreeHost, (void*)) \
  use(cuEventCreate, (CudaHandle*, unsigned)) \
  use(cuEventRecord, (CudaHandle, CudaHandle)) \
  use(cuEventSynchronize, (CudaHandle)) \
  use(cuEventDestroy_v2, (CudaHandle)) \
  use(cuModuleLoadData, (CudaHandle*, const void*)) \
  use(cuModuleUnload, (CudaHandle)) \
  use(cuModuleGetFunction, (CudaHandle*, CudaHandle, const char*)) \
  use(cuLaunchKernel, (CudaHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                       unsigned, CudaHandle, void**, void**)) \
  use(cuGetErrorString, (CudaResult, const char**))
#define TROUPE_NVRTC_FUNCTIONS(use) \
  use(nvrtcVersion, (int*, int*)) \
  use(nvrtcCreateProgram, (CudaHandle*, const char*, const char*, int, const char* const*, \
                           const char* const*)) \
  use(nvrtcCompileProgram, (CudaHandle, int, const char* const*)) \
  use(nvrtcGetProgramLogSize, (CudaHandle, std::size_t*)) \
  use(nvrtcGetProgramLog, (CudaHandle, char*)) \
  use(nvrtcGetCUBINSize, (CudaHandle, std::size_t*)) \
  use(nvrtcGetCUBIN, (CudaHandle, char*)) \
  use(nvrtcDestroyProgram, (CudaHandle*))
// clang-format on
#define TROUPE_DECLARE(function, parameters) CudaResult(*function) parameters = nullptr;
  TROUPE_CUDA_FUNCTIONS(TROUPE_DECLARE)
  TROUPE_NVRTC_FUNCTIONS(TROUPE_DECLARE)
#undef TROUPE_DECLARE
};

// Opened once per process.
const CudaApi& cuda_api();

}  // namespace troupe::model::device
