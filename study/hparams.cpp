#include "study/hparams.h"

#include <map>
#include <optional>

#include <fmt/format.h>

#include "runtime/base/tf_record.h"
#include "runtime/base/utc_time.h"
#include "study/study_report.h"
#include "telemetry/sinks/tensorboard_event.h"

namespace troupe::study {
namespace {

using telemetry::ProtobufMessage;

constexpr const char* kPlugin = "hparams";
constexpr const char* kExperiment = "_hparams_/experiment";
constexpr const char* kBegin = "_hparams_/session_start_info";
constexpr const char* kEnd = "_hparams_/session_end_info";
constexpr std::uint64_t kText = 1, kNumber = 3;                    // of DataType
constexpr std::uint64_t kSuccess = 1, kFailure = 2, kRunning = 3;  // of Status

double seconds_of(const std::string& time) {
  const auto read = runtime::read_utc(time);
  return read ? std::chrono::duration<double>(read->time_since_epoch()).count() : 0.0;
}

struct Times {
  double begin = 0.0, end = 0.0;
};
std::map<std::uint32_t, Times> times_in(const std::vector<JournalLine>& lines) {
  std::map<std::uint32_t, Times> times;
  for (const JournalLine& line : lines) {
    if (const auto* begin = std::get_if<BeginLine>(&line)) {
      double& first = times[begin->run.trial].begin;
      if (first == 0.0) first = seconds_of(begin->time);
    } else if (const auto* end = std::get_if<EndLine>(&line)) {
      times[end->run.trial].end = seconds_of(end->time);
    }
  }
  return times;
}

// google.protobuf.Value.
ProtobufMessage number_value(double value) { return ProtobufMessage().real(2, value); }
ProtobufMessage text_value(const std::string& text) { return ProtobufMessage().bytes(3, text); }
ProtobufMessage value_of(const Dimension& dimension, double value) {
  return dimension.choice ? text_value(text_of(dimension, value)) : number_value(value);
}

ProtobufMessage info_of(const Dimension& dimension) {
  ProtobufMessage info;
  info.bytes(1, dimension.path).number(4, dimension.choice ? kText : kNumber);
  if (dimension.choice) {
    ProtobufMessage list;
    for (const std::string& choice : *dimension.choice) list.message(1, text_value(choice));
    return info.message(5, list);
  }
  const double low = value_at(dimension, 0.0), high = value_at(dimension, 1.0);
  return info.message(6, ProtobufMessage().real(1, low).real(2, high));
}

ProtobufMessage experiment(const Study& study, double time) {
  const std::string& figure = study.objective.figure();
  ProtobufMessage about;
  about.bytes(6, study.name).real(3, time);
  for (const Dimension& dimension : study.space) about.message(4, info_of(dimension));
  const ProtobufMessage name = ProtobufMessage().bytes(2, figure);
  return ProtobufMessage().message(2, about.message(5, ProtobufMessage().message(1, name)));
}

ProtobufMessage beginning(const Space& space, const Trial& trial, double time) {
  ProtobufMessage about;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (trial.point[i] == kAbsent) continue;
    ProtobufMessage entry;
    entry.bytes(1, space[i].path).message(2, value_of(space[i], trial.point[i]));
    about.message(1, entry);
  }
  return ProtobufMessage().message(3, about.real(5, time));
}

ProtobufMessage end(std::uint64_t status, double time) {
  return ProtobufMessage().message(4, ProtobufMessage().number(1, status).real(2, time));
}

// An event file of these values, each at a step.
class Events {
 public:
  Events(double time, std::string study)
      : time_(time),
        study_(std::move(study)),
        bytes_(runtime::tf_record(telemetry::version_event(time))) {}
  void add(std::uint64_t step, const ProtobufMessage& value) {
    bytes_ += runtime::tf_record(telemetry::summary_event(time_, step, {&value, 1}));
  }
  EventFile file(std::string folder) && {
    const auto seconds = static_cast<std::uint64_t>(time_);
    return {std::move(folder), fmt::format("events.out.tfevents.{}.{}.study", seconds, study_),
            std::move(bytes_)};
  }

 private:
  double time_;
  std::string study_;  // its hash, by which the files of others have other names
  std::string bytes_;
};

}  // namespace

std::vector<EventFile> hparams_files(const Study& study, const TrialBook& book,
                                     const std::vector<JournalLine>& lines) {
  const auto* const first = lines.empty() ? nullptr : std::get_if<StudyLine>(&lines.front());
  const double begin = first == nullptr ? 0.0 : seconds_of(first->time);
  std::vector<EventFile> files;
  const std::string hash = first == nullptr ? "" : first->hash;
  Events all(begin, hash);
  all.add(0, telemetry::plugin_value(kExperiment, kPlugin, experiment(study, begin)));
  files.push_back(std::move(all).file(""));
  for (const auto& [number, times] : times_in(lines)) {
    const Trial& trial = book.trials().at(number);
    Events events(times.begin, hash);
    events.add(
        0, telemetry::plugin_value(kBegin, kPlugin, beginning(study.space, trial, times.begin)));
    if (const auto figure = book.figure(trial)) {
      events.add(figure->rung, telemetry::scalar_value(study.objective.figure(), figure->mean));
    }
    const std::string state = state_of(book, trial);
    const bool goes_on = state == "running" || state == "waiting";
    const std::uint64_t status = goes_on ? kRunning : state == "failed" ? kFailure : kSuccess;
    if (!goes_on) events.add(0, telemetry::plugin_value(kEnd, kPlugin, end(status, times.end)));
    files.push_back(std::move(events).file(fmt::format("{}", number)));
  }
  return files;
}

}  // namespace troupe::study
