// When a wire asks where an address leads.

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "runtime/transport/resolve.h"
#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A dialer whose resolver leads every name to the loopback interface, as long as it works.
class ZmqWireResolve : public testing::Test {
 protected:
  ZmqWireOptions dialing() {
    ZmqWireOptions options = plain();
    options.resolve = [this](const Address& address) -> Result<ResolvedAddress> {
      asked_.push_back(address.text());
      if (!works_) return Error{ErrorKind::kUsage, "the resolver does not answer"};
      Address known = address;
      known.host = "127.0.0.1";
      return resolve(known);
    };
    return options;
  }
  // The address of the listener, by that name.
  std::string named(const std::string& host) const {
    return fmt::format("tcp://{}:{}", host, parse_address(listener_->wire->address())->port);
  }
  bool connects(ConnectionId id) {
    return play({listener_.get(), &dialer_}, [&] { return dialer_.diary.infos.contains(id); });
  }

  std::vector<std::string> asked_;
  bool works_ = true;
  std::unique_ptr<StageEnd> listener_ = std::make_unique<StageEnd>(plain("tcp://127.0.0.1:0"));
  StageEnd dialer_{dialing()};
};

TEST_F(ZmqWireResolve, AnAddressIsAskedForAtItsFirstDialAndNeverAgain) {
  const std::string address = named("head.example");
  for (int i = 0; i < 3; ++i) {
    const ConnectionId id = dialer_.dial(address);
    ASSERT_TRUE(connects(id));
    dialer_.wire->close(id);
    works_ = false;
  }
  EXPECT_THAT(asked_, ElementsAre(address));
}

TEST_F(ZmqWireResolve, EveryAddressIsAskedForByItself) {
  const std::string one = named("one.example");
  const std::string other = named("other.example");
  for (const std::string& address : {one, other, one, other}) {
    ASSERT_TRUE(connects(dialer_.dial(address)));
  }
  EXPECT_THAT(asked_, ElementsAre(one, other));
}

// The key that the other end must prove says nothing about where it is.
TEST_F(ZmqWireResolve, AnAddressWithAKeyLeadsWhereItLeadsWithout) {
  const std::string address = named("head.example");
  ASSERT_TRUE(connects(dialer_.dial(address)));
  const auto with_key = dialer_.wire->dial(address + "#" + make_keys()->public_key);
  ASSERT_FALSE(with_key.ok());
  EXPECT_THAT(with_key.error().message, HasSubstr("has no keys of its own"));
  EXPECT_THAT(asked_, ElementsAre(address));
}

TEST_F(ZmqWireResolve, ADialThatWaitsForItsListenerDoesNotAskAgain) {
  const std::string at = listener_->wire->address();
  const std::string address = named("head.example");
  listener_.reset();
  const ConnectionId id = dialer_.dial(address);
  works_ = false;
  // Longer than some attempts take.
  const TimePoint until = stage_clock().now() + std::chrono::milliseconds(200);
  play({&dialer_}, [&] { return stage_clock().now() >= until; });
  listener_ = std::make_unique<StageEnd>(plain(at));
  EXPECT_TRUE(connects(id));
  EXPECT_THAT(asked_, ElementsAre(address));
}

TEST_F(ZmqWireResolve, AFailureIsToldAndNotRemembered) {
  const std::string address = named("head.example");
  works_ = false;
  const auto dialed = dialer_.wire->dial(address);
  ASSERT_FALSE(dialed.ok());
  EXPECT_EQ(dialed.error().message, "the resolver does not answer");
  works_ = true;
  EXPECT_TRUE(connects(dialer_.dial(address)));
}

}  // namespace
}  // namespace troupe::runtime
