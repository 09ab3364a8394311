#include "pipeline/data/flat_shower_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"
#include "pipeline/data/example_message.h"
#include "pipeline/data/idx_file.h"
#include "runtime/base/bytes.h"
#include "runtime/base/json_text.h"
#include "runtime/base/new_file.h"
#include "runtime/base/tf_record.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::NewFile;
using runtime::Result;

namespace {

constexpr std::size_t kFlatRoundBytes = 8u << 20;
// A label has been an energy in float meanwhile.
constexpr double kLabelTolerance = 1e-3;

// A file that grows at its end.
class GrowingFile {
 public:
  static Result<GrowingFile> create(const std::string& path) {
    ASSIGN_OR_RETURN(NewFile file, NewFile::create(path));
    return GrowingFile(std::move(file));
  }
  Result<void> add(std::span<const std::byte> bytes) {
    RETURN_IF_ERROR(file_.write(end_, bytes));
    end_ += bytes.size();
    return {};
  }
  Result<void> add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  Result<void> finish() { return file_.finish(); }

 private:
  explicit GrowingFile(NewFile file) : file_(std::move(file)) {}

  NewFile file_;
  std::uint64_t end_ = 0;
};

// Calls write(primary, cells, columns) with all events in turn.
template <class Write>
Result<void> for_rounds(const ShowerFileOptions& options, const ShowerSource& source,
                        const Progress& progress, const Write& write) {
  const std::size_t values =
      std::size_t{options.shape[0]} * options.shape[1] * options.shape[2] * options.channels;
  const std::uint64_t most = std::max<std::uint64_t>(1, kFlatRoundBytes / sizeof(float) / values);
  std::size_t numbers = 0;
  for (const ShowerColumn& column : options.columns) numbers += column.numbers();
  std::vector<float> cells;
  std::vector<double> columns;
  for (std::uint64_t done = 0; done < options.events;) {
    const std::uint64_t count = std::min(most, options.events - done);
    std::vector<Primary> primaries(count);
    cells.resize(count * values);
    columns.assign(count * numbers, 0.0);
    source(done, primaries, cells, columns);
    for (std::uint64_t i = 0; i < count; ++i) {
      RETURN_IF_ERROR(write(primaries[i], std::span<const float>(cells).subspan(i * values, values),
                            std::span<const double>(columns).subspan(i * numbers, numbers)));
    }
    done += count;
    if (progress) RETURN_IF_ERROR(progress(done, options.events));
  }
  return {};
}

std::string origin_path(const std::string& path) { return path + ".origin.json"; }

// Facts that the file cannot tell itself.
Result<GrowingFile> write_origin(const ShowerFileOptions& options, const std::string& path) {
  ASSIGN_OR_RETURN(GrowingFile file, GrowingFile::create(origin_path(path)));
  std::string members;
  for (const auto& [name, value] : options.last_attributes()) {
    members += fmt::format("{}\n  {}: {}", members.empty() ? "" : ",", runtime::json_string(name),
                           runtime::json_string(value));
  }
  RETURN_IF_ERROR(file.add(fmt::format("{{{}\n}}\n", members)));
  return file;
}

// Finishes files that belong together: all of them stand in the end, or none that was not there.
Result<void> finish_all(std::vector<std::pair<std::string, GrowingFile>>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Result<void> finished = files[i].second.finish();
    if (finished.ok()) continue;
    std::error_code ignored;
    for (std::size_t k = 0; k < i; ++k) std::filesystem::remove(files[k].first, ignored);
    return finished.error();
  }
  return {};
}

Result<void> finish(const ShowerFileOptions& options, const std::string& path,
                    std::vector<std::pair<std::string, GrowingFile>> files) {
  if (options.last_attributes) {
    ASSIGN_OR_RETURN(GrowingFile origin, write_origin(options, path));
    files.emplace_back(origin_path(path), std::move(origin));
  }
  return finish_all(files);
}

std::string bytes_text(std::span<const float> cells) {
  std::string text(cells.size(), '\0');
  std::ranges::transform(cells, text.begin(), [](float cell) {
    return static_cast<char>(static_cast<unsigned char>(cell));
  });
  return text;
}

template <class T>
void append_big_endian(std::string& text, T bits) {
  const auto bytes = runtime::to_big_endian(bits);
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// The cells of an image as the type has them, one of kUint8 and kFloat32.
std::string idx_cells(IdxType type, std::span<const float> cells) {
  if (type == IdxType::kUint8) return bytes_text(cells);
  std::string text;
  for (const float cell : cells) append_big_endian(text, std::bit_cast<std::uint32_t>(cell));
  return text;
}

// A label as the type has it, one of kUint8 and kFloat64: no float, so that energies come back.
Result<std::string> idx_label(IdxType type, std::uint64_t event, double label) {
  if (type == IdxType::kUint8) {
    const double whole = std::round(label);
    if (!(whole >= 0 && whole <= 255 && std::abs(label - whole) < kLabelTolerance)) {
      return data_error(fmt::format(
          "event {} has the label {:.6g}; bytes hold whole numbers from 0 to 255", event, label));
    }
    return std::string{static_cast<char>(static_cast<unsigned char>(whole))};
  }
  std::string text;
  append_big_endian(text, std::bit_cast<std::uint64_t>(label));
  return text;
}

IdxHeader image_header(const ShowerFileOptions& options) {
  IdxHeader header{options.bytes ? IdxType::kUint8 : IdxType::kFloat32,
                   {options.events, options.shape[0], options.shape[1]}};
  if (options.shape[2] > 1 || options.channels > 1) header.shape.push_back(options.shape[2]);
  if (options.channels > 1) header.shape.push_back(options.channels);
  return header;
}

}  // namespace

Result<void> write_record_file(const ShowerFileOptions& options, const ShowerSource& source,
                               const std::string& path, const Progress& progress) {
  ASSIGN_OR_RETURN(GrowingFile file, GrowingFile::create(path));
  std::vector<std::int64_t> shape(options.shape.begin(), options.shape.end());
  if (options.channels > 1) shape.push_back(options.channels);
  const DatasetNames names = default_names(DataSchema::kTfRecord);
  const auto write = [&](const Primary& primary, std::span<const float> cells,
                         std::span<const double> numbers) {
    ExampleWriter example;
    if (options.bytes) {
      example.bytes(names.images.front(), bytes_text(cells));
    } else {
      example.floats(names.images.front(), cells);
    }
    example.integers("shape", shape).floats(names.energy, std::span(&primary.energy_gev, 1));
    if (options.angles) example.floats("theta", std::span(&primary.theta_rad, 1));
    for (const ShowerColumn& column : options.columns) {
      const std::vector<float> values(
          numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(column.numbers()));
      example.floats(column.name, values);
      numbers = numbers.subspan(column.numbers());
    }
    return file.add(runtime::tf_record(example.message()));
  };
  RETURN_IF_ERROR(for_rounds(options, source, progress, write));
  std::vector<std::pair<std::string, GrowingFile>> files;
  files.emplace_back(path, std::move(file));
  return finish(options, path, std::move(files));
}

Result<void> write_idx_file(const ShowerFileOptions& options, const ShowerSource& source,
                            const std::string& path, const Progress& progress) {
  const auto labels_path = idx_labels_path(path);
  if (!labels_path) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{}: a file of IDX images has \"images\" in its name, as in "
                             "train-images-idx3-ubyte; that of its labels is called after it",
                             path)};
  }
  if (options.events > UINT32_MAX) {
    return Error{ErrorKind::kUsage, path + ": IDX has no room for more than 2^32 - 1 events"};
  }
  ASSIGN_OR_RETURN(GrowingFile images, GrowingFile::create(path));
  ASSIGN_OR_RETURN(GrowingFile labels, GrowingFile::create(*labels_path));
  const IdxHeader image = image_header(options);
  const IdxHeader label{options.labels ? IdxType::kUint8 : IdxType::kFloat64, {options.events}};
  RETURN_IF_ERROR(images.add(idx_header_bytes(image)));
  RETURN_IF_ERROR(labels.add(idx_header_bytes(label)));
  const DatasetNames names = default_names(DataSchema::kIdx);
  std::uint64_t event = 0;
  const auto write = [&](const Primary& primary, std::span<const float> cells,
                         std::span<const double>) -> Result<void> {
    const double number =
        static_cast<double>(primary.energy_gev) / names.energy_unit_gev - names.energy_offset;
    ASSIGN_OR_RETURN(const std::string bytes, idx_label(label.type, event++, number));
    RETURN_IF_ERROR(labels.add(bytes));
    return images.add(idx_cells(image.type, cells));
  };
  RETURN_IF_ERROR(for_rounds(options, source, progress, write));
  std::vector<std::pair<std::string, GrowingFile>> files;
  files.emplace_back(path, std::move(images));
  files.emplace_back(*labels_path, std::move(labels));
  return finish(options, path, std::move(files));
}

}  // namespace troupe::pipeline
