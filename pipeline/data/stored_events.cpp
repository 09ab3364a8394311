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

namespace {

// Further parts have a few numbers of each event; more is something else, as another image.
constexpr std::uint64_t kMostNumbers = 64;
constexpr std::size_t kMostNumbersInAll = 1024;

}  // namespace

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
  for (const Source& source : events.sources_) {
    events.columns_.push_back(source.column);
    events.numbers_ += source.column.numbers();
  }
  if (events.numbers_ > kMostNumbersInAll) {
    return Error{ErrorKind::kData,
                 fmt::format("{}: {} numbers of each event beside its image; {} at most are kept",
                             events.paths_.front(), events.numbers_, kMostNumbersInAll)};
  }
  return events;
}

Result<void> StoredEvents::look_at(const std::string& path, const DescribeOptions& options) {
  ASSIGN_OR_RETURN(const DatasetFile file,
                   DatasetFile::open(path, layout_, shape_.is_known() ? shape_ : options.shape));
  ASSIGN_OR_RETURN(const auto container, open_container(path));
  ASSIGN_OR_RETURN(const auto sources, sources_in(*container, file.rows()));
  if (!shape_.is_known()) {
    shape_ = file.shape();
    attributes_ = container->attributes();
    sources_ = sources;
  }
  std::erase_if(sources_, [&](const Source& each) {
    return std::ranges::find(sources, each) == sources.end();
  });
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

Result<std::vector<StoredEvents::Source>> StoredEvents::sources_in(const EventContainer& file,
                                                                   std::uint64_t rows) const {
  const DatasetNames& names = layout_.names;
  const bool fixed = schema_ == DataSchema::kLcdFixed;
  std::vector<std::string> own;
  if (schema_ != DataSchema::kCustom) own = written_parts(schema_);
  own.insert(own.end(), names.images.begin(), names.images.end());
  own.push_back(names.angle);
  std::vector<Source> found;
  std::vector<std::string> derived;  // names that no part gives to itself
  const auto add = [&](std::string name, std::uint64_t width, const PartInfo& part,
                       std::uint64_t first) {
    Source& source = found.emplace_back();
    source.column.name = std::move(name);
    source.column.width = width;
    source.part = part.name;
    source.first = first;
  };
  ASSIGN_OR_RETURN(const PartList list, file.parts());
  for (const PartInfo& part : list.parts) {
    const std::uint64_t width = part.shape.size() > 1 ? part.shape[1] : 1;
    const bool fits = !part.shape.empty() && part.shape.size() <= 2 && part.shape[0] == rows &&
                      width >= 1 && width <= kMostNumbers;
    if (!fits) continue;
    if (fixed && part.name == names.energy && names.energy_column == 1) {
      // The particle, and what stands behind the energy.
      derived.push_back(species_column(DataSchema::kLcdAngle));
      add(derived.back(), 0, part, 0);
      for (std::uint64_t i = 2; i < width; ++i) {
        derived.push_back(fmt::format("{}.{}", part.name, i));
        add(derived.back(), 0, part, i);
      }
      continue;
    }
    // A part of several numbers has others besides the energy.
    const bool is_energy = part.name == names.energy && width == 1;
    if (is_energy || std::ranges::find(own, part.name) != own.end()) continue;
    ASSIGN_OR_RETURN(const Column column, file.column(part.name));
    if (column.of_numbers) add(part.name, width > 1 ? width : 0, part, 0);
  }
  std::erase_if(found, [&](const Source& each) {
    return each.part == each.column.name && std::ranges::find(derived, each.part) != derived.end();
  });
  return found;
}

// Those of the whole file, in slices of rows.
Result<void> StoredEvents::read_columns(const std::string& path) {
  constexpr std::uint64_t kSlice = 65536;
  further_.assign(numbers_ * file_->rows(), 0.0);
  if (sources_.empty()) return {};
  ASSIGN_OR_RETURN(const auto container, open_container(path));
  std::vector<double> slice;
  std::size_t place = 0;
  for (const Source& source : sources_) {
    ASSIGN_OR_RETURN(const Column column, container->column(source.part));
    if (column.rows() != file_->rows()) {
      return Error{ErrorKind::kData, column.place + ": has other rows than before"};
    }
    if (column.check) RETURN_IF_ERROR(column.check());
    const std::uint64_t width = column.row_size();
    for (std::uint64_t first = 0; first < column.rows(); first += kSlice) {
      const std::uint64_t count = std::min(kSlice, column.rows() - first);
      slice.resize(count * width);
      RETURN_IF_ERROR(column.read(first, count, slice.data()));
      for (std::uint64_t row = 0; row < count; ++row) {
        for (std::size_t i = 0; i < source.column.numbers(); ++i) {
          further_[(first + row) * numbers_ + place + i] = slice.at(row * width + source.first + i);
        }
      }
    }
    place += source.column.numbers();
  }
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
    RETURN_IF_ERROR(read_columns(path));
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

Result<void> StoredEvents::next(std::span<Primary> primaries, std::span<float> cells,
                                std::span<double> columns) {
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
    const auto numbers = std::span<const double>(further_).subspan(row * numbers_, numbers_);
    std::ranges::copy(numbers, columns.begin() + static_cast<std::ptrdiff_t>(i * numbers_));
    content_.add(std::as_bytes(numbers));
    if (++ready_row_ == file_->rows()) file_.reset();
  }
  return {};
}

}  // namespace troupe::pipeline
