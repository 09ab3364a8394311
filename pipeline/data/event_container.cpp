#include "pipeline/data/event_container.h"

#include "pipeline/data/file_bytes.h"
#include "pipeline/data/hdf5_container.h"
#include "pipeline/data/idx_file.h"
#include "pipeline/data/record_file.h"

namespace troupe::pipeline {

using runtime::Result;

std::uint64_t Column::row_size() const {
  std::uint64_t size = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) size *= shape[i];
  return size;
}

std::optional<double> EventContainer::number_attribute(const std::string&) const { return {}; }
std::vector<std::pair<std::string, std::string>> EventContainer::attributes() const { return {}; }

Result<std::unique_ptr<EventContainer>> open_container(const std::string& path) {
  const std::vector<std::byte> head = head_of(path);
  // A record's length may begin as an IDX file does, and its checksum is no accident.
  if (is_record_file(head)) return open_records(path);
  if (is_idx(head)) return open_idx(path);
  // HDF5 may begin behind a block of the user's, so it is asked last, and tells what is wrong.
  return open_hdf5(path);
}

}  // namespace troupe::pipeline
