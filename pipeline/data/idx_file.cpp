#include "pipeline/data/idx_file.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/data/data_error.h"
#include "pipeline/data/file_bytes.h"
#include "runtime/base/bytes.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::size_t kMostAxes = 5;
constexpr const char* kImages = "images";
constexpr const char* kLabels = "labels";

bool is_type(std::byte byte) {
  const auto type = std::to_integer<std::uint8_t>(byte);
  return type == 0x08 || type == 0x09 || (type >= 0x0b && type <= 0x0e);
}

// One big-endian number.
double number_at(IdxType type, std::span<const std::byte> bytes) {
  const std::uint64_t bits = runtime::from_big_endian(bytes);
  switch (type) {
    case IdxType::kUint8:
      return static_cast<double>(bits);
    case IdxType::kInt8:
      return static_cast<double>(static_cast<std::int8_t>(bits));
    case IdxType::kInt16:
      return static_cast<double>(static_cast<std::int16_t>(bits));
    case IdxType::kInt32:
      return static_cast<double>(static_cast<std::int32_t>(bits));
    case IdxType::kFloat32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case IdxType::kFloat64:
      return std::bit_cast<double>(bits);
  }
  CHECK(false, "no such type");
}

// One file, its header checked against its size.
struct IdxArray {
  FileBytes bytes;
  IdxHeader header;

  static Result<std::shared_ptr<const IdxArray>> open(const std::string& path);
  std::string place(const char* part) const { return fmt::format("{}: {}", bytes.path(), part); }
  std::string shape_text() const {
    return fmt::format("({}) {}", fmt::join(header.shape, ", "), text(header.type));
  }
  std::uint64_t row_size() const {
    std::uint64_t size = 1;
    for (std::size_t i = 1; i < header.shape.size(); ++i) size *= header.shape[i];
    return size;
  }
  // Rows [first, first + count), through `stored`.
  template <class T>
  Result<void> read_rows(std::uint64_t first, std::uint64_t count, std::vector<std::byte>& stored,
                         T* out) const {
    const std::size_t width = bytes_of(header.type);
    const std::size_t values = count * row_size();
    stored.resize(values * width);
    RETURN_IF_ERROR(bytes.read(header.bytes() + first * row_size() * width, stored));
    if (header.type == IdxType::kUint8) {
      std::transform(stored.begin(), stored.end(), out,
                     [](std::byte byte) { return static_cast<T>(std::to_integer<int>(byte)); });
      return {};
    }
    for (std::size_t i = 0; i < values; ++i) {
      out[i] = static_cast<T>(number_at(header.type, std::span(stored).subspan(i * width, width)));
    }
    return {};
  }
};

Result<std::shared_ptr<const IdxArray>> IdxArray::open(const std::string& path) {
  const auto claim = [](std::span<const std::byte> head) -> std::uint64_t {
    const auto header = read_idx_header(head);
    return header ? header->file_bytes().value_or(1) : 1;
  };
  ASSIGN_OR_RETURN(FileBytes bytes, FileBytes::open(path, claim));
  std::vector<std::byte> head(std::min<std::uint64_t>(bytes.size(), FileBytes::kHead));
  RETURN_IF_ERROR(bytes.read(0, head));
  const auto header = read_idx_header(head);
  if (!header) return data_error(path + ": not a whole IDX file: its first bytes are damaged");
  const auto size = header->file_bytes();
  if (size && bytes.size() == *size) {
    return std::make_shared<const IdxArray>(IdxArray{std::move(bytes), *header});
  }
  const std::string shape =
      fmt::format("({}) {}", fmt::join(header->shape, ", "), text(header->type));
  if (!size) return data_error(fmt::format("{}: a shape of {} is impossible", path, shape));
  return data_error(fmt::format("{}: {} takes {} bytes, and it has {}{}; it is {}", path, shape,
                                *size, bytes.size() > *size ? "more than " : "",
                                std::min(bytes.size(), *size),
                                bytes.size() < *size ? "cut short" : "no IDX file, or damaged"));
}

class IdxImages final : public BlockReader {
 public:
  static Result<std::unique_ptr<BlockReader>> create(std::shared_ptr<const IdxArray> array) {
    const IdxHeader& header = array->header;
    if (header.shape.empty() || header.shape[0] == 0 || array->row_size() == 0) {
      return data_error(
          fmt::format("{}: {} holds no events", array->place(kImages), array->shape_text()));
    }
    auto reader = std::unique_ptr<IdxImages>(new IdxImages(array));
    RETURN_IF_ERROR(reader->begin(
        {.place = array->place(kImages),
         .shape_text = array->shape_text(),
         .shape = header.shape,
         .homes = {array->bytes.path()},
         .note = array->bytes.is_unpacked()
                     ? fmt::format("{} is unpacked into memory: {:.1f} MB", array->bytes.path(),
                                   static_cast<double>(array->bytes.size()) / 1e6)
                     : "",
         .of_bytes = header.type == IdxType::kUint8},
        usual_block_rows(array->row_size())));
    return std::unique_ptr<BlockReader>(std::move(reader));
  }

 private:
  explicit IdxImages(std::shared_ptr<const IdxArray> array) : array_(std::move(array)) {}

  Result<void> read_block(std::uint32_t block, Scratch& scratch) const override {
    scratch.block.resize(block_rows() * row_size());
    return array_->read_rows(first_row(block), rows_of(block), scratch.stored,
                             scratch.block.data());
  }

  std::shared_ptr<const IdxArray> array_;
};

class IdxContainer final : public EventContainer {
 public:
  IdxContainer(std::string path, std::shared_ptr<const IdxArray> images,
               std::shared_ptr<const IdxArray> labels)
      : path_(std::move(path)), images_(std::move(images)), labels_(std::move(labels)) {}

  FileFormat format() const override { return FileFormat::kIdx; }
  bool contains(const std::string& name) const override {
    return name == (is_of_labels() ? kLabels : kImages) || (name == kLabels && labels_ != nullptr);
  }

  Result<std::unique_ptr<BlockReader>> images(const std::string& name,
                                              std::uint64_t) const override {
    if (name != kImages) return missing(name);
    if (is_of_labels()) {
      return data_error(fmt::format("{}: {}, which are labels; name the file of their images",
                                    path_, images_->shape_text()));
    }
    return IdxImages::create(images_);
  }

  Result<Column> column(const std::string& name) const override {
    if (!contains(name)) return missing(name);
    const auto array = name == kLabels && !is_of_labels() ? labels_ : images_;
    Column column{.place = array->place(name.c_str()),
                  .shape_text = array->shape_text(),
                  .shape = array->header.shape,
                  .home = array->bytes.path()};
    column.read = [array](std::uint64_t first, std::uint64_t count, double* out) {
      std::vector<std::byte> stored;
      return array->read_rows(first, count, stored, out);
    };
    return column;
  }

  Result<PartList> parts() const override {
    PartList list;
    const char* const first = is_of_labels() ? kLabels : kImages;
    for (const auto& [name, array] : {std::pair(first, images_), std::pair(kLabels, labels_)}) {
      if (array == nullptr) continue;
      list.parts.push_back(
          {name, array->header.shape, text(array->header.type), {}, {}, array->bytes.size()});
    }
    return list;
  }

 private:
  // Somebody has named the file of labels instead of that of images.
  bool is_of_labels() const { return images_->header.shape.size() == 1; }
  Error missing(const std::string& name) const {
    if (name != kLabels) {
      return data_error(
          fmt::format("{}: no part {}; an IDX file has images, and labels beside it", path_, name));
    }
    const auto labels = idx_labels_path(path_);
    return data_error(
        labels ? fmt::format("{}: there is no {} beside it with its labels", path_,
                             std::filesystem::path(*labels).filename().string())
               : fmt::format("{}: its labels are looked for in a file beside it that has "
                             "\"labels\" in its name where this one has \"images\"; rename them",
                             path_));
  }

  std::string path_;
  std::shared_ptr<const IdxArray> images_, labels_;  // labels may be missing
};

}  // namespace

std::size_t bytes_of(IdxType type) {
  switch (type) {
    case IdxType::kUint8:
    case IdxType::kInt8:
      return 1;
    case IdxType::kInt16:
      return 2;
    case IdxType::kInt32:
    case IdxType::kFloat32:
      return 4;
    case IdxType::kFloat64:
      return 8;
  }
  CHECK(false, "no such type");
}

const char* text(IdxType type) {
  switch (type) {
    case IdxType::kUint8:
      return "uint8";
    case IdxType::kInt8:
      return "int8";
    case IdxType::kInt16:
      return "int16";
    case IdxType::kInt32:
      return "int32";
    case IdxType::kFloat32:
      return "float32";
    case IdxType::kFloat64:
      return "float64";
  }
  CHECK(false, "no such type");
}

std::optional<std::uint64_t> IdxHeader::file_bytes() const {
  std::uint64_t size = bytes_of(type);
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(size, extent, &size)) return std::nullopt;
  }
  if (size > std::numeric_limits<std::int64_t>::max() / 16) return std::nullopt;
  return bytes() + size;
}

bool is_idx(std::span<const std::byte> head) {
  if (head.size() < 8 || head[0] != std::byte{0} || head[1] != std::byte{0}) return false;
  const auto axes = std::to_integer<std::size_t>(head[3]);
  return is_type(head[2]) && axes >= 1 && axes <= kMostAxes;
}

std::optional<IdxHeader> read_idx_header(std::span<const std::byte> head) {
  if (!is_idx(head)) return std::nullopt;
  IdxHeader header;
  header.type = static_cast<IdxType>(head[2]);
  const auto axes = std::to_integer<std::size_t>(head[3]);
  if (head.size() < 4 + 4 * axes) return std::nullopt;
  for (std::size_t i = 0; i < axes; ++i) {
    header.shape.push_back(runtime::from_big_endian(head.subspan(4 + 4 * i, 4)));
  }
  return header;
}

std::vector<std::byte> idx_header_bytes(const IdxHeader& header) {
  std::vector<std::byte> bytes{std::byte{0}, std::byte{0}, static_cast<std::byte>(header.type),
                               static_cast<std::byte>(header.shape.size())};
  for (const std::uint64_t extent : header.shape) {
    const auto number = runtime::to_big_endian(static_cast<std::uint32_t>(extent));
    bytes.insert(bytes.end(), number.begin(), number.end());
  }
  return bytes;
}

std::optional<std::string> idx_labels_path(const std::string& images) {
  const std::size_t slash = images.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  std::size_t at = images.rfind("images");
  if (at == std::string::npos || at < name) return std::nullopt;
  std::string labels = images;
  labels.replace(at, 6, kLabels);
  // The number of axes stands in usual names.
  at = labels.find("-idx", at);
  if (at != std::string::npos && at + 4 < labels.size()) labels[at + 4] = '1';
  return labels;
}

Result<std::unique_ptr<EventContainer>> open_idx(const std::string& path) {
  ASSIGN_OR_RETURN(auto images, IdxArray::open(path));
  std::shared_ptr<const IdxArray> labels;
  if (auto beside = idx_labels_path(path)) {
    const bool packed = beside->ends_with(".gz");
    std::error_code ignored;
    if (!std::filesystem::exists(*beside, ignored)) {
      *beside = packed ? beside->substr(0, beside->size() - 3) : *beside + ".gz";
    }
    if (std::filesystem::exists(*beside, ignored)) {
      ASSIGN_OR_RETURN(labels, IdxArray::open(*beside));
    }
  }
  return std::unique_ptr<EventContainer>(
      std::make_unique<IdxContainer>(path, std::move(images), std::move(labels)));
}

}  // namespace troupe::pipeline
