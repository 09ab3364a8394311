#include "model/supervised.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/moving_statistics.h"
#include "model/streams.h"
#include "runtime/base/random.h"

namespace troupe::model {
namespace {

using runtime::Result;

// Fisher and Yates' shuffle of 0 ... count - 1.
std::vector<std::uint32_t> order_of(std::size_t count, std::uint64_t seed, std::uint64_t pass) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  const runtime::RandomPosition position{seed, 0, static_cast<std::uint32_t>(pass), 0,
                                         kExampleStream};
  for (std::size_t i = count; i-- > 1;) {
    const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(i));
    const auto other = static_cast<std::size_t>(u * static_cast<double>(i + 1));
    std::swap(order[i], order[std::min(other, i)]);
  }
  return order;
}

void copy_example(std::span<const float> from, std::size_t example, std::size_t place,
                  std::size_t size, std::span<float> to) {
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(example * size), size,
              to.begin() + static_cast<std::ptrdiff_t>(place * size));
}

}  // namespace

Result<std::unique_ptr<SupervisedNetwork>> SupervisedNetwork::create(
    const NetworkDescription& network, const SupervisedOptions& options, const Backend& backend) {
  CHECK(options.micro_batch >= 1 && options.micro_batches >= 1, "an update needs an example");
  CHECK(backend.memory().is_of_host() && backend.data_type() == DataType::kFloat32,
        "examples are learned on the host, in single precision");
  ProgramOptions compiled;
  compiled.batch = options.micro_batch;
  compiled.backward_input = false;
  ASSIGN_OR_RETURN(auto program, Program::compile(network, backend, compiled));
  if (program->outputs() != 1) {
    return runtime::Error{runtime::ErrorKind::kTopology,
                          "a network that learns by examples has one output"};
  }
  const std::int64_t outputs = program->output_shape(0).elements();
  ASSIGN_OR_RETURN(auto loss,
                   backend.make_kernel(MeanLoss{options.micro_batch * outputs, options.loss}));
  return std::unique_ptr<SupervisedNetwork>(
      new SupervisedNetwork(std::move(program), std::move(loss), options, backend));
}

SupervisedNetwork::SupervisedNetwork(std::unique_ptr<const Program> program,
                                     std::unique_ptr<Kernel> loss, const SupervisedOptions& options,
                                     const Backend& backend)
    : program_(std::move(program)), loss_(std::move(loss)), options_(options), backend_(backend) {
  const ParameterLayout& layout = program_->parameters();
  momenta_ = moving_momenta(program_->network(), layout);
  weights_.resize(static_cast<std::size_t>(layout.weights_size));
  moving_.resize(static_cast<std::size_t>(layout.moving_size));
  optimiser_arrays_.resize(weights_.size() *
                           static_cast<std::size_t>(optimiser_arrays(options_.optimiser)));
  initialise_parameters(layout, options_.seed, 0, weights_.data(), moving_.data());
  const auto examples = static_cast<std::size_t>(options_.micro_batch);
  parts_.resize(options_.micro_batches);
  for (Part& part : parts_) {
    part.gradients.resize(weights_.size());
    part.statistics.resize(moving_.size());
    part.inputs.resize(examples * static_cast<std::size_t>(program_->input_shape().elements()));
    part.targets.resize(examples * static_cast<std::size_t>(program_->output_shape(0).elements()));
  }
}

Bindings SupervisedNetwork::bindings() const {
  Bindings bindings;
  bindings.weights = weights_.data();
  bindings.moving = moving_.data();
  return bindings;
}

void SupervisedNetwork::make_workspaces(const runtime::ThreadTeam& team) {
  while (workspaces_.size() < static_cast<std::size_t>(team.threads())) {
    workspaces_.emplace_back(*program_);
  }
}

double SupervisedNetwork::train(const Examples& examples, std::uint64_t updates,
                                runtime::ThreadTeam& team) {
  make_workspaces(team);
  for (std::uint64_t i = 0; i < updates; ++i) {
    take_examples(examples);
    team.run(std::ssize(parts_), [&](std::int64_t part, int thread) {
      backend_.prepare_thread();
      compute(static_cast<std::size_t>(part), workspaces_[static_cast<std::size_t>(thread)]);
    });
    update();
  }
  double loss = 0.0;
  for (const Part& part : parts_) loss += static_cast<double>(part.loss);
  return loss / static_cast<double>(parts_.size());
}

void SupervisedNetwork::take_examples(const Examples& examples) {
  const auto inputs = static_cast<std::size_t>(program_->input_shape().elements());
  const auto targets = static_cast<std::size_t>(program_->output_shape(0).elements());
  const std::size_t count = examples.targets.size() / targets;
  CHECK(count >= 1 && examples.targets.size() == count * targets &&
            examples.inputs.size() == count * inputs,
        "every example has an input and a target of the network's sizes");
  for (Part& part : parts_) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(options_.micro_batch); ++i, ++taken_) {
      const std::size_t place = taken_ % count;
      if (place == 0 || order_.size() != count) {
        order_ = order_of(count, options_.seed, taken_ / count);
      }
      copy_example(examples.inputs, order_[place], i, inputs, part.inputs);
      copy_example(examples.targets, order_[place], i, targets, part.targets);
    }
  }
}

void SupervisedNetwork::compute(std::size_t number, Workspace& workspace) {
  Part& part = parts_[number];
  Bindings run = bindings();
  run.gradients = part.gradients.data();
  run.statistics = part.statistics.data();
  run.random = {options_.seed, static_cast<std::uint32_t>(number),
                static_cast<std::uint32_t>(counters_.updates), 0, 0};
  std::ranges::copy(part.inputs, program_->input<float>(workspace).begin());
  program_->run(Pass::kForwardTraining, run, workspace);
  const auto outputs = program_->output<float>(workspace, 0);
  void* const operands[] = {const_cast<float*>(outputs.data()), part.targets.data(), &part.loss,
                            program_->output_gradient<float>(workspace, 0).data()};
  loss_->run(operands, run.random, nullptr);
  program_->run(Pass::kBackwardParameters, run, workspace);
}

std::span<const float> SupervisedNetwork::mean_of(std::vector<float> Part::*content) {
  mean_.resize((parts_.front().*content).size());
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    double sum = 0.0;
    for (const Part& part : parts_) sum += static_cast<double>((part.*content)[i]);
    mean_[i] = static_cast<float>(sum / static_cast<double>(parts_.size()));
  }
  return mean_;
}

void SupervisedNetwork::update() {
  const double rate = learning_rate(options_.rate, rate_, {counters_.updates});
  rate_ = after_iteration(options_.rate, rate_, {counters_.updates});
  begin_update(options_.optimiser, counters_);
  model::update(options_.optimiser, counters_, rate, mean_of(&Part::gradients), weights_,
                optimiser_arrays_.data(), std::ssize(weights_));
  const auto statistics = mean_of(&Part::statistics);
  for (std::size_t i = 0; i < momenta_.size(); ++i) {
    const ParameterTensor& tensor = program_->parameters().moving[i];
    const auto offset = static_cast<std::size_t>(tensor.offset);
    const auto size = static_cast<std::size_t>(tensor.size);
    update_moving(momenta_[i], statistics.subspan(offset, size),
                  std::span(moving_).subspan(offset, size));
  }
}

std::vector<float> SupervisedNetwork::predict(std::span<const float> inputs,
                                              runtime::ThreadTeam& team) {
  make_workspaces(team);
  const auto input = static_cast<std::size_t>(program_->input_shape().elements());
  const auto output = static_cast<std::size_t>(program_->output_shape(0).elements());
  CHECK(inputs.size() % input == 0, "every input has the network's size");
  const std::size_t count = inputs.size() / input;
  const auto batch = static_cast<std::size_t>(options_.micro_batch);
  std::vector<float> found(count * output);
  team.run(static_cast<std::int64_t>((count + batch - 1) / batch), [&](std::int64_t i, int thread) {
    backend_.prepare_thread();
    Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    const std::size_t first = static_cast<std::size_t>(i) * batch;
    const std::size_t some = std::min(batch, count - first);
    // A batch is computed whole; what stands behind the last input is not taken.
    std::ranges::copy(inputs.subspan(first * input, some * input),
                      program_->input<float>(workspace).begin());
    program_->run(Pass::kForwardInference, bindings(), workspace);
    std::copy_n(program_->output<float>(workspace, 0).begin(), some * output,
                found.begin() + static_cast<std::ptrdiff_t>(first * output));
  });
  return found;
}

}  // namespace troupe::model
