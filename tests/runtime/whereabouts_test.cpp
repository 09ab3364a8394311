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

TEST(Whereabouts, WhatOnlyOneMachineReachesIsNothingToAnother) {
  struct Case {
    std::string address, from, fellow_from;
    bool reached;
  };
  const Case cases[] = {
      {"tcp://10.0.0.2:8600", kFar, "tcp://10.0.0.3:1", true},
      {"tcp://10.0.0.2:8600", kFar, kNear, true},
      {"", kFar, kNear, true},
      {"tcp://127.0.0.1:8600", kNear, kNear, true},
      {"tcp://127.0.0.1:8600", kNear, kInFiles, true},
      {"ipc:///tmp/m", kInFiles, kNear, true},
      {"tcp://127.0.0.1:8600", kFar, "tcp://10.0.0.2:5", true},
      {"tcp://127.0.0.1:8600", kNear, "unknown", true},
      {"tcp://127.0.0.1:8600", "unknown", kFar, true},
      {"tcp://127.0.0.1:8600", kNear, kFar, false},
      {"tcp://[::1]:8600", kNear, "tcp://[2001:db8::2]:5", false},
      {"ipc:///tmp/m", kInFiles, kFar, false},
      {"tcp://127.0.0.1:8600", kFar, kNear, false},
      {"tcp://127.0.0.1:8600", kFar, "tcp://10.0.0.3:1", false},
  };
  for (const Case& example : cases) {
    const auto error =
        objection_to({"b", example.address, example.from}, {"c", "", example.fellow_from});
    EXPECT_EQ(told(error).empty(), example.reached)
        << example.address << " " << example.from << " " << example.fellow_from;
  }
}

TEST(Whereabouts, AnotherAddressOfTheFirstNodesMachineIsThatMachine) {
  const Whereabouts near{"b", "tcp://127.0.0.1:8600", kNear}, in_files{"b", "ipc:///tmp/m", kFar};
  EXPECT_NE(told(objection_to(near, {"c", "", kFar})), "");
  EXPECT_EQ(told(objection_to(near, {"c", "", kFar, true})), "");
  EXPECT_NE(told(objection_to(in_files)), "");
  EXPECT_EQ(told(objection_to({"b", "ipc:///tmp/m", kFar, true})), "");
}

}  // namespace
}  // namespace troupe::runtime
