#pragma once

// A device that computes: memory, and the kernels of one program (kernels/, in the common part of
// OpenCL C and CUDA C++). Drivers implement it. All calls and kernels take effect one after the
// other, in the order of the calls, except those that name the queue beside; any thread may call. A
// device that fails in mid-run, or has no memory left, ends the process with the driver's reason:
// its member is lost as any other.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
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
  std::uint64_t free_bytes = 0;  // all of it where nothing says how much others have
  std::uint64_t largest_allocation_bytes = 0;
  std::uint32_t units = 0;  // that compute at once
  bool is_gpu = false;
  // The generation of tensor cores that the program knows how to use, as NVIDIA counts them: 90.
  // Their bits belong to it. 0: it has none.
  int tensor_cores = 0;
  // The reason why it cannot promise the bits of `kernels: portable`; empty: it can.
  std::string lacks;
};

// The work-items of a launch: so many blocks of so many items along axis 0, and micro-batches of a
// group along axis 1.
struct Grid {
  std::int64_t blocks = 1, items_of_block = 1, group = 1;
};

// Work on kBeside waits for other work there, and for nothing else: whoever gives it has waited for
// what it reads (Memory::wait_for).
enum class Queue : std::uint8_t { kMain, kBeside };

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

class Device : public Memory, public std::enable_shared_from_this<Device> {
 public:
  virtual const DeviceFacts& facts() const = 0;
  // The number of a kernel of the program; CHECKs that there is one of this name.
  virtual int kernel(std::string_view name) = 0;
  virtual void launch(Queue queue, int kernel, const Grid& grid, const Arguments& arguments) = 0;
  virtual void read(Queue queue, const void* from, void* to, std::size_t bytes) = 0;
  void read(const void* from, void* to, std::size_t bytes) final {
    read(Queue::kMain, from, to, bytes);
  }
  // From memory of allocate_host(), which stays as it is until this is done: after the return.
  virtual void write_pinned(Queue queue, const std::byte* from, void* to, std::size_t bytes) = 0;

  bool is_of_host() const final { return false; }
  // Copies what is written first, so that the caller does not wait for what the device computes. It
  // waits where 64 MiB are under way.
  void write(const void* from, void* to, std::size_t bytes) final;
  // Memory of the host that the device reads and writes by itself, if the driver has such memory.
  // Not zeroed.
  std::shared_ptr<std::byte> allocate_host(std::size_t bytes);
  MemorySize size() const final { return {facts().free_bytes, facts().largest_allocation_bytes}; }
  std::optional<DeviceLoad> load() const override {
    DeviceLoad load;
    load.word = facts().word;
    load.name = facts().name;
    load.own_bytes = allocated_.load();
    load.memory_bytes = static_cast<std::int64_t>(facts().memory_bytes);
    return load;
  }

 protected:
  // While the driver still can: waits for the copies, and frees their memory.
  void end_staging();

  std::atomic<std::int64_t> allocated_ = 0;  // bytes, not freed

 private:
  virtual std::byte* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(std::byte* first) = 0;
  void begin_next_block();

  // Copies on their way: blocks that are filled one after the other, round and round.
  struct Block {
    std::byte* first = nullptr;
    void* mark = nullptr;  // behind its last copy, since it was full
  };
  std::mutex staging_mutex_;
  std::array<Block, 16> blocks_;
  std::size_t block_ = 0, staged_ = 0;  // that is being filled, and bytes in it
};

// Ends the process, as a device that fails has lost what was computed. Says so on standard error.
[[noreturn]] void device_failed(const std::string& what);

// The program's text, as drivers compile it; the option by which a device has kernels for tensor
// cores, empty: it has none; and the names of its kernels, in the program's order. Devices without
// tensor cores that are no cards play them, for tests.
std::string program_text();
std::string tensor_cores_option(const DeviceFacts& facts);
std::vector<std::string> kernel_names(const DeviceFacts& facts);
// The generation of cards of NVIDIA's compute capability; 0: the program does not use its cores.
int tensor_cores(int major, int minor);

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
