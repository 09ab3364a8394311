#include "telemetry/sinks/sinks.h"

#include <utility>

#include <fmt/format.h>

#include "telemetry/sinks/shower_pictures.h"

namespace troupe::telemetry {

using runtime::Result;

Sinks::Sinks(SinkOptions options) : options_(std::move(options)) {
  if (options_.publish == "none") return;
  if (auto publisher = Publisher::open({.address = options_.publish})) {
    publisher_ = std::move(publisher).value();
  } else {
    tell(publisher.error());
  }
}

void Sinks::begin(Record run) {
  if (options_.history) options_.history->take(run);
  begin_ = std::move(run);
}

// The first record opens the files, and the one of begin() is written before it. The history has
// that one already.
void Sinks::take(const Record& record) {
  if (!std::exchange(open_, true)) open_files();
  if (begin_) write(*std::exchange(begin_, std::nullopt));
  write(record);
  if (options_.history) options_.history->take(record);
}

// A file that cannot be opened is told of once, and its sink does nothing from then on.
void Sinks::open_files() {
  if (auto file = AppendFile::open({.path = options_.metrics_path, .fresh = false})) {
    metrics_.emplace(std::move(file).value());
  } else {
    options_.warn(fmt::format("{}; metrics are not written", file.error().message));
  }
  if (options_.tensorboard_folder.empty()) return;
  TensorboardOptions tensorboard;
  tensorboard.folder = options_.tensorboard_folder;
  tensorboard.time = options_.time;
  if (auto file = TensorboardFile::open(std::move(tensorboard))) {
    tensorboard_.emplace(std::move(file).value());
  } else {
    tell(file.error());
  }
}

void Sinks::write(const Record& record) {
  const std::string line = line_of(record);
  if (metrics_) {
    metrics_->add(line + "\n");
    tell(metrics_->flush());
  }
  if (publisher_) publisher_->send(kind_of(record), line);
  if (!tensorboard_) return;
  // There may be more steps than an event file is to have points: flush() writes their means.
  if (!std::holds_alternative<StepFacts>(record.body)) return tensorboard_->take(record);
  for (const RecordPoint& point : points_of(record)) {
    Sum& sum = sums_[point.series];
    sum = {record.step, sum.count + 1, record.time, sum.sum + point.value};
  }
}

void Sinks::take_showers(std::string_view json, std::uint64_t step, double time) {
  if (!tensorboard_) return;
  const auto pictures = shower_pictures(json);
  if (!pictures.ok()) return tell(pictures.error());
  for (const auto& [name, image] : pictures->images) {
    const auto encoded = png(image);
    if (!encoded.ok()) {
      tell(encoded.error());
      continue;
    }
    tensorboard_->add(step, time,
                      {image_value("showers/" + name, image.width, image.height, *encoded)});
  }
  for (const auto& [name, histogram] : pictures->histograms) {
    tensorboard_->add(step, time, {histogram_value("showers/" + name, histogram)});
  }
}

void Sinks::flush() {
  if (!tensorboard_) return;
  for (const auto& [series, all] : std::exchange(sums_, {})) {
    const double mean = all.sum / static_cast<double>(all.count);
    tensorboard_->add(all.step, all.time, {scalar_value(series, mean)});
  }
  tell(tensorboard_->flush());
}

void Sinks::put_back() {
  if (metrics_) tell(metrics_->put_back());
  if (tensorboard_) tell(tensorboard_->put_back());
}

std::string Sinks::published_at() const { return publisher_ ? publisher_->address() : ""; }

std::uint64_t Sinks::dropped() const {
  return (metrics_ ? metrics_->dropped() : 0) + (tensorboard_ ? tensorboard_->dropped() : 0);
}

void Sinks::tell(const Result<void>& result) {
  if (!result.ok()) options_.warn(result.error().message);
}

}  // namespace troupe::telemetry
