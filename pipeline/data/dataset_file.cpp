#include "pipeline/data/dataset_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/data/calo_binning.h"
#include "pipeline/data/data_error.h"
#include "pipeline/data/joined_reader.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::Result;

namespace {

// A row of conditions has a few columns; more means another kind of dataset.
constexpr std::uint64_t kMaxColumns = 1024;
// In place of a column's number: the number of the row's largest column.
constexpr int kLargest = -1;

void add_to_stamp(const std::string& path, FileStamp& stamp) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  stamp.bytes += static_cast<std::uint64_t>(status.st_size);
  stamp.modified_ns += static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1000000000 +
                       static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
}

// One row of images, without axes of one place: how it lies in memory does not depend on these.
std::vector<std::uint64_t> proper(std::span<const std::uint64_t> extents) {
  std::vector<std::uint64_t> kept;
  std::ranges::copy_if(extents, std::back_inserter(kept), [](auto extent) { return extent != 1; });
  return kept;
}

Error unexpected(const BlockReader& images, const std::string& expected) {
  return data_error(
      fmt::format("{}: {}; expected {}", images.place(), images.shape_text(), expected));
}

// The shape that images of these extents have where nobody expects another: a vector, (X, Y), (X,
// Y, Z), (X, Y, Z, channels).
Result<ImageShape> own_shape(const BlockReader& images) {
  constexpr std::uint64_t kMostExtent = 65535;
  const auto extents = std::span(images.shape()).subspan(1);
  const std::uint64_t most = extents.size() == 1 ? UINT32_MAX : kMostExtent;
  bool fits = !extents.empty() && extents.size() <= 4;
  for (const std::uint64_t extent : extents) fits = fits && extent >= 1 && extent <= most;
  if (!fits) {
    return unexpected(images,
                      "(N, X, Y) or (N, X, Y, Z), either with an axis of channels behind, "
                      "or (N, values)");
  }
  ImageShape shape{{1, 1, 1}, 1};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    (i < 3 ? shape.space[i] : shape.channels) = static_cast<std::uint32_t>(extents[i]);
  }
  return shape;
}

// Rows of one axis become images of any shape with as many values, unless their order is another.
Result<ImageShape> image_shape(const BlockReader& images, const ImageShape& expected,
                               bool vectors_stay) {
  ASSIGN_OR_RETURN(const ImageShape found, own_shape(images));
  if (!expected.is_known() || found == expected) return found;
  const auto extents = std::span(images.shape()).subspan(1);
  const std::uint64_t wanted[] = {expected.space[0], expected.space[1], expected.space[2],
                                  expected.channels};
  const bool same = proper(extents) == proper(wanted);
  const bool unfolds = extents.size() == 1 && !vectors_stay && images.row_size() == expected.size();
  if (same || unfolds) return expected;
  return unexpected(images, fmt::format("images of {}", expected.text()));
}

Result<void> check_conditions(const Column& column, std::uint64_t rows, int number) {
  const auto described = [&](const std::string& expected) {
    return data_error(
        fmt::format("{}: {}; expected {}", column.place, column.shape_text, expected));
  };
  if (!column.of_numbers) return described("numbers");
  const std::uint64_t columns = column.shape.empty() ? 0 : column.row_size();
  const int least = number == kLargest ? 2 : number + 1;
  if (columns < static_cast<std::uint64_t>(least) || columns > kMaxColumns) {
    return described(least == 1 ? "(N) or (N, 1)" : fmt::format("(N, {} or more)", least));
  }
  if (column.rows() != rows) return described(fmt::format("{} rows, one per image", rows));
  return column.check ? column.check() : Result<void>{};
}

// The part that a DataColumn names, and its column there, or kLargest.
std::pair<std::string, int> chosen_part(const std::string& name, bool is_part) {
  const std::size_t dot = name.rfind('.');
  if (is_part || dot == std::string::npos) return {name, 0};
  if (name.substr(dot) == ".largest") return {name.substr(0, dot), kLargest};
  int number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + dot + 1, end, number);
  const bool is_number = error == std::errc() && rest == end && number >= 0;
  return is_number ? std::pair(name.substr(0, dot), number) : std::pair(name, 0);
}

// Files without these attributes are the published ones, in the units of the schema.
Result<void> check_attributes(const EventContainer& file, const std::string& path,
                              DataSchema schema) {
  if (schema == DataSchema::kCustom) return {};
  const std::pair<const char*, double> expected[] = {{"power", 1.0},
                                                     {"scale", facts_of(schema).units_per_gev}};
  for (const auto& [name, value] : expected) {
    const std::optional<double> found = file.number_attribute(name);
    if (found && *found != value) {
      return data_error(fmt::format("{}: attribute {} is {}; {} files have {}", path, name, *found,
                                    text(schema), value));
    }
  }
  return {};
}

// A NaN of the row is its answer, too.
double number_of_largest(std::span<const double> row) {
  const auto is_nan = [](double value) { return std::isnan(value); };
  if (const auto nan = std::ranges::find_if(row, is_nan); nan != row.end()) return *nan;
  return static_cast<double>(std::ranges::max_element(row) - row.begin());
}

// Those of the part, or of the parts one behind the other, of which nobody knows how many values
// each is expected to have.
Result<std::unique_ptr<BlockReader>> images_of(const EventContainer& file, const std::string& path,
                                               const std::vector<std::string>& names,
                                               std::uint64_t values) {
  if (names.size() == 1) return file.images(names.front(), values);
  if (file.format() == FileFormat::kIdx) {
    return data_error(fmt::format("{}: an IDX file has one image of each event; {} are named: {}",
                                  path, names.size(), fmt::join(names, ", ")));
  }
  std::vector<std::unique_ptr<BlockReader>> parts;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(parts.emplace_back(), file.images(name, 0));
  }
  return JoinedReader::create(std::move(parts), names);
}

// One column of every row, or the number of its largest one, in slices so that wide rows need
// little memory.
Result<std::vector<double>> read_column(const Column& numbers, int column) {
  constexpr std::uint64_t kSlice = 65536;
  const std::uint64_t columns = numbers.row_size();
  std::vector<double> all;
  std::vector<double> slice;
  for (std::uint64_t first = 0; first < numbers.rows(); first += kSlice) {
    const std::uint64_t count = std::min(kSlice, numbers.rows() - first);
    slice.resize(count * columns);
    RETURN_IF_ERROR(numbers.read(first, count, slice.data()));
    for (std::uint64_t row = 0; row < count; ++row) {
      const auto numbers_of_row = std::span<const double>(slice).subspan(row * columns, columns);
      all.push_back(column == kLargest ? number_of_largest(numbers_of_row)
                                       : numbers_of_row[static_cast<std::size_t>(column)]);
    }
  }
  return all;
}

}  // namespace

bool names_column(const std::string& name, std::span<const std::string> columns) {
  const auto has = [&](const std::string& wanted) {
    return std::ranges::find(columns, wanted) != columns.end();
  };
  if (has(name) || has(name + ".0")) return true;
  const auto [part, number] = chosen_part(name, false);
  return number == 0 && has(part);
}

Result<DatasetFile> DatasetFile::open(const std::string& path, const FileLayout& layout,
                                      const ImageShape& expected_shape) {
  DatasetFile opened;
  opened.path_ = path;
  opened.names_ = layout.names;
  // The file's stamp is taken before it is opened, so that stamp_now() differs even after a change
  // in between.
  add_to_stamp(path, opened.stamp_);
  ASSIGN_OR_RETURN(const auto file, open_container(path));
  const FileFormat format = facts_of(layout.schema).format;
  if (layout.schema != DataSchema::kCustom && file->format() != format) {
    return data_error(fmt::format("{}: a file of {}; expected {}, as data.schema is {}", path,
                                  text(file->format()), text(format), text(layout.schema)));
  }
  RETURN_IF_ERROR(check_attributes(*file, path, layout.schema));
  RETURN_IF_ERROR(opened.open_images(*file, layout, expected_shape));
  RETURN_IF_ERROR(opened.open_columns(*file, layout));
  opened.add_homes();
  return opened;
}

Result<void> DatasetFile::open_images(const EventContainer& file, const FileLayout& layout,
                                      const ImageShape& expected_shape) {
  ASSIGN_OR_RETURN(images_, images_of(file, path_, layout.names.images, expected_shape.size()));
  const bool voxels = layout.schema == DataSchema::kCaloChallenge;
  if (voxels && images_->shape().size() != 2) return unexpected(*images_, "(N, voxels)");
  if (voxels && !layout.binning.empty()) {
    ASSIGN_OR_RETURN(CaloBinning binning, binning_for(layout.binning, images_->row_size()));
    box_text_ = binning.text();
    ASSIGN_OR_RETURN(images_, BoxReader::create(std::move(images_), std::move(binning)));
  }
  ASSIGN_OR_RETURN(shape_, image_shape(*images_, expected_shape, voxels));
  return {};
}

Result<void> DatasetFile::open_columns(const EventContainer& file, const FileLayout& layout) {
  const DatasetNames& names = layout.names;
  ASSIGN_OR_RETURN(energy_, file.column(names.energy));
  RETURN_IF_ERROR(check_conditions(energy_, rows(), names.energy_column));
  for (const DataColumn& chosen : layout.columns) {
    const auto [part, number] = chosen_part(chosen.name, file.contains(chosen.name));
    Result<Column> numbers = file.column(part);
    if (!numbers.ok()) {
      return data_error(numbers.error().message +
                        "; the model makes it, or asks for it as a condition or a target");
    }
    RETURN_IF_ERROR(check_conditions(*numbers, rows(), number));
    columns_.push_back({std::move(numbers).value(), number, chosen});
  }
  if (names.angle.empty()) return {};
  // Files of this schema that lack the true angle have the measured one in its place.
  const bool measured = layout.schema == DataSchema::kLcdAngle && names.angle == "theta" &&
                        !file.contains("theta") && file.contains("mtheta");
  ASSIGN_OR_RETURN(angle_, file.column(measured ? "mtheta" : names.angle));
  return check_conditions(*angle_, rows(), 0);
}

void DatasetFile::add_homes() {
  other_homes_ = {images_->homes().begin(), images_->homes().end()};
  other_homes_.insert(energy_.home);
  if (angle_) other_homes_.insert(angle_->home);
  for (const Chosen& column : columns_) other_homes_.insert(column.numbers.home);
  other_homes_.erase(path_);
  for (const std::string& home : other_homes_) add_to_stamp(home, stamp_);
}

FileStamp DatasetFile::stamp_now() const {
  FileStamp stamp;
  add_to_stamp(path_, stamp);
  for (const std::string& home : other_homes_) add_to_stamp(home, stamp);
  return stamp;
}

std::optional<DatasetFile::ColumnFault> DatasetFile::fault_of_columns(
    std::span<const double> numbers) const {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto& [column, number, wanted] = columns_.at(i);
    const auto seen = static_cast<float>(numbers[i]);
    const auto same = [seen](double value) { return static_cast<float>(value) == seen; };
    const bool is_listed = wanted.values.empty() || std::ranges::any_of(wanted.values, same);
    const double end = static_cast<double>(wanted.classes);
    const bool is_class =
        wanted.classes == 0 || (seen >= 0.0F && seen < end && std::trunc(seen) == seen);
    const bool in_range =
        wanted.is_probability ? seen >= 0.0F && seen <= 1.0F : std::isfinite(seen);
    if (in_range && is_listed && is_class) continue;
    std::string expected = "a number within the range of 32-bit floats";
    if (!is_listed) {
      expected = fmt::format("{}{}", wanted.values.size() > 1 ? "one of " : "",
                             fmt::join(wanted.values, ", "));
    } else if (!is_class) {
      expected =
          fmt::format("a whole number from 0 to {}, a class of an embedding", wanted.classes - 1);
    } else if (wanted.is_probability) {
      expected = "0 to 1, for a binary cross-entropy";
    }
    return ColumnFault{column.place, fmt::format("is {}; expected {}", numbers[i], expected)};
  }
  return {};
}

const std::string& DatasetFile::place(EventPart part) const {
  switch (part) {
    case EventPart::kImage:
      return images_->place();
    case EventPart::kEnergy:
      return energy_.place;
    case EventPart::kAngle:
      return angle_->place;
  }
  CHECK(false, "no such part");
}

Result<EventConditions> DatasetFile::read_conditions() const {
  EventConditions conditions;
  ASSIGN_OR_RETURN(conditions.energies_gev, read_column(energy_, names_.energy_column));
  for (double& energy : conditions.energies_gev) {
    energy = (energy + names_.energy_offset) * names_.energy_unit_gev;
  }
  if (angle_) {
    ASSIGN_OR_RETURN(conditions.angles_rad, read_column(*angle_, 0));
  } else {
    conditions.angles_rad.assign(rows(), std::numbers::pi / 2);
  }
  conditions.columns.resize(rows() * columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<double> values,
                     read_column(columns_[i].numbers, columns_[i].number));
    for (std::size_t row = 0; row < values.size(); ++row) {
      conditions.columns[row * columns_.size() + i] = values[row];
    }
  }
  return conditions;
}

}  // namespace troupe::pipeline
