#include "pipeline/data/hdf5_handle.h"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace troupe::pipeline {
namespace {

// Guards a library whose state is the process's own, so it has to be the process's as well.
std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  // Every handle is closed by its owner. The library's own work at exit can complain about, or trip
  // over, things it failed to release after refusing a damaged file.
  static const herr_t without_exit_handler = H5dont_atexit();
  static_cast<void>(without_exit_handler);
  return mutex;
}

herr_t keep_first(unsigned n, const H5E_error2_t* entry, void* out) {
  if (n == 0 && entry->desc != nullptr) *static_cast<std::string*>(out) = entry->desc;
  return 0;
}

}  // namespace

Hdf5Lock::Hdf5Lock() {
  library_mutex().lock();
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Lock::~Hdf5Lock() {
  H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_);
  library_mutex().unlock();
}

std::string hdf5_cause() {
  std::string cause = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &cause);
  return cause;
}

std::string hdf5_memory_name() {
  static std::atomic<std::uint64_t> names = 0;
  return "memory-" + std::to_string(names++);
}

Hdf5Handle& Hdf5Handle::operator=(Hdf5Handle&& other) noexcept {
  if (this != &other) {
    close();
    id_ = std::exchange(other.id_, -1);
  }
  return *this;
}

bool Hdf5Handle::close() {
  if (id_ < 0) return true;
  const Hdf5Lock lock;
  const hid_t id = std::exchange(id_, -1);
  switch (H5Iget_type(id)) {
    case H5I_FILE:
      return H5Fclose(id) >= 0;
    case H5I_DATASET:
      return H5Dclose(id) >= 0;
    case H5I_DATASPACE:
      return H5Sclose(id) >= 0;
    case H5I_DATATYPE:
      return H5Tclose(id) >= 0;
    case H5I_ATTR:
      return H5Aclose(id) >= 0;
    case H5I_GROUP:
      return H5Gclose(id) >= 0;
    case H5I_GENPROP_LST:
      return H5Pclose(id) >= 0;
    default:
      return H5Idec_ref(id) >= 0;
  }
}

}  // namespace troupe::pipeline
