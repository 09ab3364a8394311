// Checkpoints that the HDF5 library has written without a flaw and whose seal is right, but whose
// contents somebody made up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_seal.h"
#include "pipeline/data/hdf5_handle.h"
#include "tests/pipeline/state_example.h"

namespace troupe::pipeline {
namespace {

using runtime::Buffer;
using ::testing::HasSubstr;

constexpr const char* kKernel = "/generator/dense/kernel";

Buffer sound_checkpoint() {
  const StateExample example = state_example();
  Checkpoint checkpoint;
  checkpoint.state = initial_state(example.layout, example.options, "reference", {1, 2});
  checkpoint.topology = "name: example\n";
  return encode_checkpoint(checkpoint, example.layout, example.options).value();
}

// The sound checkpoint after `edit`, with a seal that fits.
Buffer forged(const std::function<void(hid_t file)>& edit) {
  const Hdf5Lock lock;
  Buffer sound = sound_checkpoint();
  const auto image = sound.bytes().subspan(kSealBytes);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.id(), 1U << 16, false);
  H5Pset_file_image(access.id(), const_cast<std::byte*>(image.data()), image.size());
  const Hdf5Handle file(H5Fopen("memory", H5F_ACC_RDWR, access.id()));
  edit(file.id());
  H5Fflush(file.id(), H5F_SCOPE_GLOBAL);
  const auto size = static_cast<std::size_t>(H5Fget_file_image(file.id(), nullptr, 0));
  Buffer result = Buffer::zeroed(kSealBytes + size);
  H5Fget_file_image(file.id(), result.mutable_data() + kSealBytes, size);
  seal_checkpoint(kCheckpointVersion, result);
  return result;
}

// Why looking at it refuses it; "" when it does not.
std::string refusal(const Buffer& file) {
  const StateExample example = state_example();
  EXPECT_FALSE(decode_checkpoint(file, "a.h5", example.layout, example.options).ok());
  const auto summary = inspect_checkpoint(file, "a.h5");
  return summary.ok() ? "" : summary.error().message;
}

void replace_dataset(hid_t file, const char* path, hid_t type, std::vector<hsize_t> extents) {
  ASSERT_GE(H5Ldelete(file, path, H5P_DEFAULT), 0);
  const Hdf5Handle space(
      H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
  const Hdf5Handle made(
      H5Dcreate2(file, path, type, space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  ASSERT_TRUE(made.valid());
}

TEST(ForgedCheckpoint, EditThatChangesNothingIsRead) {
  const StateExample example = state_example();
  const Buffer file = forged([](hid_t) {});
  EXPECT_TRUE(decode_checkpoint(file, "a.h5", example.layout, example.options).ok());
}

TEST(ForgedCheckpoint, DatasetOfMoreThanTheFileHoldsIsRefused) {
  for (const hsize_t elements : {hsize_t{1} << 20, hsize_t{1} << 40, hsize_t{1} << 60}) {
    const Buffer file =
        forged([&](hid_t id) { replace_dataset(id, kKernel, H5T_NATIVE_FLOAT, {elements}); });
    EXPECT_THAT(refusal(file), HasSubstr("kernel is not 32-bit numbers that stand in the file"));
  }
}

TEST(ForgedCheckpoint, ShapeWhoseElementsCannotBeCountedIsRefused) {
  const Buffer file = forged([](hid_t id) {
    ASSERT_GE(H5Ldelete(id, kKernel, H5P_DEFAULT), 0);
    const std::array<hsize_t, 2> extents{hsize_t{1} << 62, 3}, chunk{16, 1};
    const Hdf5Handle space(H5Screate_simple(2, extents.data(), nullptr));
    const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(properties.id(), 2, chunk.data());
    const Hdf5Handle made(H5Dcreate2(id, kKernel, H5T_NATIVE_FLOAT, space.id(), H5P_DEFAULT,
                                     properties.id(), H5P_DEFAULT));
    ASSERT_TRUE(made.valid());
  });
  EXPECT_THAT(refusal(file), HasSubstr("group /generator is missing or cannot be listed"));
}

TEST(ForgedCheckpoint, DatasetOfAnotherTypeIsRefused) {
  const Buffer file = forged([](hid_t id) {
    replace_dataset(id, kKernel, H5T_NATIVE_INT8, {3, 4});
  });
  EXPECT_THAT(refusal(file), HasSubstr("kernel is not 32-bit numbers"));
}

TEST(ForgedCheckpoint, ManyTextsWhereOneIsExpectedAreRefused) {
  const Buffer attribute = forged([](hid_t id) {
    ASSERT_GE(H5Adelete(id, "model"), 0);
    const Hdf5Handle type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.id(), 16);
    const hsize_t count = 1000;
    const Hdf5Handle space(H5Screate_simple(1, &count, nullptr));
    const Hdf5Handle made(H5Acreate2(id, "model", type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT));
    const std::vector<char> texts(16 * count, 'x');
    ASSERT_GE(H5Awrite(made.id(), type.id(), texts.data()), 0);
  });
  EXPECT_THAT(refusal(attribute), HasSubstr("attribute model of / is no text"));

  const Buffer dataset = forged([](hid_t id) {
    const Hdf5Handle type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.id(), 16);
    replace_dataset(id, "/topology", type.id(), {1000});
  });
  EXPECT_THAT(refusal(dataset), HasSubstr("/topology is no text"));
}

TEST(ForgedCheckpoint, TextOfMoreThanTheFileHoldsIsRefused) {
  const Buffer file = forged([](hid_t id) {
    const Hdf5Handle type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.id(), std::size_t{1} << 31);
    replace_dataset(id, "/topology", type.id(), {1});
  });
  EXPECT_THAT(refusal(file), HasSubstr("/topology is no text"));
}

TEST(ForgedCheckpoint, ManyNamesOfOneDatasetAreRefused) {
  const Buffer file = forged([](hid_t id) {
    replace_dataset(id, kKernel, H5T_NATIVE_FLOAT, {1000});
    for (int i = 0; i < 100; ++i) {
      const std::string name = "/generator/dense/more" + std::to_string(i);
      ASSERT_GE(H5Lcreate_hard(id, kKernel, id, name.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
    }
  });
  EXPECT_THAT(refusal(file), HasSubstr("that stand in the file"));
}

TEST(ForgedCheckpoint, LinksThatLeadElsewhereAreRefused) {
  const Buffer soft = forged([](hid_t id) {
    ASSERT_GE(H5Lcreate_soft("/state", id, "/generator/again", H5P_DEFAULT, H5P_DEFAULT), 0);
  });
  EXPECT_THAT(refusal(soft), HasSubstr("links to other files or names"));
  const Buffer external = forged([](hid_t id) {
    ASSERT_GE(H5Lcreate_external("b.h5", "/x", id, "/generator/x", H5P_DEFAULT, H5P_DEFAULT), 0);
  });
  EXPECT_THAT(refusal(external), HasSubstr("links to other files or names"));
}

}  // namespace
}  // namespace troupe::pipeline
