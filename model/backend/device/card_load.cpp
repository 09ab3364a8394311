#include "model/backend/device/card_load.h"

#include <dlfcn.h>

namespace troupe::model::device {
namespace {

// As NVIDIA's reference of the library declares them.
using NvmlCard = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlBusy {
  unsigned card, memory;  // per cent
};
constexpr int kTemperatureOfCard = 0;

#define TROUPE_NVML_FUNCTIONS(use)                                                     \
  use(nvmlInit_v2, ()) use(nvmlDeviceGetHandleByPciBusId_v2, (const char*, NvmlCard*)) \
      use(nvmlDeviceGetMemoryInfo, (NvmlCard, NvmlMemory*))                            \
          use(nvmlDeviceGetUtilizationRates, (NvmlCard, NvmlBusy*))                    \
              use(nvmlDeviceGetPowerUsage, (NvmlCard, unsigned*))                      \
                  use(nvmlDeviceGetTemperature, (NvmlCard, int, unsigned*))

struct Nvml {
#define TROUPE_DECLARE(function, parameters) int(*function) parameters = nullptr;
  TROUPE_NVML_FUNCTIONS(TROUPE_DECLARE)
#undef TROUPE_DECLARE
  bool found = false;

  Nvml() {
    void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    found = true;
#define TROUPE_FIND(function, parameters)                                     \
  function = reinterpret_cast<decltype(function)>(dlsym(library, #function)); \
  found = found && function != nullptr;
    TROUPE_NVML_FUNCTIONS(TROUPE_FIND)
#undef TROUPE_FIND
    found = found && nvmlInit_v2() == 0;
  }
};

}  // namespace

std::optional<CardLoad> card_load(const std::string& pci_bus_id) {
  static const Nvml nvml;
  NvmlCard card = nullptr;
  NvmlMemory memory{};
  if (!nvml.found || nvml.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.c_str(), &card) != 0 ||
      nvml.nvmlDeviceGetMemoryInfo(card, &memory) != 0) {
    return std::nullopt;
  }
  CardLoad load;
  load.used_bytes = memory.used;
  load.free_bytes = memory.free;
  NvmlBusy busy{};
  unsigned value = 0;
  if (nvml.nvmlDeviceGetUtilizationRates(card, &busy) == 0) load.busy = busy.card / 100.0;
  if (nvml.nvmlDeviceGetPowerUsage(card, &value) == 0) load.watts = value / 1000.0;
  if (nvml.nvmlDeviceGetTemperature(card, kTemperatureOfCard, &value) == 0) load.celsius = value;
  return load;
}

}  // namespace troupe::model::device
