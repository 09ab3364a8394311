#include "fuzz/hostile_hdf5.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_seal.h"
#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/error.h"

namespace troupe::fuzz {
namespace {

using pipeline::Hdf5Handle;

constexpr std::size_t kMostEdits = 16;
constexpr std::size_t kEditBytes = 4;

struct Edit {
  unsigned kind = 0;
  unsigned object = 0;
  unsigned a = 0;
  unsigned b = 0;
  // Any size up to 2^62.
  std::uint64_t number() const { return std::uint64_t{a} << (b % 56); }
};

herr_t note_path(hid_t, const char* path, const H5L_info_t*, void* data) {
  static_cast<std::vector<std::string>*>(data)->emplace_back(path);
  return 0;
}

herr_t note_attribute(hid_t, const char* name, const H5A_info_t*, void* data) {
  static_cast<std::vector<std::string>*>(data)->emplace_back(name);
  return 0;
}

class Editor {
 public:
  explicit Editor(std::span<const std::byte> image) {
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_fapl_core(access.id(), std::size_t{1} << 16, false);
    H5Pset_file_image(access.id(), const_cast<std::byte*>(image.data()), image.size());
    file_ = Hdf5Handle(H5Fopen("memory", H5F_ACC_RDWR, access.id()));
    CHECK(file_.valid(), "the file to edit is not sound");
  }

  void make(const Edit& edit) {
    std::vector<std::string> paths;
    H5Lvisit(file_.id(), H5_INDEX_NAME, H5_ITER_INC, note_path, &paths);
    if (paths.empty()) return;
    path_ = paths[edit.object % paths.size()];
    other_ = paths[edit.a % paths.size()];
    switch (edit.kind % 9) {
      case 0:
        return remove();
      case 1:
        return remove(), make_group();
      case 2:
        return remove(), link(edit);
      case 3:
        return remove(), make_dataset(edit);
      case 4:
        return overwrite(edit);
      case 5:
        return void(H5Lmove(file_.id(), path_.c_str(), file_.id(), (other_ + "x").c_str(),
                            H5P_DEFAULT, H5P_DEFAULT));
      default:
        return change_attribute(edit);
    }
  }

  // The bytes in the file, behind so many zeros.
  runtime::Buffer image(std::size_t zeros) const {
    H5Fflush(file_.id(), H5F_SCOPE_GLOBAL);
    const ssize_t size = H5Fget_file_image(file_.id(), nullptr, 0);
    CHECK(size > 0);
    const auto bytes = static_cast<std::size_t>(size);
    runtime::Buffer image = runtime::Buffer::zeroed(zeros + bytes);
    H5Fget_file_image(file_.id(), image.mutable_data() + zeros, bytes);
    return image;
  }

 private:
  void remove() { H5Ldelete(file_.id(), path_.c_str(), H5P_DEFAULT); }

  void make_group() {
    const Hdf5Handle group(
        H5Gcreate2(file_.id(), path_.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }

  // A second name for another object, or one that leads nowhere, to itself or out of the file.
  void link(const Edit& edit) {
    const hid_t file = file_.id();
    if (edit.b % 3 == 0) H5Lcreate_soft(other_.c_str(), file, path_.c_str(), 0, 0);
    if (edit.b % 3 == 1) H5Lcreate_hard(file, other_.c_str(), file, path_.c_str(), 0, 0);
    if (edit.b % 3 == 2) H5Lcreate_external("/etc/hostname", "/", file, path_.c_str(), 0, 0);
  }

  // Never a type or a space that needs room for its elements: nothing is written to it.
  static Hdf5Handle make_type(const Edit& edit) {
    const std::array natives{H5T_NATIVE_FLOAT,  H5T_NATIVE_INT16, H5T_NATIVE_DOUBLE,
                             H5T_NATIVE_UINT64, H5T_NATIVE_INT8,  H5T_STD_REF_OBJ};
    const unsigned choice = edit.object / 16;
    if (choice < natives.size()) return Hdf5Handle(H5Tcopy(natives[choice]));
    Hdf5Handle text(H5Tcopy(H5T_C_S1));
    H5Tset_size(text.id(), choice % 2 == 0 ? H5T_VARIABLE : std::max<std::size_t>(1, edit.a * 97));
    return text;
  }

  static Hdf5Handle make_space(const Edit& edit) {
    if (edit.b % 7 == 0) return Hdf5Handle(H5Screate(H5S_SCALAR));
    if (edit.b % 7 == 1) return Hdf5Handle(H5Screate(H5S_NULL));
    const std::array<hsize_t, 2> extents{edit.number(), edit.b % 5};
    return Hdf5Handle(H5Screate_simple(edit.b % 2 == 0 ? 1 : 2, extents.data(), nullptr));
  }

  void make_dataset(const Edit& edit) {
    const Hdf5Handle type = make_type(edit);
    const Hdf5Handle space = make_space(edit);
    const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE));
    if (edit.kind >= 128) {
      const std::array<hsize_t, 2> chunk{16, 1};
      H5Pset_chunk(properties.id(), H5Sget_simple_extent_ndims(space.id()), chunk.data());
    }
    const Hdf5Handle dataset(H5Dcreate2(file_.id(), path_.c_str(), type.id(), space.id(),
                                        H5P_DEFAULT, properties.id(), H5P_DEFAULT));
  }

  // The elements of a dataset, as numbers whatever they are.
  void overwrite(const Edit& edit) {
    const Hdf5Handle dataset(H5Dopen2(file_.id(), path_.c_str(), H5P_DEFAULT));
    if (!dataset.valid()) return;
    const Hdf5Handle space(H5Dget_space(dataset.id()));
    const hssize_t elements = H5Sget_simple_extent_npoints(space.id());
    if (elements <= 0 || elements > 10000) return;
    const std::vector<std::int64_t> values(static_cast<std::size_t>(elements),
                                           static_cast<std::int64_t>(edit.number()));
    H5Dwrite(dataset.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }

  void change_attribute(const Edit& edit) {
    const bool has_state = H5Lexists(file_.id(), "/state", H5P_DEFAULT) > 0;
    const std::string below = has_state ? "/state" : path_;
    const Hdf5Handle object(
        H5Oopen(file_.id(), edit.b % 2 == 0 ? "/" : below.c_str(), H5P_DEFAULT));
    std::vector<std::string> names;
    if (!object.valid()) return;
    H5Aiterate2(object.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, note_attribute, &names);
    if (names.empty()) return;
    const std::string& name = names[edit.a % names.size()];
    H5Adelete(object.id(), name.c_str());
    if (edit.kind % 9 == 6) return;
    const Hdf5Handle type = make_type(edit);
    const Hdf5Handle space =
        edit.kind % 9 == 7 ? Hdf5Handle(H5Screate(H5S_SCALAR)) : make_space(edit);
    const Hdf5Handle attribute(
        H5Acreate2(object.id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT));
    if (edit.kind % 9 == 7 && H5Tget_class(type.id()) == H5T_INTEGER) {
      const std::uint64_t value = edit.number();
      H5Awrite(attribute.id(), H5T_NATIVE_UINT64, &value);
    }
  }

  Hdf5Handle file_;
  std::string path_;
  std::string other_;
};

}  // namespace

runtime::Buffer edit_hdf5(std::span<const std::byte> file, std::span<const std::byte> script,
                          std::size_t zeros) {
  const pipeline::Hdf5Lock lock;
  Editor editor(file);
  const auto number = [&](std::size_t at) { return std::to_integer<unsigned>(script[at]); };
  const std::size_t end = std::min(script.size() / kEditBytes, kMostEdits) * kEditBytes;
  for (std::size_t at = 0; at < end; at += kEditBytes) {
    editor.make({number(at), number(at + 1), number(at + 2), number(at + 3)});
  }
  return editor.image(zeros);
}

runtime::Buffer edit_checkpoint(const runtime::Buffer& file, std::span<const std::byte> script) {
  runtime::Buffer edited =
      edit_hdf5(file.bytes().subspan(pipeline::kSealBytes), script, pipeline::kSealBytes);
  pipeline::seal_checkpoint(pipeline::kCheckpointVersion, edited);
  return edited;
}

}  // namespace troupe::fuzz
