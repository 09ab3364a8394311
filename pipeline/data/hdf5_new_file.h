#pragma once

// A driver by which the HDF5 library writes into a runtime::NewFile.
//
// The library does not recover from a write that fails, such as one to a full disk: the file can
// then neither be closed nor forgotten. So this driver keeps the first failure and tells the
// library that all went well. The caller asks for the failure and gives up the file.

#include <optional>

#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/error.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

// What the driver writes into. Both outlive the library's file.
struct Hdf5NewFile {
  runtime::NewFile* file = nullptr;
  std::optional<runtime::Error>
      failure{};  // of the first call that failed; nothing is written after
};

// Makes files that are created with the list of access properties be written into `target`. False:
// the library refuses. Under an Hdf5Lock.
bool write_into(Hdf5NewFile& target, const Hdf5Handle& access);

}  // namespace troupe::pipeline
