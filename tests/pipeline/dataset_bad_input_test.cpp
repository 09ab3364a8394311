// A dataset that cannot be used gets an Error of kind kData that names file, dataset, event and
// what was expected.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "pipeline/data/dataset.h"
#include "pipeline/data/event_container.h"
#include "pipeline/data/example_message.h"
#include "pipeline/data/file_bytes.h"
#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/tf_record.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/format_fixture.h"
#include "tests/support/fails_with.h"
#include "tests/support/process_limits.h"

namespace troupe::pipeline {
namespace {

constexpr const char* kLocking = "HDF5_USE_FILE_LOCKING";

// In any environment. The library reads it once, before the first test.
[[maybe_unused]] const int kLocks = ::setenv(kLocking, "TRUE", 1);

class BadInput : public testing::Test {
 protected:
  BadInput() { options_.paths = {path_}; }

  // The message of the Error that opening gives.
  std::string message() {
    const auto dataset = Dataset::open(options_);
    if (dataset.ok()) return "no error";
    EXPECT_EQ(dataset.error().kind, runtime::ErrorKind::kData);
    EXPECT_EQ(dataset.error().message.find('\n'), std::string::npos);
    return dataset.error().message;
  }
  void expect(const std::string& part) {
    const std::string got = message();
    EXPECT_NE(got.find(part), std::string::npos) << "got: " << got << "\nwanted: " << part;
    EXPECT_THAT(got, testing::HasSubstr(path_));
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "bad.h5";
  DatasetOptions options_;
  SmallData data_{20};
};

TEST_F(BadInput, MissingFile) { expect(": no such file"); }

TEST_F(BadInput, FolderInsteadOfFile) {
  std::filesystem::create_directory(path_);
  expect("not a regular file; expected an HDF5 file");
}

TEST_F(BadInput, PatternWithoutMatch) {
  options_.paths = {folder_ / "*.h5"};
  EXPECT_EQ(message(), folder_ / "*.h5" + ": no file matches the pattern");
}

TEST_F(BadInput, NotHdf5) {
  std::ofstream(path_) << "Energy,Theta\n10,1.5\n";
  expect("not an HDF5 file");
}

TEST_F(BadInput, EmptyFile) {
  std::ofstream{path_};
  expect("is empty: its writer has not closed it, or was stopped");
}

// As by the library that writes it in another process.
TEST_F(BadInput, LockedByItsWriter) {
  data_.write(path_);
  const int writer = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (::flock(writer, LOCK_EX | LOCK_NB) != 0) GTEST_SKIP() << "a file system without locks";
  expect("is open in another program, which writes it");
  ::close(writer);
  EXPECT_EQ(message(), "no error");
}

// A lock that the library did not ask for is not why it refuses a file.
TEST_F(BadInput, LockedAndWrongBesides) {
  data_.write(path_);
  const auto half = [&] {
    auto bytes = file_bytes(path_);
    bytes.resize(bytes.size() / 2);
    return bytes;
  }();
  const auto locked = [&](const std::vector<std::byte>& content) {
    write_file(path_, content);
    const int writer = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    ::flock(writer, LOCK_EX | LOCK_NB);
    const std::string said = message();
    ::close(writer);
    return said;
  };
  EXPECT_THAT(locked({200, std::byte{'x'}}), testing::HasSubstr("not an HDF5 file"));
  ::setenv(kLocking, "FALSE", 1);
  EXPECT_THAT(locked(half), testing::HasSubstr("it is cut short"));
  ::setenv(kLocking, "TRUE", 1);
}

// A writer that was stopped leaves it so; here it is a copy made while the file is being written.
TEST_F(BadInput, NotClosedByItsWriter) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_libver_bounds(access.id(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const std::string open = folder_ / "open.h5";
  for (const unsigned swmr : {0u, unsigned{H5F_ACC_SWMR_WRITE}}) {
    Hdf5Handle file(H5Fcreate(open.c_str(), H5F_ACC_TRUNC | swmr, H5P_DEFAULT, access.id()));
    H5Fflush(file.id(), H5F_SCOPE_LOCAL);
    write_file(path_, file_bytes(open));
    expect("is open in another program, or was not closed by the one that wrote it");
    expect("h5clear -s " + path_);
    file.close();
    write_file(path_, file_bytes(open));
    expect("no dataset ECAL");
  }
}

TEST_F(BadInput, WithoutDescriptorsTheirLimitIsNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer itself needs a descriptor to look at an object's type";
#endif
  data_.write(path_);
  EXPECT_EQ(message(), "no error");
  const FewDescriptors few(0);
  expect("no file descriptors are left for " + path_);
  expect("ulimit -n");
  options_.paths = {folder_ / "b*.h5"};
  EXPECT_THAT(message(), testing::HasSubstr("no file descriptors are left for"));
}

TEST_F(BadInput, TruncatedAnywhere) {
  data_.images = {.chunk = {4, 3, 4, 5}, .gzip = 2};
  data_.write(path_);
  const std::vector<std::byte> whole = file_bytes(path_);
  for (const std::size_t percent : {2u, 30u, 60u, 90u, 99u}) {
    write_file(path_, {whole.begin(),
                       whole.begin() + static_cast<std::ptrdiff_t>(whole.size() * percent / 100)});
    EXPECT_THAT(message(), testing::AnyOf(testing::HasSubstr("bytes it needs: it is cut short"),
                                          testing::HasSubstr("an HDF5 file, but damaged")));
  }
}

// A file as its writer has left it, and what is said of it.
struct Contents {
  const char* what;
  std::function<void(Hdf5Scribe& file)> write;
  const char* said;
};

TEST_F(BadInput, ContentsThatAreNoneAreNamedWithWhatWasExpected) {
  const std::vector<hsize_t> images{20, 3, 4, 5}, pairs{20, 2};
  const std::vector<float> fifty(80, 50.0f);
  const auto first = [&](std::size_t count) {
    return std::vector<float>(fifty.begin(), fifty.begin() + static_cast<std::ptrdiff_t>(count));
  };
  const auto cells = [&](Hdf5Scribe& file) { file.add("ECAL", images, data_.cells); };
  const auto target = [&](Hdf5Scribe& file) { file.add("target", pairs, data_.target); };
  const std::vector<Contents> cases{
      {"nothing", [](auto&) {}, ": no dataset ECAL; the file has none"},
      {"a dataset is missing",
       [&](auto& file) { cells(file), file.add("group/energy", {20}, first(20)); },
       "no dataset target; the file has ECAL, group/energy"},
      {"a link to nothing",
       [&](auto& file) { file.add_link("ECAL", folder_ / "none.h5"), target(file); },
       ": ECAL is a link to a file or dataset that is not there"},
      {"a group", [&](auto& file) { file.add("ECAL/cells", images, data_.cells); },
       "no dataset ECAL; the file has ECAL/cells"},
      {"another rank",
       [&](auto& file) {
         file.add("ECAL", {20, 1, 3, 4, 5, 1}, data_.cells), target(file);
       },
       "dataset ECAL: (20, 1, 3, 4, 5, 1) float32; expected (N, X, Y) or (N, X, Y, Z)"},
      {"text as images", [&](auto& file) { file.add_text("ECAL", 20), target(file); },
       "dataset ECAL: string; expected numbers"},
      {"text", [&](auto& file) { cells(file), file.add_text("target", 20); },
       "dataset target: (20) string; expected numbers"},
      {"no column of energies",
       [&](auto& file) { cells(file), file.add("target", {20}, first(20)); },
       "dataset target: (20) float32; expected (N, 2 or more)"},
      {"fewer rows",
       [&](auto& file) {
         cells(file), file.add("target", {19, 2}, first(38));
       },
       "dataset target: (19, 2) float32; expected 20 rows"},
      {"no events",
       [&](auto& file) {
         file.add("ECAL", {0, 3, 4, 5}, {}), file.add("target", {0, 2}, {});
       },
       "holds no events"},
      {"units of another schema",
       [&](auto& file) { cells(file), target(file), file.attribute("scale", 50); },
       "attribute scale is 50; lcd-fixed files have 1"},
      {"a writer that was stopped halfway",
       [&](auto& file) {
         file.add_unfinished("ECAL", {40, 3, 4, 5}, data_.cells,
                             {.chunk = {4, 3, 4, 5}, .gzip = 1});
         file.add("target", {40, 2}, fifty);
       },
       "dataset ECAL: the chunk of row 20 was never written"},
      {"the same behind a filter that the library decodes",
       [&](auto& file) {
         file.add_unfinished("ECAL", {40, 3, 4, 5}, data_.cells,
                             {.chunk = {4, 3, 4, 5}, .nbit = true});
         file.add("target", {40, 2}, fifty);
       },
       "dataset ECAL: only 5 of its 10 chunks were written"},
      // The library would read fill values. The file is large enough for what is claimed.
      {"room for data that never came",
       [&](auto& file) {
         file.add_unfinished("ECAL", images, {}, {}), target(file);
         file.add("HCAL", images, std::vector<float>(20 * 60, 1.0f));
       },
       "dataset ECAL: only 0 of its 4800 bytes were written"},
      {"room for conditions that never came",
       [&](auto& file) {
         cells(file), file.add_unfinished("target", pairs, {}, {.chunk = {10, 2}});
       },
       "dataset target: only 0 of its 2 chunks were written"},
      {"events that a small file claims behind a filter of which nothing is known",
       [&](auto& file) {
         file.add_unfinished("ECAL", {4'000'000'000, 3, 4, 5}, {},
                             {.chunk = {4, 3, 4, 5}, .nbit = true});
         file.add_unfinished("target", {4'000'000'000, 2}, {}, {.chunk = {1024, 2}, .nbit = true});
       },
       "dataset ECAL: only 0 of its 1000000000 chunks were written"},
      {"conditions that claim more than the file holds",
       [&](auto& file) {
         cells(file), file.add_unfinished("target", {20, 1024}, {}, {.chunk = {20, 1024}});
       },
       "dataset target: (20, 1024) float32 needs 81920 bytes, more than a file of"},
  };
  for (const Contents& each : cases) {
    SCOPED_TRACE(each.what);
    {
      Hdf5Scribe file(path_);
      each.write(file);
    }
    expect(each.said);
  }
  options_.schema = DataSchema::kLcdAngle;
  data_.write(path_);
  expect("no dataset energy");
}

TEST_F(BadInput, WrongShapeForTheModel) {
  data_.write(path_);
  options_.expected_shape = {{25, 25, 25}};
  expect("dataset ECAL: (20, 3, 4, 5) float32; expected images of 25 x 25 x 25");
}

TEST_F(BadInput, OtherShapeThanTheFirstFile) {
  SmallData(5).write(folder_ / "a.h5");
  {
    Hdf5Scribe file(path_);
    file.add("ECAL", {20, 4, 3, 5}, data_.cells);
    file.add("target", {20, 2}, data_.target);
  }
  options_.paths.push_back(folder_ / "a.h5");
  expect("expected images of 3 x 4 x 5 as in " + folder_ / "a.h5");
}

TEST_F(BadInput, NanNegativeAndInfiniteCells) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(), -0.5f,
                       std::numeric_limits<float>::infinity()};
  const char* const texts[] = {"nan", "-0.5", "inf"};
  for (int i = 0; i < 3; ++i) {
    data_.images = {.chunk = {4, 3, 4, 5}, .gzip = 2};
    SmallData data = data_;
    data.cells[17 * SmallData::kCells + 1 * 20 + 2 * 5 + 3] = bad[i];
    data.write(path_);
    for (const int threads : {1, 3}) {
      options_.threads = threads;
      expect("dataset ECAL, event 17: cell (1, 2, 3) is " + std::string(texts[i]) +
             "; expected finite cells of 0 or more");
    }
  }
}

TEST_F(BadInput, BadEnergyNamesItsDataset) {
  data_.target[2 * 5 + 1] = -1;
  data_.write(path_);
  expect("dataset target, event 5: energy -1 GeV; expected above 0");
}

TEST_F(BadInput, ValuesBeyondTheFloatsOfTraining) {
  {
    Hdf5Scribe file(path_);
    file.add("ECAL", {20, 3, 4, 5}, data_.cells);
    std::vector<float> energies(20, 50.0f);
    energies[5] = 1e-37f;  // E / 100 is no normal float
    file.add("energy", {20}, energies);
    file.add("theta", {20}, std::vector<float>(20, 1.5f));
  }
  options_.schema = DataSchema::kLcdAngle;
  expect("dataset energy, event 5: energy 9.99999991097579e-38 GeV; expected above 0 and within");
  options_.schema = DataSchema::kLcdFixed;
  data_.cells[7 * SmallData::kCells] = data_.cells[7 * SmallData::kCells + 1] = 3e38f;
  data_.write(path_);
  expect("dataset ECAL, event 7: cells of up to 3e+38 are too large");
}

TEST_F(BadInput, WhereAllEventsAreBadTheFirstOneIsNamed) {
  for (std::size_t event = 0; event < 20; ++event) data_.cells[event * SmallData::kCells] = -1;
  data_.write(path_);
  options_.on_bad_event = BadEventPolicy::kSkip;
  expect("no events are left of 20: 20 bad, 0 cut");
  expect("the first bad one: " + path_ + ": dataset ECAL, event 0");
}

TEST_F(BadInput, SkippedEventsAreCountedAndNamed) {
  data_.cells[3 * SmallData::kCells] = -1;
  data_.target[2 * 8 + 1] = std::numeric_limits<float>::quiet_NaN();
  data_.write(path_);
  expect("(2 of 20 events of the file are bad; on_bad_event: skip leaves them out)");

  options_.on_bad_event = BadEventPolicy::kSkip;
  auto dataset = Dataset::open(options_);
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->size(), 18u);
  EXPECT_EQ(dataset->report().bad, 2u);
  ASSERT_EQ(dataset->report().bad_events.size(), 2u);
  EXPECT_THAT(dataset->report().bad_events[1], testing::HasSubstr("target, event 8: energy nan"));
  // The events of training lie before and behind the part that is tested with.
  options_.split = DataSplit::kTrain;
  options_.test_one_in = 5;
  options_.test_part = 2;
  dataset = Dataset::open(options_);
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->report().bad_events.size(), 2u);
  // The rows behind move up: id 3 is row 4.
  EXPECT_EQ(dataset->energy(3), 0.14f);
  Batch batch;
  const std::vector<std::uint64_t> ids{3};
  ASSERT_TRUE(dataset->read(ids, batch).ok());
  EXPECT_EQ(batch.images.as<float>()[1], data_.cells[4 * SmallData::kCells + 1]);
}

TEST_F(BadInput, NothingLeftAfterTheCuts) {
  data_.write(path_);
  options_.preprocessing = default_preprocessing(DataSchema::kLcdFixed);
  options_.preprocessing->min_ecal = 1e6;
  expect("no events are left of 20: 0 bad, 20 cut (sum of cells not above 1000000)");
  options_.preprocessing.reset();
  options_.split = DataSplit::kTest;
  options_.test_one_in = 0;
  expect("20 in the other split");
}

TEST_F(BadInput, ChunkDamagedOnDisk) {
  data_.images = {.chunk = {4, 3, 4, 5}, .gzip = 2};
  data_.write(path_);
  std::vector<std::byte> bytes = file_bytes(path_);
  // A zlib stream begins with 0x78; the first one after the headers is a chunk's.
  std::size_t at = 512;
  while (!(bytes[at] == std::byte{0x78} && bytes[at + 1] == std::byte{0x5e})) ++at;
  for (std::size_t i = 20; i < 60; ++i) bytes[at + i] = std::byte{0xff};
  write_file(path_, bytes);
  expect("does not decompress; the file is damaged");
}

TEST_F(BadInput, EmptyShowersAreCutSinceLossesDivideByEnergy) {
  for (std::size_t i = 0; i < 60; ++i) data_.cells[7 * 60 + i] = 0.0f;
  data_.write(path_);
  options_.preprocessing.reset();
  const auto dataset = Dataset::open(options_);
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->size(), 19u);
  EXPECT_EQ(dataset->report().cut, 1u);
}

TEST_F(BadInput, VirtualDataset) {
  data_.write(folder_ / "source.h5");
  {
    Hdf5Scribe file(path_);
    file.add_virtual("ECAL", {20, 3, 4, 5}, folder_ / "source.h5");
    file.add("target", {20, 2}, data_.target);
  }
  expect("dataset ECAL: a virtual dataset, whose values are in other files; name those files");
  {
    Hdf5Scribe file(path_);
    file.add("ECAL", {20, 3, 4, 5}, data_.cells);
    file.add_virtual("target", {20, 2}, folder_ / "source.h5");
  }
  expect("dataset target: a virtual dataset");
}

TEST_F(BadInput, CustomSchemaWithoutNames) {
  data_.write(path_);
  options_.schema = DataSchema::kCustom;
  EXPECT_THAT(message(), testing::HasSubstr("needs the names of the datasets"));
}

TEST_F(BadInput, FileThatUnpacksToMoreThanTheMostIsRefused) {
  const std::string path = folder_ / "a";
  write_text(path, gzip_text(std::string(1u << 20, 'a')));
  EXPECT_EQ(FileBytes::open(path, {}, 1u << 20).value().size(), 1u << 20);
  EXPECT_THAT(FileBytes::open(path, {}, (1u << 20) - 1),
              FailsWith(runtime::ErrorKind::kData, path + ": unpacks to more than 1.0 MB"));
  const auto claim = [](auto) { return std::uint64_t{1} << 40; };
  EXPECT_THAT(FileBytes::open(path, claim),
              FailsWith(runtime::ErrorKind::kData, "unpacks to more than"));
}

// Four bytes may be four numbers or one, so the first record decides for all.
TEST_F(BadInput, LaterRecordsHaveTheKindAndBytesOfTheFirst) {
  const float energy[] = {7};
  const auto record = [&](ExampleWriter& image) {
    return runtime::tf_record(image.floats("energy", energy).message());
  };
  ExampleWriter numbers, floats, of_floats;
  const std::string first = record(numbers.bytes("image", "abcdef"));
  options_.schema = DataSchema::kTfRecord;
  options_.preprocessing.emplace();
  options_.names = DatasetNames{.images = {"image"}, .energy = "energy"};
  write_text(path_, first + record(floats.bytes("image", std::string(24, 'a'))));
  EXPECT_THAT(Dataset::open(options_),
              FailsWith(runtime::ErrorKind::kData,
                        "record 1 has 24 bytes; expected 6 bytes as in the first"));
  write_text(path_, first + record(of_floats.floats("image", std::vector<float>(6, 1.0f))));
  EXPECT_THAT(Dataset::open(options_),
              FailsWith(runtime::ErrorKind::kData,
                        "record 1 has 6 float32; expected 6 bytes as in the first"));
}

TEST_F(BadInput, MessageOfVeryManyFeaturesIsRefused) {
  const auto write = [&](int features) {
    ExampleWriter example;
    for (int i = 0; i < features; ++i) example.bytes(std::to_string(i), "a");
    write_text(path_, runtime::tf_record(example.message()));
    return open_container(path_);
  };
  EXPECT_TRUE(write(1024).ok());
  EXPECT_THAT(write(1025), FailsWith(runtime::ErrorKind::kData, "record 0 is no tf.train.Example"));
}

TEST_F(BadInput, RecordWhoseLengthBeginsAsAnIdxFileIsARecord) {
  constexpr std::size_t kBytes = 0x01080000;
  std::string message = ExampleWriter().bytes("a", std::string(kBytes, 'x')).message();
  message = ExampleWriter().bytes("a", std::string(2 * kBytes - message.size(), 'x')).message();
  ASSERT_EQ(message.size(), kBytes);
  write_text(path_, runtime::tf_record(message));
  const auto file = open_container(path_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->format(), FileFormat::kTfRecord);
}

TEST_F(BadInput, BoxesOfManyMoreVoxelsThanTheirRowsAreRefused) {
  std::string edges = "0";
  for (int i = 1; i <= 2048; ++i) edges += "," + std::to_string(i);
  write_text(folder_ / "binning.xml",
             "<Bins><Bin name='x'><Layer id='0' r_edges='0,1' n_bin_alpha='2048'/><Layer id='1' "
             "r_edges='" +
                 edges + "' n_bin_alpha='1'/></Bin></Bins>");
  {
    Hdf5Scribe file(path_);
    file.add("showers", {64, 4096}, std::vector<float>(64 * 4096, 1.0f));
    file.add("incident_energies", {64, 1}, std::vector<float>(64, 1.0f));
  }
  options_.schema = DataSchema::kCaloChallenge;
  options_.preprocessing.emplace();
  options_.binning = folder_ / "binning.xml";
  EXPECT_THAT(Dataset::open(options_),
              FailsWith(runtime::ErrorKind::kData,
                        "64 rows are read at once, and as boxes of 2048 x 2048 x "
                        "2 they take more than 1 GiB"));
}

}  // namespace
}  // namespace troupe::pipeline
