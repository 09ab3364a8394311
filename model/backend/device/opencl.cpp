// The OpenCL driver. The loader library is opened when it is first needed, so that the program runs
// on hosts without it.

#include "model/backend/device/device.h"

#if __has_include(<CL/cl.h>)

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "model/backend/device/kernel_sizes.h"

namespace troupe::model::device {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr const char* kLibrary = "libOpenCL.so.1";

// The functions of the loader that are called.
struct Api {
  void* library = nullptr;
#define TROUPE_OPENCL_FUNCTIONS(use)                                                           \
  use(clGetPlatformIDs) use(clGetDeviceIDs) use(clGetDeviceInfo) use(clCreateContext)          \
      use(clReleaseContext) use(clCreateCommandQueue) use(clReleaseCommandQueue)               \
          use(clCreateBuffer) use(clReleaseMemObject) use(clCreateProgramWithSource)           \
              use(clBuildProgram) use(clGetProgramBuildInfo) use(clReleaseProgram)             \
                  use(clCreateKernelsInProgram) use(clGetKernelInfo) use(clReleaseKernel)      \
                      use(clSetKernelArg) use(clEnqueueNDRangeKernel) use(clEnqueueReadBuffer) \
                          use(clEnqueueWriteBuffer) use(clEnqueueCopyBuffer)                   \
                              use(clEnqueueFillBuffer) use(clFlush)                            \
                                  use(clEnqueueMarkerWithWaitList) use(clWaitForEvents)        \
                                      use(clReleaseEvent)
#define TROUPE_DECLARE(function) decltype(&::function) function = nullptr;
  TROUPE_OPENCL_FUNCTIONS(TROUPE_DECLARE)
#undef TROUPE_DECLARE
};

const Api& api() {
  static const Api kOpened = [] {
    Api found;
    found.library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (found.library == nullptr) return found;
    bool whole = true;
#define TROUPE_FIND(function)                                                                   \
  found.function = reinterpret_cast<decltype(found.function)>(dlsym(found.library, #function)); \
  whole = whole && found.function != nullptr;
    TROUPE_OPENCL_FUNCTIONS(TROUPE_FIND)
#undef TROUPE_FIND
    if (!whole) found.library = nullptr;
    return found;
  }();
  return kOpened;
}

std::string reason(cl_int code) {
  static constexpr std::pair<cl_int, const char*> kReasons[] = {
      {CL_DEVICE_NOT_AVAILABLE, "the device is not available"},
      {CL_MEM_OBJECT_ALLOCATION_FAILURE, "the device has no memory left"},
      {CL_OUT_OF_RESOURCES, "the device has no resources left, or is lost"},
      {CL_OUT_OF_HOST_MEMORY, "the host has no memory left"},
      {CL_INVALID_BUFFER_SIZE, "more memory than the device gives at once"},
      {CL_COMPILER_NOT_AVAILABLE, "the driver has no compiler"},
  };
  for (const auto& [known, text] : kReasons) {
    if (known == code) return text;
  }
  return fmt::format("OpenCL error {}", code);
}

void expect(cl_int code, std::string_view what, std::string_view more = "") {
  if (code != CL_SUCCESS) device_failed(fmt::format("{}{}: {}", what, more, reason(code)));
}

struct FoundDevice {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  DeviceFacts facts;
};

template <class T>
T number_of(cl_device_id id, cl_device_info what) {
  T value{};
  api().clGetDeviceInfo(id, what, sizeof(value), &value, nullptr);
  return value;
}

std::string text_of(cl_device_id id, cl_device_info what) {
  std::size_t size = 0;
  api().clGetDeviceInfo(id, what, 0, nullptr, &size);
  std::string text(size, '\0');
  api().clGetDeviceInfo(id, what, size, text.data(), nullptr);
  return text.substr(0, text.find('\0'));
}

// Numbers rounded to the nearest, denormals kept, fused multiply-add. Divisions and square roots of
// doubles are always those of IEEE 754.
std::string lacks(cl_device_id id) {
  constexpr cl_device_fp_config kNumbers =
      CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_FMA;
  const auto floats = number_of<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG);
  const auto doubles = number_of<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG);
  if (doubles == 0) return "it has no double precision";
  if ((floats & CL_FP_DENORM) == 0) return "it takes denormal floats for zero";
  if ((floats & kNumbers) != kNumbers || (doubles & kNumbers) != kNumbers) {
    return "it does not round as IEEE 754, or has no fused multiply-add";
  }
  if (number_of<cl_bool>(id, CL_DEVICE_ENDIAN_LITTLE) == CL_FALSE) return "it is big-endian";
  return "";
}

// NVIDIA's cards tell their compute capability (cl_nv_device_attribute_query).
int tensor_cores_of(cl_device_id id) {
  constexpr cl_device_info kMajor = 0x4000, kMinor = 0x4001;
  const std::string extensions = text_of(id, CL_DEVICE_EXTENSIONS);
  if (extensions.find("cl_nv_device_attribute_query") == std::string::npos) return 0;
  return tensor_cores(static_cast<int>(number_of<cl_uint>(id, kMajor)),
                      static_cast<int>(number_of<cl_uint>(id, kMinor)));
}

std::vector<FoundDevice> find_devices(std::string& missing) {
  std::vector<FoundDevice> found;
  if (api().library == nullptr) {
    missing = fmt::format("{} is not installed (Debian: ocl-icd-libopencl1)", kLibrary);
    return found;
  }
  cl_uint platforms = 0;
  api().clGetPlatformIDs(0, nullptr, &platforms);
  std::vector<cl_platform_id> ids(platforms);
  if (platforms > 0) api().clGetPlatformIDs(platforms, ids.data(), nullptr);
  for (cl_platform_id platform : ids) {
    cl_uint count = 0;
    if (api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) {
      continue;
    }
    std::vector<cl_device_id> devices(count);
    api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr);
    for (cl_device_id id : devices) {
      DeviceFacts facts;
      facts.word = fmt::format("opencl:{}", found.size());
      facts.name = text_of(id, CL_DEVICE_NAME);
      facts.driver =
          fmt::format("{}, {}", text_of(id, CL_DEVICE_VERSION), text_of(id, CL_DRIVER_VERSION));
      facts.memory_bytes = number_of<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
      facts.free_bytes = facts.memory_bytes;
      facts.largest_allocation_bytes = number_of<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
      facts.units = number_of<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS);
      facts.is_gpu = (number_of<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0;
      facts.tensor_cores = tensor_cores_of(id);
      facts.lacks = lacks(id);
      found.push_back({platform, id, std::move(facts)});
    }
  }
  if (found.empty()) {
    missing =
        "no OpenCL driver shows a device (a GPU's vendor has one; pocl-opencl-icd computes on "
        "the processor)";
  }
  return found;
}

class OpenclDevice final : public Device {
 public:
  explicit OpenclDevice(FoundDevice found) : found_(std::move(found)) {}
  OpenclDevice(const OpenclDevice&) = delete;
  OpenclDevice& operator=(const OpenclDevice&) = delete;
  ~OpenclDevice() override {
    end_staging();
    for (const auto& [name, kernel] : kernels_) api().clReleaseKernel(kernel);
    if (program_ != nullptr) api().clReleaseProgram(program_);
    for (cl_command_queue queue : queues_) {
      if (queue != nullptr) api().clReleaseCommandQueue(queue);
    }
    if (context_ != nullptr) api().clReleaseContext(context_);
  }

  Result<void> open() {
    if (!found_.facts.lacks.empty()) return unusable(found_.facts.lacks);
    cl_int code = CL_SUCCESS;
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(found_.platform), 0};
    context_ = api().clCreateContext(properties, 1, &found_.id, nullptr, nullptr, &code);
    if (code != CL_SUCCESS) return unusable(reason(code));
    for (cl_command_queue& queue : queues_) {
      queue = api().clCreateCommandQueue(context_, found_.id, 0, &code);
      if (code != CL_SUCCESS) return unusable(reason(code));
    }
    code = compile();
    if (code != CL_SUCCESS && found_.facts.tensor_cores > 0) {
      // A compiler that does not know the instructions.
      found_.facts.tensor_cores = 0;
      code = compile();
    }
    if (code != CL_SUCCESS) {
      return unusable(
          fmt::format("it cannot compile the kernels ({}):\n{}", reason(code), build_log()));
    }
    RETURN_IF_ERROR(find_kernels());
    if (!has_promised_arithmetic(*this)) {
      return unusable("its arithmetic is not that of the processor");
    }
    return {};
  }

  const DeviceFacts& facts() const override { return found_.facts; }

  int kernel(std::string_view name) override {
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (kernels_[i].first == name) return static_cast<int>(i);
    }
    CHECK(false, fmt::format("the program has no kernel {}", name));
  }

  // A pointer into a device's memory lies in a range of the host's addresses that is reserved for
  // it, and that nothing can read or write.
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    const std::size_t size = std::max<std::size_t>(bytes, 64);
    void* const range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(range != MAP_FAILED, "addresses for a device's memory");
    cl_int code = CL_SUCCESS;
    cl_mem memory = api().clCreateBuffer(context_, CL_MEM_READ_WRITE, size, nullptr, &code);
    expect(code, "memory of a device, bytes: ", std::to_string(size));
    const cl_uchar zero = 0;
    expect(
        api().clEnqueueFillBuffer(of(Queue::kMain), memory, &zero, 1, 0, size, 0, nullptr, nullptr),
        "zeros in a device's memory");
    const auto first = static_cast<std::byte*>(range);
    const std::scoped_lock lock(mutex_);
    buffers_[first] = {memory, size};
    allocated_ += static_cast<std::int64_t>(size);
    return {first,
            [self = shared_from_this(), this, size](std::byte* freed) { free(freed, size); }};
  }

  void read(Queue queue, const void* from, void* to, std::size_t bytes) override {
    if (bytes == 0) return;
    const Address place = address_of(from);
    expect(api().clEnqueueReadBuffer(of(queue), place.memory, CL_TRUE, place.bytes, bytes, to, 0,
                                     nullptr, nullptr),
           "reading from a device");
  }
  void write_pinned(Queue queue, const std::byte* from, void* to, std::size_t bytes) override {
    if (bytes == 0) return;
    const Address place = address_of(to);
    expect(api().clEnqueueWriteBuffer(of(queue), place.memory, CL_FALSE, place.bytes, bytes, from,
                                      0, nullptr, nullptr),
           "writing to a device");
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    if (bytes == 0) return;
    const Address source = address_of(from), target = address_of(to);
    expect(api().clEnqueueCopyBuffer(of(Queue::kMain), source.memory, target.memory, source.bytes,
                                     target.bytes, bytes, 0, nullptr, nullptr),
           "copying on a device");
  }

  void* mark() override {
    cl_event event = nullptr;
    expect(api().clEnqueueMarkerWithWaitList(of(Queue::kMain), 0, nullptr, &event),
           "a mark of a device");
    return event;
  }
  void wait_for(void* mark) override {
    auto* event = static_cast<cl_event>(mark);
    expect(api().clWaitForEvents(1, &event), "waiting for a device");
    api().clReleaseEvent(event);
  }

  void flush() override {
    expect(api().clFlush(of(Queue::kMain)), "flushing the queue of a device");
  }

  void launch(Queue queue, int kernel, const Grid& grid, const Arguments& arguments) override {
    if (grid.blocks == 0) return;
    const std::string& name = kernels_[static_cast<std::size_t>(kernel)].first;
    cl_kernel handle = kernels_[static_cast<std::size_t>(kernel)].second;
    const std::scoped_lock lock(mutex_);
    cl_uint index = 0;
    const auto set = [&](const void* value, std::size_t size) {
      expect(api().clSetKernelArg(handle, index++, size, value), "argument of kernel ", name);
    };
    for (const Arguments::Argument& argument : arguments.all()) {
      if (argument.element == 0) {
        set(argument.bytes.data(), argument.size);
        continue;
      }
      Address place;
      if (argument.address != nullptr) place = find(argument.address);
      const Place offset{static_cast<long>(place.bytes / argument.element),
                         static_cast<long>(argument.stride)};
      set(argument.address == nullptr ? nullptr : &place.memory, sizeof(cl_mem));
      set(&offset, sizeof(offset));
    }
    const std::size_t items = static_cast<std::size_t>(grid.items_of_block);
    const std::size_t global[] = {static_cast<std::size_t>(grid.blocks) * items,
                                  static_cast<std::size_t>(grid.group)};
    const std::size_t local[] = {items, 1};
    expect(api().clEnqueueNDRangeKernel(of(queue), handle, 2, nullptr, global, local, 0, nullptr,
                                        nullptr),
           "kernel ", name);
  }

 private:
  std::byte* allocate_pinned(std::size_t bytes) override { return new std::byte[bytes]; }
  void free_pinned(std::byte* first) override { delete[] first; }
  cl_command_queue of(Queue queue) const { return queues_[static_cast<std::size_t>(queue)]; }

  struct Buffer {
    cl_mem memory = nullptr;
    std::size_t size = 0;
  };
  struct Address {
    cl_mem memory = nullptr;
    std::size_t bytes = 0;  // from its first
  };

  cl_int compile() {
    const std::string text = program_text();
    const char* source = text.data();
    const std::size_t size = text.size();
    cl_int code = CL_SUCCESS;
    if (program_ != nullptr) api().clReleaseProgram(program_);
    program_ = api().clCreateProgramWithSource(context_, 1, &source, &size, &code);
    if (code != CL_SUCCESS) return code;
    const std::string options = "-cl-std=CL1.2 " + tensor_cores_option(found_.facts);
    return api().clBuildProgram(program_, 1, &found_.id, options.c_str(), nullptr, nullptr);
  }

  Error unusable(const std::string& why) const {
    return {ErrorKind::kUsage,
            fmt::format("device {} ({}): {}", found_.facts.word, found_.facts.name, why)};
  }

  std::string build_log() const {
    std::size_t size = 0;
    api().clGetProgramBuildInfo(program_, found_.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    api().clGetProgramBuildInfo(program_, found_.id, CL_PROGRAM_BUILD_LOG, size, log.data(),
                                nullptr);
    return log.substr(0, log.find('\0'));
  }

  Result<void> find_kernels() {
    cl_uint count = 0;
    api().clCreateKernelsInProgram(program_, 0, nullptr, &count);
    std::vector<cl_kernel> kernels(count);
    const cl_int code = api().clCreateKernelsInProgram(program_, count, kernels.data(), nullptr);
    if (code != CL_SUCCESS) return unusable(reason(code));
    for (cl_kernel each : kernels) {
      std::array<char, 128> name{};
      api().clGetKernelInfo(each, CL_KERNEL_FUNCTION_NAME, name.size(), name.data(), nullptr);
      kernels_.emplace_back(name.data(), each);
    }
    return {};
  }

  Address address_of(const void* address) {
    const std::scoped_lock lock(mutex_);
    return find(address);
  }
  Address find(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    auto behind = buffers_.upper_bound(byte);
    CHECK(behind != buffers_.begin(), "an address of this device");
    const auto& [first, buffer] = *--behind;
    CHECK(byte < first + buffer.size, "an address of this device");
    return {buffer.memory, static_cast<std::size_t>(byte - first)};
  }

  void free(std::byte* first, std::size_t size) {
    const std::scoped_lock lock(mutex_);
    const auto found = buffers_.find(first);
    api().clReleaseMemObject(found->second.memory);
    buffers_.erase(found);
    munmap(first, size);
    allocated_ -= static_cast<std::int64_t>(size);
  }

  FoundDevice found_;
  cl_context context_ = nullptr;
  std::array<cl_command_queue, 2> queues_{};  // by Queue
  cl_program program_ = nullptr;
  std::vector<std::pair<std::string, cl_kernel>> kernels_;
  std::mutex mutex_;  // of the buffers, and of the kernels' arguments until they are launched
  std::map<const std::byte*, Buffer> buffers_;
};

}  // namespace

Devices opencl_devices() {
  Devices devices;
  for (FoundDevice& each : find_devices(devices.missing)) {
    devices.found.push_back(std::move(each.facts));
  }
  return devices;
}

Result<std::shared_ptr<Device>> open_opencl(std::size_t number) {
  std::string missing;
  std::vector<FoundDevice> found = find_devices(missing);
  if (number >= found.size()) {
    return Error{ErrorKind::kUsage,
                 missing.empty() ? fmt::format("there is no device opencl:{}; `troupe devices` "
                                               "lists what there is",
                                               number)
                                 : missing};
  }
  auto device = std::make_shared<OpenclDevice>(std::move(found[number]));
  RETURN_IF_ERROR(device->open());
  return std::shared_ptr<Device>(std::move(device));
}

}  // namespace troupe::model::device

#else

namespace troupe::model::device {

constexpr const char* kMissing =
    "this program was built without OpenCL; install opencl-c-headers and build it again";

Devices opencl_devices() { return {{}, kMissing}; }

runtime::Result<std::shared_ptr<Device>> open_opencl(std::size_t) {
  return runtime::Error{runtime::ErrorKind::kUsage, kMissing};
}

}  // namespace troupe::model::device

#endif
