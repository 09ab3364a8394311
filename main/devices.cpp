#include <iostream>

#include <fmt/format.h>

#include "config/topology.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "model/backend/device/device.h"
#include "runtime/base/json_text.h"
#include "runtime/base/utf8.h"

namespace troupe {
namespace {

using model::device::DeviceFacts;
using runtime::json_string;

void print_for_people(const model::device::Devices& devices) {
  std::cout << config::kProcessor << "  this machine's processor\n";
  for (const DeviceFacts& device : devices.found) {
    std::cout << runtime::printable(fmt::format("{}  {}{}, {:.1f} GB, {} units, {}", device.word,
                                                device.name, device.is_gpu ? " (GPU)" : "",
                                                static_cast<double>(device.memory_bytes) / 1e9,
                                                device.units, device.driver))
              << "\n";
    if (device.lacks.empty()) {
      std::cout << "    kernels: portable, the bits of any processor; fastest, "
                << (device.tensor_cores > 0
                        ? fmt::format("by tensor cores of sm_{}\n", device.tensor_cores)
                        : "the same, in fp32\n");
    } else {
      std::cout << "    cannot compute with kernels: portable: " << device.lacks << "\n";
    }
  }
  if (!devices.missing.empty()) std::cout << "no others: " << devices.missing << "\n";
}

int list_devices(const CommandLine& line) {
  const model::device::Devices devices = model::device::devices();
  if (!line.get<bool>("json")) {
    print_for_people(devices);
    return 0;
  }
  std::string list;
  for (const DeviceFacts& device : devices.found) {
    list +=
        fmt::format(R"({}{{"device":{},"name":{},"driver":{},"gpu":{},"memory_bytes":{},)"
                    R"("largest_allocation_bytes":{},"units":{},"tensor_cores":{},"lacks":{}}})",
                    list.empty() ? "" : ",", json_string(device.word), json_string(device.name),
                    json_string(device.driver), device.is_gpu, device.memory_bytes,
                    device.largest_allocation_bytes, device.units, device.tensor_cores,
                    json_string(device.lacks));
  }
  answer(fmt::format(R"("devices":[{}],"missing":{})", list, json_string(devices.missing)));
  return 0;
}

}  // namespace

Command devices_verb() {
  return {.name = "devices",
          .summary = "the devices of this machine that can compute",
          .about =
              "Lists what actors.replica.device can name on this machine: the processor, and every "
              "device that NVIDIA's driver or one for OpenCL shows, with what it promises.",
          .example = "troupe devices",
          .options = {json_option()},
          .synonyms = {"gpus"},
          .carry_out = list_devices};
}

}  // namespace troupe
