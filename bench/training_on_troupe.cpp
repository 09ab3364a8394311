#include "bench/training_on_troupe.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "runtime/base/buffer.h"
#include "tests/training/alone.h"

namespace troupe::bench {
namespace {

using training_test::Alone;

// As tests/oracle/make_oracle.py has them.
constexpr int kSeed = 20;
constexpr std::uint32_t kCheckedMicroBatch = 3;
constexpr std::uint64_t kCheckedIteration = 5;
constexpr std::uint64_t kDataSeed = 77;
constexpr double kCheckedEpsilon = 0.1;  // of RMSprop
// For every layer. At the zero that training begins with, much of an empty image stands at the kink
// of its activations, and whose rounding is on which side decides the gradient.
constexpr float kCheckedBias = 0.01f;

std::unique_ptr<model::Backend> backend_of(model::Precision precision) {
  if (precision == model::Precision::kFp32) return model::make_cpu_backend();
  auto made = model::make_portable_backend(precision);
  CHECK(made.ok(), made.error().message);
  return std::move(made).value();
}

// The shipped topology of a model of the zoo, with the rate that both sides have.
config::Topology topology_of(const std::string& model, std::uint32_t micro_batch,
                             std::uint32_t micro_batches, bool checked) {
  const std::string name = model == "gan3d_12" ? "quickstart" : model;
  const auto load = [&](const std::vector<std::string>& overrides) {
    auto loaded = config::load_topology(name, overrides);
    CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().message);
    return std::move(loaded->topology);
  };
  const bool is_gan = load({}).model.gan.task == model::Task::kGan;
  const auto for_each_network = [&](const std::string& field, const std::string& value) {
    const std::string networks =
        is_gan ? fmt::format("g: {0}, d: {0}", value) : fmt::format("network: {}", value);
    return fmt::format("train.{}={{{}}}", field, networks);
  };
  std::vector<std::string> overrides{
      fmt::format("train.micro_batch={}", micro_batch),
      fmt::format("train.micro_batches={}", micro_batches), fmt::format("train.seed={}", kSeed),
      for_each_network("learning_rate", "0.001"), "model.kernels=fastest"};
  if (checked) {
    overrides.push_back(for_each_network(
        "optimiser", fmt::format("{{kind: rmsprop, epsilon: {}}}", kCheckedEpsilon)));
  }
  return load(overrides);
}

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// One iteration; the unweighted loss terms as "step/term=value", or why they are none.
runtime::Result<std::string> iterate(Alone& alone, pipeline::TrainingState& state,
                                     const std::vector<pipeline::MicroBatch>& events) {
  std::string text;
  const auto& options = alone.options();
  const std::uint64_t first = (state.iteration - kCheckedIteration) * options.schedule.size();
  for (std::uint32_t slot = 0; slot < options.schedule.size(); ++slot) {
    const pipeline::StepRecord record = alone.reduce_step(state, events);
    const auto& layout = alone.gan().contributions(options.schedule[slot]);
    const auto& gan = alone.gan().description();
    const auto losses = pipeline::step_losses(layout, record);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (!std::isfinite(losses[i]) || record.header.non_finite.found()) {
        return runtime::Error{runtime::ErrorKind::kDiverged, "a loss or gradient is not finite"};
      }
      text += fmt::format("{}/{}={:.9g} ", first + slot, gan.losses[i].output, losses[i]);
    }
    RETURN_IF_ERROR(pipeline::apply(alone.gan(), options, record, state));
  }
  return text;
}

class Worker {
 public:
  Worker(std::string model, int threads, std::uint32_t events, model::Precision precision)
      : model_(std::move(model)),
        threads_(threads),
        precision_(precision),
        micro_batch_(events % 2 == 0 ? events / 2 : events),
        micro_batches_(events / micro_batch_) {}

  runtime::Result<std::string> answer(const std::string& request) {
    std::istringstream words(request);
    std::string what;
    std::uint32_t number = 0;
    words >> what >> number;
    if (what == "check") return check(number);
    if (what == "hash") return hash();
    if (what == "time") return time(number);
    if (what == "peak") return peak();
    return runtime::Error{runtime::ErrorKind::kUsage, "what is " + request};
  }

 private:
  static void set_biases(const model::ParameterLayout& layout, pipeline::NetworkState& state) {
    for (const model::ParameterTensor& tensor : layout.weights) {
      if (tensor.role != model::ParameterRole::kBias) continue;
      std::fill_n(state.weights.begin() + tensor.offset, tensor.size, kCheckedBias);
    }
  }

  runtime::Result<std::string> check(std::uint32_t events) const {
    Alone alone(topology_of(model_, events, 1, true), backend_of(precision_));
    pipeline::TrainingState state = alone.initial_state();
    state.iteration = kCheckedIteration;
    set_biases(alone.gan().generator().parameters(), state.generator);
    set_biases(alone.gan().discriminator().parameters(), state.discriminator);
    const std::vector<pipeline::MicroBatch> micro_batches{
        alone.micro_batch(kCheckedMicroBatch, kDataSeed)};
    auto losses = iterate(alone, state, micro_batches);
    if (!losses.ok() || alone.options().schedule.size() > 1) return losses;
    const auto more = iterate(alone, state, micro_batches);
    return more.ok() ? *losses + *more : more;
  }

  runtime::Result<std::string> hash() {
    start();
    RETURN_IF_ERROR(run_iteration());
    return pipeline::hash_of_state(*state_).text();
  }

  runtime::Result<std::string> time(std::uint32_t iterations) {
    if (!state_) start();
    const double wall = seconds_of(CLOCK_MONOTONIC);
    const double processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (std::uint32_t i = 0; i < iterations; ++i) RETURN_IF_ERROR(run_iteration());
    return fmt::format("{:.6f} {:.6f}", seconds_of(CLOCK_MONOTONIC) - wall,
                       seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor);
  }

  static std::string peak() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return fmt::format("{}", usage.ru_maxrss);
  }

  // From the first step, with all that a run allocates.
  void start() {
    if (!alone_) {
      alone_.emplace(topology_of(model_, micro_batch_, micro_batches_, false),
                     backend_of(precision_), threads_);
    }
    state_ = alone_->initial_state();
    events_.clear();
    for (std::uint32_t i = 0; i < micro_batches_; ++i) {
      events_.push_back(alone_->micro_batch(i, kDataSeed + i));
    }
  }

  runtime::Result<void> run_iteration() {
    const auto losses = iterate(*alone_, *state_, events_);
    if (!losses.ok()) return losses.error();
    return {};
  }

  const std::string model_;
  const int threads_;
  const model::Precision precision_;
  const std::uint32_t micro_batch_, micro_batches_;
  std::optional<Alone> alone_;
  std::optional<pipeline::TrainingState> state_;
  std::vector<pipeline::MicroBatch> events_;
};

}  // namespace

int answer_training_requests(const std::string& model, int threads, std::uint32_t events,
                             model::Precision precision) {
  runtime::keep_freed_memory();  // as every verb does
  Worker worker(model, threads, events, precision);
  std::cout << "ok " << backend_of(precision)->numerics_class() << std::endl;
  for (std::string request; std::getline(std::cin, request);) {
    const auto answer = worker.answer(request);
    std::cout << (answer.ok() ? "ok " + *answer : "error " + answer.error().message) << std::endl;
  }
  return 0;
}

}  // namespace troupe::bench
