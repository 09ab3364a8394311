#include "pipeline/data/hdf5_walk.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/utf8.h"

namespace troupe::pipeline {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

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

}  // namespace troupe::pipeline
