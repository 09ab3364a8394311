#include "pipeline/data/conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "pipeline/data/dataset.h"
#include "pipeline/data/hdf5_file.h"
#include "pipeline/data/shower_dataset.h"
#include "pipeline/data/stored_events.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/format_fixture.h"
#include "tests/support/fails_with.h"

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class Conversion : public testing::Test {
 protected:
  runtime::Result<std::uint64_t> convert(const std::string& from, DataSchema to,
                                         const std::string& out, const DescribeOptions& how = {}) {
    ConversionOptions options;
    options.paths = {folder_ / from};
    options.from = how;
    options.to = to;
    options.program = "troupe of a test";
    return convert_dataset(options, folder_ / out, team_);
  }

  // CHECKs that it succeeds.
  void converted(const std::string& from, DataSchema to, const std::string& out,
                 const DescribeOptions& how = {}) {
    const auto events = convert(from, to, out, how);
    CHECK(events.ok(), events.ok() ? "" : events.error().message);
  }

  // Conditions and cells as stored.
  struct Content {
    ImageShape shape;
    std::vector<float> cells, energies, angles;
    bool operator==(const Content&) const = default;
  };
  Content content(const std::string& name, DataSchema schema, const ImageShape& shape = {},
                  const std::string& binning = "") {
    DatasetOptions options;
    options.paths = {folder_ / name};
    options.schema = schema;
    options.preprocessing.emplace();
    options.expected_shape = shape;
    options.binning = binning;
    auto dataset = Dataset::open(options);
    CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
    std::vector<std::uint64_t> ids(dataset->size());
    std::iota(ids.begin(), ids.end(), 0u);
    Batch batch;
    CHECK(dataset->read(ids, batch).ok());
    const auto cells = batch.images.as<float>();
    return {dataset->shape(),
            {cells.begin(), cells.end()},
            {batch.energies().begin(), batch.energies().end()},
            {batch.angles().begin(), batch.angles().end()}};
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  TemporaryFolder folder_;
  runtime::ThreadTeam team_{2};
};

std::vector<float> times(std::vector<float> values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

TEST_F(Conversion, EverySchemaHoldsTheSameShowers) {
  SmallData data(23);
  data.images = {.chunk = {4, 3, 4, 5}, .gzip = 1};
  data.write(folder_ / "a.h5");
  const Content want = content("a.h5", DataSchema::kLcdFixed);
  converted("a.h5", DataSchema::kNnlo, "n.h5");
  EXPECT_EQ(content("n.h5", DataSchema::kNnlo), want);
  converted("n.h5", DataSchema::kLcdAngle, "l.h5");
  const Content angle = content("l.h5", DataSchema::kLcdAngle);
  EXPECT_EQ(angle.cells, times(want.cells, 50));
  EXPECT_EQ(angle.energies, want.energies);
  EXPECT_EQ(angle.angles, want.angles);
  converted("a.h5", DataSchema::kTfRecord, "t.tfrecord");
  EXPECT_EQ(content("t.tfrecord", DataSchema::kTfRecord), want);
  converted("t.tfrecord", DataSchema::kIdx, "images-idx4-float");
  EXPECT_EQ(content("images-idx4-float", DataSchema::kIdx), want);
  converted("images-idx4-float", DataSchema::kLcdFixed, "b.h5");
  EXPECT_EQ(content("b.h5", DataSchema::kLcdFixed), want);
}

// A column of a file, by its name.
std::vector<float> numbers_of(const std::string& path, DataSchema schema, const std::string& name) {
  DatasetOptions options;
  options.paths = {path};
  options.schema = schema;
  options.preprocessing.emplace();
  options.columns = {{name}};
  auto dataset = Dataset::open(options);
  CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
  std::vector<std::uint64_t> ids(dataset->size());
  std::iota(ids.begin(), ids.end(), 0u);
  Batch batch;
  CHECK(dataset->read(ids, batch).ok());
  const auto numbers = batch.column(0);
  return {numbers.begin(), numbers.end()};
}

TEST_F(Conversion, FurtherNumbersStayUnderTheirNamesInEverySchemaThatHasAPlaceForThem) {
  constexpr std::size_t kRows = 9;
  const SmallData data(kRows);
  std::vector<float> target, eta, pair;
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto n = static_cast<float>(i);
    target.insert(target.end(), {i % 3 == 2 ? 2212.0f : 11.0f, 10.0f + n, n * n});
    eta.push_back(n / 8);
    pair.insert(pair.end(), {n, -n});
  }
  {
    Hdf5Scribe file(folder_ / "a.h5");
    file.add("ECAL", {kRows, 3, 4, 5}, data.cells);
    file.add("HCAL", {kRows, 3, 4, 5}, data.cells);
    file.add("target", {kRows, 3}, target);
    file.add("more/eta", {kRows}, eta);
    file.add("pair", {kRows, 2}, pair);
    file.add("energy", {kRows}, eta);
    file.add("short", {kRows - 1}, std::vector<float>(kRows - 1));
  }
  std::vector<float> species, squares, second;
  for (std::size_t i = 0; i < kRows; ++i) {
    species.push_back(target[3 * i]);
    squares.push_back(target[3 * i + 2]);
    second.push_back(pair[2 * i + 1]);
  }
  std::string from = "a.h5";
  for (const auto& [to, name] :
       {std::pair(DataSchema::kNnlo, "n.h5"), std::pair(DataSchema::kTfRecord, "t.tfrecord"),
        std::pair(DataSchema::kLcdAngle, "l.h5"), std::pair(DataSchema::kLcdFixed, "f.h5")}) {
    converted(from, to, name);
    const std::string path = folder_ / name;
    const bool fixed = to == DataSchema::kLcdFixed;
    EXPECT_EQ(numbers_of(path, to, fixed ? "target.0" : "pdg"), species) << name;
    EXPECT_EQ(numbers_of(path, to, "target.2"), squares) << name;
    EXPECT_EQ(numbers_of(path, to, "more/eta"), eta) << name;
    EXPECT_EQ(numbers_of(path, to, "pair.1"), second) << name;
    from = name;
  }
  // The schema's own part stands where a further one has its name.
  EXPECT_EQ(content("l.h5", DataSchema::kLcdAngle).energies,
            content("a.h5", DataSchema::kLcdFixed).energies);
  const auto file = Hdf5File::open(folder_ / "n.h5");
  EXPECT_FALSE(file->contains("HCAL"));
  EXPECT_FALSE(file->contains("short"));
  converted("a.h5", DataSchema::kIdx, "images");
  EXPECT_EQ(content("images", DataSchema::kIdx).cells,
            content("a.h5", DataSchema::kLcdFixed).cells);
}

// As files have that were made with a condition of the name.
TEST_F(Conversion, PartWhoseNameIsTakenIsLeftOut) {
  constexpr std::size_t kRows = 4;
  const SmallData data(kRows);
  const std::vector<float> others(kRows, 7.0f), species{11, 22, 22, 11}, squares{1, 4, 9, 16};
  {
    Hdf5Scribe file(folder_ / "a.h5");
    file.add("ECAL", {kRows, 3, 4, 5}, data.cells);
    file.add("target", {kRows, 3}, std::vector<float>{11, 20, 1, 22, 30, 4, 22, 40, 9, 11, 50, 16});
    for (const char* name : {"energy/x", "pdg", "target.0", "target.2", "y"}) {
      file.add(name, {kRows}, others);
    }
  }
  for (const auto& [to, name] :
       {std::pair(DataSchema::kNnlo, "n.h5"), std::pair(DataSchema::kTfRecord, "t.tfrecord"),
        std::pair(DataSchema::kLcdAngle, "l.h5"), std::pair(DataSchema::kLcdFixed, "f.h5")}) {
    converted("a.h5", to, name);
    const std::string path = folder_ / name;
    EXPECT_EQ(numbers_of(path, to, to == DataSchema::kLcdFixed ? "target.0" : "pdg"), species)
        << name;
    EXPECT_EQ(numbers_of(path, to, "target.2"), squares) << name;
  }
  EXPECT_EQ(numbers_of(folder_ / "l.h5", DataSchema::kLcdAngle, "y"), others);
  EXPECT_EQ(numbers_of(folder_ / "n.h5", DataSchema::kNnlo, "energy/x"), others);
  EXPECT_FALSE(Hdf5File::open(folder_ / "l.h5")->contains("energy/x"));
}

TEST_F(Conversion, OfSeveralFilesTheNumbersStayThatAllOfThemHave) {
  for (const std::string name : {"a_0.h5", "a_1.h5"}) {
    const SmallData data(4);
    Hdf5Scribe file(folder_ / name);
    file.add("ECAL", {4, 3, 4, 5}, data.cells);
    file.add("target", {4, 2}, std::vector<float>{11, 20, 22, 30, 22, 40, 11, 50});
    file.add("both", {4}, std::vector<float>{1, 2, 3, 4});
    file.add(name == "a_0.h5" ? "first" : "second", {4}, std::vector<float>(4));
  }
  converted("a_*.h5", DataSchema::kNnlo, "n.h5");
  EXPECT_EQ(numbers_of(folder_ / "n.h5", DataSchema::kNnlo, "both"),
            (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(numbers_of(folder_ / "n.h5", DataSchema::kNnlo, "pdg"),
            (std::vector<float>{11, 22, 22, 11, 11, 22, 22, 11}));
  const auto file = Hdf5File::open(folder_ / "n.h5");
  EXPECT_FALSE(file->contains("first"));
  EXPECT_FALSE(file->contains("second"));
}

TEST_F(Conversion, DigitsStayBytesAndComeBackAsTheSameFiles) {
  SmallDigits{9}.write(folder_.path(), "u");
  converted("u-images-idx3-ubyte", DataSchema::kTfRecord, "t.tfrecord");
  const auto found = content("t.tfrecord", DataSchema::kTfRecord);
  EXPECT_EQ(found.shape, (ImageShape{{4, 3, 1}}));
  EXPECT_EQ(found.energies[8], 0.9f);
  converted("u-images-idx3-ubyte", DataSchema::kIdx, "v-images-idx3-ubyte");
  EXPECT_EQ(text_of("v-images-idx3-ubyte"), SmallDigits{9}.images());
  EXPECT_EQ(text_of("v-labels-idx1-ubyte"), SmallDigits{9}.labels());
}

TEST_F(Conversion, LabelsThatBytesCannotHoldAreRefused) {
  SmallDigits{3}.write(folder_.path(), "u");
  using namespace std::string_literals;
  write_text(folder_ / "u-labels-idx1-ubyte", idx_text(0x0b, {3}, "\0\x01\0\xff\x01\0"s));
  EXPECT_THAT(
      convert("u-images-idx3-ubyte", DataSchema::kIdx, "v-images-idx3-ubyte"),
      FailsWith(ErrorKind::kData, "event 2 has the label 256; bytes hold whole numbers from 0 to"));
  write_text(folder_ / "u-labels-idx1-ubyte",
             idx_text(0x0d, {3}, "\x3f\x80\0\0\x40\x20\0\0\x40\x20\0\0"s));
  EXPECT_THAT(convert("u-images-idx3-ubyte", DataSchema::kIdx, "v-images-idx3-ubyte"),
              FailsWith(ErrorKind::kData, "event 1 has the label 2.5;"));
}

TEST_F(Conversion, VoxelsPassThroughBoxes) {
  write_text(folder_ / "b.xml", small_binning());
  std::vector<float> showers(5 * 8);
  std::iota(showers.begin(), showers.end(), 1.0f);
  {
    Hdf5Scribe file(folder_ / "c.h5");
    file.add("showers", {5, 8}, showers, {.chunk = {2, 8}});
    file.add("incident_energies", {5, 1}, {256, 512, 1024, 2048, 4096});
  }
  DescribeOptions boxes;
  boxes.binning = folder_ / "b.xml";
  converted("c.h5", DataSchema::kLcdFixed, "box.h5", boxes);
  const Content box = content("box.h5", DataSchema::kLcdFixed);
  EXPECT_EQ(box.shape, (ImageShape{{2, 3, 3}}));
  EXPECT_FLOAT_EQ(box.energies[0], 0.00256f);
  converted("box.h5", DataSchema::kCaloChallenge, "d.h5", boxes);
  const Content back = content("d.h5", DataSchema::kCaloChallenge);
  EXPECT_EQ(back.shape, (ImageShape{{8, 1, 1}}));
  for (std::size_t i = 0; i < showers.size(); ++i) EXPECT_FLOAT_EQ(back.cells[i], showers[i]);
  // Without a binning rows stay rows, bit by bit.
  converted("c.h5", DataSchema::kCaloChallenge, "e.h5");
  EXPECT_EQ(content("e.h5", DataSchema::kCaloChallenge),
            content("c.h5", DataSchema::kCaloChallenge));
  EXPECT_THAT(convert("box.h5", DataSchema::kCaloChallenge, "f.h5"),
              FailsWith(ErrorKind::kData, "images of 2 x 3 x 3 are no rows of voxels"));
  SmallData(3).write(folder_ / "a.h5");
  EXPECT_THAT(convert("a.h5", DataSchema::kCaloChallenge, "f.h5", boxes),
              FailsWith(ErrorKind::kData,
                        "its boxes are 2 x 3 x 3, 2 x 3 x 2; the images are "
                        "3 x 4 x 5"));
}

TEST_F(Conversion, SameFilesGiveTheSameBytesThatTellWhereTheyComeFrom) {
  ShowerDatasetOptions made;
  made.showers.detector = DetectorKind::kFixed4;
  made.events = 40;
  made.files = 3;
  ASSERT_TRUE(write_shower_dataset(made, folder_ / "s.h5", team_).ok());
  converted("s_*.h5", DataSchema::kNnlo, "one.h5");
  runtime::ThreadTeam alone(1);
  ConversionOptions options;
  options.paths = {folder_ / "s_*.h5"};
  options.to = DataSchema::kNnlo;
  options.program = "troupe of a test";
  ASSERT_TRUE(convert_dataset(options, folder_ / "two.h5", alone).ok());
  EXPECT_EQ(text_of("one.h5"), text_of("two.h5"));
  const auto file = Hdf5File::open(folder_ / "one.h5");
  ASSERT_TRUE(file.ok());
  const auto attributes = file->attributes();
  const auto has = [&](const std::string& name, const std::string& value) {
    return std::ranges::count(attributes, std::pair(name, value)) == 1;
  };
  EXPECT_TRUE(has("converted_by", "troupe of a test"));
  EXPECT_TRUE(has("source", "s_0.h5, s_1.h5, s_2.h5"));
  EXPECT_TRUE(has("source_schema", "lcd-fixed"));
  EXPECT_TRUE(has("source_seed", "1"));
  converted("s_*.h5", DataSchema::kTfRecord, "t.tfrecord");
  EXPECT_THAT(text_of("t.tfrecord.origin.json"), HasSubstr("\"source_schema\": \"lcd-fixed\""));
}

TEST_F(Conversion, NothingIsLeftWhereItFails) {
  SmallData data(30);
  data.cells[17 * SmallData::kCells + 3] = -1;
  data.write(folder_ / "a.h5");
  for (const DataSchema to : {DataSchema::kNnlo, DataSchema::kTfRecord, DataSchema::kIdx}) {
    EXPECT_THAT(convert("a.h5", to, "images"), FailsWith(ErrorKind::kData, "event 17: cell"));
  }
  EXPECT_THAT(convert("a.h5", DataSchema::kIdx, "b.idx"),
              FailsWith(ErrorKind::kUsage, "has \"images\" in its name"));
  EXPECT_THAT(files(), UnorderedElementsAre("a.h5"));
}

TEST_F(Conversion, CellThatANewUnitMakesInfiniteIsRefused) {
  SmallData data(30);
  data.cells[17 * SmallData::kCells + 3] = 3e37f;
  data.write(folder_ / "a.h5");
  EXPECT_THAT(convert("a.h5", DataSchema::kLcdAngle, "x.h5"),
              FailsWith(ErrorKind::kData,
                        "event 17 has a cell that is beyond a float in the units of lcd-angle"));
}

TEST_F(Conversion, FileThatShrinksOrGrowsMeanwhileIsRefused) {
  SmallData(5).write(folder_ / "a_0.h5");
  for (const std::size_t later : {4u, 6u}) {
    SmallData(5).write(folder_ / "a_1.h5");
    auto events = StoredEvents::open({folder_ / "a_*.h5"}, {}, team_);
    ASSERT_TRUE(events.ok()) << events.error().message;
    SmallData(later).write(folder_ / "a_1.h5");
    std::vector<Primary> primaries(10);
    std::vector<float> cells(10 * SmallData::kCells);
    std::vector<double> columns(10);
    EXPECT_THAT(events->next(primaries, cells, columns),
                FailsWith(ErrorKind::kData, "events, and had 5 before; it changes"));
  }
}

TEST_F(Conversion, WhatASchemaCannotHoldIsRefused) {
  const SmallData data(4);
  {
    Hdf5Scribe file(folder_ / "l.h5");
    file.add("ECAL", {4, 3, 4, 5}, data.cells);
    file.add("energy", {4}, {50, 60, 70, 80});
    file.add("theta", {4}, {1.5707964f, 1.2f, 1.3f, 1.4f});
  }
  EXPECT_THAT(convert("l.h5", DataSchema::kLcdFixed, "x.h5"),
              FailsWith(ErrorKind::kData, "event 1 comes at 68.75 degrees, and lcd-fixed has no"));
  converted("l.h5", DataSchema::kTfRecord, "t.tfrecord");
  DescribeOptions angles;
  angles.schema = DataSchema::kTfRecord;
  angles.names = default_names(DataSchema::kTfRecord);
  angles.names->angle = "theta";
  converted("t.tfrecord", DataSchema::kLcdAngle, "m.h5", angles);
  EXPECT_EQ(content("m.h5", DataSchema::kLcdAngle).angles[2], 1.3f);
  {
    Hdf5Scribe file(folder_ / "c.h5");
    file.add("ECAL", {4, 2, 2, 5, 3}, data.cells);
    file.add("target", {4, 2}, std::vector<float>(8, 20.0f));
  }
  EXPECT_THAT(convert("c.h5", DataSchema::kNnlo, "x.h5"),
              FailsWith(ErrorKind::kData, "2 x 2 x 5 x 3 have 3 channels, and nnlo has one"));
  converted("c.h5", DataSchema::kTfRecord, "t.tfrecord");
  EXPECT_EQ(content("t.tfrecord", DataSchema::kTfRecord).shape, (ImageShape{{2, 2, 5}, 3}));
}

}  // namespace
}  // namespace troupe::pipeline
