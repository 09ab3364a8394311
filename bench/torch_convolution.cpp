#include "bench/torch_convolution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <type_traits>
#include <variant>

namespace troupe::bench {
namespace {

using namespace troupe::model;

constexpr double kTolerance = 1e-3;  // of the mean size of a result

std::string words_of(const char* direction, double slope, const ConvolutionGeometry& g) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", direction, slope, g.batch, fmt::join(g.in, " "),
                     fmt::join(g.kernel, " "), fmt::join(g.pad_before, " "),
                     fmt::join(g.pad_after, " "), g.in_channels, g.out_channels);
}

std::string words_of(const Operation& operation) {
  return std::visit(
      [](const auto& op) -> std::string {
        using Op = std::remove_cvref_t<decltype(op)>;
        if constexpr (std::is_same_v<Op, ConvolutionForward>) {
          const bool relu = op.activation.kind == ActivationKind::kRelu;
          return words_of("forward", relu ? 0.0 : op.activation.slope, op.geometry);
        } else if constexpr (std::is_same_v<Op, ConvolutionBackwardInput>) {
          return words_of("input", 1.0, op.geometry);
        } else if constexpr (std::is_same_v<Op, ConvolutionBackwardParameters>) {
          return words_of("kernel", 1.0, op.geometry);
        } else {
          return "nothing";
        }
      },
      operation);
}

}  // namespace

TorchConvolution::TorchConvolution() : program_({TROUPE_PYTHON, TROUPE_CONVOLUTION_PEER}) {
  const auto first = program_.answer();
  version_ = first.ok() ? *first : first.error().message;
  ready_ = first.ok();
  wrong_ = !ready_ && !version_.starts_with("missing") && !program_.is_missing();
}

bool TorchConvolution::begin(const Operation& convolution, double expected) {
  for (auto& times : seconds_) times.clear();
  if (!ready_) return true;
  const auto answer = program_.ask("layer " + words_of(convolution));
  if (answer.ok() &&
      std::fabs(std::strtod(answer->c_str(), nullptr) / expected - 1.0) < kTolerance) {
    return true;
  }
  fmt::print(stderr, "PyTorch, {}: the result's mean size is {}, not {}\n",
             operation_name(convolution), answer.ok() ? *answer : answer.error().message, expected);
  return false;
}

bool TorchConvolution::run() {
  if (!ready_) return true;
  const auto answer = program_.ask("run");
  if (!answer.ok()) {
    fmt::print(stderr, "PyTorch: {}\n", answer.error().message);
    return false;
  }
  std::istringstream words(*answer);
  for (auto& times : seconds_) words >> times.emplace_back();
  return !words.fail();
}

std::optional<double> TorchConvolution::best_seconds(Precision precision) const {
  if (!ready_) return std::nullopt;
  const std::size_t first = precision == Precision::kFp32 ? 0 : 2;
  double best = 1e30;
  for (std::size_t way = first; way < first + 2; ++way) {
    for (const double seconds : seconds_[way]) best = std::min(best, seconds);
  }
  return best;
}

}  // namespace troupe::bench
