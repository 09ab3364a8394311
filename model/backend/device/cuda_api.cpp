#include "model/backend/device/cuda_api.h"

#include <dlfcn.h>

namespace troupe::model::device {
namespace {

void* open_compiler() {
  for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                           "/usr/local/cuda/lib64/libnvrtc.so"}) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

CudaApi opened() {
  CudaApi api;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    api.missing = "libcuda.so.1, NVIDIA's driver, is not installed";
    return api;
  }
  void* const compiler = open_compiler();
  if (compiler == nullptr) {
    api.missing = "libnvrtc.so, the compiler of CUDA's toolkit, is not installed";
    return api;
  }
  const char* lacking = nullptr;
  const auto find = [&](auto& function, void* library, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) lacking = name;
  };
#define TROUPE_FIND_IN_DRIVER(function, parameters) find(api.function, driver, #function);
#define TROUPE_FIND_IN_COMPILER(function, parameters) find(api.function, compiler, #function);
  TROUPE_CUDA_FUNCTIONS(TROUPE_FIND_IN_DRIVER)
  TROUPE_NVRTC_FUNCTIONS(TROUPE_FIND_IN_COMPILER)
#undef TROUPE_FIND_IN_DRIVER
#undef TROUPE_FIND_IN_COMPILER
  if (lacking != nullptr) {
    api.missing = std::string("NVIDIA's libraries are too old: they have no ") + lacking;
    return api;
  }
  api.found = true;
  return api;
}

}  // namespace

const CudaApi& cuda_api() {
  static const CudaApi api = opened();
  return api;
}

}  // namespace troupe::model::device
