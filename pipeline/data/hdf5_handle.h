#pragma once

// Access to the HDF5 library and ownership of its identifiers.
//
// The library may be built without thread safety, and keeps its state per process either way: every
// call into it, here and elsewhere in Troupe, is made while holding an Hdf5Lock. The functions of
// hdf5_*.h take it themselves; take one around a direct H5... call, or around several to keep
// others out.

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace troupe::pipeline {

// Holds the process-wide, recursive lock and keeps the library from printing its error stack.
class Hdf5Lock {
 public:
  Hdf5Lock();
  ~Hdf5Lock();
  Hdf5Lock(const Hdf5Lock&) = delete;
  Hdf5Lock& operator=(const Hdf5Lock&) = delete;

 private:
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

// The innermost reason of the failure that this thread's last H5... call met; call it under the
// same Hdf5Lock.
std::string hdf5_cause();

// A name for a file in memory, a new one at each call, because the library takes two files of one
// name for the same. It is not stored in the file.
std::string hdf5_memory_name();

// The library's type of a number as the machine has it; call it under an Hdf5Lock.
template <class T>
hid_t hdf5_type() {
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, std::int16_t>) return H5T_NATIVE_INT16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return H5T_NATIVE_UINT32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return H5T_NATIVE_UINT64;
}

// Owns one identifier of any kind (file, dataset, space, type, property list, attribute).
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  explicit Hdf5Handle(hid_t id) : id_(id) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;
  ~Hdf5Handle() { close(); }

  bool valid() const { return id_ >= 0; }
  hid_t id() const { return id_; }
  // False if the library could not (for a file: could not write what was left). No-op if not valid.
  bool close();

 private:
  hid_t id_ = -1;
};

}  // namespace troupe::pipeline
