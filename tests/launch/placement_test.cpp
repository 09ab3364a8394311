#include "launch/meeting/placement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

runtime::Result<Placement> place(const std::string& cluster,
                                 std::optional<std::uint32_t> workers = std::nullopt) {
  const auto loaded = config::parse_topology(
      "model: {zoo: toy}\ndata: {train: toy.h5}\ncluster:\n" + cluster, "t.yaml", ".");
  if (!loaded.ok()) return loaded.error();
  return place_run(*loaded, workers);
}

void expect_refused(const runtime::Result<Placement>& placement, const std::string& begin,
                    const std::string& part) {
  ASSERT_FALSE(placement.ok());
  EXPECT_EQ(placement.error().kind, runtime::ErrorKind::kTopology);
  EXPECT_THAT(placement.error().message, StartsWith(begin));
  EXPECT_THAT(placement.error().message, HasSubstr(part));
}

TEST(Placement, WithoutHostsAndWorkersEverythingIsInOneProcess) {
  const auto placement = place("  assign: auto\n");
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(placement->members, 0u);
  EXPECT_FALSE(placement->network.has_value());
  EXPECT_THAT(placement->computing_here(), ElementsAre(0u));
}

TEST(Placement, WorkersOfTheCommandAreAllHere) {
  const auto placement = place("  hosts: [{address: elsewhere.invalid, workers: 7}]\n", 3);
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(placement->members, 3u);
  EXPECT_THAT(placement->computing_here(), ElementsAre(0u, 1u, 2u));
  EXPECT_FALSE(placement->network.has_value());
}

TEST(Placement, MembersOfThisMachineAreNumberedAmongThoseOfAll) {
  const auto placement = place(
      "  hosts: [{address: elsewhere.invalid}, {address: localhost, workers: 2}]\n"
      "  listen: \"*:8500\"\n  keys: k\n");
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(placement->members, 3u);
  EXPECT_THAT(placement->computing_here(), ElementsAre(1u, 2u));
  ASSERT_TRUE(placement->network.has_value());
  EXPECT_EQ(placement->network->listen, "*:8500");
  EXPECT_EQ(placement->network->dial, "tcp://127.0.0.1:8500");
}

TEST(Placement, MembersOfOneMachineMeetAtAPortOfTheLoopbackIfTheyAreToldTo) {
  const auto asked = place("  listen: \"127.0.0.1:8500\"\n", 2);
  ASSERT_TRUE(asked.ok()) << asked.error().message;
  ASSERT_TRUE(asked->network.has_value());
  EXPECT_EQ(asked->network->listen, "127.0.0.1:8500");
  EXPECT_EQ(asked->network->neighbours, "tcp://127.0.0.1:0");
  // Not where nobody can be told the port.
  const auto silent = place("  listen: \"127.0.0.1:0\"\n  keys: k\n", 2);
  ASSERT_TRUE(silent.ok()) << silent.error().message;
  EXPECT_FALSE(silent->network.has_value());
  EXPECT_FALSE(silent->unheeded.has_value());
}

// "Start here, burst onto extra nodes": those come later, and nobody can move the head then.
TEST(Placement, MembersThatAreAllHereMeetWhereOthersMayJoinLater) {
  const std::string open = "  listen: \"*:8500\"\n  keys: k\n";
  for (const auto& placement :
       {place(open, 2), place("  hosts: [{address: localhost, workers: 2}]\n" + open)}) {
    ASSERT_TRUE(placement.ok()) << placement.error().message;
    EXPECT_EQ(placement->here.size(), 2u);
    ASSERT_TRUE(placement->network.has_value());
    EXPECT_EQ(placement->network->listen, "*:8500");
    EXPECT_EQ(placement->network->dial, "tcp://127.0.0.1:8500");
    EXPECT_FALSE(placement->unheeded.has_value());
  }
  const auto at =
      place("  hosts: [{address: localhost}]\n  listen: \"192.0.2.7:8500\"\n  keys: k\n");
  ASSERT_TRUE(at.ok()) << at.error().message;
  ASSERT_TRUE(at->network.has_value());
  EXPECT_EQ(at->network->dial, "192.0.2.7:8500");
  EXPECT_EQ(at->network->neighbours, "tcp://192.0.2.7:0");
  expect_refused(place("  hosts: [{address: localhost}]\n  listen: \"*:0\"\n  keys: k\n"),
                 "t.yaml:5:11: cluster.listen: ", "has no port of its own");
}

// One file is for one machine and for many.
TEST(Placement, WorkersMeetWithoutAnAddressThatThisMachineHasNotAndSaySo) {
  for (const auto& [listen, why] : {std::pair{"192.0.2.7:8500", "is no address of this machine"},
                                    std::pair{"nowhere.invalid:8500", "leads nowhere"},
                                    std::pair{"*:0", "no port of its own"}}) {
    const auto placement = place(fmt::format("  listen: \"{}\"\n  keys: k\n", listen), 2);
    ASSERT_TRUE(placement.ok()) << placement.error().message;
    EXPECT_FALSE(placement->network.has_value()) << listen;
    EXPECT_FALSE(placement->unresolved.has_value()) << listen;
    ASSERT_TRUE(placement->unheeded.has_value()) << listen;
    EXPECT_THAT(*placement->unheeded, StartsWith("t.yaml:4:11: cluster.listen: "));
    EXPECT_THAT(*placement->unheeded, HasSubstr(why));
  }
}

// Others could not reach those of this machine at the loopback through which these find the head.
TEST(Placement, MembersOfThisMachineListenWhereOthersReachTheHead) {
  const auto placement = place(
      "  hosts: [{address: elsewhere.invalid}, {address: localhost}]\n"
      "  listen: \"192.0.2.7:8500\"\n  keys: k\n");
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(placement->network->neighbours, "tcp://192.0.2.7:0");
}

TEST(Placement, NoneMayBeHere) {
  const auto placement =
      place("  hosts: [{address: elsewhere.invalid}]\n  listen: \"*:8500\"\n  keys: k\n");
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_THAT(placement->computing_here(), IsEmpty());
}

TEST(Placement, AnAddressThatOthersCannotReachIsRefusedWhereItStands) {
  const std::string away = "  hosts: [{address: elsewhere.invalid}]\n";
  expect_refused(place(away + "  listen: \"127.0.0.1:8500\"\n"), "t.yaml:5:11: cluster.listen: ",
                 "is reached from this machine only, and members are to run on elsewhere.invalid");
  expect_refused(place(away + "  listen: \"*:0\"\n  keys: k\n"),
                 "t.yaml:5:11: cluster.listen: ", "has no port of its own");
}

TEST(Placement, ANameThatLeadsNowhereHereMayLeadSomewhereElse) {
  const auto placement = place(
      "  hosts: [{address: elsewhere.invalid}, {address: localhost}]\n"
      "  listen: \"nowhere.invalid:8500\"\n  keys: k\n");
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_THAT(placement->computing_here(), ElementsAre(1u));
  EXPECT_FALSE(placement->network.has_value());
  ASSERT_TRUE(placement->unresolved.has_value());
  EXPECT_EQ(placement->unresolved->kind, runtime::ErrorKind::kTopology);
  EXPECT_THAT(placement->unresolved->message, StartsWith("t.yaml:5:11: cluster.listen: "));
  EXPECT_THAT(placement->unresolved->message, HasSubstr("nowhere.invalid"));
}

TEST(Placement, TheDefaultAddressIsRefusedWhereTheHostsStand) {
  expect_refused(place("  hosts: [{address: elsewhere.invalid}]\n"),
                 "t.yaml:4:", "cluster.listen: 127.0.0.1:0 is reached from this machine only");
}

}  // namespace
}  // namespace troupe::launch
