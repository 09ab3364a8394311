#include "pipeline/data/chunk_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pipeline/data/hdf5_file.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/support/fails_with.h"

namespace troupe::pipeline {
namespace {

runtime::Result<ChunkReader> reader_of(const std::string& path) {
  ASSIGN_OR_RETURN(const Hdf5File file, Hdf5File::open(path));
  ASSIGN_OR_RETURN(Hdf5Dataset dataset, file.dataset("ECAL"));
  return ChunkReader::create(std::move(dataset));
}

// All images in order of rows, or the error.
runtime::Result<std::vector<float>> read_all(const ChunkReader& reader, int threads) {
  runtime::ThreadTeam team(threads);
  ReadScratch scratch;
  std::vector<std::uint32_t> blocks(reader.blocks());
  std::iota(blocks.begin(), blocks.end(), 0u);
  std::vector<float> all(reader.rows() * reader.row_size());
  const auto keep = [&](std::uint32_t block, std::span<float> values,
                        int) -> runtime::Result<void> {
    const std::size_t first = reader.first_row(block) * reader.row_size();
    std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(first));
    return {};
  };
  RETURN_IF_ERROR(reader.read(blocks, team, scratch, keep));
  return all;
}

struct Case {
  const char* name;
  StorageLayout layout;
  bool raw;  // decoded here, not by the library
};

class ChunkReaderLayouts : public testing::TestWithParam<Case> {};

TEST_P(ChunkReaderLayouts, GivesTheValuesThatWereWritten) {
  const TemporaryFolder folder;
  SmallData data(23);  // no multiple of any chunk
  data.images = GetParam().layout;
  data.write(folder / "a.h5");
  const auto reader = reader_of(folder / "a.h5");
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->note().empty(), GetParam().raw) << reader->note();
  for (const int threads : {1, 3}) {
    const auto values = read_all(*reader, threads);
    ASSERT_TRUE(values.ok()) << values.error().message;
    EXPECT_EQ(*values, data.cells);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Stored, ChunkReaderLayouts,
    testing::Values(Case{"Contiguous", {}, false}, Case{"Chunked", {.chunk = {4, 3, 4, 5}}, true},
                    Case{"Gzip", {.chunk = {4, 3, 4, 5}, .gzip = 4}, true},
                    Case{"ShuffleGzip", {.chunk = {4, 3, 4, 5}, .shuffle = true, .gzip = 1}, true},
                    Case{"Shuffle", {.chunk = {4, 3, 4, 5}, .shuffle = true}, true},
                    Case{"SplitChunks", {.chunk = {5, 2, 3, 2}, .gzip = 4}, true},
                    Case{"OneChunk", {.chunk = {23, 3, 4, 5}, .gzip = 4}, true},
                    Case{"Fletcher", {.chunk = {4, 3, 4, 5}, .gzip = 4, .fletcher = true}, false},
                    Case{"Grown", {.chunk = {32, 3, 4, 5}, .gzip = 4, .grown = true}, true},
                    Case{"GrownByTheLibrary",
                         {.chunk = {32, 3, 4, 5}, .fletcher = true, .grown = true},
                         false}),
    [](const auto& test) { return test.param.name; });

TEST(ChunkReader, ConvertsDoublesAndForeignFloats) {
  const TemporaryFolder folder;
  SmallData data(11);
  for (float& cell : data.cells) cell = std::round(cell * 64) / 64;  // exact as a half float
  int file = 0;
  for (const StoredType type : {StoredType::kFloat64, StoredType::kBigEndian, StoredType::kHalf}) {
    const bool raw = type == StoredType::kFloat64;
    for (const bool shuffle : {false, true}) {
      data.images = {.chunk = {4, 3, 4, 5}, .shuffle = shuffle, .gzip = 2, .type = type};
      const std::string path = folder / std::to_string(file++);
      data.write(path);
      const auto reader = reader_of(path);
      ASSERT_TRUE(reader.ok()) << reader.error().message;
      EXPECT_EQ(reader->note().empty(), raw) << reader->note();
      const auto values = read_all(*reader, 1);
      ASSERT_TRUE(values.ok()) << values.error().message;
      EXPECT_EQ(*values, data.cells);
    }
  }
}

TEST(ChunkReader, SaysWhichFilterItDoesNotKnow) {
  const TemporaryFolder folder;
  SmallData data(8);
  data.images = {.chunk = {4, 3, 4, 5}, .fletcher = true};
  data.write(folder / "a.h5");
  const auto reader = reader_of(folder / "a.h5");
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(reader->note(), testing::HasSubstr("fletcher32"));
}

// The library decodes these, and would read beyond what a chunk holds.
TEST(ChunkReader, ChunksThatCannotBeThoseOfTheShapeAreRefused) {
  const TemporaryFolder folder;
  SmallData data(12);
  data.images = {.chunk = {4, 3, 4, 5}, .fletcher = true, .nbit = true};
  data.write(folder / "a.h5");
  const std::vector<std::byte> whole = file_bytes(folder / "a.h5");
  // The chunk's extents and the size of a number, of 4 bytes each.
  std::vector<std::byte> extents;
  for (const unsigned char extent : {4, 3, 4, 5, 4}) {
    extents.insert(extents.end(), {std::byte{extent}, std::byte{}, std::byte{}, std::byte{}});
  }
  const auto found = std::search(whole.begin(), whole.end(), extents.begin(), extents.end());
  ASSERT_NE(found, whole.end());
  const auto damage = [&](std::ptrdiff_t at, unsigned char value) {
    std::vector<std::byte> bytes = whole;
    bytes[static_cast<std::size_t>(found - whole.begin() + at)] = std::byte{value};
    write_file(folder / "a.h5", bytes);
    return reader_of(folder / "a.h5");
  };
  EXPECT_THAT(damage(13, 17),
              FailsWith(runtime::ErrorKind::kData,
                        "dataset ECAL: chunks of (4, 3, 4, 4357), which are larger than"));
  EXPECT_THAT(damage(0, 12), FailsWith(runtime::ErrorKind::kData,
                                       "dataset ECAL: it has 3 chunks, but its shape needs 1"));
}

TEST(ChunkReader, ReadsOnlyTheBlocksAskedFor) {
  const TemporaryFolder folder;
  SmallData data(20);
  data.images = {.chunk = {4, 3, 4, 5}};
  data.write(folder / "a.h5");
  const auto reader = reader_of(folder / "a.h5");
  ASSERT_TRUE(reader.ok());
  runtime::ThreadTeam team(1);
  ReadScratch scratch;
  std::vector<std::uint32_t> seen;
  const std::vector<std::uint32_t> wanted{3, 1};
  const auto result =
      reader->read(wanted, team, scratch, [&](std::uint32_t block, std::span<float> v, int) {
        seen.push_back(block);
        EXPECT_EQ(v[0], data.cells[block * 4 * SmallData::kCells]);
        return runtime::Result<void>{};
      });
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(seen, wanted);
}

}  // namespace
}  // namespace troupe::pipeline
