#include "tests/model/program_runner.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "runtime/base/random.h"
#include "tests/model/random_network.h"

namespace troupe::model {
namespace {

// Uniform in (low, high), a stream of its own for each use.
template <class T>
std::vector<T> draw(std::uint64_t seed, std::uint32_t stream, std::size_t size, double low,
                    double high) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double u =
        runtime::random_uniform({seed, 0, 0, 0, stream}, static_cast<std::uint32_t>(i));
    // The same numbers for float and double.
    values[i] = static_cast<T>(static_cast<float>(low + (high - low) * u));
  }
  return values;
}

std::unique_ptr<const Program> compile(const NetworkDescription& network, const Backend& backend,
                                       std::int64_t batch) {
  ProgramOptions options;
  options.batch = batch;
  options.network_number = 1;
  return Program::compile(network, backend, options).value();
}

}  // namespace

template <class T>
ProgramRunner<T>::ProgramRunner(const NetworkDescription& network, const Backend& backend,
                                std::int64_t batch, std::uint64_t seed)
    : program_(compile(network, backend, batch)), workspace_(*program_) {
  const auto size = [](std::int64_t elements) { return static_cast<std::size_t>(elements); };
  const ParameterLayout& layout = program_->parameters();
  input = draw<T>(seed, 1, size(batch * program_->input_shape().elements()), 0.05, 1.0);
  conditions = draw<T>(seed, 4, size(batch * std::ssize(network.conditions)), 0.0, kLabels);
  for (T& label : conditions) label = std::floor(label);
  weights = draw<T>(seed, 2, size(layout.weights_size), -0.6, 0.7);
  moving = draw<T>(seed, 3, size(layout.moving_size), -0.5, 0.5);
  for (const ParameterTensor& tensor : layout.moving) {
    if (tensor.role != ParameterRole::kMovingVariance) continue;
    for (std::int64_t i = 0; i < tensor.size; ++i) moving[size(tensor.offset + i)] += T{1};
  }
  gradients.resize(weights.size());
  statistics.resize(moving.size());
  for (int i = 0; i < program_->outputs(); ++i) {
    outputs.emplace_back(size(batch * program_->output_shape(i).elements()));
    output_gradients.push_back(
        draw<T>(seed, 10 + static_cast<std::uint32_t>(i), outputs.back().size(), -1.0, 1.0));
  }
}

template <class T>
Bindings ProgramRunner<T>::bindings() {
  Bindings bindings{weights.data(), moving.data(), gradients.data(), statistics.data(), position};
  if (gradients_final) bindings.gradients_final = &gradients_final;
  return bindings;
}

template <class T>
void ProgramRunner<T>::forward(Pass pass) {
  std::copy(input.begin(), input.end(), program_->template input<T>(workspace_).begin());
  if (!conditions.empty()) {
    std::copy(conditions.begin(), conditions.end(),
              program_->template conditions<T>(workspace_).begin());
  }
  program_->run(pass, bindings(), workspace_);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto made = program_->template output<T>(workspace_, static_cast<int>(i));
    std::copy(made.begin(), made.end(), outputs[i].begin());
  }
}

template <class T>
void ProgramRunner<T>::backward(Pass pass) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto place = program_->template output_gradient<T>(workspace_, static_cast<int>(i));
    std::copy(output_gradients[i].begin(), output_gradients[i].end(), place.begin());
  }
  program_->run(pass, bindings(), workspace_);
  if (pass != Pass::kBackwardInput) return;
  const auto made = program_->template input_gradient<T>(workspace_);
  input_gradient.assign(made.begin(), made.end());
}

template class ProgramRunner<float>;
template class ProgramRunner<double>;

}  // namespace troupe::model
