#pragma once

// One file of events, whatever its format: named parts, each with a row per event.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/data/block_reader.h"
#include "pipeline/data/data_schema.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// The facts of a part that are known without reading its values.
struct PartInfo {
  std::string name;                       // path inside the file
  std::vector<std::uint64_t> shape;       // rows first
  std::string type;                       // "float32", "float64", "int32", "other", ...
  std::vector<std::uint64_t> chunk = {};  // empty: one contiguous piece
  std::vector<std::string> filters =
      {};  // in the order applied when writing: "shuffle", "gzip 4", ...
  std::uint64_t stored_bytes = 0;
};

struct PartList {
  std::vector<PartInfo> parts;
  std::string note;  // why the list is not complete, or memory is taken; empty where neither is so
};

// A part as rows of numbers, for conditions: the numbers of an event are few.
struct Column {
  std::string place;       // as BlockReader::place()
  std::string shape_text;  // as BlockReader's
  std::vector<std::uint64_t> shape;
  bool of_numbers = true;
  std::string home;
  // An Error where it claims more than the file can hold, or was never written; to be asked before
  // reading. Unset: there is nothing to ask.
  std::function<runtime::Result<void>()> check = {};
  // Rows [first, first + count) as [count][row_size()].
  std::function<runtime::Result<void>(std::uint64_t first, std::uint64_t count, double* out)> read =
      {};

  std::uint64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  std::uint64_t row_size() const;
};

// Readers and columns stay good without it.
class EventContainer {
 public:
  virtual ~EventContainer() = default;

  virtual FileFormat format() const = 0;
  virtual bool contains(const std::string& name) const = 0;
  // `values`: how many an image is expected to have, 0 if nobody knows; it tells how bytes that say
  // nothing of themselves are meant. Errors (kData) name file and part, and list the parts there
  // are where it is missing.
  virtual runtime::Result<std::unique_ptr<BlockReader>> images(const std::string& name,
                                                               std::uint64_t values) const = 0;
  virtual runtime::Result<Column> column(const std::string& name) const = 0;
  virtual runtime::Result<PartList> parts() const = 0;
  // The file's word of itself: a number, nothing if it does not say it; all of it as text.
  virtual std::optional<double> number_attribute(const std::string& name) const;
  virtual std::vector<std::pair<std::string, std::string>> attributes() const;
};

// Opens a file of any format; its first bytes tell which. Errors (kData) say what it is, or that it
// is of no format that is known here.
runtime::Result<std::unique_ptr<EventContainer>> open_container(const std::string& path);

}  // namespace troupe::pipeline
