#include "pipeline/data/record_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/data/data_error.h"
#include "pipeline/data/example_message.h"
#include "pipeline/data/file_bytes.h"
#include "pipeline/data/hdf5_file.h"
#include "runtime/base/bytes.h"
#include "runtime/base/tf_record.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kFrontBytes = kLengthBytes + kChecksumBytes;
// Nobody writes larger ones, and protobuf reads none.
constexpr std::uint64_t kMostRecordBytes = 0x7fffffff;
constexpr const char* kShape = "shape";

bool checksum_is_right(std::span<const std::byte> content, std::span<const std::byte> stored) {
  return runtime::masked_crc32c(content) == runtime::from_little_endian(stored);
}

struct Place {
  std::uint64_t offset;  // of the content
  std::uint64_t bytes;
};

// The records of a file, found by their lengths.
class Records {
 public:
  static Result<std::shared_ptr<const Records>> open(const std::string& path);

  const FileBytes& file() const { return file_; }
  std::uint64_t size() const { return places_.size(); }
  std::string place(const std::string& feature) const {
    return fmt::format("{}: feature {}", file_.path(), feature);
  }
  // Calls `take(feature)` with one feature of a record, which has the given number of values, and
  // returns what it says; through `stored`.
  template <class Take>
  Result<void> with_feature(std::uint64_t record, const std::string& name,
                            std::vector<std::byte>& stored, const Take& take) const {
    ASSIGN_OR_RETURN(const auto features, read(record, stored));
    for (const ExampleFeature& feature : features) {
      if (feature.name == name) return take(feature);
    }
    return data_error(fmt::format("{}: missing in record {}", place(name), record));
  }
  // The features are views of `stored`.
  Result<std::vector<ExampleFeature>> read(std::uint64_t record,
                                           std::vector<std::byte>& stored) const;

 private:
  Error damaged(std::uint64_t record, std::string_view what) const {
    return data_error(fmt::format("{}: record {} {}", file_.path(), record, what));
  }
  Result<void> find();

  FileBytes file_;
  std::vector<Place> places_;
};

Result<std::shared_ptr<const Records>> Records::open(const std::string& path) {
  auto records = std::make_shared<Records>();
  ASSIGN_OR_RETURN(records->file_, FileBytes::open(path));
  RETURN_IF_ERROR(records->find());
  return std::shared_ptr<const Records>(std::move(records));
}

Result<void> Records::find() {
  std::array<std::byte, kFrontBytes> front;
  for (std::uint64_t at = 0; at < file_.size();) {
    const std::uint64_t left = file_.size() - at;
    if (left < kFrontBytes) return damaged(size(), "is cut short");
    RETURN_IF_ERROR(file_.read(at, front));
    const std::span<const std::byte> all = front;
    if (!checksum_is_right(all.first(kLengthBytes), all.subspan(kLengthBytes))) {
      return damaged(size(), "has a length with a wrong checksum; the file is damaged");
    }
    const std::uint64_t bytes = runtime::from_little_endian(all.first(kLengthBytes));
    if (bytes > kMostRecordBytes || bytes + kChecksumBytes > left - kFrontBytes) {
      return damaged(size(), "is cut short");
    }
    places_.push_back({at + kFrontBytes, bytes});
    at += kFrontBytes + bytes + kChecksumBytes;
  }
  return {};
}

Result<std::vector<ExampleFeature>> Records::read(std::uint64_t record,
                                                  std::vector<std::byte>& stored) const {
  const Place& place = places_[record];
  stored.resize(place.bytes + kChecksumBytes);
  RETURN_IF_ERROR(file_.read(place.offset, stored));
  const auto content = std::span<const std::byte>(stored).first(place.bytes);
  if (!checksum_is_right(content, std::span<const std::byte>(stored).subspan(place.bytes))) {
    return damaged(record, "has a wrong checksum; the file is damaged");
  }
  auto features = read_example(content);
  if (!features) return damaged(record, "is no tf.train.Example");
  return *std::move(features);
}

// A feature as the first record has it; the others have the same kind and count of it.
struct FirstFeature {
  ExampleFeature::Kind kind = ExampleFeature::Kind::kNone;
  std::uint64_t values = 0;

  // Reading tells whether the count of numbers is right, but bytes may be numbers or floats.
  bool is_like(const ExampleFeature& feature) const {
    return feature.kind == kind &&
           (kind != ExampleFeature::Kind::kBytes || feature.count() == values);
  }
  Error unlike(const std::string& place, std::uint64_t record,
               const ExampleFeature& feature) const {
    return data_error(fmt::format("{}: record {} has {} {}; expected {} {} as in the first", place,
                                  record, feature.count().value_or(0), text(feature.kind), values,
                                  text(kind)));
  }
};

class RecordImages final : public BlockReader {
 public:
  static Result<std::unique_ptr<BlockReader>> create(std::shared_ptr<const Records> records,
                                                     const std::string& name,
                                                     const FirstFeature& first,
                                                     std::vector<std::uint64_t> shape,
                                                     const char* type, bool of_bytes) {
    auto reader = std::unique_ptr<RecordImages>(new RecordImages(records, name, first));
    std::uint64_t values = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) values *= shape[i];
    const FileBytes& file = records->file();
    RETURN_IF_ERROR(reader->begin(
        {.place = records->place(name),
         .shape_text = fmt::format("({}) {}", fmt::join(shape, ", "), type),
         .shape = shape,
         .homes = {file.path()},
         .note = file.is_unpacked()
                     ? fmt::format("{} is unpacked into memory: {:.1f} MB", file.path(),
                                   static_cast<double>(file.size()) / 1e6)
                     : "",
         .of_bytes = of_bytes},
        usual_block_rows(values)));
    return std::unique_ptr<BlockReader>(std::move(reader));
  }

 private:
  RecordImages(std::shared_ptr<const Records> records, std::string name, FirstFeature first)
      : records_(std::move(records)), name_(std::move(name)), first_(first) {}

  Result<void> read_block(std::uint32_t block, Scratch& scratch) const override {
    scratch.block.resize(block_rows() * row_size());
    for (std::uint64_t i = 0; i < rows_of(block); ++i) {
      const std::uint64_t record = first_row(block) + i;
      const auto out = std::span(scratch.block).subspan(i * row_size(), row_size());
      const auto take = [&](const ExampleFeature& feature) -> Result<void> {
        if (first_.is_like(feature) && feature.read(out)) return {};
        return first_.unlike(place(), record, feature);
      };
      RETURN_IF_ERROR(records_->with_feature(record, name_, scratch.stored, take));
    }
    return {};
  }

  std::shared_ptr<const Records> records_;
  std::string name_;
  FirstFeature first_;
};

// The parts as the first record has them.
class RecordContainer final : public EventContainer {
 public:
  struct Part {
    std::string name;
    FirstFeature first;
  };

  RecordContainer(std::shared_ptr<const Records> records, std::vector<Part> parts,
                  std::vector<std::uint64_t> extents)
      : records_(std::move(records)), parts_(std::move(parts)), extents_(std::move(extents)) {}

  FileFormat format() const override { return FileFormat::kTfRecord; }
  bool contains(const std::string& name) const override { return find(name) != nullptr; }

  Result<std::unique_ptr<BlockReader>> images(const std::string& name,
                                              std::uint64_t values) const override {
    const Part* part = find(name);
    if (part == nullptr) return missing(name);
    if (part->first.values == 0) {
      return data_error(fmt::format("{}: it holds no numbers", records_->place(name)));
    }
    std::vector<std::uint64_t> shape = shape_of(*part, values);
    const bool bytes = part->first.kind == ExampleFeature::Kind::kBytes;
    const bool packed_floats = bytes && is_fourth(product(shape), part->first.values);
    shape.insert(shape.begin(), records_->size());
    return RecordImages::create(records_, name, part->first, shape,
                                packed_floats ? "float32 in bytes" : text(part->first.kind),
                                bytes && !packed_floats);
  }

  Result<Column> column(const std::string& name) const override {
    const Part* part = find(name);
    if (part == nullptr) return missing(name);
    const FirstFeature like = part->first;
    Column column{
        .place = records_->place(name),
        .shape_text = fmt::format("({}, {}) {}", records_->size(), like.values, text(like.kind)),
        .shape = {records_->size(), like.values},
        .of_numbers = like.kind != ExampleFeature::Kind::kBytes,
        .home = records_->file().path()};
    column.read = [records = records_, name, like](std::uint64_t first, std::uint64_t count,
                                                   double* out) -> Result<void> {
      std::vector<std::byte> stored;
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::span<double> row(out + i * like.values, like.values);
        const auto take = [&](const ExampleFeature& feature) -> Result<void> {
          if (like.is_like(feature) && feature.read(row)) return {};
          return like.unlike(records->place(name), first + i, feature);
        };
        RETURN_IF_ERROR(records->with_feature(first + i, name, stored, take));
      }
      return {};
    };
    return column;
  }

  Result<PartList> parts() const override {
    PartList list;
    for (const Part& part : parts_) {
      list.parts.push_back({.name = part.name,
                            .shape = {records_->size(), part.first.values},
                            .type = text(part.first.kind)});
    }
    return list;
  }

 private:
  // 0 where it has more than 64 bits.
  static std::uint64_t product(const std::vector<std::uint64_t>& extents) {
    std::uint64_t all = 1;
    for (const std::uint64_t extent : extents) {
      if (__builtin_mul_overflow(all, extent, &all)) return 0;
    }
    return all;
  }
  static bool is_fourth(std::uint64_t numbers, std::uint64_t bytes) {
    return numbers > 0 && bytes % 4 == 0 && numbers == bytes / 4;
  }
  const Part* find(const std::string& name) const {
    const auto found = std::ranges::find(parts_, name, &Part::name);
    return found == parts_.end() ? nullptr : &*found;
  }
  // Extents of an image: those that the file tells, else one axis.
  std::vector<std::uint64_t> shape_of(const Part& part, std::uint64_t values) const {
    const std::uint64_t count = part.first.values;
    const bool bytes = part.first.kind == ExampleFeature::Kind::kBytes;
    const auto fits = [&](std::uint64_t numbers) {
      return numbers == count || (bytes && is_fourth(numbers, count));
    };
    if (!extents_.empty() && fits(product(extents_))) return extents_;
    return {fits(values) ? values : count};
  }
  Error missing(const std::string& name) const {
    std::vector<std::string> names;
    for (const Part& part : parts_) names.push_back(part.name);
    return data_error(fmt::format("{}: no feature {}; its records have {}", records_->file().path(),
                                  name, names_text(names)));
  }

  std::shared_ptr<const Records> records_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> extents_;
};

// Empty unless the feature holds 1 to 4 whole numbers that may be extents.
std::vector<std::uint64_t> extents_in(const ExampleFeature& feature) {
  constexpr double kMost = 65535;
  const auto count = feature.count();
  if (feature.kind != ExampleFeature::Kind::kIntegers || !count || *count < 1 || *count > 4) {
    return {};
  }
  std::vector<double> numbers(*count);
  if (!feature.read(std::span(numbers))) return {};
  std::vector<std::uint64_t> extents;
  for (const double number : numbers) {
    if (!(number >= 1 && number <= kMost)) return {};
    extents.push_back(static_cast<std::uint64_t>(number));
  }
  return extents;
}

}  // namespace

bool is_record_file(std::span<const std::byte> head) {
  return head.size() >= kFrontBytes &&
         checksum_is_right(head.first(kLengthBytes), head.subspan(kLengthBytes, kChecksumBytes));
}

Result<std::unique_ptr<EventContainer>> open_records(const std::string& path) {
  ASSIGN_OR_RETURN(const auto records, Records::open(path));
  if (records->size() == 0) return data_error(path + ": holds no records");
  std::vector<std::byte> stored;
  ASSIGN_OR_RETURN(const auto features, records->read(0, stored));
  std::vector<RecordContainer::Part> parts;
  std::vector<std::uint64_t> extents;
  for (const ExampleFeature& feature : features) {
    parts.push_back({std::string(feature.name), {feature.kind, feature.count().value_or(0)}});
    if (feature.name == kShape) extents = extents_in(feature);
  }
  return std::unique_ptr<EventContainer>(
      std::make_unique<RecordContainer>(records, std::move(parts), std::move(extents)));
}

}  // namespace troupe::pipeline
