#include "launch/run/networks.h"

#include <algorithm>

#include <fmt/format.h>

#include "launch/run/backend_choice.h"

namespace troupe::launch {
namespace {

using runtime::Result;

struct Needed {
  std::uint64_t all = 0, largest = 0;
};

// The memory of a device that the replicas of a process take.
Needed memory_needed(const config::Topology& topology, const model::Gan& gan) {
  const auto images = static_cast<std::uint64_t>(
      gan.batch() * gan.discriminator().input_shape().elements() * sizeof(float));
  Needed needed;
  for (const auto* program : {&gan.generator(), &gan.discriminator()}) {
    for (const std::uint64_t bytes : {program->arena_bytes(), program->scratch_bytes()}) {
      needed.all += bytes;
      needed.largest = std::max(needed.largest, bytes);
    }
  }
  needed.all *= topology.replica.threads;
  // Fakes of an iteration, and real images for their bin counts.
  needed.all += (topology.train.options.micro_batches + 1) * images;
  needed.all *= topology.replica.count;
  return needed;
}

std::string in_mib(std::uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

}  // namespace

Result<Networks> compile_networks(const config::Topology& topology, std::uint32_t members) {
  const auto& options = topology.train.options;
  const std::int64_t replicas = std::int64_t{topology.replica.count} * std::max(members, 1U);
  std::int64_t group = topology.replica.device == config::kProcessor
                           ? 1
                           : (std::int64_t{options.micro_batches} + replicas - 1) / replicas;
  while (true) {
    Networks networks;
    ASSIGN_OR_RETURN(networks.backend, make_backend(topology, group));
    ASSIGN_OR_RETURN(networks.gan, model::Gan::compile(topology.model.gan, *networks.backend,
                                                       options.micro_batch));
    const model::MemorySize size = networks.backend->memory().size();
    const Needed needed = memory_needed(topology, *networks.gan);
    // What the driver keeps for itself is not known.
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
