#include "pipeline/data/hdf5_file.h"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/data/data_error.h"
#include "pipeline/data/hdf5_condition.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/utf8.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

// Why the library does not open it; `is_hdf5`: it has the signature of one.
Error not_opened(const std::string& path, bool is_hdf5, const std::string& cause) {
  const std::string why = why_not_opened(path);
  if (!runtime::descriptors_left(1)) return runtime::out_of_descriptors(ErrorKind::kData, path);
  if (!why.empty()) return data_error(fmt::format("{}: {}", path, why));
  if (!is_hdf5) return data_error(fmt::format("{}: not an HDF5 file", path));
  return data_error(
      fmt::format("{}: an HDF5 file, but damaged, or its writer was stopped: {}", path, cause));
}

// An attribute as text: numbers as the shortest decimal, strings as they are, else its size.
std::string attribute_text(hid_t attribute) {
  const Hdf5Handle type(H5Aget_type(attribute));
  const Hdf5Handle space(H5Aget_space(attribute));
  const hssize_t count = H5Sget_simple_extent_npoints(space.id());
  const H5T_class_t kind = H5Tget_class(type.id());
  if (count == 1 && (kind == H5T_FLOAT || kind == H5T_INTEGER)) {
    double value = 0;
    if (H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) >= 0) return fmt::format("{}", value);
  }
  if (count == 1 && kind == H5T_STRING) {
    if (H5Tis_variable_str(type.id()) > 0) {
      char* value = nullptr;
      if (H5Aread(attribute, type.id(), &value) >= 0 && value != nullptr) {
        std::string copy = value;
        H5free_memory(value);
        return copy;
      }
    } else if (const std::size_t size = H5Tget_size(type.id()); size > 0 && size <= 65536) {
      std::string value(size, '\0');
      if (H5Aread(attribute, type.id(), value.data()) >= 0) {
        return value.substr(0, value.find('\0'));
      }
    }
  }
  return fmt::format("({} values)", count);
}

struct Search {
  Hdf5Walk walk;
  std::deque<Hdf5Place> open;  // objects not looked at yet, in their order; the root has no name
  std::set<haddr_t> known;     // all that were ever in `open`
  std::string group;           // whose links are being listed
};

herr_t take_link(hid_t, const char* name, const H5L_info_t* link, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (search.walk.links == kMostLinks) {
    search.walk.complete = false;
    return 1;  // ends the listing
  }
  ++search.walk.links;
  if (link->type != H5L_TYPE_HARD || !search.known.insert(link->u.address).second) return 0;
  std::string path = search.group.empty() ? name : fmt::format("{}/{}", search.group, name);
  if (path.size() > kMostPathBytes) {
    search.walk.complete = false;
    return 0;
  }
  search.open.push_back({std::move(path), link->u.address});
  return 0;
}

}  // namespace

Result<Hdf5Walk> walk_datasets(const Hdf5Handle& file, const std::string& path) {
  const Hdf5Lock lock;
  Search search;
  const auto cannot = [&](const std::string& name, const char* what) {
    return Error{ErrorKind::kData, fmt::format("{}: {} cannot be {}: {}", path,
                                               runtime::printable(name), what, hdf5_cause())};
  };
  H5O_info_t root;
  if (H5Oget_info2(file.id(), &root, H5O_INFO_BASIC) < 0) return cannot("/", "opened");
  search.known.insert(root.addr);
  search.open.push_back({"", root.addr});
  // Objects are looked at in the order in which they were found, so a name is a shortest path. A
  // deque keeps `found` in place while links are added at its end.
  for (; !search.open.empty(); search.open.pop_front()) {
    Hdf5Place& found = search.open.front();
    const Hdf5Handle object(H5Oopen_by_addr(file.id(), found.address));
    if (!object.valid()) return cannot(found.name, "opened");
    const H5I_type_t type = H5Iget_type(object.id());
    if (type == H5I_DATASET) {
      search.walk.datasets.push_back(std::move(found));
    } else if (type == H5I_GROUP) {
      search.group = found.name;
      if (H5Literate(object.id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, take_link, &search) < 0) {
        return cannot(found.name, "listed");
      }
    }
  }
  std::ranges::sort(search.walk.datasets, {}, &Hdf5Place::name);
  return std::move(search.walk);
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNames = 20;
  if (names.empty()) return "none";
  const auto shown = static_cast<std::ptrdiff_t>(std::min(names.size(), kMostNames));
  std::string text =
      runtime::printable(fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", ")));
  if (names.size() > kMostNames) text += fmt::format(" and {} more", names.size() - kMostNames);
  return text;
}

Result<Hdf5File> Hdf5File::open(const std::string& path) {
  std::error_code cause;
  const auto status = std::filesystem::status(path, cause);
  if (!std::filesystem::exists(status)) {
    return data_error(fmt::format("{}: no such file", path));
  }
  if (!std::filesystem::is_regular_file(status)) {
    return data_error(fmt::format("{}: not a regular file; expected an HDF5 file", path));
  }
  const Hdf5Lock lock;
  Hdf5File file;
  file.path_ = path;
  const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  if (is_hdf5 > 0) {
    file.handle_ = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  }
  if (!file.handle_.valid()) return not_opened(path, is_hdf5 > 0, hdf5_cause());
  return file;
}

bool Hdf5File::contains(const std::string& name) const {
  const Hdf5Lock lock;
  for (std::size_t slash = name.find('/', 1);; slash = name.find('/', slash + 1)) {
    const std::string part = name.substr(0, slash);
    if (part.empty() || H5Lexists(handle_.id(), part.c_str(), H5P_DEFAULT) <= 0) return false;
    if (slash == std::string::npos) break;
  }
  H5O_info_t info;
  return H5Oget_info_by_name2(handle_.id(), name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) >=
             0 &&
         info.type == H5O_TYPE_DATASET;
}

Result<Hdf5Dataset> Hdf5File::dataset(const std::string& name) const {
  const Hdf5Lock lock;
  if (!contains(name)) {
    H5O_info_t info;
    const bool leads_nowhere =
        H5Lexists(handle_.id(), name.c_str(), H5P_DEFAULT) > 0 &&
        H5Oget_info_by_name2(handle_.id(), name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0;
    if (leads_nowhere) {
      return data_error(
          fmt::format("{}: {} is a link to a file or dataset that is not there or "
                      "cannot be opened",
                      path_, name));
    }
    ASSIGN_OR_RETURN(const Hdf5Walk found, walk());
    std::vector<std::string> names;
    for (const Hdf5Place& place : found.datasets) names.push_back(place.name);
    return data_error(
        fmt::format("{}: no dataset {}; the file has {}", path_, name, names_text(names)));
  }
  return Hdf5Dataset::open(handle_, path_, name);
}

Result<Hdf5Dataset> Hdf5File::dataset(const Hdf5Place& place) const {
  const Hdf5Lock lock;
  return Hdf5Dataset::of(Hdf5Handle(H5Oopen_by_addr(handle_.id(), place.address)), path_,
                         place.name);
}

std::optional<double> Hdf5File::number_attribute(const std::string& name) const {
  const Hdf5Lock lock;
  if (H5Aexists(handle_.id(), name.c_str()) <= 0) return std::nullopt;
  const Hdf5Handle attribute(H5Aopen(handle_.id(), name.c_str(), H5P_DEFAULT));
  const Hdf5Handle space(H5Aget_space(attribute.id()));
  double value = 0;
  if (H5Sget_simple_extent_npoints(space.id()) != 1 ||
      H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value) < 0) {
    return std::nullopt;
  }
  return value;
}

std::vector<std::pair<std::string, std::string>> Hdf5File::attributes() const {
  const Hdf5Lock lock;
  std::vector<std::pair<std::string, std::string>> found;
  H5O_info_t info;
  if (H5Oget_info2(handle_.id(), &info, H5O_INFO_NUM_ATTRS) < 0) return found;
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const Hdf5Handle attribute(
        H5Aopen_by_idx(handle_.id(), ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT));
    if (!attribute.valid()) continue;
    std::array<char, 256> name{};
    H5Aget_name(attribute.id(), name.size() - 1, name.data());
    found.emplace_back(name.data(), attribute_text(attribute.id()));
  }
  return found;
}

}  // namespace troupe::pipeline
