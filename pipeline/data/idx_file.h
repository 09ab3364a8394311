#pragma once

// Files in the IDX format of MNIST ("THE MNIST DATABASE", Y. LeCun): two zero bytes, the type of
// the numbers, the number of axes, their extents as big-endian 32-bit integers, and the numbers,
// also big-endian. Images and labels are two files.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/data/event_container.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

enum class IdxType : std::uint8_t {
  kUint8 = 0x08,
  kInt8 = 0x09,
  kInt16 = 0x0b,
  kInt32 = 0x0c,
  kFloat32 = 0x0d,
  kFloat64 = 0x0e,
};

std::size_t bytes_of(IdxType type);
const char* text(IdxType type);  // "uint8"

struct IdxHeader {
  IdxType type = IdxType::kUint8;
  std::vector<std::uint64_t> shape;

  std::size_t bytes() const { return 4 + 4 * shape.size(); }
  // The size of the whole file; nothing if they do not fit 63 bits.
  std::optional<std::uint64_t> file_bytes() const;
};

// True if a file that begins with these bytes is one of IDX.
bool is_idx(std::span<const std::byte> head);
// Nothing if the bytes are none, or too few.
std::optional<IdxHeader> read_idx_header(std::span<const std::byte> head);
std::vector<std::byte> idx_header_bytes(const IdxHeader& header);

// `path` is that of the images. Their labels are looked for beside them, under the usual name:
// "train-labels-idx1-ubyte" for "train-images-idx3-ubyte", packed or not. The parts are called
// images and labels. Errors (kData): a damaged or shorter file, one of labels.
runtime::Result<std::unique_ptr<EventContainer>> open_idx(const std::string& path);

// The name of the file of labels beside one of images; nothing where the name has no "images".
std::optional<std::string> idx_labels_path(const std::string& images);

}  // namespace troupe::pipeline
