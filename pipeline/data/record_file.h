#pragma once

// TensorFlow's record files (runtime/base/tf_record.h) whose records are tf.train.Example.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "pipeline/data/event_container.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// True if a file that begins with these bytes is one of records: the checksum of the first length
// is right.
bool is_record_file(std::span<const std::byte> head);

// The parts are the features of the first record, which all others must have with as many values. A
// feature `shape` of whole numbers, if there is one, tells the extents of the images. Errors
// (kData): a record that is damaged, cut short or no Example, with its number.
runtime::Result<std::unique_ptr<EventContainer>> open_records(const std::string& path);

}  // namespace troupe::pipeline
