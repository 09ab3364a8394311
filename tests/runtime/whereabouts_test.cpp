// Which addresses of nodes are of use to others, and to whom.

#include "runtime/transport/whereabouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kFar = "tcp://10.0.0.2:41234";
constexpr const char* kNear = "tcp://127.0.0.1:41234";
constexpr const char* kInFiles = "ipc:///tmp/head";

std::string told(const std::optional<Error>& error) {
  if (!error) return "";
  EXPECT_EQ(error->kind, ErrorKind::kUsage);
  EXPECT_THAT(error->message, HasSubstr("--listen"));
  return error->message;
}

TEST(Whereabouts, AnAddressThatNobodyCouldDialIsRefusedWithItsCause) {
  struct Case {
    std::string address, from, why;
  };
  const Case cases[] = {
      {"", kFar, ""},
      {"tcp://10.0.0.2:8600", kFar, ""},
      {"[2001:db8::2]:8600", kFar, ""},
      {"tcp://127.0.0.1:8600", kFar, ""},
      {"ipc:///tmp/m", kInFiles, ""},
      {"ipc:///tmp/m", kNear, ""},
      {"ipc:///tmp/m", "unknown", ""},
      {"ipc:///tmp/m", kFar, "a socket of the file system of 10.0.0.2"},
      {"sim://2", kFar, "that is no address"},
      {"10.0.0.2", kFar, "that is no address"},
      {"tcp://10.0.0.2:0", kFar, "it has no port"},
      {"tcp://*:8600", kFar, "it stands for all addresses"},
      {"tcp://0.0.0.0:8600", kFar, "it stands for all addresses"},
      {"tcp://[::]:8600", kFar, "it stands for all addresses"},
      {"tcp://elsewhere.invalid:8600", kFar, "that is a name"},
  };
  for (const Case& example : cases) {
    const std::string why = told(objection_to({"b", example.address, example.from}));
    if (example.why.empty()) {
      EXPECT_EQ(why, "") << example.address;
    } else {
      EXPECT_THAT(why, AllOf(HasSubstr("b at '" + example.address + "'"), HasSubstr(example.why)));
    }
  }
}

TEST(Whereabouts, AKeyBehindAnAddressIsRefusedAndNotRepeated) {
  const std::string key(40, 'k');
  const std::string why = told(objection_to({"b", "tcp://10.0.0.2:8600#" + key, kFar}));
  EXPECT_THAT(why, AllOf(HasSubstr("'tcp://10.0.0.2:8600': a key"), Not(HasSubstr(key))));
}

TEST(Whereabouts, WhoCanDialWhomFollowsFromWhereBothCameFrom) {
  struct Case {
    std::string address, from, neighbour_from;
    Reach reach;
  };
  constexpr Reach kNone = Reach::kNone, kDoubtful = Reach::kDoubtful, kGood = Reach::kGood;
  const Case cases[] = {
      {"tcp://10.0.0.2:8600", kFar, "tcp://10.0.0.3:1", kGood},
      {"tcp://10.0.0.2:8600", kFar, kNear, kGood},
      {"tcp://127.0.0.1:8600", kNear, kNear, kGood},
      {"tcp://127.0.0.1:8600", kNear, kInFiles, kGood},
      {"ipc:///tmp/m", kInFiles, kNear, kGood},
      {"tcp://127.0.0.1:8600", kFar, "tcp://10.0.0.2:5", kGood},
      {"tcp://127.0.0.1:8600", kNear, "unknown", kGood},
      {"tcp://127.0.0.1:8600", "unknown", kFar, kGood},
      {"sim://2", kFar, kNear, kGood},
      // It does not listen.
      {"", kFar, kNear, kNone},
      {"", kNear, kNear, kNone},
      {"", "unknown", "unknown", kNone},
      {"relay://7", kFar, kNear, kNone},
      // Only its own machine gets there.
      {"tcp://127.0.0.1:8600", kNear, kFar, kNone},
      {"tcp://[::1]:8600", kNear, "tcp://[2001:db8::2]:5", kNone},
      {"ipc:///tmp/m", kInFiles, kFar, kNone},
      {"tcp://127.0.0.1:8600", kFar, kNear, kNone},
      {"tcp://127.0.0.1:8600", kFar, "tcp://10.0.0.3:1", kNone},
      // Its address is translated on the way, or it has several.
      {"tcp://192.168.1.7:8600", kFar, "tcp://10.0.0.3:1", kDoubtful},
      {"tcp://192.168.1.7:8600", kFar, kNear, kDoubtful},
      {"tcp://192.168.1.7:8600", kFar, "unknown", kGood},
      {"tcp://192.168.1.7:8600", kFar, "tcp://10.0.0.2:77", kGood},
      {"tcp://10.0.0.1:8600", kNear, kFar, kGood},
  };
  for (const Case& example : cases) {
    EXPECT_EQ(reach_of({"b", example.address, example.from}, {"c", "", example.neighbour_from}),
              example.reach)
        << example.address << " " << example.from << " " << example.neighbour_from;
  }
}

TEST(Whereabouts, ThroughTheRelayGoesWhoeverIsThereToo) {
  const Whereabouts one{"b", "relay://1", kFar}, other{"c", "relay://2", kNear};
  EXPECT_EQ(told(objection_to(one)), "");
  EXPECT_NE(told(objection_to({"b", "relay://one", kFar})), "");
  EXPECT_EQ(reach_of(one, other), Reach::kRelayed);
  EXPECT_EQ(told(objection_to(one, other)), "");
  EXPECT_LT(reach_of(one, other), Reach::kDoubtful);
  EXPECT_EQ(reach_of(one, {"c", "tcp://10.0.0.3:8600", kNear}), Reach::kNone);
  EXPECT_NE(told(objection_to(one, {"c", "tcp://127.0.0.1:8600", kNear})), "");
  EXPECT_NE(told(objection_to(one, {"c", "", kNear})), "");
}

TEST(Whereabouts, TwoOfWhichNeitherCanDialTheOtherAreNamed) {
  const Whereabouts outbound{"b", "", kFar}, local{"c", "tcp://127.0.0.1:8600", kNear};
  EXPECT_THAT(told(objection_to(outbound, local)),
              AllOf(HasSubstr("b and c cannot have a connection"), HasSubstr("b does not listen"),
                    HasSubstr("only its own machine gets to c at 'tcp://127.0.0.1:8600'"),
                    HasSubstr("start b with --listen")));
  EXPECT_NE(told(objection_to(local, outbound)), "");
  EXPECT_EQ(told(objection_to({"b", "", kNear}, local)), "");
  EXPECT_EQ(told(objection_to(outbound, {"c", "tcp://10.0.0.3:8600", kNear})), "");
}

TEST(Whereabouts, AnotherAddressOfTheFirstNodesMachineIsThatMachine) {
  const Whereabouts near{"b", "tcp://127.0.0.1:8600", kNear}, in_files{"b", "ipc:///tmp/m", kFar};
  EXPECT_EQ(reach_of(near, {"c", "", kFar}), Reach::kNone);
  EXPECT_EQ(reach_of(near, {"c", "", kFar, true}), Reach::kGood);
  EXPECT_NE(told(objection_to(in_files)), "");
  EXPECT_EQ(told(objection_to({"b", "ipc:///tmp/m", kFar, true})), "");
}

}  // namespace
}  // namespace troupe::runtime
