#include <cfenv>

#include "model/backend.h"
#include "model/backend/cpu/activations.h"
#include "model/backend/cpu/attention.h"
#include "model/backend/cpu/batch_norm.h"
#include "model/backend/cpu/channel_sums.h"
#include "model/backend/cpu/convolution.h"
#include "model/backend/cpu/dense.h"
#include "model/backend/cpu/dropout.h"
#include "model/backend/cpu/group_norm.h"
#include "model/backend/cpu/grouped_convolution.h"
#include "model/backend/cpu/max_pool.h"
#include "model/backend/cpu/moved_phases.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/float_environment.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model {
namespace {

// Operations without a kernel here use the reference's plain loops. These are compiled for the
// baseline instruction set without fused multiply-add, so their bits are those of every IEEE host.
class PortableBackend final : public Backend {
 public:
  explicit PortableBackend(Precision precision) : precision_(precision) {}
  DataType data_type() const override { return DataType::kFloat32; }

  runtime::Result<std::unique_ptr<Kernel>> make_kernel(const Operation& operation) const override {
    return std::visit(
        [&](const auto& op) -> std::unique_ptr<Kernel> {
          if constexpr (requires { cpu::make_portable_kernel(op, precision_); }) {
            return cpu::make_portable_kernel(op, precision_);
          } else if constexpr (requires { cpu::make_kernel(op); }) {
            return cpu::make_kernel(op);
          } else {
            return reference::make_kernel<float>(operation);
          }
        },
        operation);
  }

  std::string numerics_class() const override { return portable_class(precision_); }
  void prepare_thread() const override { set_float_environment(); }

 private:
  Precision precision_;
};

}  // namespace

runtime::Result<std::unique_ptr<Backend>> make_portable_backend(Precision precision) {
  if (!cpu::plane_vectors_supported()) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          "this processor has no AVX2 with fused multiply-add, which the kernels "
                          "need; use a host that has"};
  }
  if (precision == Precision::kBf16) {
    const int rounding = std::fegetround();
    std::fesetround(FE_TONEAREST);
    cpu::multiplies_pairs_at_once();  // tries it out
    std::fesetround(rounding);
  }
  return std::unique_ptr<Backend>(std::make_unique<PortableBackend>(precision));
}

}  // namespace troupe::model
