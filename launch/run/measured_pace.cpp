#include "launch/run/measured_pace.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "launch/folder/metrics_file.h"
#include "launch/folder/run_folder.h"
#include "launch/machine/ring_pace.h"
#include "launch/meeting/socket_folder.h"
#include "launch/run/head_run.h"
#include "telemetry/record.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// Times iterations by the records of a run, in their order.
class IterationClock {
 public:
  explicit IterationClock(std::uint32_t replicas_per_member) : replicas_(replicas_per_member) {}

  void take(const telemetry::Record& record) {
    if (const auto* run = std::get_if<telemetry::RunRecord>(&record.body)) {
      facts_ = run->facts;
      members_.clear();
      begin_again();
    } else if (const auto* node = std::get_if<telemetry::NodeFacts>(&record.body)) {
      take(*node);
    } else if (const auto* view = std::get_if<telemetry::ViewFacts>(&record.body)) {
      members_ = {view->members.begin(), view->members.end()};
      begin_again();
    } else if (const auto* step = std::get_if<telemetry::StepFacts>(&record.body)) {
      take(*step);
    } else if (const auto* bill = std::get_if<telemetry::BillFacts>(&record.body)) {
      bill_ = *bill;
    }
  }

  std::optional<MeasuredPace> pace() {
    begin_again();
    if (kept_.iterations.empty() || facts_.micro_batches == 0) return std::nullopt;
    MeasuredPace pace = kept_;
    const auto timed = static_cast<double>(pace.iterations.size());
    pace.busy_seconds /= timed;
    pace.micro_batches = facts_.micro_batches;
    pace.iterations_per_epoch = facts_.iterations_per_epoch;
    pace.speed = static_cast<double>(pace.micro_batches) / pace.workers / pace.busy_seconds;
    if (!bill_) return pace;
    if (bill_->other_speed > 0.0) pace.speed = bill_->other_speed;
    for (const telemetry::PoolBill& pool : bill_->pools) {
      if (pool.speed > 0.0) pace.pool_speeds[pool.name] = pool.speed;
    }
    return pace;
  }

 private:
  // The first iteration of new members is not like the others.
  void begin_again() {
    if (!timed_.iterations.empty()) kept_ = timed_;
    timed_ = {};
    current_.reset();
    is_first_ = true;
  }
  void take(const telemetry::NodeFacts& node) {
    if (node.role != "member") return;
    if (node.state == "running") members_.insert(node.name);
    if (node.state == "ended" || node.state == "dead") members_.erase(node.name);
  }
  void take(const telemetry::StepFacts& step) {
    if (current_ != step.iteration) {
      current_ = step.iteration;
      seconds_ = busy_ = 0.0;
      slots_ = 0;
    }
    busy_ += step.load_seconds + step.compute_seconds;
    seconds_ += step.load_seconds + step.compute_seconds + step.reduce_seconds + step.apply_seconds;
    if (++slots_ < facts_.schedule.size()) return;
    if (std::exchange(is_first_, false)) return;
    timed_.iterations.push_back(seconds_);
    timed_.busy_seconds += busy_;
    timed_.workers = std::max(1U, static_cast<std::uint32_t>(members_.size())) * replicas_;
  }

  std::uint32_t replicas_;
  telemetry::RunFacts facts_;
  std::set<std::string> members_;  // empty: all is in one process
  std::optional<telemetry::BillFacts> bill_;
  MeasuredPace timed_, kept_;  // `busy_seconds` of all together
  std::optional<std::uint64_t> current_;
  double seconds_ = 0.0, busy_ = 0.0;
  std::size_t slots_ = 0;
  bool is_first_ = true;
};

// Why a micro-batch of one run is other work than that of another; "": it is not.
std::string other_work(const config::Topology& a, const config::Topology& b) {
  const auto text = [](const model::NetworkDescription& network) {
    return model::print_network(network, model::infer_shapes(network));
  };
  const model::GanDescription &one = a.model.gan, &other = b.model.gan;
  if (text(one.generator) != text(other.generator)) return "generator";
  if (text(one.discriminator) != text(other.discriminator)) return "discriminator";
  if (a.train.options.micro_batch != b.train.options.micro_batch) return "train.micro_batch";
  const auto &first = a.train.options.schedule, &second = b.train.options.schedule;
  if (first != second) return "train.schedule";
  if (model::with_rounds(one, first) != model::with_rounds(other, second)) {
    return "batch_norm with sync";
  }
  const auto &mine = a.train.options.strategy, &theirs = b.train.options.strategy;
  if (mine.kind != theirs.kind || mine.has_sites() != theirs.has_sites()) return "train.strategy";
  if (mine.has_workers()) {
    if (mine.steps != theirs.steps) return "train.strategy.steps";
    const auto each = [](const pipeline::TrainingOptions& options) {
      return options.micro_batches / options.strategy.workers;
    };
    if (each(a.train.options) != each(b.train.options)) {
      return "number of micro-batches for each worker (train.strategy)";
    }
  }
  if (a.model.precision != b.model.precision) return "model.precision";
  if (a.model.kernels != b.model.kernels) return "model.kernels";
  if (a.replica.threads != b.replica.threads) return "actors.replica.threads";
  return a.replica.device == b.replica.device ? "" : "actors.replica.device";
}

config::LoadedTopology shortened(config::LoadedTopology loaded, std::uint64_t iterations) {
  config::Topology& topology = loaded.topology;
  topology.train.iterations = iterations;
  topology.validator.every = config::Every{config::Every::Unit::kNever, 0};
  topology.monitor.listen = topology.monitor.publish = "none";
  topology.monitor.tensorboard = false;
  topology.cluster = {};
  return loaded;
}

}  // namespace

Result<MeasuredPace> read_pace(const std::string& folder, const config::Topology& planned) {
  const std::string topology = fmt::format("{}/{}", folder, RunFolder::kTopology);
  ASSIGN_OR_RETURN(const config::LoadedTopology loaded, config::load_topology(topology));
  if (const std::string other = other_work(loaded.topology, planned); !other.empty()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} trained with another {}, so its pace says nothing of this run; "
                             "measure here, without --run",
                             folder, other)};
  }
  IterationClock clock(loaded.topology.replica.count);
  const std::string path = fmt::format("{}/{}", folder, MetricsFile::kName);
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (const auto record = telemetry::read_record(line); record.ok()) clock.take(*record);
  }
  if (auto pace = clock.pace()) return *std::move(pace);
  return Error{ErrorKind::kData,
               fmt::format("{}: tells of no two iterations that the same members made one after "
                           "the other, so it says nothing about their pace",
                           path)};
}

Result<PaceMeasured> measure_pace(const config::LoadedTopology& loaded, const PaceMeasurement& how,
                                  runtime::Log& log) {
  ASSIGN_OR_RETURN(const SocketFolder place, SocketFolder::make());
  const std::string path = place.path() + "/run";
  runtime::FileDisk disk;
  ASSIGN_OR_RETURN(RunFolder folder, RunFolder::create(path, disk));
  HeadRunRequest request;
  request.loaded = shortened(loaded, how.iterations + 1);
  request.version = how.version;
  request.data_folder = how.data_folder;
  request.progress = how.progress;
  request.progress_on_terminal = how.progress_on_terminal;
  ASSIGN_OR_RETURN(const HeadRunResult end, run_locally(request, folder, disk, log));
  if (end.error) return *end.error;
  if (end.signal != 0) return PaceMeasured{std::nullopt, end.signal};
  ASSIGN_OR_RETURN(MeasuredPace pace, read_pace(path, loaded.topology));
  ASSIGN_OR_RETURN(pace.ring_bytes_per_second, measure_ring_pace());
  return PaceMeasured{std::move(pace), 0};
}

}  // namespace troupe::launch
