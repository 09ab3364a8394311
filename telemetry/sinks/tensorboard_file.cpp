#include "telemetry/sinks/tensorboard_file.h"

#include <utility>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/host_name.h"
#include "runtime/base/tf_record.h"

namespace troupe::telemetry {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// How many names one second may need, for sessions that end at once and files that were removed.
constexpr int kMostNames = 100;
constexpr double kMostSeconds = 1e10;  // ten digits in a name; the year 2286

std::string markdown(const RunFacts& run) {
  std::string text = fmt::format("**{}** (Troupe {})\n\n| | |\n|---|---|\n", run.name, run.version);
  const auto row = [&text](std::string_view name, const auto& value) {
    text += fmt::format("| {} | {} |\n", name, value);
  };
  row("model", run.model);
  row("schedule", fmt::format("{}", fmt::join(run.schedule, ", ")));
  for (const auto& [name, weight] : run.losses) row("weight of loss " + name, weight);
  row("iterations", run.iterations);
  row("iterations per epoch", run.iterations_per_epoch);
  row("micro-batches of a step", run.micro_batches);
  row("events of a micro-batch", run.micro_batch);
  return text;
}

}  // namespace

Result<TensorboardFile> TensorboardFile::open(TensorboardOptions options) {
  if (options.host.empty()) options.host = runtime::host_name();
  if (options.host.empty()) options.host = "localhost";
  for (char& letter : options.host) {
    if (letter == '/') letter = '_';
  }
  if (options.pid == 0) options.pid = static_cast<std::uint64_t>(::getpid());
  TensorboardFile file(std::move(options));
  file.time_of(file.options_.time);
  RETURN_IF_ERROR(file.begin());
  return file;
}

// The file is always a new one: two writers of one file would tear each other's records.
Result<void> TensorboardFile::begin() {
  const std::string first =
      fmt::format("{}/events.out.tfevents.{:010}.{}.{}", options_.folder,
                  static_cast<std::uint64_t>(newest_), options_.host, options_.pid);
  std::string path = first;
  for (int i = 1; i < kMostNames && ::access(path.c_str(), F_OK) == 0; ++i)
    path = fmt::format("{}.{:02}", first, i);
  ASSIGN_OR_RETURN(AppendFile file, AppendFile::open({.path = path}));
  file_.emplace(std::move(file));
  file_->add(runtime::tf_record(version_event(newest_)));
  return {};
}

void TensorboardFile::take(const Record& record) {
  if (const auto* run = std::get_if<RunRecord>(&record.body)) {
    // The run goes on from the state at record.step. What belongs to that state, such as its
    // validation, is not made again.
    file_->add(runtime::tf_record(session_event(time_of(record.time), record.step + 1)));
    add(record.step, record.time, {text_value("run", markdown(run->facts))});
  }
  std::vector<ProtobufMessage> values;
  for (const RecordPoint& point : points_of(record)) {
    values.push_back(scalar_value(point.series, point.value));
  }
  if (const std::string mark = mark_of(record); !mark.empty()) {
    values.push_back(text_value("marks", mark));
  }
  if (!values.empty()) add(record.step, record.time, values);
}

Result<void> TensorboardFile::flush() {
  if (file_->vanished()) return begin_again();
  return file_->flush();
}

// All that was written is gone with the file, and what waits may begin in the middle of a record.
Result<void> TensorboardFile::begin_again() {
  const std::string removed = file_->path();
  const std::uint64_t dropped = dropped_before_ + file_->dropped();
  if (const auto begun = begin(); !begun) {
    if (std::exchange(lost_, true)) return {};
    return Error{begun.error().kind,
                 fmt::format("{} was removed, and {}; TensorBoard gets nothing until the folder is "
                             "there again",
                             removed, begun.error().message)};
  }
  dropped_before_ = dropped;
  lost_ = false;
  const auto flushed = file_->flush();
  return Error{ErrorKind::kData,
               fmt::format("{} was removed; TensorBoard goes on with {}{}", removed, path(),
                           flushed ? "" : ": " + flushed.error().message)};
}

// The record's time, or the newest one where it tells none.
double TensorboardFile::time_of(double time) {
  if (time > 0.0 && time < kMostSeconds) newest_ = time;
  return newest_;
}

void TensorboardFile::add(std::uint64_t step, double time,
                          const std::vector<ProtobufMessage>& values) {
  file_->add(runtime::tf_record(summary_event(time_of(time), step, values)));
}

}  // namespace troupe::telemetry
