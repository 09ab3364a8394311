#include "pipeline/data/stored_events.h"

#include <algorithm>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

#include "pipeline/data/dataset_paths.h"
#include "pipeline/data/preprocessing.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Result<StoredEvents> StoredEvents::open(const std::vector<std::string>& paths,
                                        const DescribeOptions& options, runtime::ThreadTeam& team) {
  StoredEvents events(team);
  ASSIGN_OR_RETURN(events.paths_, expand_paths(paths));
  if (options.schema) {
    events.schema_ = *options.schema;
  } else if (!options.names) {
    ASSIGN_OR_RETURN(events.schema_, find_schema({events.paths_.front()}));
  }
  events.layout_ = options.layout(events.schema_);
  for (const std::string& path : events.paths_) RETURN_IF_ERROR(events.look_at(path, options));
  return events;
}

Result<void> StoredEvents::look_at(const std::string& path, const DescribeOptions& options) {
  ASSIGN_OR_RETURN(const DatasetFile file,
                   DatasetFile::open(path, layout_, shape_.is_known() ? shape_ : options.shape));
  if (!shape_.is_known()) {
    shape_ = file.shape();
    ASSIGN_OR_RETURN(const auto container, open_container(path));
    attributes_ = container->attributes();
  }
  if (file.shape() != shape_) {
    return Error{ErrorKind::kData, fmt::format("{}: images of {}; expected {} as in {}", path,
                                               file.shape().text(), shape_.text(), paths_.front())};
  }
  size_ += file.rows();
  rows_.push_back(file.rows());
  of_bytes_ = of_bytes_ && file.images().of_bytes();
  has_angles_ = has_angles_ || file.angle().has_value();
  return {};
}

// Decodes as many blocks at once as there are threads.
Result<void> StoredEvents::refill() {
  if (!file_) {
    CHECK(next_file_ < paths_.size(), "no events are left");
    const std::string& path = paths_[next_file_];
    ASSIGN_OR_RETURN(DatasetFile opened, DatasetFile::open(path, layout_, shape_));
    if (opened.rows() != rows_[next_file_]) {
      return Error{ErrorKind::kData,
                   fmt::format("{}: has {} events, and had {} before; it changes while it is read",
                               path, opened.rows(), rows_[next_file_])};
    }
    ++next_file_;
    file_ = std::make_unique<DatasetFile>(std::move(opened));
    ASSIGN_OR_RETURN(conditions_, file_->read_conditions());
    next_block_ = 0;
  }
  const BlockReader& images = file_->images();
  std::vector<std::uint32_t> blocks(std::min<std::uint32_t>(
      static_cast<std::uint32_t>(team_->threads()), images.blocks() - next_block_));
  std::iota(blocks.begin(), blocks.end(), next_block_);
  ready_first_ = ready_row_ = images.first_row(blocks.front());
  ready_end_ = images.first_row(blocks.back()) + images.rows_of(blocks.back());
  ready_.resize((ready_end_ - ready_first_) * shape_.size());
  const auto keep = [&](std::uint32_t block, std::span<float> values, int) -> Result<void> {
    const std::uint64_t first = (images.first_row(block) - ready_first_) * shape_.size();
    std::ranges::copy(values, ready_.begin() + static_cast<std::ptrdiff_t>(first));
    return {};
  };
  RETURN_IF_ERROR(images.read(blocks, *team_, scratch_, keep));
  next_block_ = blocks.back() + 1;
  return {};
}

Result<void> StoredEvents::check(std::span<const float> cells, std::uint64_t row) const {
  const StoredEvent event{cells, conditions_.energies_gev[row], conditions_.angles_rad[row]};
  if (judge_event(event, Preprocessing{}).state != EventState::kBad) return {};
  const BadEvent bad = describe_bad_event(event, Preprocessing{}, shape_);
  return Error{ErrorKind::kData,
               fmt::format("{}, event {}: {}", file_->place(bad.part), row, bad.text)};
}

Result<void> StoredEvents::next(std::span<Primary> primaries, std::span<float> cells) {
  const std::size_t values = shape_.size();
  for (std::size_t i = 0; i < primaries.size(); ++i) {
    if (ready_row_ == ready_end_) RETURN_IF_ERROR(refill());
    const std::uint64_t row = ready_row_;
    const auto image =
        std::span<const float>(ready_).subspan((row - ready_first_) * values, values);
    RETURN_IF_ERROR(check(image, row));
    std::ranges::copy(image, cells.begin() + static_cast<std::ptrdiff_t>(i * values));
    primaries[i].energy_gev = static_cast<float>(conditions_.energies_gev[row]);
    primaries[i].theta_rad = static_cast<float>(conditions_.angles_rad[row]);
    content_.add_value(primaries[i].energy_gev);
    content_.add_value(primaries[i].theta_rad);
    content_.add(std::as_bytes(image));
    if (++ready_row_ == file_->rows()) file_.reset();
  }
  return {};
}

}  // namespace troupe::pipeline
