// The CUDA driver: NVIDIA's driver API, with the program compiled by NVRTC when a device is opened.

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/backend/device/card_load.h"
#include "model/backend/device/cuda_api.h"
#include "model/backend/device/device.h"
#include "model/backend/device/kernel_sizes.h"
#include "model/backend/device/program_cache.h"

namespace troupe::model::device {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// CUdevice_attribute
constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;

std::string reason(CudaResult code) {
  const char* text = nullptr;
  cuda_api().cuGetErrorString(code, &text);
  return text == nullptr ? fmt::format("CUDA error {}", code) : text;
}

void expect(CudaResult code, std::string_view what, std::string_view more = "") {
  if (code != 0) device_failed(fmt::format("{}{}: {}", what, more, reason(code)));
}

int attribute(CudaDevice device, int which) {
  int value = 0;
  cuda_api().cuDeviceGetAttribute(&value, which, device);
  return value;
}

struct FoundDevice {
  CudaDevice device = 0;
  std::string pci_bus_id;
  DeviceFacts facts;
};

std::vector<FoundDevice> find_devices(std::string& missing) {
  std::vector<FoundDevice> found;
  const CudaApi& api = cuda_api();
  missing = api.missing;
  if (!api.found) return found;
  int count = 0, version = 0;
  if (const CudaResult code = api.cuInit(0); code != 0) {
    missing = fmt::format("NVIDIA's driver does not start: {}", reason(code));
    return found;
  }
  api.cuDriverGetVersion(&version);
  api.cuDeviceGetCount(&count);
  for (int i = 0; i < count; ++i) {
    FoundDevice each;
    if (api.cuDeviceGet(&each.device, i) != 0) continue;
    std::array<char, 256> name{};
    api.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, each.device);
    std::size_t bytes = 0;
    api.cuDeviceTotalMem_v2(&bytes, each.device);
    each.facts.word = fmt::format("cuda:{}", i);
    each.facts.name = name.data();
    const int major = attribute(each.device, kMajor), minor = attribute(each.device, kMinor);
    each.facts.driver =
        fmt::format("CUDA {}.{}, sm_{}{}", version / 1000, version % 1000 / 10, major, minor);
    each.facts.tensor_cores = tensor_cores(major, minor);
    each.facts.memory_bytes = each.facts.free_bytes = bytes;
    each.facts.largest_allocation_bytes = bytes;
    std::array<char, 32> bus{};
    api.cuDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()) - 1, each.device);
    each.pci_bus_id = bus.data();
    if (const auto load = card_load(each.pci_bus_id)) {
      each.facts.free_bytes = std::min<std::uint64_t>(bytes, load->free_bytes);
    }
    each.facts.units = static_cast<std::uint32_t>(attribute(each.device, kMultiprocessors));
    each.facts.is_gpu = true;
    found.push_back(std::move(each));
  }
  if (found.empty()) missing = "NVIDIA's driver shows no card";
  return found;
}

// The program as machine code of the card.
Result<std::string> compile(const FoundDevice& found) {
  const CudaDevice device = found.device;
  const CudaApi& api = cuda_api();
  const std::string text = program_text();
  const std::string architecture = fmt::format(
      "--gpu-architecture=sm_{}{}", attribute(device, kMajor), attribute(device, kMinor));
  const std::string cores = tensor_cores_option(found.facts);
  std::vector<const char*> options = {architecture.c_str(), "--fmad=false", "--ftz=false",
                                      "--prec-div=true", "--prec-sqrt=true"};
  if (!cores.empty()) options.push_back(cores.c_str());
  int major = 0, minor = 0;
  api.nvrtcVersion(&major, &minor);
  const std::string source =
      fmt::format("{} {}.{}\n{}", fmt::join(options, " "), major, minor, text);
  const std::string name = fmt::format("{}.cubin", architecture.substr(architecture.find('=') + 1));
  if (auto kept = find_program(name, source)) return std::move(*kept);
  CudaHandle program = nullptr;
  if (api.nvrtcCreateProgram(&program, text.c_str(), "troupe.cu", 0, nullptr, nullptr) != 0) {
    return Error{ErrorKind::kUsage, "NVRTC takes no program"};
  }
  const std::unique_ptr<CudaHandle, void (*)(CudaHandle*)> end(
      &program, [](CudaHandle* each) { cuda_api().nvrtcDestroyProgram(each); });
  const CudaResult compiled =
      api.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  if (compiled != 0) {
    api.nvrtcGetProgramLogSize(program, &size);
    std::string log(size, '\0');
    api.nvrtcGetProgramLog(program, log.data());
    return Error{ErrorKind::kUsage, fmt::format("NVRTC cannot compile the kernels for {}:\n{}",
                                                architecture, log.c_str())};
  }
  if (api.nvrtcGetCUBINSize(program, &size) != 0 || size == 0) {
    return Error{ErrorKind::kUsage, "NVRTC makes no code for " + architecture};
  }
  std::string code(size, '\0');
  api.nvrtcGetCUBIN(program, code.data());
  keep_program(name, source, code);
  return code;
}

class CudaCard final : public Device {
 public:
  explicit CudaCard(FoundDevice found) : found_(std::move(found)) {}
  CudaCard(const CudaCard&) = delete;
  CudaCard& operator=(const CudaCard&) = delete;
  ~CudaCard() override {
    if (context_ == nullptr) return;
    begin();
    end_staging();
    if (module_ != nullptr) api_.cuModuleUnload(module_);
    for (CudaHandle stream : streams_) {
      if (stream != nullptr) api_.cuStreamDestroy_v2(stream);
    }
    api_.cuDevicePrimaryCtxRelease_v2(found_.device);
  }

  Result<void> open() {
    RETURN_IF_ERROR(usable(api_.cuDevicePrimaryCtxRetain(&context_, found_.device)));
    begin();
    for (CudaHandle& stream : streams_) RETURN_IF_ERROR(usable(api_.cuStreamCreate(&stream, 1)));
    ASSIGN_OR_RETURN(const std::string code, compile(found_));
    RETURN_IF_ERROR(usable(api_.cuModuleLoadData(&module_, code.data())));
    for (const std::string& name : kernel_names(found_.facts)) {
      CudaHandle function = nullptr;
      RETURN_IF_ERROR(usable(api_.cuModuleGetFunction(&function, module_, name.c_str())));
      kernels_.emplace_back(name, function);
    }
    if (!has_promised_arithmetic(*this)) {
      return Error{ErrorKind::kUsage, fmt::format("device {} ({}): its arithmetic is not that of "
                                                  "the processor",
                                                  found_.facts.word, found_.facts.name)};
    }
    return {};
  }

  const DeviceFacts& facts() const override { return found_.facts; }

  std::optional<DeviceLoad> load() const override {
    auto load = Device::load();
    if (const auto card = card_load(found_.pci_bus_id)) {
      load->used_bytes = static_cast<std::int64_t>(card->used_bytes);
      load->busy = card->busy;
      load->watts = card->watts;
      load->celsius = card->celsius;
    }
    return load;
  }

  int kernel(std::string_view name) override {
    const auto found = std::find_if(kernels_.begin(), kernels_.end(),
                                    [&](const auto& each) { return each.first == name; });
    CHECK(found != kernels_.end(), fmt::format("the program has no kernel {}", name));
    return static_cast<int>(found - kernels_.begin());
  }

  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    begin();
    const std::size_t size = std::max<std::size_t>(bytes, 64);
    CudaAddress address = 0;
    expect(api_.cuMemAlloc_v2(&address, size), "memory of a device, bytes: ", std::to_string(size));
    expect(api_.cuMemsetD8Async(address, 0, size, of(Queue::kMain)), "zeros in a device's memory");
    allocated_ += static_cast<std::int64_t>(size);
    return {reinterpret_cast<std::byte*>(address),
            [self = shared_from_this(), this, size](std::byte* first) {
              begin();
              api_.cuStreamSynchronize(of(Queue::kMain));  // kernels may still read it
              api_.cuMemFree_v2(address_of(first));
              allocated_ -= static_cast<std::int64_t>(size);
            }};
  }

  void read(Queue queue, const void* from, void* to, std::size_t bytes) override {
    if (bytes == 0) return;
    begin();
    expect(api_.cuMemcpyDtoHAsync_v2(to, address_of(from), bytes, of(queue)),
           "reading from a device");
    expect(api_.cuStreamSynchronize(of(queue)), "reading from a device");
  }
  void write_pinned(Queue queue, const std::byte* from, void* to, std::size_t bytes) override {
    if (bytes == 0) return;
    begin();
    expect(api_.cuMemcpyHtoDAsync_v2(address_of(to), from, bytes, of(queue)),
           "writing to a device");
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    if (bytes == 0) return;
    begin();
    expect(api_.cuMemcpyDtoDAsync_v2(address_of(to), address_of(from), bytes, of(Queue::kMain)),
           "copying on a device");
  }

  void* mark() override {
    constexpr unsigned kWaitsAsleep = 1, kWithoutTiming = 2;
    begin();
    CudaHandle event = nullptr;
    expect(api_.cuEventCreate(&event, kWaitsAsleep | kWithoutTiming), "a mark of a device");
    expect(api_.cuEventRecord(event, of(Queue::kMain)), "a mark of a device");
    return event;
  }
  void wait_for(void* mark) override {
    begin();
    expect(api_.cuEventSynchronize(mark), "waiting for a device");
    api_.cuEventDestroy_v2(mark);
  }

  void launch(Queue queue, int kernel, const Grid& grid, const Arguments& arguments) override {
    if (grid.blocks == 0) return;
    begin();
    const auto& [name, function] = kernels_[static_cast<std::size_t>(kernel)];
    std::array<CudaAddress, Arguments::kMost> addresses{};
    std::array<Place, Arguments::kMost> places{};
    std::array<void*, 2 * Arguments::kMost> parameters{};
    std::size_t operands = 0, count = 0;
    for (const Arguments::Argument& argument : arguments.all()) {
      if (argument.element == 0) {
        parameters[count++] = const_cast<std::byte*>(argument.bytes.data());
        continue;
      }
      addresses[operands] = address_of(argument.address);
      places[operands] = {0, static_cast<long>(argument.stride)};
      parameters[count++] = &addresses[operands];
      parameters[count++] = &places[operands++];
    }
    expect(api_.cuLaunchKernel(function, static_cast<unsigned>(grid.blocks),
                               static_cast<unsigned>(grid.group), 1,
                               static_cast<unsigned>(grid.items_of_block), 1, 1, 0, of(queue),
                               parameters.data(), nullptr),
           "kernel ", name);
  }

 private:
  std::byte* allocate_pinned(std::size_t bytes) override {
    begin();
    void* first = nullptr;
    expect(api_.cuMemAllocHost_v2(&first, bytes), "pinned memory, bytes: ", std::to_string(bytes));
    return static_cast<std::byte*>(first);
  }
  void free_pinned(std::byte* first) override {
    begin();
    api_.cuStreamSynchronize(of(Queue::kMain));
    api_.cuMemFreeHost(first);
  }
  CudaHandle of(Queue queue) const { return streams_[static_cast<std::size_t>(queue)]; }

  static CudaAddress address_of(const void* address) {
    return reinterpret_cast<CudaAddress>(address);
  }
  // Every thread that calls has the context.
  void begin() const { expect(api_.cuCtxSetCurrent(context_), "the context of a device"); }

  Result<void> usable(CudaResult code) const {
    if (code == 0) return {};
    return Error{ErrorKind::kUsage, fmt::format("device {} ({}): {}", found_.facts.word,
                                                found_.facts.name, reason(code))};
  }

  const CudaApi& api_ = cuda_api();
  const FoundDevice found_;
  CudaHandle context_ = nullptr, module_ = nullptr;
  std::array<CudaHandle, 2> streams_{};  // by Queue
  std::vector<std::pair<std::string, CudaHandle>> kernels_;
};

}  // namespace

Devices cuda_devices() {
  Devices devices;
  for (FoundDevice& each : find_devices(devices.missing)) {
    devices.found.push_back(std::move(each.facts));
  }
  return devices;
}

Result<std::shared_ptr<Device>> open_cuda(std::size_t number) {
  std::string missing;
  std::vector<FoundDevice> found = find_devices(missing);
  if (number >= found.size()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("there is no device cuda:{}{}{}; `troupe devices` lists what there is",
                             number, missing.empty() ? "" : ": ", missing)};
  }
  auto device = std::make_shared<CudaCard>(std::move(found[number]));
  RETURN_IF_ERROR(device->open());
  return std::shared_ptr<Device>(std::move(device));
}

}  // namespace troupe::model::device
