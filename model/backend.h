#pragma once

// The source of kernels. A backend turns an Operation into a Kernel once, when a Program is
// compiled; running a Kernel allocates nothing.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "model/backend/crew.h"
#include "model/backend/kernel_call.h"
#include "model/operation.h"
#include "model/optimiser.h"
#include "model/tensor.h"
#include "model/vector_sums.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {

// The type of the factors whose products convolutions and large dense layers sum. Everything else
// is float: weights as the optimiser has them, images between operations, sums, gradients, small
// dense layers, batch norm, losses.
enum class Precision : std::uint8_t { kFp32, kBf16 };

struct MemorySize {
  std::uint64_t all = 0, largest = 0;  // bytes: in all, and of one allocation
};

// The load of a device at this moment. Negative: nothing says it.
struct DeviceLoad {
  std::string word, name;         // "cuda:0", "Tesla V100-SXM2-32GB"
  std::int64_t own_bytes = 0;     // that this process has there
  std::int64_t used_bytes = -1;   // that all processes have there
  std::int64_t memory_bytes = 0;  // that it has
  double busy = -1.0;             // share of the last moments, 0 to 1
  double watts = -1.0, celsius = -1.0;
};

// Memory that a backend's kernels read and write: the host's, unless the backend computes on a
// device. A pointer into a device's memory is an address there, which nothing on the host may
// follow. Calls and kernels take effect in the order in which they are made.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual bool is_of_host() const = 0;
  // The memory that can be had. The host's has no bounds: it is checked elsewhere.
  virtual MemorySize size() const = 0;
  // The load of the device that has it; nothing on the host.
  virtual std::optional<DeviceLoad> load() const { return std::nullopt; }
  // Zeroed, aligned to 64, freed with the last copy of the pointer. Running out of memory ends the
  // process.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;
  // From the host's memory, which is free to change when the call returns.
  virtual void write(const void* from, void* to, std::size_t bytes) = 0;
  // To the host's memory; returns when it is there.
  virtual void read(const void* from, void* to, std::size_t bytes) = 0;
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  // Lets the work that was begun go on while the host does something else.
  virtual void flush() {}
  // A place behind all calls and kernels so far. wait_for() returns when the work before it is
  // done, and uses it up. On the host null: nothing is under way.
  virtual void* mark() { return nullptr; }
  virtual void wait_for(void* /*mark*/) {}
};
Memory& host_memory();

// The micro-batches of one run, side by side. A backend on the host computes one at a time.
struct Group {
  std::int64_t count = 1;
  // Indices of the micro-batches, in the backend's memory; they take the place of a position's.
  const std::uint32_t* indices = nullptr;
  // Elements from the flat buffers that one of them writes to those of the next: gradients,
  // statistics.
  std::int64_t stride = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Bytes of scratch memory a run needs, aligned to 64.
  virtual std::size_t scratch_bytes() const { return 0; }
  // Multiply-adds that a run really does, those of unneeded lanes and cells included; 0: not
  // counted. For benches.
  virtual double products() const { return 0.0; }
  // Operands as the Operation's comment lists them. Runs on the calling thread alone; one Kernel
  // may run on several threads at once with different operands and scratch. The result is a pure
  // function of the operands and, for dropout, of `random` (whose stream the Kernel replaces by its
  // own). It does not depend on the thread, on earlier runs or on how many threads run.
  virtual void run(std::span<void* const> operands, const runtime::RandomPosition& random,
                   std::byte* scratch) const = 0;
  // The same bits, computed by several threads at once where the Kernel can be divided and is worth
  // it. Not to be called from within a run of the crew's team.
  virtual void run_together(std::span<void* const> operands, const runtime::RandomPosition& random,
                            const Crew& crew) const {
    run(operands, random, crew.scratch());
  }
  // True if run_in_parts exists: run_together that tells of every element of the result once.
  virtual bool tells_parts() const { return false; }
  virtual void run_in_parts(std::span<void* const>, const runtime::RandomPosition&, const Crew&,
                            const PartDone&) const {
    CHECK(false, "a kernel that does not tell its parts");
  }
  // True if run_elements exists: run for these elements alone, of an elementwise Operation.
  virtual bool runs_elements() const { return false; }
  virtual void run_elements(std::span<void* const>, const runtime::RandomPosition&,
                            const ElementRange&) const {
    CHECK(false, "a kernel whose elements depend on each other");
  }
  // The same for all micro-batches of a group; instead of the other two, for backends with memory
  // of their own.
  // Operand i of the next micro-batch stands strides[i] elements behind that of the one before.
  virtual void run_group(std::span<void* const>, std::span<const std::int64_t>,
                         const runtime::RandomPosition&, const Group&, std::byte*) const {
    CHECK(false, "a backend on the host computes one micro-batch at a time");
  }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual DataType data_type() const = 0;
  // Every Operation is supported by every backend. An error names the operation and the library's
  // reason (kInternal).
  virtual runtime::Result<std::unique_ptr<Kernel>> make_kernel(
      const Operation& operation) const = 0;
  // Everything besides the inputs that the bits depend on: name, kernels, precision, library
  // version and instruction set. Members must agree on it.
  virtual std::string numerics_class() const = 0;
  virtual Memory& memory() const { return host_memory(); }
  virtual const VectorSums& sums() const { return host_sums(); }
  // For a network with so many weights, and an optimiser that takes no norms. Null: its optimiser
  // is update(), on the host.
  virtual std::unique_ptr<PlacedOptimiser> place_optimiser(const OptimiserOptions&,
                                                           std::int64_t /*weights*/) const {
    return nullptr;
  }
  // The most micro-batches that are computed side by side.
  virtual std::int64_t group() const { return 1; }
  // Every thread calls this once before it runs kernels. It sets rounding mode, flush-to-zero off,
  // one thread per library primitive.
  virtual void prepare_thread() const = 0;
};

// Plain loops, fixed order of accumulation, no instruction-set extensions: the judge of every other
// backend, and the same bits on every IEEE host.
std::unique_ptr<Backend> make_reference_backend(DataType type);

// The numerics class of portable kernels, on hosts and devices.
inline const char* portable_class(Precision precision) {
  return precision == Precision::kFp32 ? "portable float32 3" : "portable bfloat16 4";
}

// Our own kernels: the same bits on every host that has AVX2 and fused multiply-add, with kBf16
// whether or not it has instructions for bfloat16. An error (kUsage) on others.
runtime::Result<std::unique_ptr<Backend>> make_portable_backend(
    Precision precision = Precision::kFp32);

// oneDNN where it is faster, the same as portable elsewhere; float only. Bits depend on the
// library's version and the instruction set, both named in numerics_class().
std::unique_ptr<Backend> make_cpu_backend();

}  // namespace troupe::model
