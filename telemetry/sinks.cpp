#include "telemetry/sinks.h"

#include <utility>

#include <fmt/format.h>

#include "telemetry/record.h"
#include "telemetry/shower_pictures.h"

namespace troupe::telemetry {

using runtime::Result;

Sinks::Sinks(SinkOptions options) : options_(std::move(options)) {
  if (auto file = AppendFile::open({.path = options_.metrics_path, .fresh = false})) {
    metrics_.emplace(std::move(file).value());
  } else {
    options_.warn(fmt::format("{}; metrics are not written", file.error().message));
  }
  if (!options_.tensorboard_folder.empty()) {
    TensorboardOptions tensorboard;
    tensorboard.folder = options_.tensorboard_folder;
    tensorboard.time = options_.time;
    if (auto file = TensorboardFile::open(std::move(tensorboard))) {
      tensorboard_.emplace(std::move(file).value());
    } else {
      tell(file.error());
    }
  }
  if (options_.publish != "none") {
    if (auto publisher = Publisher::open({.address = options_.publish})) {
      publisher_ = std::move(publisher).value();
    } else {
      tell(publisher.error());
    }
  }
}

void Sinks::take(std::string_view line) {
  if (metrics_) {
    metrics_->add(fmt::format("{}\n", line));
    tell(metrics_->flush());
  }
  auto record = read_record(line);
  if (!record.ok()) {
    ++not_understood_;
    return;
  }
  if (publisher_) publisher_->send(record->kind, line);
  if (options_.history) options_.history->take(*record);
  if (!tensorboard_) return;
  if (record->made) {
    thinned_.add(*record);
    record->points.clear();
  }
  tensorboard_->take(*record);
}

void Sinks::take_showers(std::string_view json, std::uint64_t step, double time) {
  if (!tensorboard_) return;
  const auto pictures = shower_pictures(json);
  if (!pictures.ok()) return tell(pictures.error());
  for (const auto& [name, image] : pictures->images) {
    tell(tensorboard_->image("showers/" + name, step, time, image));
  }
  for (const auto& [name, histogram] : pictures->histograms) {
    tensorboard_->histogram("showers/" + name, step, time, histogram);
  }
}

void Sinks::flush() {
  if (!tensorboard_) return;
  for (const ThinnedPoints::Point& point : thinned_.take()) {
    tensorboard_->scalar(point.series, point.step, point.time, point.mean);
  }
  tell(tensorboard_->flush());
}

std::uint64_t Sinks::dropped() const {
  return not_understood_ + (metrics_ ? metrics_->dropped() : 0) +
         (tensorboard_ ? tensorboard_->dropped() : 0);
}

void Sinks::tell(const Result<void>& result) {
  if (!result.ok()) options_.warn(result.error().message);
}

}  // namespace troupe::telemetry
