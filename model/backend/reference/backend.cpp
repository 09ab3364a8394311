#include "model/backend/reference/kernels.h"

#include <array>
#include <type_traits>

#include "model/backend/float_environment.h"
#include "model/backend/kernel_call.h"

namespace troupe::model {
namespace reference {
namespace {

template <class T, class Op>
class LoopKernel final : public Kernel {
 public:
  explicit LoopKernel(const Op& operation) : operation_(operation) {}
  std::size_t scratch_bytes() const override {
    return reference::scratch_bytes(operation_, sizeof(T));
  }
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    reference::run<T>(operation_, KernelCall{operands, random, scratch});
  }

  bool runs_elements() const override { return kIsActivation<Op>; }
  void run_elements(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const ElementRange& range) const override {
    if constexpr (kIsActivation<Op>) {
      Op part = operation_;
      part.elements = range.end - range.begin;
      std::array<void*, kMostOperands> places{};
      for (std::size_t i = 0; i < operands.size(); ++i)
        places[i] = static_cast<T*>(operands[i]) + range.begin;
      reference::run<T>(part, KernelCall{{places.data(), operands.size()}, random});
    } else {
      Kernel::run_elements(operands, random, range);
    }
  }

 private:
  Op operation_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel> make_kernel(const Operation& operation) {
  return std::visit(
      [](const auto& op) -> std::unique_ptr<Kernel> {
        return std::make_unique<LoopKernel<T, std::decay_t<decltype(op)>>>(op);
      },
      operation);
}

template std::unique_ptr<Kernel> make_kernel<float>(const Operation&);
template std::unique_ptr<Kernel> make_kernel<double>(const Operation&);

}  // namespace reference

namespace {

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(DataType type) : type_(type) {}
  DataType data_type() const override { return type_; }
  runtime::Result<std::unique_ptr<Kernel>> make_kernel(const Operation& operation) const override {
    if (type_ == DataType::kFloat32) return reference::make_kernel<float>(operation);
    return reference::make_kernel<double>(operation);
  }
  std::string numerics_class() const override {
    return type_ == DataType::kFloat32 ? "reference float32 1" : "reference float64 1";
  }
  void prepare_thread() const override { set_float_environment(); }

 private:
  DataType type_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(DataType type) {
  return std::make_unique<ReferenceBackend>(type);
}

}  // namespace troupe::model
