#include "config/shipped.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::HasSubstr;

TEST(ShippedTopologies, AreThoseOfTheRepositoryByTheirNames) {
  const auto names = shipped_names();
  ASSERT_EQ(names.size(), shipped_topologies().size());
  for (const std::string& path : shipped_topologies()) {
    const std::string name = std::filesystem::path(path).stem().string();
    EXPECT_THAT(names, testing::Contains(name));
    EXPECT_EQ(shipped_text(name), read_text(path));
    const auto loaded = load_topology(name);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(loaded->origins.at("name").text(),
              name + ":" + std::to_string(loaded->origins.at("name").line) + ":7");
  }
}

TEST(ShippedTopologies, AreNotTakenForWhatLiesThere) {
  EXPECT_FALSE(shipped_text("nowhere/gan3d_25"));
  EXPECT_FALSE(shipped_text("gan3d_25.yaml"));
  EXPECT_FALSE(shipped_text(testing::TempDir()));
}

TEST(ShippedTopologies, AreSuggestedWhereThereIsNoFile) {
  EXPECT_THAT(load_topology("gan3d_26").error().message,
              HasSubstr("gan3d_26: cannot be opened: No such file or directory; did you mean "
                        "gan3d_25, which comes with the program?"));
  EXPECT_THAT(load_topology("quickstart.yaml").error().message,
              HasSubstr("did you mean quickstart, which comes"));
  EXPECT_THAT(
      load_topology("mine").error().message,
      HasSubstr("; with the program come calo_unet_12, calo_unet_25, dcgan_mnist, demo, digits, "
                "gan3d_12_dense, gan3d_12_sums, gan3d_25, gan3d_25_dense, gan3d_51, particle_12, "
                "quickstart, three_hosts, toy"));
  EXPECT_EQ(shipped_suggestion("runs/gan3d_26"), "");
}

}  // namespace
}  // namespace troupe::config
