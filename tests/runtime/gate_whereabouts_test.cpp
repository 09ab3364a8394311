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
using ::testing::Not;

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

TEST_F(GateWhereabouts, WhomNobodyElsewhereCanDialDialsThem) {
  struct Case {
    std::string address_of_b, from, address_of_c, dialer;
  };
  const Case cases[] = {
      {"tcp://10.0.0.2:8600", "tcp://10.0.0.3:40000", "tcp://10.0.0.3:8600", "c"},
      // Only its own machine gets there.
      {"tcp://127.0.0.1:8600", "tcp://10.0.0.3:40000", "tcp://10.0.0.3:8600", "b"},
      {"tcp://10.0.0.2:8600", "tcp://10.0.0.3:40000", "tcp://127.0.0.1:8600", "c"},
      // It does not listen.
      {"", "tcp://10.0.0.3:40000", "tcp://10.0.0.3:8600", "b"},
      // Through a relay, of which both are clients; else it does not listen.
      {"relay://1", "tcp://10.0.0.3:40000", "relay://2", "c"},
      {"relay://1", "tcp://10.0.0.3:40000", "tcp://10.0.0.3:8600", "b"},
      {"tcp://10.0.0.2:8600", "tcp://10.0.0.3:40000", "relay://2", "c"},
      // A router has translated where it came from.
      {"tcp://192.168.1.7:8600", "tcp://10.0.0.3:40000", "tcp://10.0.0.3:8600", "b"},
      {"tcp://192.168.1.7:8600", "tcp://10.0.0.2:40000", "tcp://192.168.1.8:8600", "c"},
      {"tcp://10.0.0.2:8600", "tcp://10.0.0.3:40000", "tcp://192.168.1.7:8600", "c"},
      {"", "tcp://10.0.0.3:40000", "tcp://192.168.1.7:8600", "b"},
  };
  for (const Case& example : cases) {
    SCOPED_TRACE(example.address_of_b + " " + example.address_of_c);
    make_world(1);
    SetUp();
    std::string dialer;
    const auto hear = [&](const std::string& node) {
      return [&, node](Impostor& self, ConnectionId on, const AnyPacket& said) {
        const auto* directory = std::get_if<Directory>(&said);
        if (directory == nullptr) return;
        self.say(on, pack(DirectoryHeard{directory->edition}));
        for (const DirectoryEntry& entry : directory->entries) {
          if (entry.dial) dialer = node;
        }
      };
    };
    Impostor b(*world_, "tcp://10.0.0.2:40000", hear("b"));
    b.dial(kHead, hello_of("b", 99, example.address_of_b));
    Impostor c(*world_, example.from, hear("c"));
    world_->at(500ms, [&] { c.dial(kHead, hello_of("c", 98, example.address_of_c)); });
    stop_all_at(1s);
    EXPECT_TRUE(world_->run(60s));
    EXPECT_EQ(b.refused() + c.refused(), "");
    EXPECT_EQ(dialer, example.dialer);
    world_.reset();
  }
}

TEST_F(GateWhereabouts, OfTwoThatCannotDialEachOtherTheSecondIsRefused) {
  Impostor b(*world_, "tcp://10.0.0.2:40000", hear_nothing);
  b.dial(kHead, hello_of("b", 99, ""));
  Impostor c(*world_, "tcp://10.0.0.3:40000", hear_nothing);
  world_->at(500ms, [&] { c.dial(kHead, hello_of("c", 98, "tcp://127.0.0.1:8600")); });
  stop_all_at(1s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(c.refused(),
              AllOf(HasSubstr("c and b cannot have a connection"),
                    HasSubstr("only its own machine gets to c at 'tcp://127.0.0.1:8600'"),
                    HasSubstr("b does not listen"), HasSubstr("--listen")));
  EXPECT_EQ(b.refused(), "");
  EXPECT_THAT(told("a"), AllOf(HasSubstr("joined b"), Not(HasSubstr("joined c"))));
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
