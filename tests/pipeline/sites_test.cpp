#include "pipeline/steps/sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;

// Two workers of four parts; three members of two replicas, in a ring of their own order.
class SitesOf : public ::testing::Test {
 protected:
  SitesOf() {
    view_.id = {1, 2};
    view_.ring = {2, 0, 1};
    view_.owners = {0, 0, 1, 3, 3, 4, 4, 4};
    view_.later = {{5, {0, 0, 0, 0, 4, 4, 4, 4}}};
  }
  View view_;
  Sites sites_{2, 4, 2, {}};
};

TEST_F(SitesOf, WorkerHasTheReplicasThatHavePartsOfIt) {
  EXPECT_THAT(sites_.replicas_of(view_, 0, 0), ElementsAre(0, 1, 3));
  EXPECT_THAT(sites_.replicas_of(view_, 4, 1), ElementsAre(3, 4));
  EXPECT_THAT(sites_.replicas_of(view_, 5, 1), ElementsAre(4));
}

TEST_F(SitesOf, RingHasTheMembersOfTheReplicasAsTheViewOrdersThem) {
  const View of_site = sites_.view_of(view_, sites_.replicas_of(view_, 0, 1));
  EXPECT_THAT(of_site.ring, ElementsAre(2, 1));
  EXPECT_EQ(of_site.id, view_.id);
  EXPECT_THAT(sites_.view_of(view_, sites_.replicas_of(view_, 0, 0)).ring, ElementsAre(0, 1));
}

TEST_F(SitesOf, ReplicaSharesWorkersOnlyWhereOthersHavePartsOfThem) {
  EXPECT_TRUE(sites_.shares(view_, 4, 0));
  EXPECT_TRUE(sites_.shares(view_, 4, 4));
  EXPECT_FALSE(sites_.shares(view_, 4, 2)) << "it has none";
  EXPECT_FALSE(sites_.shares(view_, 5, 0)) << "it has a worker to itself";
}

// The iteration that ends an epoch has one worker, each of whose parts has the owner at the same
// part of the way.
TEST_F(SitesOf, ShortIterationHasFewerWorkers) {
  sites_.short_iteration = {3, 4};
  EXPECT_EQ(sites_.workers_in(2), 1u);
  EXPECT_EQ(sites_.workers_in(3), 2u);
  EXPECT_THAT(sites_.replicas_of(view_, 2, 0), ElementsAre(0, 1, 3, 4));
}

}  // namespace
}  // namespace troupe::pipeline
