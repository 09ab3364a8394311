#include "pipeline/data/dataset_file.h"

#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"
#include "pipeline/data/hdf5_file.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

// A row of conditions has a few columns; more means another kind of dataset.
constexpr std::uint64_t kMaxColumns = 1024;

void add_to_stamp(const std::string& path, FileStamp& stamp) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  stamp.bytes += static_cast<std::uint64_t>(status.st_size);
  stamp.modified_ns += static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1000000000 +
                       static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
}

Result<std::array<std::uint32_t, 3>> image_shape(const Hdf5Dataset& images,
                                                 std::array<std::uint32_t, 3> expected) {
  const auto& shape = images.shape();
  const bool rank = shape.size() == 4 || (shape.size() == 5 && shape[4] == 1);
  bool fits = rank;
  for (std::size_t i = 1; rank && i < 4; ++i) fits = fits && shape[i] >= 1 && shape[i] <= 65535;
  if (!fits) {
    return data_error(fmt::format("{}: {}; expected (N, X, Y, Z) or (N, X, Y, Z, 1)",
                                  images.place(), images.shape_text()));
  }
  std::array<std::uint32_t, 3> found{};
  for (std::size_t i = 0; i < 3; ++i) found[i] = static_cast<std::uint32_t>(shape[i + 1]);
  if (expected != std::array<std::uint32_t, 3>{} && found != expected) {
    return data_error(fmt::format("{}: {}; expected images of {} x {} x {}", images.place(),
                                  images.shape_text(), expected[0], expected[1], expected[2]));
  }
  return found;
}

Result<void> check_conditions(const Hdf5Dataset& dataset, std::uint64_t rows, int column) {
  const auto& shape = dataset.shape();
  const auto described = [&](const std::string& expected) {
    return data_error(
        fmt::format("{}: {}; expected {}", dataset.place(), dataset.shape_text(), expected));
  };
  if (dataset.type() == Hdf5Type::kOther) return described("numbers");
  const std::uint64_t columns = shape.empty() ? 0 : dataset.row_size();
  if (columns <= static_cast<std::uint64_t>(column) || columns > kMaxColumns) {
    return described(column == 0 ? "(N) or (N, 1)" : fmt::format("(N, {} or more)", column + 1));
  }
  if (dataset.rows() != rows) return described(fmt::format("{} rows, one per image", rows));
  RETURN_IF_ERROR(dataset.check_claims());
  return dataset.check_written();
}

// Files without these attributes are the published ones, in the units of the schema.
Result<void> check_attributes(const Hdf5File& file, DataSchema schema) {
  if (schema == DataSchema::kCustom) return {};
  const double units = schema == DataSchema::kLcdAngle ? 50.0 : 1.0;
  const std::pair<const char*, double> expected[] = {{"power", 1.0}, {"scale", units}};
  for (const auto& [name, value] : expected) {
    const std::optional<double> found = file.number_attribute(name);
    if (found && *found != value) {
      return data_error(fmt::format("{}: attribute {} is {}; {} files have {}", file.path(), name,
                                    *found, text(schema), value));
    }
  }
  return {};
}

// One column of every row, in slices so that wide rows need little memory.
Result<std::vector<double>> read_column(const Hdf5Dataset& dataset, int column) {
  constexpr std::uint64_t kSlice = 65536;
  const std::uint64_t columns = dataset.row_size();
  std::vector<double> all;
  std::vector<double> slice;
  for (std::uint64_t first = 0; first < dataset.rows(); first += kSlice) {
    const std::uint64_t count = std::min(kSlice, dataset.rows() - first);
    slice.resize(count * columns);
    RETURN_IF_ERROR(dataset.read_rows(first, count, slice.data()));
    for (std::uint64_t row = 0; row < count; ++row) {
      all.push_back(slice[row * columns + static_cast<std::uint64_t>(column)]);
    }
  }
  return all;
}

}  // namespace

DatasetFile::DatasetFile(std::string path, ChunkReader images, Hdf5Dataset energy)
    : path_(std::move(path)), images_(std::move(images)), energy_(std::move(energy)) {}

Result<DatasetFile> DatasetFile::open(const std::string& path, DataSchema schema,
                                      const DatasetNames& names,
                                      std::array<std::uint32_t, 3> expected_shape) {
  // The file's stamp is taken before it is opened, so that stamp_now() differs even after a change
  // in between.
  FileStamp stamp;
  add_to_stamp(path, stamp);
  ASSIGN_OR_RETURN(const Hdf5File file, Hdf5File::open(path));
  RETURN_IF_ERROR(check_attributes(file, schema));
  ASSIGN_OR_RETURN(Hdf5Dataset images, file.dataset(names.image));
  ASSIGN_OR_RETURN(const auto shape, image_shape(images, expected_shape));
  ASSIGN_OR_RETURN(ChunkReader reader, ChunkReader::create(std::move(images)));
  ASSIGN_OR_RETURN(Hdf5Dataset energy, file.dataset(names.energy));
  RETURN_IF_ERROR(check_conditions(energy, reader.rows(), names.energy_column));
  DatasetFile opened(path, std::move(reader), std::move(energy));
  opened.shape_ = shape;
  opened.energy_column_ = names.energy_column;
  opened.energy_unit_gev_ = names.energy_unit_gev;
  if (!names.angle.empty()) {
    // Files of this schema that lack the true angle have the measured one in its place.
    const bool measured = schema == DataSchema::kLcdAngle && names.angle == "theta" &&
                          !file.contains("theta") && file.contains("mtheta");
    ASSIGN_OR_RETURN(Hdf5Dataset angle, file.dataset(measured ? "mtheta" : names.angle));
    RETURN_IF_ERROR(check_conditions(angle, opened.rows(), 0));
    opened.angle_ = std::move(angle);
  }
  // External links may lead to other files, whose changes count as well.
  std::set<std::string> homes{opened.images_.dataset().home(), opened.energy_.home()};
  if (opened.angle_) homes.insert(opened.angle_->home());
  homes.erase(path);
  for (const std::string& home : homes) add_to_stamp(home, stamp);
  opened.other_homes_ = std::move(homes);
  opened.stamp_ = stamp;
  return opened;
}

FileStamp DatasetFile::stamp_now() const {
  FileStamp stamp;
  add_to_stamp(path_, stamp);
  for (const std::string& home : other_homes_) add_to_stamp(home, stamp);
  return stamp;
}

Result<EventConditions> DatasetFile::read_conditions() const {
  EventConditions conditions;
  ASSIGN_OR_RETURN(conditions.energies_gev, read_column(energy_, energy_column_));
  for (double& energy : conditions.energies_gev) energy *= energy_unit_gev_;
  if (angle_) {
    ASSIGN_OR_RETURN(conditions.angles_rad, read_column(*angle_, 0));
  } else {
    conditions.angles_rad.assign(rows(), std::numbers::pi / 2);
  }
  return conditions;
}

}  // namespace troupe::pipeline
