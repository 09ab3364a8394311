#pragma once

// oneDNN primitives as Kernels. A kernel is a short list of primitives whose arguments are operands
// of the operation or places in its scratch memory; it is put together once and then only executed.
// The library allocates small bookkeeping of its own at each execution; all arrays are ours.

#include <cstddef>
#include <memory>
#include <vector>

#include <dnnl.hpp>

#include "model/backend.h"

namespace troupe::model::cpu {

// The place of an argument: operand `index` of the operation, or `offset` bytes into the scratch.
struct ArgumentPlace {
  bool in_scratch = false;
  std::size_t position = 0;
};

// Collects the primitives of one kernel. Everything throws dnnl::error; the file that builds a
// kernel catches it.
class PrimitiveList {
 public:
  explicit PrimitiveList(const dnnl::engine& engine) : engine_(engine) {}

  static ArgumentPlace operand(std::size_t index) { return {false, index}; }
  // A new place in the scratch memory for an array of that layout.
  ArgumentPlace scratch(const dnnl::memory::desc& layout);

  struct Argument {
    int name = 0;  // DNNL_ARG_...
    dnnl::memory::desc layout;
    ArgumentPlace place;
  };
  // `scratchpad` is the primitive's own work space; an empty layout needs none.
  void add(const dnnl::primitive& primitive, std::vector<Argument> arguments,
           const dnnl::memory::desc& scratchpad);
  // Copies between layouts. When they are equal nothing is added and `from` comes back; otherwise
  // the place written is `to`, or a new one in scratch.
  ArgumentPlace reordered(const dnnl::memory::desc& from_layout, ArgumentPlace from,
                          const dnnl::memory::desc& to_layout);
  void reorder_into(const dnnl::memory::desc& from_layout, ArgumentPlace from,
                    const dnnl::memory::desc& to_layout, ArgumentPlace to);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  void execute(std::span<void* const> operands, std::byte* scratch) const;

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
  };
  dnnl::engine engine_;
  std::vector<Step> steps_;
  std::size_t scratch_bytes_ = 0;
};

class PrimitiveKernel final : public Kernel {
 public:
  explicit PrimitiveKernel(PrimitiveList list) : list_(std::move(list)) {}
  std::size_t scratch_bytes() const override { return list_.scratch_bytes(); }
  // A failing primitive is a defect (bad operands) and ends the process with the library's reason.
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override;

 private:
  PrimitiveList list_;
};

// Scratch memory is the caller's, as Kernel::scratch_bytes promises.
dnnl::primitive_attr user_scratchpad();

}  // namespace troupe::model::cpu
