#include "launch/run/training_data.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/workers.h"
#include "launch/machine/usable_machine.h"
#include "launch/run/remote_files.h"
#include "launch/run/validator_bins.h"
#include "pipeline/data/remote_source.h"
#include "pipeline/data/shower_dataset.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"

namespace troupe::launch {
namespace {

using runtime::Log;
using runtime::Result;

// Says every few seconds how far work on events is, and how long the rest will take.
class ProgressTeller {
 public:
  ProgressTeller(std::string what, Log& log) : what_(std::move(what)), log_(log) {}

  void tell(std::uint64_t done, std::uint64_t total) {
    const auto now = runtime::steady_now();
    if (now - last_ < std::chrono::seconds(2)) return;
    last_ = now;
    if (done == 0) return;
    const double share = static_cast<double>(done) / static_cast<double>(total);
    const double taken = std::chrono::duration<double>(now - start_).count();
    log_.info(fmt::format("{}: {} of {} events ({:.0f} %), {:.0f} s to go", what_, done, total,
                          100.0 * share, taken / share - taken));
  }

 private:
  std::string what_;
  Log& log_;
  const runtime::TimePoint start_ = runtime::steady_now();
  runtime::TimePoint last_ = start_;
};

pipeline::Progress shower_progress(Log& log) {
  return [teller = ProgressTeller("making showers", log)](std::uint64_t done,
                                                          std::uint64_t total) mutable {
    teller.tell(done, total);
    return Result<void>{};
  };
}

// The share of the usable memory at which opening data is given up: the rest is for training.
constexpr double kMostMemory = 0.9;

// The system would end the process, and not say why.
runtime::Error no_memory_for(const std::string& data, const pipeline::OpeningProgress& progress,
                             double usable) {
  return {runtime::ErrorKind::kData,
          fmt::format("the data do not fit into memory: after {} of {} events of the {} data this "
                      "process has {:.2f} of the {:.2f} GB it may use; set data.cache: none, or "
                      "give data.train fewer files",
                      progress.rows, progress.all_rows, data,
                      static_cast<double>(resident_bytes()) / 1e9, usable / 1e9)};
}

// `data`: "training" or "test".
pipeline::OpeningWatch opening_watch(const std::string& data, Log& log) {
  return [data, teller = ProgressTeller(fmt::format("reading {} data", data), log),
          usable = usable_memory().process](
             const pipeline::OpeningProgress& progress) mutable -> Result<void> {
    const bool keeps = progress.bytes_in_memory > 0;
    if (keeps && static_cast<double>(resident_bytes()) > kMostMemory * usable) {
      return no_memory_for(data, progress, usable);
    }
    teller.tell(progress.rows, progress.all_rows);
    return {};
  };
}

// `told`: bad events that were told of, where both kinds of data come from the same files.
void describe(const char* what, const pipeline::Dataset& dataset,
              const std::vector<std::string>& told, Log& log) {
  const pipeline::DatasetReport& report = dataset.report();
  log.info(
      fmt::format("{} data: {} events from {} files ({} stored, {} cut, {} bad{}), {:.1f} MB {}",
                  what, report.events, report.files, report.rows, report.cut, report.bad,
                  report.beyond > 0 ? fmt::format(", {} beyond data.events", report.beyond) : "",
                  static_cast<double>(report.bytes_in_memory + report.bytes_on_disk) / 1e6,
                  report.bytes_on_disk > 0 ? "mapped from the cache folder" : "in memory"));
  for (const std::string& bad : report.bad_events) {
    if (std::ranges::find(told, bad) == told.end()) log.warning(bad);
  }
  for (const std::string& note : report.notes) log.info(note);
}

runtime::Error nothing_to_validate(const pipeline::DatasetReport& report,
                                   const pipeline::DatasetOptions& options) {
  return {runtime::ErrorKind::kData,
          fmt::format("{}: none of {} events is for testing (data.test_one_in: {}), and "
                      "actors.validator needs some; lower data.test_one_in or set "
                      "actors.validator.every: none",
                      options.paths.front(), report.rows, options.test_one_in)};
}

// `options` name the files and where their indices are kept.
Result<TrainingData> open_files(const config::Topology& topology, pipeline::DatasetOptions options,
                                bool with_test_data, Log& log) {
  options.split = pipeline::DataSplit::kTrain;
  // Opening has the machine to itself.
  const bool is_measured = options.threads == 0;
  if (is_measured) options.threads = usable_processors();
  ASSIGN_OR_RETURN(pipeline::Dataset train,
                   pipeline::Dataset::open(options, opening_watch("training", log)));
  describe("training", train, {}, log);

  std::optional<pipeline::Dataset> test;
  if (with_test_data && topology.validator.validates()) {
    // Reading the one split has counted the events of the other one.
    if (train.report().other_split == 0) return nothing_to_validate(train.report(), options);
    options.split = pipeline::DataSplit::kTest;
    // Nobody tells which of these come next.
    if (options.cache == pipeline::CacheMode::kShard) options.cache = pipeline::CacheMode::kNone;
    ASSIGN_OR_RETURN(test, pipeline::Dataset::open(options, opening_watch("test", log)));
    describe("test", *test, train.report().bad_events, log);
  }

  if (is_measured) {
    train.set_threads(1);
    if (test) test->set_threads(1);
  }
  pipeline::SamplerOptions sampling;
  sampling.events = train.size();
  sampling.seed = topology.train.options.seed;
  const auto options_between = config::options_between_members(topology);
  sampling.micro_batch = options_between.micro_batch;
  sampling.micro_batches = options_between.micro_batches;
  sampling.parts = options_between.parts();
  if (sampling.parts > 1) sampling.runs = options_between.strategy.steps;
  sampling.window_blocks = train.window_blocks();
  if (sampling.window_blocks > 0) sampling.blocks = train.blocks();
  sampling.shuffle = topology.data.shuffle;
  sampling.remainder = topology.train.remainder;
  ASSIGN_OR_RETURN(pipeline::Sampler sampler, pipeline::Sampler::create(std::move(sampling)));
  const char* const part = pipeline::part_of_sum(options_between);
  if (sampler.dropped_per_epoch() > 0) {
    const bool is_partial = topology.train.remainder == pipeline::Remainder::kPartial;
    log.info(fmt::format("{} events at the end of each epoch fill no {} and are left out",
                         sampler.dropped_per_epoch(), is_partial ? part : "iteration"));
  }
  if (const std::uint32_t few = sampler.short_iteration().micro_batches; few > 0) {
    log.info(fmt::format("the last of {} iterations of each epoch takes {} of {} {}",
                         sampler.iterations_per_epoch(), few, sampler.options().micro_batches,
                         options_between.worker ? "workers" : "micro-batches"));
  }
  return TrainingData{std::move(train), std::move(test), std::move(sampler)};
}

}  // namespace

Result<TrainingData> open_training_data(const config::Topology& topology,
                                        const std::string& data_folder, bool with_test_data,
                                        runtime::ThreadTeam& team, Log& log) {
  pipeline::DatasetOptions options = topology.data.dataset;
  if (topology.data.synthetic) {
    pipeline::SyntheticOptions synthetic = topology.data.showers;
    if (synthetic.folder.empty()) synthetic.folder = data_folder;
    ASSIGN_OR_RETURN(const std::string path,
                     pipeline::make_synthetic(synthetic, team, shower_progress(log)));
    log.info("synthetic showers in " + path);
    options.paths = {path};
  }
  if (options.cache_folder.empty()) options.cache_folder = data_folder;
  ASSIGN_OR_RETURN(auto held, bring_near(options, log));
  if (options.index_folder.empty()) options.index_folder = data_folder + "/index";
  if (const auto made = runtime::FileDisk().make_folder(options.index_folder); !made.ok()) {
    log.warning("indices are not kept (data.index_folder): " + made.error().message);
    options.index_folder.clear();
  }
  ASSIGN_OR_RETURN(TrainingData data,
                   open_files(topology, std::move(options), with_test_data, log));
  data.held = std::move(held);
  return data;
}

Result<void> try_training_data(const config::Topology& topology, const config::Origins& origins,
                               Log& log) {
  pipeline::DatasetOptions options = topology.data.dataset;
  options.index_folder.clear();
  if (options.cache == pipeline::CacheMode::kDisk) options.cache = pipeline::CacheMode::kNone;
  if (topology.data.synthetic) {
    const std::string path = pipeline::synthetic_path(topology.data.showers);
    std::error_code ignored;
    if (topology.data.showers.folder.empty() || !std::filesystem::exists(path, ignored)) return {};
    options.paths = {path};
  }
  // Nothing is copied only to be looked at.
  if (std::ranges::any_of(options.paths, pipeline::is_readable_address)) return {};
  ASSIGN_OR_RETURN(TrainingData data, open_files(topology, std::move(options), true, log));
  return warn_of_misfits(topology, origins, data.test, log);
}

}  // namespace troupe::launch
