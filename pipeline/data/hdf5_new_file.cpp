#include "pipeline/data/hdf5_new_file.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

namespace troupe::pipeline {
namespace {

// Sizes and offsets that fit into off_t.
constexpr haddr_t kMostAddress = static_cast<haddr_t>(INT64_MAX);

// The library's view of an open file; it hands this back with every call. `base` comes first, as
// the library writes into it.
struct OpenFile {
  H5FD_t base{};
  Hdf5NewFile* target = nullptr;
  haddr_t allocated = 0;  // what the library has given out ("end of allocated addresses")
  haddr_t written = 0;    // the file's size
};

OpenFile& of(H5FD_t* file) { return *reinterpret_cast<OpenFile*>(file); }
const OpenFile& of(const H5FD_t* file) { return *reinterpret_cast<const OpenFile*>(file); }

void keep(Hdf5NewFile& target, const runtime::Result<void>& result) {
  if (!result.ok() && !target.failure) target.failure = result.error();
}

H5FD_t* open_file(const char*, unsigned, hid_t access, haddr_t) {
  const auto* target = static_cast<Hdf5NewFile* const*>(H5Pget_driver_info(access));
  if (target == nullptr) return nullptr;
  auto file = std::make_unique<OpenFile>();
  file->target = *target;
  return &file.release()->base;
}

herr_t close_file(H5FD_t* file) {
  const std::unique_ptr<OpenFile> owned(&of(file));
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t end_of_allocated(const H5FD_t* file, H5FD_mem_t) { return of(file).allocated; }

herr_t set_end_of_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  of(file).allocated = address;
  return 0;
}

haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) { return of(file).written; }

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  Hdf5NewFile& target = *of(file).target;
  std::memset(buffer, 0, size);
  if (target.failure) return 0;
  keep(target, target.file->read(address, {static_cast<std::byte*>(buffer), size}));
  return 0;
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* buffer) {
  Hdf5NewFile& target = *of(file).target;
  of(file).written = std::max(of(file).written, address + size);
  if (target.failure) return 0;
  keep(target, target.file->write(address, {static_cast<const std::byte*>(buffer), size}));
  return 0;
}

// A file whose size differs from what the library has given out counts as cut short.
herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
  Hdf5NewFile& target = *of(file).target;
  if (of(file).written == of(file).allocated) return 0;
  of(file).written = of(file).allocated;
  if (target.failure) return 0;
  keep(target, target.file->resize(of(file).allocated));
  return 0;
}

const H5FD_class_t& driver() {
  static const H5FD_class_t made = [] {
    H5FD_class_t driver{};
    driver.name = "troupe new file";
    driver.maxaddr = kMostAddress;
    driver.fc_degree = H5F_CLOSE_SEMI;
    driver.fapl_size = sizeof(Hdf5NewFile*);
    driver.open = open_file;
    driver.close = close_file;
    driver.query = query;
    driver.get_eoa = end_of_allocated;
    driver.set_eoa = set_end_of_allocated;
    driver.get_eof = end_of_file;
    driver.read = read;
    driver.write = write;
    driver.truncate = truncate;
    std::fill(std::begin(driver.fl_map), std::end(driver.fl_map), H5FD_MEM_DEFAULT);
    return driver;
  }();
  return made;
}

}  // namespace

// The library copies the information, a pointer, into the list and from there to open_file().
bool write_into(Hdf5NewFile& target, const Hdf5Handle& access) {
  static const hid_t registered = H5FDregister(&driver());
  const Hdf5NewFile* information = &target;
  return registered >= 0 && H5Pset_driver(access.id(), registered, &information) >= 0;
}

}  // namespace troupe::pipeline
