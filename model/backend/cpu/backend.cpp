#include <omp.h>

#include <dnnl.hpp>

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
#include "model/backend/cpu/processor.h"
#include "model/backend/float_environment.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model {
namespace {

// The library fixes how a primitive divides its work, and its scratch size, when it is created.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(dnnl::engine engine) : engine_(std::move(engine)) {}
  DataType data_type() const override { return DataType::kFloat32; }

  runtime::Result<std::unique_ptr<Kernel>> make_kernel(const Operation& operation) const override {
    using Made = runtime::Result<std::unique_ptr<Kernel>>;
    const OneThread one_thread;
    try {
      return std::visit(
          [&](const auto& op) -> Made {
            if constexpr (requires { cpu::make_kernel(op, engine_); }) {
              return cpu::make_kernel(op, engine_);
            } else if constexpr (requires { cpu::make_kernel(op); }) {
              return cpu::make_kernel(op);
            } else {
              return reference::make_kernel<float>(operation);
            }
          },
          operation);
    } catch (const dnnl::error& error) {
      return runtime::Error{
          runtime::ErrorKind::kInternal,
          "oneDNN cannot compute " + operation_name(operation) + ": " + error.what()};
    }
  }

  std::string numerics_class() const override {
    const dnnl_version_t* version = dnnl_version();
    const auto text = [](int number) { return std::to_string(number); };
    return "cpu float32 4, oneDNN " + text(version->major) + "." + text(version->minor) + "." +
           text(version->patch) + " " + cpu::isa_name(dnnl::get_effective_cpu_isa()) + ", " +
           cpu::processor_name();
  }

  void prepare_thread() const override {
    set_float_environment();
    omp_set_num_threads(1);
  }

 private:
  dnnl::engine engine_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() {
  return std::make_unique<CpuBackend>(dnnl::engine(dnnl::engine::kind::cpu, 0));
}

}  // namespace troupe::model
