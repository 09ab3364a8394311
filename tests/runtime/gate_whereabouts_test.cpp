// What the plan's first node makes of the addresses at which others say that they can be dialed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/neighbours.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessSetup;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A first node with hosts and ports.
class GateWhereabouts : public NeighbourGates {
 protected:
  void SetUp() override {
    ProcessSetup setup;
    setup.address = kHead;
    setup.keeper->this_machine = [](const std::string& host) { return host == "10.0.0.1"; };
    add("a", setup);
  }
  static constexpr const char* kHead = "tcp://10.0.0.1:8500";
};

TEST_F(GateWhereabouts, ANodeIsNotFoundByANameOrWithoutAPort) {
  Impostor b(*world_, "tcp://10.0.0.2:40000", hear_nothing);
  b.dial(kHead, hello_of("b", 99, "tcp://elsewhere.invalid:8500"));
  Impostor c(*world_, "tcp://10.0.0.3:40000", hear_nothing);
  c.dial(kHead, hello_of("c", 99, "tcp://10.0.0.3:0"));
  stop_all_at(1s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(b.refused(), HasSubstr("b at 'tcp://elsewhere.invalid:8500': that is a name"));
  EXPECT_THAT(c.refused(), HasSubstr("c at 'tcp://10.0.0.3:0': it has no port"));
  EXPECT_EQ(told("a"), "");
}

TEST_F(GateWhereabouts, OnOneMachineAnyPlaceWillDo) {
  Impostor c(*world_, "tcp://127.0.0.1:40000", hear_nothing);
  c.dial(kHead, hello_of("c", 98, "tcp://127.0.0.1:8600"));
  Impostor b(*world_, "tcp://10.0.0.1:40000", hear_nothing);
  b.dial(kHead, hello_of("b", 99, "ipc:///tmp/b"));
  stop_all_at(1s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(told("a"), AllOf(HasSubstr("joined c"), HasSubstr("joined b")));
  EXPECT_EQ(b.refused() + c.refused(), "");
}

}  // namespace
}  // namespace troupe::runtime
