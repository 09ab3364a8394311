#pragma once

// A device that computes: memory, and the kernels of one program (kernels/, in the common part of
// OpenCL C and CUDA C++). Drivers implement it. All calls and kernels take effect one after the
// other, in the order of the calls; any thread may call. A device that fails in mid-run, or has
// no memory left, ends the process with the driver's reason: its member is lost as any other.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/backend.h"
#include "runtime/base/error.h"

namespace troupe::model::device {

// A device as its driver describes it.
struct DeviceFacts {
  std::string word;    // that topologies name it by: "opencl:0"
  std::string name;    // "Tesla V100-SXM2-32GB"
  std::string driver;  // name and version
  std::uint64_t memory_bytes = 0;
  std::uint64_t largest_allocation_bytes = 0;
  std::uint32_t units = 0;  // that compute at once
  bool is_gpu = false;
  // The reason why it cannot promise the bits of `kernels: portable`; empty: it can.
  std::string lacks;
};

// The work-items of a launch: so many blocks of so many items along axis 0, and micro-batches of a
// group along axis 1.
struct Grid {
  std::int64_t blocks = 1, items_of_block = 1, group = 1;
};

// The arguments of one launch, in the kernel's order.
class Arguments {
 public:
  static constexpr std::size_t kMost = 12;

  // An operand (OPERAND of kernels/prelude.cl) of T's; null where the kernel reads none.
  template <class T>
  Arguments& operand(const T* first, std::int64_t stride = 0) {
    return add_operand(first, stride, sizeof(T));
  }
  // int, long, double or a struct of kernels/sizes.cl.
  template <class T>
  Arguments& value(const T& value) {
    Argument argument;
    static_assert(sizeof(T) <= sizeof(argument.bytes));
    argument.size = sizeof(T);
    std::memcpy(argument.bytes.data(), &value, sizeof(T));
    arguments_.at(count_++) = argument;
    return *this;
  }

  struct Argument {
    const void* address = nullptr;  // of an operand
    std::int64_t stride = 0;
    std::size_t element = 0;  // bytes of one of the operand; 0: a value, which stands in `bytes`
    std::size_t size = 0;     // bytes of the value
    alignas(8) std::array<std::byte, 160> bytes{};
  };
  std::span<const Argument> all() const { return {arguments_.data(), count_}; }

 private:
  Arguments& add_operand(const void* first, std::int64_t stride, std::size_t element) {
    Argument argument;
    argument.address = first;
    argument.stride = stride;
    argument.element = element;
    arguments_.at(count_++) = argument;
    return *this;
  }

  std::array<Argument, kMost> arguments_;
  std::size_t count_ = 0;
};

class Device : public Memory {
 public:
  virtual const DeviceFacts& facts() const = 0;
  // The number of a kernel of the program; CHECKs that there is one of this name.
  virtual int kernel(std::string_view name) = 0;
  virtual void launch(int kernel, const Grid& grid, const Arguments& arguments) = 0;

  bool is_of_host() const final { return false; }
  std::string device() const final { return facts().word + " (" + facts().name + ")"; }
  MemorySize size() const final { return {facts().memory_bytes, facts().largest_allocation_bytes}; }
};

// Ends the process, as a device that fails has lost what was computed. Says so on standard error.
[[noreturn]] void device_failed(const std::string& what);

// The program's text, as drivers compile it.
std::string program_text();

// Whether the device rounds, fuses and keeps denormal numbers as the host does: tries the brink
// cases. Called once, when it is opened.
bool has_promised_arithmetic(Device& device);

// The devices of this machine, and why there are no others, for people.
struct Devices {
  std::vector<DeviceFacts> found;
  std::string missing;
};
// NVIDIA's cards by their own driver, then all that OpenCL shows, these cards perhaps among them.
Devices devices();

// Opens the device that topologies name by this word, and compiles the program for it, which takes
// seconds the first time. Errors (kUsage): there is no such device, it lacks something, it cannot
// compile the program, or its arithmetic is not the promised one.
runtime::Result<std::shared_ptr<Device>> open(const std::string& word);

// The two drivers, for the functions above.
Devices cuda_devices();
runtime::Result<std::shared_ptr<Device>> open_cuda(std::size_t number);
Devices opencl_devices();
runtime::Result<std::shared_ptr<Device>> open_opencl(std::size_t number);

}  // namespace troupe::model::device
