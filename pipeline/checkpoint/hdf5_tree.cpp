#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "pipeline/checkpoint/hdf5_tree.h"

namespace troupe::pipeline {
namespace {

struct Visit {
  hid_t group;
  std::vector<Hdf5TreeEntry> entries;
};

std::vector<std::int64_t> shape_of(hid_t dataset) {
  const Hdf5Handle space(H5Dget_space(dataset));
  const int rank = H5Sget_simple_extent_ndims(space.id());
  std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(rank, 0)));
  H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr);
  return {extents.begin(), extents.end()};
}

// None: the size cannot be counted. The library lets a chunked dataset have such a size.
std::optional<std::int64_t> elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) return std::nullopt;
  }
  return elements;
}

// Called for every link below the group; groups are entered by the library.
herr_t note_dataset(hid_t group, const char* path, const H5L_info_t*, void* data) {
  auto& visit = *static_cast<Visit*>(data);
  const Hdf5Handle object(H5Oopen(group, path, H5P_DEFAULT));
  if (!object.valid()) return -1;
  if (H5Iget_type(object.id()) == H5I_DATASET) {
    std::vector<std::int64_t> shape = shape_of(object.id());
    if (!elements_of(shape)) return -1;
    visit.entries.push_back({path, std::move(shape)});
  }
  return 0;
}

// Links of other kinds lead to other files, or to nowhere.
herr_t refuse_all_but_hard_links(hid_t, const char*, const H5L_info_t* link, void*) {
  return link->type == H5L_TYPE_HARD ? 0 : -1;
}

// Texts of a fixed size end in one NUL at least.
std::string up_to_nul(const std::string& text) { return text.substr(0, text.find('\0')); }

bool is_text_of_fixed_size(hid_t type) {
  return H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0;
}

// With more than one text the library would write behind the string that is read into.
bool is_one(const Hdf5Handle& space) { return H5Sget_simple_extent_npoints(space.id()) == 1; }

// True if the elements stand in this file, one behind the other and not compressed. Fill values
// that were never written and values in other files take no room, so a small file could claim any
// size of them.
bool stands_in_file(hid_t dataset) {
  const Hdf5Handle properties(H5Dget_create_plist(dataset));
  const H5D_layout_t layout = H5Pget_layout(properties.id());
  return (layout == H5D_CONTIGUOUS || layout == H5D_COMPACT) &&
         H5Pget_external_count(properties.id()) == 0;
}

}  // namespace

std::int64_t Hdf5TreeEntry::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Hdf5TreeReader::Hdf5TreeReader(std::span<const std::byte> image, std::string name)
    : name_(std::move(name)), unread_bytes_(image.size()) {
  const Hdf5Lock lock;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.id(), 1u << 16, false);
  // The library copies the image, but takes a pointer that it could write through.
  if (H5Pset_file_image(access.id(), const_cast<std::byte*>(image.data()), image.size()) >= 0) {
    file_ = Hdf5Handle(H5Fopen(hdf5_memory_name().c_str(), H5F_ACC_RDONLY, access.id()));
  }
  if (!file_.valid()) {
    fail("its HDF5 part cannot be opened: " + hdf5_cause());
  } else if (H5Lvisit(file_.id(), H5_INDEX_NAME, H5_ITER_NATIVE, refuse_all_but_hard_links,
                      nullptr) < 0) {
    fail("its HDF5 part has links to other files or names, or cannot be listed");
  }
}

void Hdf5TreeReader::fail(const std::string& what) {
  if (error_) return;
  error_ = runtime::Error{runtime::ErrorKind::kData, fmt::format("{}: {}", name_, what)};
}

runtime::Result<void> Hdf5TreeReader::result() const {
  if (error_) return *error_;
  return {};
}

// Many links may lead to the same bytes. The sum of all that is read bounds this.
bool Hdf5TreeReader::spend(std::uint64_t bytes) {
  if (bytes > unread_bytes_) return false;
  unread_bytes_ -= bytes;
  return true;
}

Hdf5Handle Hdf5TreeReader::open_attribute(const std::string& object, const std::string& attribute) {
  if (error_) return {};
  Hdf5Handle opened(
      H5Aopen_by_name(file_.id(), object.c_str(), attribute.c_str(), H5P_DEFAULT, H5P_DEFAULT));
  if (!opened.valid()) fail(fmt::format("{} has no attribute {}", object, attribute));
  return opened;
}

void Hdf5TreeReader::read_scalar(const std::string& object, const std::string& attribute,
                                 hid_t type, void* value) {
  const Hdf5Handle opened = open_attribute(object, attribute);
  if (!opened.valid()) return;
  const Hdf5Handle space(H5Aget_space(opened.id()));
  if (H5Sget_simple_extent_npoints(space.id()) != 1 || H5Aread(opened.id(), type, value) < 0) {
    fail(fmt::format("attribute {} of {} is not one number", attribute, object));
  }
}

void Hdf5TreeReader::read_attribute(const std::string& object, const std::string& attribute,
                                    std::string& value) {
  const Hdf5Lock lock;
  const Hdf5Handle opened = open_attribute(object, attribute);
  if (!opened.valid()) return;
  const Hdf5Handle type(H5Aget_type(opened.id()));
  const Hdf5Handle space(H5Aget_space(opened.id()));
  std::string text;
  const auto read = [&] {
    const std::size_t bytes = H5Tget_size(type.id());
    if (!is_text_of_fixed_size(type.id()) || !is_one(space) || !spend(bytes)) return false;
    text.resize(bytes);
    return H5Aread(opened.id(), type.id(), text.data()) >= 0;
  };
  if (!read()) return fail(fmt::format("attribute {} of {} is no text", attribute, object));
  value = up_to_nul(text);
}

void Hdf5TreeReader::read_attribute(const std::string& object, const std::string& attribute,
                                    std::vector<std::string>& values) {
  const Hdf5Lock lock;
  const Hdf5Handle opened = open_attribute(object, attribute);
  if (!opened.valid()) return;
  const Hdf5Handle type(H5Aget_type(opened.id()));
  const Hdf5Handle space(H5Aget_space(opened.id()));
  const auto read = [&](std::vector<std::string>& texts) {
    const std::size_t bytes = H5Tget_size(type.id());
    const auto count = H5Sget_simple_extent_npoints(space.id());
    if (count == 0) return true;  // which h5py stores as a list of numbers
    // Each text costs memory of its own, too, however short it is.
    std::uint64_t all = 0;
    if (count < 0 || !is_text_of_fixed_size(type.id()) ||
        __builtin_mul_overflow(bytes + sizeof(std::string), static_cast<std::uint64_t>(count),
                               &all) ||
        !spend(all)) {
      return false;
    }
    std::string whole(bytes * static_cast<std::uint64_t>(count), '\0');
    if (H5Aread(opened.id(), type.id(), whole.data()) < 0) return false;
    for (std::size_t at = 0; at < whole.size(); at += bytes) {
      texts.push_back(up_to_nul(whole.substr(at, bytes)));
    }
    return true;
  };
  std::vector<std::string> texts;
  if (!read(texts))
    return fail(fmt::format("attribute {} of {} is no list of texts", attribute, object));
  values = std::move(texts);
}

bool Hdf5TreeReader::has_attribute(const std::string& object, const std::string& attribute) const {
  const Hdf5Lock lock;
  return !error_ &&
         H5Aexists_by_name(file_.id(), object.c_str(), attribute.c_str(), H5P_DEFAULT) > 0;
}

bool Hdf5TreeReader::contains(const std::string& path) const {
  const Hdf5Lock lock;
  if (error_) return false;
  for (std::size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1)) {
    if (H5Lexists(file_.id(), path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return H5Lexists(file_.id(), path.c_str(), H5P_DEFAULT) > 0;
}

std::optional<std::vector<std::int64_t>> Hdf5TreeReader::shape(const std::string& path) const {
  const Hdf5Lock lock;
  const Hdf5Handle dataset(error_ ? -1 : H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) return std::nullopt;
  std::vector<std::int64_t> extents = shape_of(dataset.id());
  if (!elements_of(extents)) return std::nullopt;
  return extents;
}

void Hdf5TreeReader::read_text(const std::string& path, std::string& text) {
  const Hdf5Lock lock;
  if (error_) return;
  const Hdf5Handle dataset(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT));
  const Hdf5Handle type(dataset.valid() ? H5Dget_type(dataset.id()) : -1);
  const Hdf5Handle space(dataset.valid() ? H5Dget_space(dataset.id()) : -1);
  if (!type.valid() || !is_text_of_fixed_size(type.id()) || !is_one(space) ||
      !stands_in_file(dataset.id()) || !spend(H5Tget_size(type.id()))) {
    return fail(path + " is no text");
  }
  std::string bytes(H5Tget_size(type.id()), '\0');
  if (H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) {
    return fail(path + " cannot be read: " + hdf5_cause());
  }
  text = up_to_nul(bytes);
}

std::vector<Hdf5TreeEntry> Hdf5TreeReader::entries(const std::string& group) {
  const Hdf5Lock lock;
  if (error_) return {};
  const Hdf5Handle opened(H5Gopen2(file_.id(), group.c_str(), H5P_DEFAULT));
  Visit visit{opened.id(), {}};
  if (!opened.valid() ||
      H5Lvisit(opened.id(), H5_INDEX_CRT_ORDER, H5_ITER_INC, note_dataset, &visit) < 0) {
    fail("group " + group + " is missing or cannot be listed");
    return {};
  }
  return std::move(visit.entries);
}

template <class T>
void Hdf5TreeReader::read(const std::string& path, std::vector<T>& values) {
  const Hdf5Lock lock;
  if (error_) return;
  const hid_t type = hdf5_type<T>();
  const Hdf5Handle dataset(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) return fail("dataset " + path + " is missing");
  const Hdf5Handle file_type(H5Dget_type(dataset.id()));
  const Hdf5Handle space(H5Dget_space(dataset.id()));
  const std::optional<std::int64_t> elements = elements_of(shape_of(dataset.id()));
  // Type and size are checked before memory is asked for. Nothing is converted, and all that is
  // read of a file is no larger than the file.
  if (H5Tequal(file_type.id(), type) <= 0 || !stands_in_file(dataset.id()) || !elements ||
      H5Sget_simple_extent_npoints(space.id()) != *elements ||
      *elements > INT64_MAX / static_cast<std::int64_t>(sizeof(T)) ||
      !spend(static_cast<std::uint64_t>(*elements) * sizeof(T))) {
    return fail("dataset " + path + " is not " + std::to_string(8 * sizeof(T)) +
                "-bit numbers that stand in the file");
  }
  const std::size_t before = values.size();
  values.resize(before + static_cast<std::size_t>(*elements));
  if (H5Dread(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data() + before) < 0) {
    fail("dataset " + path + " cannot be read: " + hdf5_cause());
  }
}

template void Hdf5TreeReader::read(const std::string& path, std::vector<float>& values);
template void Hdf5TreeReader::read(const std::string& path, std::vector<std::int16_t>& values);

}  // namespace troupe::pipeline
