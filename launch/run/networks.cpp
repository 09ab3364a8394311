#include "launch/run/networks.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "config/workers.h"
#include "launch/run/backend_choice.h"
#include "launch/run/training_setup.h"

namespace troupe::launch {
namespace {

using runtime::Result;

// The memory of a device that a process takes.
model::MemorySize memory_needed(const config::Topology& topology, const model::Gan& gan) {
  model::MemorySize needed = model::GanStream::size_for(gan);
  const auto fakes = static_cast<std::uint64_t>(gan.fake_elements()) * sizeof(float);
  const auto elements = static_cast<std::uint64_t>(sizes_of(topology, gan).contribution_elements);
  const std::uint64_t contribution = elements * sizeof(float);
  // Fakes, and what is contributed to two steps under way, should the others be lost: whole groups,
  // with the micro-batch of a spot check and the rest of a turn that was begun before.
  const auto group = static_cast<std::uint64_t>(gan.group());
  const auto between = config::options_between_members(topology);
  const auto options = pipeline::options_of_worker(between);
  const std::uint64_t all = options.micro_batches;
  const std::uint64_t groups = (all + 1 + group - 1) / group + 1;
  needed.all += all * fakes + 2 * groups * group * contribution;
  // Changes of workers, and that of a spot check.
  if (between.worker) needed.all += (between.micro_batches + 1) * contribution;
  needed.largest = std::max(needed.largest, group * contribution);
  // Weights, gradients and arrays of both networks' optimisers.
  const auto add_optimiser = [&](const model::Program& network,
                                 const model::OptimiserOptions& optimiser) {
    const auto weights = static_cast<std::uint64_t>(network.parameters().weights_size);
    const auto values = weights * static_cast<std::uint64_t>(1 + optimiser_arrays(optimiser));
    needed.all += (values + weights) * sizeof(float);
    needed.largest = std::max(needed.largest, values * sizeof(float));
  };
  add_optimiser(gan.generator(), options.generator_optimiser);
  add_optimiser(gan.discriminator(), options.discriminator_optimiser);
  needed.all *= topology.replica.count;
  // The network that makes showers makes those that are validated too, sixteen for each
  // micro-batch.
  if (const model::Task task = topology.model.gan.task; task != model::Task::kSupervised) {
    const model::Program& maker = model::maker_of(task, gan.generator(), gan.discriminator());
    const auto times = static_cast<std::uint64_t>((15 + gan.batch()) / gan.batch());
    needed.all += times * (maker.arena_bytes() + maker.scratch_bytes());
  }
  needed.all += elements * sizeof(std::int64_t);  // sums
  return needed;
}

std::string in_mib(std::uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

}  // namespace

std::string device_text(const model::Backend& backend) {
  const auto device = backend.memory().load();
  if (!device) return "";
  return fmt::format("device {} ({}): groups of up to {} micro-batches, {}", device->word,
                     device->name, backend.group(), backend.numerics_class());
}

Result<Networks> compile_networks(const config::Topology& topology, std::uint32_t members) {
  const auto options = pipeline::options_of_worker(config::options_between_members(topology));
  // The iterations of a worker that trains alone are of one replica, and perhaps of one in a site.
  const bool is_shared = !options.strategy.has_workers();
  const std::int64_t replicas =
      is_shared ? std::int64_t{topology.replica.count} * std::max(members, 1U) : 1;
  std::int64_t group = topology.replica.device == config::kProcessor
                           ? 1
                           : (std::int64_t{options.micro_batches} + replicas - 1) / replicas;
  // Cards take no larger grid.
  group = std::min<std::int64_t>(group, UINT16_MAX);
  Networks networks;
  while (true) {
    // The device stays open while the backend before still has it.
    const auto before = std::move(networks.backend);
    ASSIGN_OR_RETURN(networks.backend, make_backend(topology, group));
    ASSIGN_OR_RETURN(networks.gan, model::Gan::compile(topology.model.gan, *networks.backend,
                                                       options.micro_batch));
    const model::MemorySize size = networks.backend->memory().size();
    const model::MemorySize needed = memory_needed(topology, *networks.gan);
    // A driver keeps something for itself.
    const std::uint64_t usable = size.all / 10 * 9;
    if (needed.all <= usable && needed.largest <= size.largest) return networks;
    if (group == 1) {
      return runtime::Error{
          runtime::ErrorKind::kUsage,
          fmt::format("{} has {} to use, {} at once, and this model needs {} and {} at once; use a "
                      "smaller micro_batch, fewer replicas, or cpu",
                      topology.replica.device, in_mib(usable), in_mib(size.largest),
                      in_mib(needed.all), in_mib(needed.largest))};
    }
    group = (group + 1) / 2;
  }
}

}  // namespace troupe::launch
