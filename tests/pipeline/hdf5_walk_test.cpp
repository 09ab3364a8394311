#include "pipeline/data/hdf5_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/pipeline/data_fixture.h"

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;

class Walk : public testing::Test {
 protected:
  Walk() : file_(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}

  static Hdf5Handle group(const Hdf5Handle& in, const std::string& name) {
    return Hdf5Handle(H5Gcreate2(in.id(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  static void dataset(const Hdf5Handle& in, const std::string& name) {
    const Hdf5Handle space(H5Screate(H5S_SCALAR));
    const Hdf5Handle made(H5Dcreate2(in.id(), name.c_str(), H5T_NATIVE_FLOAT, space.id(),
                                     H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    CHECK(made.valid(), name);
  }
  static void hard_link(const Hdf5Handle& to, const Hdf5Handle& in, const std::string& name) {
    CHECK(H5Lcreate_hard(to.id(), ".", in.id(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT) >= 0, name);
  }
  Hdf5Walk walked() {
    auto walk = walk_datasets(file_, path_);
    CHECK(walk.ok(), walk.ok() ? "" : walk.error().message);
    return *std::move(walk);
  }
  static std::vector<std::string> names(const Hdf5Walk& walk) {
    std::vector<std::string> all;
    for (const Hdf5Place& each : walk.datasets) all.push_back(each.name);
    return all;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "a.h5";
  const Hdf5Handle file_;
};

TEST_F(Walk, DatasetsOfAllGroupsComeSortedByName) {
  const Hdf5Handle z = group(file_, "z"), a = group(file_, "a");
  dataset(z, "one");
  dataset(group(a, "deep"), "two");
  dataset(file_, "m");
  const Hdf5Walk walk = walked();
  EXPECT_THAT(names(walk), ElementsAre("a/deep/two", "m", "z/one"));
  EXPECT_TRUE(walk.complete);
}

TEST_F(Walk, NothingStaysOpen) {
  dataset(file_, "a");
  dataset(group(file_, "g"), "b");
  const Hdf5Walk walk = walked();
  EXPECT_EQ(walk.datasets.size(), 2);
  EXPECT_EQ(H5Fget_obj_count(file_.id(), H5F_OBJ_DATASET | H5F_OBJ_GROUP), 0);
}

TEST_F(Walk, WorkGrowsWithTheNumberOfLinksAndNotWithTheirDepth) {
  constexpr int kDepth = 500;
  std::vector<Hdf5Handle> chain;
  for (int i = 0; i < kDepth; ++i) {
    chain.push_back(group(i == 0 ? file_ : chain.back(), "g"));
    dataset(chain.back(), "d");
  }
  const Hdf5Walk walk = walked();
  EXPECT_EQ(walk.datasets.size(), kDepth);
  EXPECT_EQ(walk.links, 2 * kDepth);
}

// Each of 40 groups leads to the next one twice: 2^40 paths.
TEST_F(Walk, GroupsWithManyPathsAreEnteredOnce) {
  std::vector<Hdf5Handle> chain;
  for (int i = 0; i < 40; ++i) {
    const Hdf5Handle& above = i == 0 ? file_ : chain.back();
    Hdf5Handle below = group(above, "a");
    hard_link(below, above, "b");
    chain.push_back(std::move(below));
  }
  dataset(chain.back(), "d");
  const Hdf5Walk walk = walked();
  EXPECT_EQ(walk.datasets.size(), 1);
  EXPECT_EQ(walk.links, 2 * 40 + 1);
}

TEST_F(Walk, CirclesOfLinksEnd) {
  const Hdf5Handle a = group(file_, "a");
  hard_link(file_, a, "root");
  hard_link(a, a, "self");
  H5Lcreate_soft("/a", a.id(), "soft", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("a.h5", "/a", a.id(), "external", H5P_DEFAULT, H5P_DEFAULT);
  dataset(a, "d");
  const Hdf5Walk walk = walked();
  EXPECT_THAT(names(walk), ElementsAre("a/d"));
  EXPECT_EQ(walk.links, 6);
}

TEST_F(Walk, PathsBeyondTheBoundAreLeftOutAndSaidSo) {
  const std::string name(kMostPathBytes / 2, 'g');
  const Hdf5Handle a = group(file_, name), b = group(a, name);
  dataset(a, "near");
  dataset(b, "far");
  const Hdf5Walk walk = walked();
  EXPECT_THAT(names(walk), ElementsAre(name + "/near"));
  EXPECT_FALSE(walk.complete);
}

TEST(NamesText, OfManyTheFirstOnesAreNamed) {
  EXPECT_EQ(names_text({}), "none");
  EXPECT_EQ(names_text({"a", "b\x1b"}), "a, b\\x1b");
  std::vector<std::string> many(22, "x");
  EXPECT_THAT(names_text(many), testing::EndsWith("x, x and 2 more"));
}

}  // namespace
}  // namespace troupe::pipeline
