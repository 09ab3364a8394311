#include "runtime/transport/shared_payload.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

constexpr std::size_t kBytes = 64 << 10;

class SharedPayload : public testing::Test {
 protected:
  std::optional<SharedPlace> put(std::size_t bytes, std::uint64_t seed = 1) {
    return sender_->put(pattern(bytes, seed).bytes());
  }

  std::unique_ptr<SharedSender> sender_ = std::move(SharedSender::create(kBytes, {7, 8})).value();
  std::unique_ptr<SharedReceiver> receiver_ =
      std::move(SharedReceiver::open(sender_->offer())).value();
};

TEST_F(SharedPayload, WhatIsPutIsTaken) {
  const auto first = put(5000, 1);
  const auto second = put(10, 2);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(same_bytes(*receiver_->take(*first, 5000), pattern(5000, 1)));
  EXPECT_TRUE(same_bytes(*receiver_->take(*second, 10), pattern(10, 2)));
}

TEST_F(SharedPayload, RoomComesBackWithTheLastCopy) {
  const auto whole = put(kBytes);
  ASSERT_TRUE(whole);
  EXPECT_FALSE(put(1));
  auto taken = receiver_->take(*whole, kBytes);
  auto copy = taken->slice(0, 1);
  taken.reset();
  EXPECT_FALSE(put(1));
  copy = Buffer();
  EXPECT_TRUE(put(kBytes));
}

TEST_F(SharedPayload, NeighboursGrowTogetherAgain) {
  std::vector<Buffer> taken;
  for (std::size_t i = 0; i < kBytes / 4096; ++i) {
    const auto place = put(4096);
    ASSERT_TRUE(place);
    taken.push_back(*receiver_->take(*place, 4096));
  }
  // Freed out of order: every second one, then the others.
  for (std::size_t i = 0; i < taken.size(); i += 2) taken[i] = Buffer();
  EXPECT_TRUE(put(4096));
  EXPECT_FALSE(put(8192));
  taken.clear();
  EXPECT_TRUE(put(kBytes - 4096));
}

TEST_F(SharedPayload, PlacesOutsideAreRefused) {
  EXPECT_FALSE(receiver_->take({SharedSender::kSlots, 0}, 1));
  EXPECT_FALSE(receiver_->take({0, kBytes}, 1));
  EXPECT_FALSE(receiver_->take({0, 0}, kBytes + 1));
  EXPECT_FALSE(receiver_->take({0, 4096}, kBytes - 4095));
  EXPECT_FALSE(receiver_->take({0, UINT64_MAX - 4095}, 8192));
  EXPECT_FALSE(receiver_->take({0, 4}, 8));
  EXPECT_FALSE(receiver_->take({0, 0}, 0));
}

TEST_F(SharedPayload, AnotherTokenOrSizeIsNotMistaken) {
  SharedOffer offer = sender_->offer();
  offer.token[1] = 1;
  EXPECT_FALSE(SharedReceiver::open(offer).ok());
  offer = sender_->offer();
  offer.bytes += 4096;
  EXPECT_FALSE(SharedReceiver::open(offer).ok());
  offer.bytes = 0;
  EXPECT_FALSE(SharedReceiver::open(offer).ok());
  offer = sender_->offer();
  offer.process = 0;
  EXPECT_FALSE(SharedReceiver::open(offer).ok());
  EXPECT_TRUE(SharedReceiver::open(sender_->offer()).ok());
}

TEST_F(SharedPayload, WhatIsNoSealedMemoryIsNotMapped) {
  SharedOffer offer = sender_->offer();
  for (const char* path : {"/dev/null", "/etc/passwd", "/dev/zero"}) {
    const int file = ::open(path, O_RDONLY);
    ASSERT_GE(file, 0);
    offer.descriptor = static_cast<std::uint32_t>(file);
    EXPECT_FALSE(SharedReceiver::open(offer).ok()) << path;
    ::close(file);
  }
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  offer.descriptor = static_cast<std::uint32_t>(ends[0]);
  EXPECT_FALSE(SharedReceiver::open(offer).ok());
  ::close(ends[0]);
  ::close(ends[1]);
  // It could be cut off under the reader's feet.
  const int unsealed = ::memfd_create("unsealed", MFD_CLOEXEC);
  offer.descriptor = static_cast<std::uint32_t>(unsealed);
  EXPECT_EQ(::ftruncate(unsealed, kBytes + 5 * 4096), 0);
  EXPECT_FALSE(SharedReceiver::open(offer).ok());
  ::close(unsealed);
}

TEST_F(SharedPayload, BuffersOutliveBothEnds) {
  const Buffer taken = *receiver_->take(*put(5000), 5000);
  receiver_.reset();
  sender_.reset();
  EXPECT_TRUE(same_bytes(taken, pattern(5000, 1)));
}

TEST_F(SharedPayload, AnotherProcessSeesIt) {
  constexpr int kOutOfReach = 2;
  const auto place = put(5000);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto receiver = SharedReceiver::open(sender_->offer());
    if (!receiver.ok()) ::_exit(kOutOfReach);
    const auto taken = (*receiver)->take(*place, 5000);
    ::_exit(taken && same_bytes(*taken, pattern(5000, 1)) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kOutOfReach) {
    GTEST_SKIP() << "another process's memory is out of reach here";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace troupe::runtime
