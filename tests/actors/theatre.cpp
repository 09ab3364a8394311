#include "tests/actors/theatre.h"

#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "runtime/base/random.h"
#include "runtime/step_scheduler.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::actors {

using runtime::Buffer;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Result<void> MemoryDisk::replace(const std::string& path, std::span<const std::byte> bytes) {
  const std::scoped_lock lock(mutex_);
  files_[path] = Buffer::copy_of(bytes);
  return {};
}

Result<Buffer> MemoryDisk::read(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(path);
  if (found == files_.end()) return Error{ErrorKind::kData, "there is no " + path};
  return found->second;
}

Result<void> MemoryDisk::remove(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  if (files_.erase(path) == 0) return Error{ErrorKind::kData, "there is no " + path};
  return {};
}

Result<std::vector<std::string>> MemoryDisk::list(const std::string& folder) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [path, content] : files_) {
    if (path.starts_with(folder + "/")) names.push_back(path.substr(folder.size() + 1));
  }
  return names;
}

runtime::Result<void> MemoryDisk::link(const std::string& path, const std::string& target) {
  const std::scoped_lock lock(mutex_);
  if (!has_links_) return runtime::Error{runtime::ErrorKind::kData, "no links for " + path};
  links_[path] = target;
  return {};
}

std::map<std::string, std::string> MemoryDisk::links() const {
  const std::scoped_lock lock(mutex_);
  return links_;
}

std::string MemoryDisk::text(const std::string& path) const {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(path);
  if (found == files_.end()) return {};
  return {reinterpret_cast<const char*>(found->second.data()), found->second.size()};
}

Toy::Toy() : backend_(model::make_reference_backend(model::DataType::kFloat32)) {
  auto loaded =
      config::parse_topology("model: {zoo: toy}\ndata: {train: none.h5}\n", "toy.yaml", ".");
  CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().message);
  topology_ = std::move(loaded->topology);
  options_ = topology_.train.options;
  options_.iterations_per_epoch = 10;
  auto gan = model::Gan::compile(topology_.model.gan, *backend_, options_.micro_batch);
  CHECK(gan.ok(), gan.ok() ? "" : gan.error().message);
  gan_ = std::move(gan).value();
}

StatePointer Toy::state(std::uint64_t iteration) {
  StatePointer& state = states_[iteration];
  if (state != nullptr) return state;
  pipeline::TrainingState made = pipeline::initial_state(*gan_, options_, "test", {});
  made.iteration = iteration;
  made.epoch = iteration / options_.iterations_per_epoch;
  state = std::make_shared<const pipeline::TrainingState>(std::move(made));
  return state;
}

void write_toy_data(const std::string& path) {
  std::vector<float> cells, target;
  for (std::uint32_t event = 0; event < 20; ++event) {
    target.insert(target.end(), {0.0F, 100.0F});
    for (std::uint32_t cell = 0; cell < 64; ++cell) {
      const double share = runtime::random_uniform({.seed = 1}, event * 64 + cell);
      cells.push_back(static_cast<float>(share / 16.0));
    }
  }
  pipeline::Hdf5Scribe file(path);
  file.add("ECAL", {20, 4, 4, 4}, cells);
  file.add("target", {20, 2}, target);
}

ViewPointer view_of(std::vector<std::uint32_t> ring, std::uint32_t micro_batches,
                    std::uint32_t replicas_per_member, std::uint64_t first_step) {
  pipeline::View view;
  view.id = kFirstView;
  view.first_step = first_step;
  view.reached.assign(ring.size(), first_step);
  const auto replicas = static_cast<std::uint32_t>(ring.size()) * replicas_per_member;
  for (std::uint32_t i = 0; i < micro_batches; ++i) {
    const std::uint32_t dealt = i % replicas;
    view.owners.push_back(ring[dealt / replicas_per_member] * replicas_per_member +
                          dealt % replicas_per_member);
  }
  view.ring = std::move(ring);
  return std::make_shared<const pipeline::View>(std::move(view));
}

ViewPointer view_of(std::uint32_t members, std::uint32_t micro_batches,
                    std::uint32_t replicas_per_member, std::uint64_t first_step) {
  std::vector<std::uint32_t> ring(members);
  std::iota(ring.begin(), ring.end(), 0U);
  return view_of(std::move(ring), micro_batches, replicas_per_member, first_step);
}

Play::Play() {
  runtime::LogOptions options;
  options.to_stderr = false;
  options.also = [this](runtime::LogLevel, std::string_view line) {
    lines_ += std::string(line) + "\n";
  };
  log_ = std::make_unique<runtime::Log>(runtime::Log::open(options).value());
}

Play& Play::actor(const std::string& name, ActorMaker maker) {
  plan_.actors.push_back({name, "", plan_.actors.empty() ? "" : plan_.actors.front().name, false});
  makers_[name] = std::move(maker);
  return *this;
}

Play& Play::actor(const std::string& name, const runtime::Script& script) {
  return actor(name, [script] { return std::make_unique<runtime::ScriptedActor>(script); });
}

Play& Play::link(const std::string& from, const std::string& port, const std::string& to,
                 const std::string& to_port, runtime::Lane lane, std::int64_t message_credits,
                 int tokens) {
  plan_.links.push_back({from, port, to, to_port, lane, message_credits, 1 << 20, tokens});
  return *this;
}

Play& Play::link_reducers(std::uint32_t members) {
  for (std::uint32_t from = 0; from < members; ++from) {
    for (std::uint32_t to = 0; to < members; ++to) {
      if (from == to) continue;
      link(fmt::format("reducer.{}", from), fmt::format("ring.{}", to),
           fmt::format("reducer.{}", to), "ring", runtime::Lane::kData, 1000, 1);
    }
  }
  return *this;
}

runtime::NodeEnd Play::run(std::uint64_t seed) {
  runtime::ManualClock clock;
  runtime::StepScheduler scheduler(seed, clock);
  const auto factory = [this](const runtime::ActorPlan& plan) { return makers_.at(plan.name)(); };
  node_ = std::make_unique<runtime::Node>(plan_, factory, runtime::NodeOptions{}, clock, *log_,
                                          scheduler);
  runtime::NodeEnd end = node_->run();
  node_.reset();
  return end;
}

runtime::NodeEnd Play::run_on_threads() {
  for (runtime::ActorPlan& actor : plan_.actors) actor.own_thread = true;
  const runtime::SteadyClock clock;
  const auto factory = [this](const runtime::ActorPlan& plan) { return makers_.at(plan.name)(); };
  node_ = std::make_unique<runtime::Node>(plan_, factory, runtime::NodeOptions{}, clock, *log_);
  runtime::NodeEnd end = node_->run();
  node_.reset();
  return end;
}

}  // namespace troupe::actors
