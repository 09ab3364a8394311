// Data of other projects: NNLO's and CaloChallenge's HDF5, IDX, TFRecord, and images of any type
// and rank, all through one interface.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "pipeline/data/calo_binning.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/dataset_info.h"
#include "pipeline/data/example_message.h"
#include "runtime/base/tf_record.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/format_fixture.h"
#include "tests/support/fails_with.h"

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;

class Formats : public testing::Test {
 protected:
  DatasetOptions options(const std::string& path, DataSchema schema) const {
    DatasetOptions options;
    options.paths = {path};
    options.schema = schema;
    options.preprocessing.emplace();
    return options;
  }

  static Dataset open(const DatasetOptions& options) {
    auto dataset = Dataset::open(options);
    CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
    return std::move(dataset).value();
  }

  // All events, read with both caches, two threads, and from a kept index; CHECKed to be the same.
  Batch all_of(DatasetOptions options) const {
    Batch first;
    runtime::Hash128 fingerprint;
    int opening = 0;
    for (const CacheMode cache : {CacheMode::kMemory, CacheMode::kNone}) {
      for (const char* const index : {"", "index", "index"}) {
        options.cache = cache;
        options.threads = 2;
        options.index_folder = *index == '\0' ? "" : folder_ / index;
        Dataset dataset = open(options);
        std::vector<std::uint64_t> ids(dataset.size());
        std::iota(ids.begin(), ids.end(), 0u);
        Batch batch;
        CHECK(dataset.read(ids, batch).ok());
        if (opening++ == 0) first = batch;
        EXPECT_EQ(images(batch), images(first));
        EXPECT_EQ(energies(batch), energies(first));
        if (cache == CacheMode::kNone) continue;  // blocks count there
        if (fingerprint == runtime::Hash128{}) fingerprint = dataset.fingerprint();
        EXPECT_EQ(dataset.fingerprint(), fingerprint);
      }
    }
    return first;
  }

  static std::vector<float> images(const Batch& batch) {
    const auto all = batch.images.as<float>();
    return {all.begin(), all.end()};
  }
  static std::vector<float> energies(const Batch& batch) {
    return {batch.energies().begin(), batch.energies().end()};
  }

  // The same numbers in HDF5, as another program stores them.
  std::string hdf5(std::vector<hsize_t> shape, const std::vector<float>& cells,
                   const StorageLayout& layout) const {
    const std::string path = folder_ / "a.h5";
    const std::size_t events = shape[0];
    Hdf5Scribe file(path);
    file.add("ECAL", std::move(shape), cells, layout);
    std::vector<float> target;
    for (std::size_t i = 0; i < events; ++i) {
      target.insert(target.end(), {11.0f, 10.0f + static_cast<float>(i)});
    }
    file.add("target", {events, 2}, target);
    return path;
  }

  static std::vector<float> numbers(std::size_t count) {
    std::vector<float> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<float>(i % 251);
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(Formats, WholeNumbersAndBytesAreReadWhateverTheLayout) {
  const auto cells = numbers(12 * 60);
  for (const StoredType type : {StoredType::kInteger, StoredType::kByte}) {
    for (StorageLayout layout :
         {StorageLayout{}, StorageLayout{.chunk = {5, 3, 4, 5}, .shuffle = true, .gzip = 1},
          StorageLayout{.chunk = {5, 2, 4, 3}, .gzip = 1}, StorageLayout{.chunk = {12, 3, 4, 5}}}) {
      layout.type = type;
      const auto path = hdf5({12, 3, 4, 5}, cells, layout);
      const Dataset dataset = open(options(path, DataSchema::kLcdFixed));
      // Bytes in chunks are decoded here, other whole numbers by the library.
      EXPECT_EQ(dataset.report().notes.empty(), type == StoredType::kByte && !layout.chunk.empty());
      EXPECT_EQ(images(all_of(options(path, DataSchema::kLcdFixed))), cells);
    }
  }
}

TEST_F(Formats, ImagesMayLackDepthOrHaveAnAxisOfChannels) {
  struct Case {
    std::vector<hsize_t> stored;
    ImageShape own;       // where nobody expects another
    ImageShape expected;  // another that fits as well
  };
  const Case cases[] = {{{10, 6, 4}, {{6, 4, 1}}, {{6, 4, 1}}},
                        {{10, 6, 4, 1}, {{6, 4, 1}}, {{6, 4, 1}}},
                        {{10, 4, 2, 3}, {{4, 2, 3}}, {{4, 2, 1}, 3}},
                        {{10, 4, 2, 3, 1}, {{4, 2, 3}}, {{4, 2, 3}}},
                        {{10, 2, 2, 3, 2}, {{2, 2, 3}, 2}, {{2, 2, 3}, 2}},
                        {{10, 4, 2, 1, 3}, {{4, 2, 1}, 3}, {{4, 2, 3}}},
                        {{10, 24}, {{24, 1, 1}}, {{2, 3, 4}}}};
  const auto cells = numbers(240);
  for (const Case& each : cases) {
    const auto path = hdf5(each.stored, cells, {.chunk = each.stored});
    DatasetOptions asked = options(path, DataSchema::kLcdFixed);
    EXPECT_EQ(open(asked).shape(), each.own) << each.own.text();
    asked.expected_shape = each.expected;
    Dataset dataset = open(asked);
    EXPECT_EQ(dataset.shape(), each.expected);
    Batch batch;
    const std::vector<std::uint64_t> ids{3};
    ASSERT_TRUE(dataset.read(ids, batch).ok());
    EXPECT_EQ(batch.shape, each.expected);
    EXPECT_EQ(images(batch), (std::vector<float>(cells.begin() + 72, cells.begin() + 96)));
    asked.expected_shape = {{5, 5, 5}};
    EXPECT_THAT(Dataset::open(asked), FailsWith(ErrorKind::kData, "expected images of 5 x 5 x 5"));
  }
}

TEST_F(Formats, BadValueOfAChannelIsNamedWithIt) {
  auto cells = numbers(240);
  cells[24 * 7 + 2 * 2 + 1] = -3;
  const auto path = hdf5({10, 2, 2, 3, 2}, cells, {});
  EXPECT_THAT(Dataset::open(options(path, DataSchema::kLcdFixed)),
              FailsWith(ErrorKind::kData, "event 7: cell (0, 0, 2, 1) is -3"));
}

TEST_F(Formats, NnloHoldsEnergiesAsTheModelSeesThem) {
  const SmallData data(7);
  {
    Hdf5Scribe file(folder_ / "n.h5");
    file.add("X", {7, 3, 4, 5, 1}, data.cells, {.chunk = {2, 3, 4, 5, 1}, .gzip = 1});
    file.add("y/a", {7}, std::vector<float>(7, 1.0f));
    file.add("y/b", {7}, {0.5f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.5f});
    file.add("y/c", {7}, std::vector<float>(7, 9.0f));
  }
  const Batch batch = all_of(options(folder_ / "n.h5", DataSchema::kNnlo));
  EXPECT_EQ(images(batch), data.cells);
  EXPECT_THAT(energies(batch), ElementsAre(0.5f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.5f));
  EXPECT_EQ(find_schema({folder_ / "n.h5"}).value(), DataSchema::kNnlo);
}

class CaloChallenge : public Formats {
 protected:
  CaloChallenge() {
    write_text(folder_ / "binning.xml", small_binning());
    Hdf5Scribe file(folder_ / "c.h5");
    showers_ = numbers(5 * 8);
    file.add("showers", {5, 8}, showers_, {.chunk = {2, 8}, .gzip = 1});
    file.add("incident_energies", {5, 1}, {1000, 2000, 4000, 8000, 16000});
  }
  std::vector<float> showers_;
};

TEST_F(CaloChallenge, ShowersAreVectorsWithoutABinning) {
  const Batch batch = all_of(options(folder_ / "c.h5", DataSchema::kCaloChallenge));
  EXPECT_EQ(batch.shape, (ImageShape{{8, 1, 1}}));
  EXPECT_EQ(images(batch), showers_);
  EXPECT_THAT(energies(batch), ElementsAre(0.01f, 0.02f, 0.04f, 0.08f, 0.16f));
  DatasetOptions boxes = options(folder_ / "c.h5", DataSchema::kCaloChallenge);
  boxes.expected_shape = {{2, 2, 2}};
  EXPECT_THAT(Dataset::open(boxes), FailsWith(ErrorKind::kData, "expected images of 2 x 2 x 2"));
}

TEST_F(CaloChallenge, ShowersAreBoxesOfAnglesRadiiAndLayersWithOne) {
  DatasetOptions boxes = options(folder_ / "c.h5", DataSchema::kCaloChallenge);
  boxes.binning = folder_ / "binning.xml";
  const Batch batch = all_of(boxes);
  EXPECT_EQ(batch.shape, (ImageShape{{2, 3, 3}}));
  // Layers of 1 x 3, 2 x 2 and 1 x 1; the layer is the fastest axis of the box.
  const auto row = [&](std::size_t e) {
    const float* s = showers_.data() + 8 * e;
    return std::vector<float>{s[0], s[3], s[7], s[1], s[4], 0, s[2], 0, 0,   // angle 0
                              0,    s[5], 0,    0,    s[6], 0, 0,    0, 0};  // angle 1
  };
  for (std::size_t e = 0; e < 5; ++e) {
    const auto found = batch.images.as<float>().subspan(18 * e, 18);
    EXPECT_EQ(std::vector<float>(found.begin(), found.end()), row(e)) << e;
  }
}

TEST_F(CaloChallenge, BinningOfOtherVoxelsIsRefused) {
  DatasetOptions boxes = options(folder_ / "c.h5", DataSchema::kCaloChallenge);
  boxes.binning = folder_ / "binning.xml";
  {
    Hdf5Scribe file(folder_ / "c.h5");
    file.add("showers", {5, 9}, numbers(45));
    file.add("incident_energies", {5, 1}, numbers(5));
  }
  EXPECT_THAT(
      Dataset::open(boxes),
      FailsWith(ErrorKind::kData, "no particle has 9 voxels: photon has 8, electron has 12"));
  const std::pair<const char*, const char*> wrong[] = {
      {"<Bins>", ":1: "},
      {"<Bins>\n<Bin name='x'>\n<Layer id='0' r_edges='0,3,2' n_bin_alpha='1'/></Bin></Bins>",
       ":3: r_edges is \"0,3,2\"; expected numbers that grow"},
      {"<Bins><Bin name='x'><Layer id='0' r_edges='0,1' n_bin_alpha='0'/></Bin></Bins>",
       ":1: n_bin_alpha is \"0\"; expected 1 or more"},
      {"<Bins><Bin name='x'><Layer id='0' r_edges='0' n_bin_alpha='1'/></Bin></Bins>",
       "no <Layer> has voxels"},
      {"<a/>", "expected <Bins> with a <Bin> for each particle"}};
  for (const auto& [text, said] : wrong) {
    write_text(folder_ / "binning.xml", text);
    EXPECT_THAT(Dataset::open(boxes), FailsWith(ErrorKind::kData, said));
  }
  boxes.schema = DataSchema::kLcdFixed;
  EXPECT_THAT(Dataset::open(boxes), FailsWith(ErrorKind::kData, "only with schema calochallenge"));
}

TEST_F(CaloChallenge, VoxelsGoIntoTheBoxAndBack) {
  const CaloBinning binning = binning_for(folder_ / "binning.xml", 12).value();
  EXPECT_EQ(binning.particle, "electron");
  std::vector<float> row(12);
  std::iota(row.begin(), row.end(), 1.0f);
  std::vector<float> box(12, -1.0f);
  binning.to_box(row, box);
  EXPECT_THAT(box, ElementsAre(1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12));
  std::vector<float> back(12);
  binning.from_box(box, back);
  EXPECT_EQ(back, row);
}

TEST_F(Formats, IdxImagesComeWithTheLabelsBesideThemPackedOrNot) {
  for (const bool packed : {false, true}) {
    const SmallDigits digits{9};
    const auto path = digits.write(folder_.path(), packed ? "p" : "u", packed);
    const Batch batch = all_of(options(path, DataSchema::kIdx));
    EXPECT_EQ(batch.shape, (ImageShape{{4, 3, 1}}));
    for (std::size_t e = 0; e < 9; ++e) {
      EXPECT_EQ(batch.energies()[e], static_cast<float>(0.1 * static_cast<double>(e + 1)));
      for (std::size_t c = 0; c < 12; ++c) {
        EXPECT_EQ(batch.images.as<float>()[12 * e + c], static_cast<float>(20 * e + c));
      }
    }
    EXPECT_EQ(find_schema({path}).value(), DataSchema::kIdx);
  }
}

TEST_F(Formats, IdxLabelsThatChangeMakeAnotherIndex) {
  const auto path = SmallDigits{9}.write(folder_.path(), "u");
  DatasetOptions asked = options(path, DataSchema::kIdx);
  asked.index_folder = folder_ / "index";
  EXPECT_EQ(open(asked).energy(8), 0.9f);
  std::string labels = SmallDigits{9}.labels();
  labels.back() = 4;
  write_text(folder_ / "u-labels-idx1-ubyte", labels);
  EXPECT_EQ(open(asked).energy(8), 0.5f);
}

TEST_F(Formats, IdxNumbersOfEveryTypeAreRead) {
  struct Case {
    std::uint8_t type;
    std::string numbers;  // 1, 2.5 or 2, 300 or 3
    std::vector<float> values;
  };
  using namespace std::string_literals;
  const Case cases[] = {
      {0x09, "\x01\x02\x03"s, {1, 2, 3}},
      {0x0b, "\0\x01\0\x02\x01\x2c"s, {1, 2, 300}},
      {0x0c, "\0\0\0\x01\0\0\0\x02\0\0\x01\x2c"s, {1, 2, 300}},
      {0x0d, "\x3f\x80\0\0\x40\x20\0\0\x43\x96\0\0"s, {1, 2.5, 300}},
      {0x0e, "\x3f\xf0\0\0\0\0\0\0\x40\x04\0\0\0\0\0\0\x40\x72\xc0\0\0\0\0\0"s, {1, 2.5, 300}}};
  write_text(folder_ / "labels", idx_text(0x08, {3}, "\x01\x02\x03"));
  for (const Case& each : cases) {
    write_text(folder_ / "images", idx_text(each.type, {3, 1, 1}, each.numbers));
    EXPECT_EQ(images(all_of(options(folder_ / "images", DataSchema::kIdx))), each.values);
  }
}

TEST_F(Formats, DamagedIdxFilesAreRefused) {
  const SmallDigits digits{9};
  const auto path = digits.write(folder_.path(), "u");
  const auto refused = [&](const std::string& content, const char* said) {
    for (const bool packed : {false, true}) {
      write_text(path, packed ? gzip_text(content) : content);
      EXPECT_THAT(Dataset::open(options(path, DataSchema::kIdx)),
                  FailsWith(ErrorKind::kData, said));
    }
  };
  const std::string whole = digits.images();
  refused(whole.substr(0, whole.size() - 1),
          "(9, 4, 3) uint8 takes 124 bytes, and it has 123; it is cut short");
  refused(whole + "x", "has more than 124; it is no IDX file, or damaged");
  refused(idx_text(0x0e, {0xffffffff, 0xffffffff, 0xffffffff}, ""), "is impossible");
  refused(idx_text(0x08, {0, 4, 3}, ""), "holds no events");
  refused(digits.labels(), "(9) uint8, which are labels; name the file of their images");
  refused(std::string("\0\0\x08\x03\0\0\0\x09", 8), "not a whole IDX file");
  std::string packed = gzip_text(whole);
  packed.resize(packed.size() - 9);
  write_text(path, packed);
  EXPECT_THAT(Dataset::open(options(path, DataSchema::kIdx)),
              FailsWith(ErrorKind::kData, "gzip data are cut short"));
  packed[20] ^= 0x55;
  write_text(path, packed);
  EXPECT_THAT(Dataset::open(options(path, DataSchema::kIdx)), FailsWith(ErrorKind::kData, path));
  write_text(path, whole);
  write_text(folder_ / "u-labels-idx1-ubyte", SmallDigits{8}.labels());
  EXPECT_THAT(Dataset::open(options(path, DataSchema::kIdx)),
              FailsWith(ErrorKind::kData, "labels: (8) uint8; expected 9 rows"));
  std::filesystem::remove(folder_ / "u-labels-idx1-ubyte");
  EXPECT_THAT(Dataset::open(options(path, DataSchema::kIdx)),
              FailsWith(ErrorKind::kData, "there is no u-labels-idx1-ubyte beside it"));
}

// A packed file that claims little takes little memory, however much it would unpack to.
TEST_F(Formats, PackedFileIsNotUnpackedBeyondItsClaim) {
  const auto path = SmallDigits{9}.write(folder_.path(), "u", true);
  write_text(path, gzip_text(SmallDigits{9}.images() + std::string(16u << 20, '\0')));
  EXPECT_THAT(Dataset::open(options(path, DataSchema::kIdx)),
              FailsWith(ErrorKind::kData, "has more than 124"));
}

class Records : public Formats {
 protected:
  Records() { write_text(path_, small_records(11)); }
  const std::string path_ = folder_ / "a.tfrecord";
};

TEST_F(Records, FeaturesAreImagesAndConditions) {
  const SmallData data(11);
  const Batch vectors = all_of(options(path_, DataSchema::kTfRecord));
  EXPECT_EQ(vectors.shape, (ImageShape{{60, 1, 1}}));
  EXPECT_EQ(images(vectors), data.cells);
  EXPECT_EQ(vectors.energies()[10], 0.2f);
  DatasetOptions boxes = options(path_, DataSchema::kTfRecord);
  boxes.expected_shape = {{3, 4, 5}};
  const Batch batch = all_of(boxes);
  EXPECT_EQ(batch.shape, (ImageShape{{3, 4, 5}}));
  EXPECT_EQ(images(batch), data.cells);
  EXPECT_EQ(find_schema({path_}).value(), DataSchema::kTfRecord);
  // Any other feature is a condition as well.
  boxes.names = default_names(DataSchema::kTfRecord);
  boxes.names->energy = "label";
  boxes.names->energy_offset = 1;
  boxes.names->energy_unit_gev = 100;
  EXPECT_EQ(open(boxes).energy(10), 11.0f);
}

TEST_F(Records, PackedFileIsReadAndTold) {
  write_text(path_, gzip_text(small_records(11)));
  EXPECT_EQ(images(all_of(options(path_, DataSchema::kTfRecord))), SmallData(11).cells);
  const Dataset dataset = open(options(path_, DataSchema::kTfRecord));
  ASSERT_EQ(dataset.report().notes.size(), 1u);
  EXPECT_THAT(dataset.report().notes[0], HasSubstr("is unpacked into memory"));
}

// Bytes as they come from a program of TensorFlow: {"image": b"\x01..\x06", "energy": 7.0} in the
// first record, {"image": b"\x0b..\x10", "energy": 8.0} in the second, and the floats 1 to 6 in
// bytes with the energy as an int64 in the third file.
TEST_F(Records, BytesAreNumbersOf8BitsOrFloats) {
  const auto write = [&](const std::string& bytes) {
    const float energy[] = {7};
    const std::int64_t extents[] = {2, 3};
    const auto record = runtime::tf_record(ExampleWriter()
                                               .bytes("image", bytes)
                                               .floats("energy", energy)
                                               .integers("shape", extents)
                                               .message());
    write_text(path_, record + record);
  };
  DatasetOptions asked = options(path_, DataSchema::kTfRecord);
  asked.names = DatasetNames{.images = {"image"}, .energy = "energy"};
  write(std::string("\x01\x02\x03\x04\x05\x06", 6));
  const std::vector<float> want{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(images(all_of(asked)), want);
  EXPECT_EQ(open(asked).shape(), (ImageShape{{2, 3, 1}}));
  std::string floats;
  for (const float value : {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}) {
    floats.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  write(floats);
  EXPECT_EQ(images(all_of(asked)), want);
}

TEST_F(Records, DamagedFilesAreRefusedWithTheNumberOfTheRecord) {
  const std::string whole = small_records(11);
  const std::size_t record = whole.size() / 11;
  const auto refused = [&](const std::string& content, const char* said) {
    write_text(path_, content);
    EXPECT_THAT(Dataset::open(options(path_, DataSchema::kTfRecord)),
                FailsWith(ErrorKind::kData, said));
  };
  refused(whole.substr(0, whole.size() - 5), "record 10 is cut short");
  refused(whole.substr(0, whole.size() - record + 3), "record 10 is cut short");
  std::string damaged = whole;
  damaged[4 * record + 30] ^= 1;
  refused(damaged, "record 4 has a wrong checksum");
  damaged = whole;
  damaged[4 * record + 2] ^= 1;
  refused(damaged, "record 4 has a length with a wrong checksum");
  refused(whole + runtime::tf_record("no message"), "record 11 is no tf.train.Example");
  const float few[] = {1, 2};
  refused(whole + runtime::tf_record(ExampleWriter()
                                         .floats("ECAL", few)
                                         .floats("energy", std::span(few).first(1))
                                         .message()),
          "feature ECAL: record 11 has 2 float32; expected 60 float32 as in the first");
  refused(whole + runtime::tf_record(ExampleWriter().floats("energy", few).message()),
          "feature energy: record 11 has 2 float32; expected 1 float32 as in the first");
  DatasetOptions other = options(path_, DataSchema::kTfRecord);
  other.names = DatasetNames{.images = {"cells"}, .energy = "energy"};
  EXPECT_THAT(Dataset::open(other),
              FailsWith(ErrorKind::kData, "no feature cells; its records have ECAL, energy"));
  other.schema = DataSchema::kLcdFixed;
  EXPECT_THAT(Dataset::open(other),
              FailsWith(ErrorKind::kData,
                        "a file of TFRecord; expected HDF5, as data.schema is lcd-fixed"));
}

TEST_F(Records, InfoTellsWhatANamelessFileHoldsAndTakesNames) {
  runtime::ThreadTeam team(1);
  const float few[] = {1, 2, 3, 4};
  const auto record = runtime::tf_record(
      ExampleWriter().floats("picture", few).floats("e", std::span(few).first(1)).message());
  write_text(path_, record + record + record);
  const auto unknown = describe_dataset({path_}, {}, team);
  ASSERT_TRUE(unknown.ok()) << unknown.error().message;
  ASSERT_EQ(unknown->not_understood.size(), 1u);
  EXPECT_THAT(unknown->not_understood[0],
              HasSubstr("TFRecord of no schema that is known here: tfrecord (features ECAL and "
                        "energy); it has picture, e. Name its parts: troupe data info --image"));
  DescribeOptions named;
  named.names = DatasetNames{.images = {"picture"}, .energy = "e"};
  named.shape = {{2, 2, 1}};
  const auto info = describe_dataset({path_}, named, team);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->schema, DataSchema::kCustom);
  EXPECT_EQ(info->events, 3u);
  EXPECT_EQ(info->shape, (ImageShape{{2, 2, 1}}));
  EXPECT_EQ(info->ecal.mean, 10);
  EXPECT_TRUE(info->not_understood.empty());
  SmallDigits{3}.write(folder_.path(), "u");
  const auto labels = describe_dataset({folder_ / "u-labels-idx1-ubyte"}, {}, team);
  ASSERT_TRUE(labels.ok()) << labels.error().message;
  EXPECT_THAT(labels->not_understood.at(0), HasSubstr("IDX of no schema that is known here: idx (a "
                                                      "file of images and one of labels beside "
                                                      "it); it has labels."));
}

TEST_F(Formats, EventsEndWhereTheCapSaysAndLaterFilesAreNotRead) {
  SmallData(20, 1).write(folder_ / "part_0.h5");
  SmallData(20, 2).write(folder_ / "part_1.h5");
  SmallData damaged(20, 3);
  damaged.cells[0] = -1;
  damaged.write(folder_ / "part_2.h5");
  DatasetOptions asked = options(folder_ / "part_*.h5", DataSchema::kLcdFixed);
  EXPECT_THAT(Dataset::open(asked), FailsWith(ErrorKind::kData, "event 0"));
  runtime::Hash128 all;
  for (const CacheMode cache : {CacheMode::kMemory, CacheMode::kNone}) {
    asked.cache = cache;
    asked.events = 27;
    Dataset dataset = open(asked);
    EXPECT_EQ(dataset.size(), 27u);
    EXPECT_EQ(dataset.report().beyond, 33u);
    EXPECT_EQ(std::accumulate(dataset.blocks().begin(), dataset.blocks().end(), 0u), 27u);
    Batch batch;
    const std::vector<std::uint64_t> ids{26, 0};
    ASSERT_TRUE(dataset.read(ids, batch).ok());
    EXPECT_EQ(batch.images.as<float>()[1], SmallData(20, 2).cells[6 * 60 + 1]);
    EXPECT_EQ(batch.images.as<float>()[61], SmallData(20, 1).cells[1]);
    asked.events = 40;
    all = open(asked).fingerprint();
    EXPECT_NE(all, dataset.fingerprint());
    asked.split = DataSplit::kTest;
    asked.events = 3;
    EXPECT_EQ(open(asked).size(), 3u);
    asked.split = DataSplit::kAll;
  }
}

}  // namespace
}  // namespace troupe::pipeline
