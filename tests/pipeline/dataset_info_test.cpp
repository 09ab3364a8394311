#include "pipeline/data/dataset_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/data/shower_dataset.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::pipeline {
namespace {

TEST(DatasetInfo, DescribesAGeneratedFile) {
  const TemporaryFolder folder;
  runtime::ThreadTeam team(2);
  ShowerDatasetOptions options;
  options.showers.detector = DetectorKind::kFixed12;
  options.events = 300;
  options.files = 2;
  ASSERT_TRUE(write_shower_dataset(options, folder / "a.h5", team).ok());
  std::uint64_t told = 0;
  const auto info = describe_dataset({folder / "a_*.h5"}, {}, team, [&](auto done, auto total) {
    EXPECT_EQ(total, 300u);
    told = done;
    return runtime::Result<void>{};
  });
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(told, 300u);
  const auto ended =
      describe_dataset({folder / "a_*.h5"}, {}, team, [](auto, auto) -> runtime::Result<void> {
        return runtime::Error{runtime::ErrorKind::kUsage, "enough"};
      });
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().message, "enough");
  EXPECT_EQ(info->schema, DataSchema::kLcdFixed);
  EXPECT_EQ(info->events, 300u);
  EXPECT_EQ(info->shape, (ImageShape{{12, 12, 12}}));
  EXPECT_EQ(info->bad_events, 0u);
  EXPECT_GE(info->energy_gev.min, 10);
  EXPECT_LE(info->energy_gev.max, 500);
  EXPECT_NEAR(info->energy_gev.mean, 255, 25);
  // The sampling fraction of the CLIC calorimeter.
  EXPECT_NEAR(info->ecal_per_energy, 0.0188, 0.0006);
  EXPECT_GT(info->occupied_cells.min, 20);
  ASSERT_EQ(info->files.size(), 2u);
  const FileInfo& file = info->files[0];
  EXPECT_EQ(file.events, 150u);
  ASSERT_EQ(file.datasets.size(), 2u);
  EXPECT_EQ(file.datasets[0].name, "ECAL");
  EXPECT_EQ(file.datasets[0].type, "float32");
  EXPECT_EQ(file.datasets[0].filters, std::vector<std::string>{"gzip 1"});
  EXPECT_EQ(file.datasets[0].chunk, (std::vector<std::uint64_t>{150, 12, 12, 12}));
  EXPECT_LT(file.datasets[0].stored_bytes, file.bytes);
}

TEST(DatasetInfo, CountsBadEventsAndDescribesTheRest) {
  const TemporaryFolder folder;
  runtime::ThreadTeam team(1);
  SmallData data(10);
  data.cells[4 * SmallData::kCells] = -1;
  data.target[2 * 9 + 1] = 0;
  data.write(folder / "a.h5");
  const auto info = describe_dataset({folder / "a.h5"}, {}, team);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->bad_events, 2u);
  ASSERT_EQ(info->bad_event_examples.size(), 2u);
  EXPECT_THAT(info->bad_event_examples[0], testing::HasSubstr("event 4: cell (0, 0, 0) is -1"));
  EXPECT_FLOAT_EQ(static_cast<float>(info->energy_gev.max), 18.0f);
  EXPECT_EQ(info->notes.size(), 1u);  // not chunked
}

TEST(DatasetInfo, CountsEventsThatExternalLinksLeadTo) {
  const TemporaryFolder folder;
  runtime::ThreadTeam team(1);
  SmallData(10).write(folder / "real.h5");
  {
    Hdf5Scribe file(folder / "links.h5");
    file.add_link("ECAL", folder / "real.h5");
    file.add_link("target", folder / "real.h5");
  }
  const auto info = describe_dataset({folder / "links.h5"}, {}, team);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->events, 10u);
  EXPECT_EQ(info->files[0].events, 10u);
}

TEST(DatasetInfo, UnknownFileIsDescribedWithoutItsEvents) {
  const TemporaryFolder folder;
  runtime::ThreadTeam team(1);
  {
    Hdf5Scribe file(folder / "a.h5");
    file.add("showers", {4, 10}, std::vector<float>(40, 1.0f), {.chunk = {2, 10}});
  }
  const auto info = describe_dataset({folder / "a.h5"}, {}, team);
  ASSERT_TRUE(info.ok());
  EXPECT_FALSE(info->schema.has_value());
  EXPECT_EQ(info->events, 0u);
  ASSERT_EQ(info->not_understood.size(), 1u);
  EXPECT_EQ(
      info->not_understood[0],
      folder / "a.h5" +
          ": HDF5 of no schema that is known here: lcd-fixed (datasets ECAL and target), "
          "lcd-angle (datasets ECAL, energy, and theta or mtheta), nnlo (datasets X and y/b), "
          "calochallenge (datasets showers and incident_energies); it has showers. Name its "
          "parts: troupe data info --image NAME --energy NAME; a topology does by data.schema "
          "custom and data.names");
  EXPECT_FALSE(describe_dataset({folder / "b.h5"}, {}, team).ok());
}

}  // namespace
}  // namespace troupe::pipeline
