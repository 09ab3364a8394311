// Time of every kernel of gan3d_12, gan3d_25 and gan3d_51 on one thread, convolutions next to
// oneDNN's own in ndhwc and PyTorch's in the same run, and next to what the core can multiply and
// add; convolutions in bfloat16 as well. Every kernel is compared with the reference before it is
// timed, and PyTorch's results with ours. Where the other choice of prefers_planes() would be
// faster it says so. This is the bench behind the choices in model/backend/cpu.
//
// GFLOP/s are those of the plain layer (nominal: of the upsampled image, with padding, as every
// implementation's figures) and, in brackets, of the products that the kernel really does as a part
// of the core's peak, which is twice as high in bfloat16. oneDNN and PyTorch get the upsampled
// image ready-made, and of PyTorch's layouts, NCDHW and channels last, the faster counts.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "bench/convolution_layers.h"
#include "bench/fma_peak.h"
#include "bench/measure.h"
#include "bench/torch_convolution.h"
#include "model/backend.h"
#include "model/backend/cpu/convolution.h"

namespace troupe::bench {
namespace {

using namespace troupe::model;

constexpr double kTolerance = 2e-4;    // of the largest value; sums of up to 10^6 float products
constexpr double kTolerance16 = 5e-2;  // of factors of eight bits

// Arrays of one kernel call, filled with a fixed pattern of both signs.
class Arrays {
 public:
  explicit Arrays(const std::vector<std::int64_t>& sizes) {
    for (const std::int64_t size : sizes) {
      std::vector<float> values(static_cast<std::size_t>(size));
      std::uint32_t state = 12345 + static_cast<std::uint32_t>(arrays_.size());
      for (float& value : values) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
      }
      arrays_.push_back(std::move(values));
    }
  }

  void run(const Kernel& kernel) {
    std::vector<void*> pointers;
    for (auto& array : arrays_) pointers.push_back(array.empty() ? nullptr : array.data());
    scratch_.resize(kernel.scratch_bytes() + 64);
    void* place = scratch_.data();
    std::size_t space = scratch_.size();
    std::align(64, kernel.scratch_bytes(), place, space);
    kernel.run(pointers, {}, static_cast<std::byte*>(place));
  }

  // Largest difference to `other` in array `index`, as a part of its largest value; NaN if one of
  // them has a NaN.
  double difference(const Arrays& other, std::size_t index) const {
    double magnitude = 1e-30, worst = 0.0;
    for (std::size_t i = 0; i < arrays_[index].size(); ++i) {
      const double judge = static_cast<double>(other.arrays_[index][i]);
      const double error = std::fabs(static_cast<double>(arrays_[index][i]) - judge);
      if (std::isnan(error)) return error;
      magnitude = std::max(magnitude, std::fabs(judge));
      worst = std::max(worst, error);
    }
    return worst / magnitude;
  }
  double mean_size(std::size_t index) const {
    double sum = 0.0;
    for (const float value : arrays_[index]) sum += std::fabs(static_cast<double>(value));
    return sum / static_cast<double>(arrays_[index].size());
  }
  std::size_t count() const { return arrays_.size(); }

 private:
  std::vector<std::vector<float>> arrays_;
  std::vector<std::byte> scratch_;
};

struct Timing {
  double best_ms = 1e30, median_ms = 0.0;
};

Timing summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples.front() * 1e3, samples[samples.size() / 2] * 1e3};
}

struct Case {
  std::string name;
  Operation operation;                            // batch as timed
  Operation single;                               // the same with one sample, for the comparison
  std::vector<std::int64_t> sizes, single_sizes;  // of the operands
  double products = 0.0;  // multiply-adds of the plain layer; 0: moves data only
  // What oneDNN computes, if it has the operation.
  std::optional<Operation> peer = std::nullopt;
  std::vector<std::int64_t> peer_sizes = {};
};

// Which operand a convolution writes, its bias left aside.
std::size_t result_of(const Operation& operation) {
  return std::holds_alternative<ConvolutionForward>(operation) ? 3 : 2;
}

class Bench {
 public:
  Bench(bool small, std::unique_ptr<Backend> portable, std::unique_ptr<Backend> bf16)
      : small_(small),
        reference_(make_reference_backend(DataType::kFloat32)),
        cpu_(make_cpu_backend()),
        portable_(std::move(portable)),
        bf16_(std::move(bf16)),
        engine_(dnnl::engine::kind::cpu, 0),
        peak_(fma_peak()) {
    cpu_->prepare_thread();
    fmt::print("The core's peak: {:.1f} GFLOP/s; PyTorch: {}\n", 2e-9 * peak_, torch_.version());
  }

  // Whether what it compares with is there, or not installed.
  bool ready() const { return !torch_.wrong(); }

  bool run(const Case& c) {
    if (!agrees(c, *cpu_, kTolerance)) return false;
    if (c.peer && !agrees(c, *bf16_, kTolerance16)) return false;
    const auto ours = *cpu_->make_kernel(c.operation), ours16 = *bf16_->make_kernel(c.operation);
    const auto peer = c.peer ? onednn_kernel(*c.peer) : nullptr;
    const auto planes = *portable_->make_kernel(c.operation);
    const int repeats = small_ ? 1 : 7;
    std::vector<double> our_times, planes_times, times16, peer_times;
    Arrays arrays(c.sizes), peer_arrays(c.peer_sizes);
    if (peer && !torch_.begin(*c.peer, mean_of_result(*c.peer, c.peer_sizes))) return false;
    for (int i = 0; i <= repeats; ++i) {  // in turns, so that all meet the same machine
      sample(*ours, arrays, i > 0 ? &our_times : nullptr);
      if (!peer) continue;
      sample(*planes, arrays, i > 0 ? &planes_times : nullptr);
      sample(*ours16, arrays, i > 0 ? &times16 : nullptr);
      sample(*peer, peer_arrays, i > 0 ? &peer_times : nullptr);
      if (i > 0 && !torch_.run()) return false;
    }
    print(c, ours->products(), summary(our_times), peer ? summary(peer_times) : Timing{});
    if (peer) {
      print16(c, ours16->products(), summary(times16), summary(our_times));
      propose(ours->products() > 0, summary(planes_times), summary(peer_times));
    }
    fmt::print("\n");
    std::fflush(stdout);
    return true;
  }

  double total_ms() const { return total_ms_; }

 private:
  double mean_of_result(const Operation& operation, const std::vector<std::int64_t>& sizes) const {
    Arrays arrays(sizes);
    arrays.run(**cpu_->make_kernel(operation));
    return arrays.mean_size(result_of(operation));
  }

  bool agrees(const Case& c, const Backend& backend, double tolerance) {
    Arrays found(c.single_sizes), judge(c.single_sizes);
    found.run(**backend.make_kernel(c.single));
    judge.run(**reference_->make_kernel(c.single));
    for (std::size_t i = 0; i < found.count(); ++i) {
      const double difference = found.difference(judge, i);
      if (difference < tolerance) continue;
      fmt::print(stderr,
                 "{} {}, {}: operand {} differs from the reference by {:.2e} of its largest\n",
                 c.name, operation_name(c.operation), backend.numerics_class(), i, difference);
      return false;
    }
    return true;
  }

  std::unique_ptr<Kernel> onednn_kernel(const Operation& operation) const {
    return std::visit(
        [&](const auto& op) -> std::unique_ptr<Kernel> {
          if constexpr (requires { cpu::make_onednn_kernel(op, engine_); }) {
            return cpu::make_onednn_kernel(op, engine_);
          } else {
            return nullptr;
          }
        },
        operation);
  }

  static void sample(const Kernel& kernel, Arrays& arrays, std::vector<double>* times) {
    const double start = thread_seconds();
    arrays.run(kernel);
    if (times) times->push_back(thread_seconds() - start);
  }

  void print(const Case& c, double done, const Timing& ours, const Timing& peer) {
    total_ms_ += ours.best_ms;
    fmt::print("{:<7} {:<32} {:9.3f} ms (median {:9.3f})", c.name, operation_name(c.operation),
               ours.best_ms, ours.median_ms);
    if (c.products > 0) fmt::print(" {:6.1f} GFLOP/s", 2e-6 * c.products / ours.best_ms);
    if (done > 0) fmt::print(" ({:2.0f} % of peak)", 1e5 * done / ours.best_ms / peak_);
    if (peer.median_ms > 0) {
      fmt::print(", oneDNN {:6.1f}, ratio {:5.2f}", 2e-6 * c.products / peer.best_ms,
                 peer.best_ms / ours.best_ms);
      print_torch(c, Precision::kFp32, ours);
    }
  }

  void print_torch(const Case& c, Precision precision, const Timing& ours) {
    const auto torch = torch_.best_seconds(precision);
    if (!torch) return;
    fmt::print(", PyTorch {:6.1f}, ratio {:5.2f}", 2e-9 * c.products / *torch,
               1e3 * *torch / ours.best_ms);
  }

  // bfloat16, whose peak is twice as high.
  void print16(const Case& c, double done, const Timing& bf16, const Timing& fp32) {
    fmt::print("; bf16 {:6.1f} ({:2.0f} %), ratio to fp32 {:4.2f}",
               2e-6 * c.products / bf16.best_ms, 0.5e5 * done / bf16.best_ms / peak_,
               fp32.best_ms / bf16.best_ms);
    print_torch(c, Precision::kBf16, bf16);
  }

  // A change to prefers_planes() (model/backend/cpu/plane_convolution.h) that gains a tenth.
  static void propose(bool takes_planes, const Timing& planes, const Timing& onednn) {
    if (takes_planes && onednn.best_ms < 0.9 * planes.best_ms) {
      fmt::print("; takes planes, and oneDNN is {:.2f} times as fast",
                 planes.best_ms / onednn.best_ms);
    }
    if (!takes_planes && planes.best_ms < 0.9 * onednn.best_ms) {
      fmt::print("; takes oneDNN, and planes are {:.2f} times as fast",
                 onednn.best_ms / planes.best_ms);
    }
  }

  bool small_;
  std::unique_ptr<Backend> reference_, cpu_, portable_, bf16_;
  dnnl::engine engine_;
  TorchConvolution torch_;
  double peak_;  // multiply-adds a second
  double total_ms_ = 0.0;
};

struct Sizes {
  std::int64_t x, kernel, bias, y;
};
Sizes sizes_of(const ConvolutionGeometry& g) {
  return {g.batch * cells(g.in) * g.in_channels, cells(g.kernel) * g.in_channels * g.out_channels,
          g.out_channels, g.batch * cells(g.out) * g.out_channels};
}

bool run_layer(Bench& bench, const Layer& layer, std::int64_t batch, bool small) {
  const auto g = geometry_of(layer, batch, small), one = geometry_of(layer, 1, small);
  const auto fine = of_fine_image(g);
  const Sizes s = sizes_of(g), t = sizes_of(one), f = sizes_of(fine);
  const Activation activation{layer.activation, kSlope};
  const double products = static_cast<double>(g.batch * cells(g.out) * s.kernel);
  return bench.run({layer.name,
                    ConvolutionForward{g, activation},
                    ConvolutionForward{one, activation},
                    {s.x, s.kernel, s.bias, s.y},
                    {t.x, t.kernel, t.bias, t.y},
                    products,
                    ConvolutionForward{fine, activation},
                    {f.x, f.kernel, f.bias, f.y}}) &&
         bench.run({layer.name,
                    ConvolutionBackwardInput{g},
                    ConvolutionBackwardInput{one},
                    {s.y, s.kernel, s.x},
                    {t.y, t.kernel, t.x},
                    products,
                    ConvolutionBackwardInput{fine},
                    {f.y, f.kernel, f.x}}) &&
         bench.run({layer.name,
                    ConvolutionBackwardParameters{g},
                    ConvolutionBackwardParameters{one},
                    {s.x, s.y, s.kernel, s.bias},
                    {t.x, t.y, t.kernel, t.bias},
                    products,
                    ConvolutionBackwardParameters{fine},
                    {f.x, f.y, f.kernel, f.bias}});
}

// What else a discriminator of 25^3 x 32 and x 8 does to each element of a batch.
bool run_rest(Bench& bench, std::int64_t batch, bool small) {
  const std::int64_t image = small ? 1000 : 25 * 25 * 25;
  const std::int64_t wide = image * 32, narrow = image * 8;
  const Activation leaky{ActivationKind::kLeakyRelu, kSlope};
  const Activation relu{ActivationKind::kRelu, 0.0};
  const auto map = [&](const char* name, auto make, std::int64_t n, std::size_t arrays) {
    return bench.run({name, make(batch * n), make(n), std::vector<std::int64_t>(arrays, batch * n),
                      std::vector<std::int64_t>(arrays, n)});
  };
  return map(
             "x 32",
             [&](auto n) {
               return ActivationForward{n, leaky};
             },
             wide, 2) &&
         map(
             "x 32",
             [&](auto n) {
               return ActivationBackward{n, leaky};
             },
             wide, 3) &&
         map(
             "x 1",
             [&](auto n) {
               return ActivationBackward{n, relu};
             },
             image, 3) &&
         map(
             "x 32",
             [](auto n) {
               return DropoutForward{n, 0.2, 7};
             },
             wide, 2) &&
         map(
             "x 32",
             [](auto n) {
               return DropoutBackward{n, 0.2, 7};
             },
             wide, 2) &&
         map(
             "x 8", [](auto n) { return Accumulate{n}; }, narrow, 2) &&
         map(
             "x 1",
             [](auto n) {
               return PowerForward{n, 1 / 0.85};
             },
             image, 2) &&
         map(
             "x 1",
             [](auto n) {
               return PowerBackward{n, 1 / 0.85};
             },
             image, 3);
}

// And to each channel.
bool run_norms(Bench& bench, std::int64_t batch, bool small) {
  const std::int64_t image = small ? 1000 : 25 * 25 * 25;
  const std::int64_t narrow = image * 8;
  const auto norm = [&](auto make, const std::vector<std::int64_t>& channels_only) {
    std::vector<std::int64_t> sizes, single;
    for (const std::int64_t only : channels_only) {
      sizes.push_back(only ? 8 : batch * narrow);
      single.push_back(only ? 8 : narrow);
    }
    return bench.run({"norm", make(batch * image), make(image), sizes, single});
  };
  return norm(
             [](auto n) {
               return BatchNormTraining{n, 8, 1e-6};
             },
             {0, 1, 1, 0, 1, 1, 1, 1}) &&
         norm(
             [](auto n) {
               return BatchNormBackward{n, 8};
             },
             {0, 0, 1, 1, 1, 0, 1, 1});
}

bool run_heads(Bench& bench, std::int64_t batch, bool small) {
  const Extent space = small ? Extent{9, 9, 9} : Extent{51, 51, 25};
  const std::int64_t n = cells(space), features = small ? 64 : 10648;
  const Extent fine = small ? Extent{9, 9, 9} : Extent{25, 25, 25};
  const std::int64_t f = cells(fine) * 8,
                     pooled = (fine[0] / 2) * (fine[1] / 2) * (fine[2] / 2) * 8;
  const std::int64_t units = small ? 100 : 5184;
  const auto d = [](std::int64_t m) { return static_cast<double>(m); };
  return bench.run(
             {"51 head", SumRows{batch, n, 1}, SumRows{1, n, 1}, {batch * n, batch}, {n, 1}}) &&
         bench.run({"51 head",
                    AngleForward{batch, space},
                    AngleForward{1, space},
                    {batch * n, batch},
                    {n, 1}}) &&
         bench.run({"51 head",
                    AngleBackward{batch, space},
                    AngleBackward{1, space},
                    {batch * n, batch, batch * n},
                    {n, 1, n}}) &&
         bench.run({"51 head",
                    BinsForward{batch, n},
                    BinsForward{1, n},
                    {batch * n, 8 * batch},
                    {n, 8}}) &&
         bench.run({"25 pool",
                    AveragePoolForward{batch, 8, fine, {2, 2, 2}},
                    AveragePoolForward{1, 8, fine, {2, 2, 2}},
                    {batch * f, batch * pooled},
                    {f, pooled}}) &&
         bench.run({"25 pool",
                    AveragePoolBackward{batch, 8, fine, {2, 2, 2}},
                    AveragePoolBackward{1, 8, fine, {2, 2, 2}},
                    {batch * pooled, batch * f},
                    {pooled, f}}) &&
         bench.run({"51 up",
                    UpsampleForward{batch, 8, {9, 9, 8}, {6, 6, 6}},
                    UpsampleForward{1, 8, {9, 9, 8}, {6, 6, 6}},
                    {batch * 648 * 8, batch * 648 * 216 * 8},
                    {648 * 8, 648 * 216 * 8}}) &&
         bench.run({"51 up",
                    UpsampleBackward{batch, 8, {9, 9, 8}, {6, 6, 6}},
                    UpsampleBackward{1, 8, {9, 9, 8}, {6, 6, 6}},
                    {batch * 648 * 216 * 8, batch * 648 * 8},
                    {648 * 216 * 8, 648 * 8}}) &&
         bench.run({"25 out",
                    DenseForward{batch, features, 1, true},
                    DenseForward{1, features, 1, true},
                    {batch * features, features, 1, batch},
                    {features, features, 1, 1},
                    d(batch * features)}) &&
         bench.run({"25 out",
                    DenseBackwardParameters{batch, features, 1, true},
                    DenseBackwardParameters{1, features, 1, true},
                    {batch * features, batch, features, 1},
                    {features, 1, features, 1},
                    d(batch * features)}) &&
         bench.run({"51 in",
                    DenseForward{batch, 256, units, true},
                    DenseForward{1, 256, units, true},
                    {batch * 256, 256 * units, units, batch * units},
                    {256, 256 * units, units, units},
                    d(batch * 256 * units)}) &&
         bench.run({"51 in",
                    DenseBackwardParameters{batch, 256, units, true},
                    DenseBackwardParameters{1, 256, units, true},
                    {batch * 256, batch * units, 256 * units, units},
                    {256, units, 256 * units, units},
                    d(batch * 256 * units)});
}

int run(bool small, const std::string& filter) {
  auto portable = make_portable_backend(), bf16 = make_portable_backend(Precision::kBf16);
  if (!portable.ok() || !bf16.ok()) {
    fmt::print(stderr, "{}\n", (portable.ok() ? bf16 : portable).error().message);
    return 1;
  }
  Bench bench(small, std::move(portable).value(), std::move(bf16).value());
  if (!bench.ready()) return 1;
  constexpr std::int64_t kBatch = 4;
  fmt::print("Kernels of the cpu backend on one thread, micro-batch of {}\n", kBatch);
  bool right = true;
  for (const Layer& layer : convolution_layers()) {
    if (std::string(layer.name).find(filter) == std::string::npos) continue;
    right = right && run_layer(bench, layer, kBatch, small);
  }
  if (filter.empty() || filter == "rest") {
    right = right && run_rest(bench, kBatch, small) && run_norms(bench, kBatch, small) &&
            run_heads(bench, kBatch, small);
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

// bench_kernels [--small] [part of a layer's name, or "rest"]
int main(int argc, char** argv) {
  bool small = false;
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      small = true;
    } else {
      filter = argv[i];
    }
  }
  return troupe::bench::run(small, filter);
}
