#pragma once

// A small run without training for tests of who saves and validates it: the toy model, states of
// any step, a disk in memory, and a plan whose actors are real or scripted.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/replica.h"
#include "config/topology.h"
#include "model/backend.h"
#include "model/gan.h"
#include "runtime/base/disk.h"
#include "tests/runtime/stage.h"

namespace troupe::actors {

class MemoryDisk final : public runtime::Disk {
 public:
  runtime::Result<void> replace(const std::string& path, std::span<const std::byte> bytes) override;
  runtime::Result<runtime::Buffer> read(const std::string& path) override;
  runtime::Result<void> remove(const std::string& path) override;
  runtime::Result<std::vector<std::string>> list(const std::string& folder) override;
  runtime::Result<void> make_folder(const std::string&) override { return {}; }
  // Apart from the files; nothing follows it.
  runtime::Result<void> link(const std::string& path, const std::string& target) override;

  std::string text(const std::string& path) const;
  std::map<std::string, std::string> links() const;
  void refuse_links() { has_links_ = false; }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, runtime::Buffer> files_;
  std::map<std::string, std::string> links_;  // targets by path
  bool has_links_ = true;
};

// What the toy of the zoo is trained with; its schedule has 4 slots.
class Toy {
 public:
  Toy();

  const config::Topology& topology() const { return topology_; }
  TrainingContext context() const { return {*gan_, *backend_, options_}; }
  // The initial state, as if so many iterations had been made. The same pointer every time.
  StatePointer state(std::uint64_t iteration);

 private:
  config::Topology topology_;
  std::unique_ptr<model::Backend> backend_;
  pipeline::TrainingOptions options_;
  std::unique_ptr<const model::Gan> gan_;
  std::map<std::uint64_t, StatePointer> states_;
};

// An lcd-fixed file of 20 images for the toy.
void write_toy_data(const std::string& path);

// Id of the Views below.
inline constexpr pipeline::ViewId kFirstView{1, 1};

// A View as of a run's beginning: its micro-batches are dealt out one by one to the replicas of the
// ring's members.
ViewPointer view_of(std::vector<std::uint32_t> ring, std::uint32_t micro_batches,
                    std::uint32_t replicas_per_member = 1, std::uint64_t first_step = 0);
// For members 0, 1 and so on.
ViewPointer view_of(std::uint32_t members, std::uint32_t micro_batches,
                    std::uint32_t replicas_per_member = 1, std::uint64_t first_step = 0);

// Makes an actor of a play.
using ActorMaker = std::function<std::unique_ptr<runtime::Actor>()>;

// Actors below a root, run in seeded steps.
class Play {
 public:
  Play();

  // The first is the root.
  Play& actor(const std::string& name, ActorMaker maker);
  Play& actor(const std::string& name, const runtime::Script& script);
  Play& link(const std::string& from, const std::string& port, const std::string& to,
             const std::string& to_port, runtime::Lane lane = runtime::Lane::kData,
             std::int64_t message_credits = 8, int tokens = 0);
  // From every reducer.M to every other.
  Play& link_reducers(std::uint32_t members);

  runtime::NodeEnd run(std::uint64_t seed);
  // On threads, one for each actor, so that handlers may wait for others.
  runtime::NodeEnd run_on_threads();
  // The node of run(), for scripts that stop their node.
  runtime::Node& node() { return *node_; }
  std::string log_lines() const { return lines_; }

 private:
  runtime::Plan plan_;
  std::map<std::string, ActorMaker> makers_;
  std::string lines_;
  std::unique_ptr<runtime::Log> log_;
  std::unique_ptr<runtime::Node> node_;
};

}  // namespace troupe::actors
