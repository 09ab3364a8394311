#include "runtime/relay/relay_frames.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe::runtime {
namespace {

RelayFrame some_frame() {
  RelayFrame frame;
  frame.kind = RelayFrame::Kind::kCall;
  frame.socket = SocketId::kData;
  frame.client = 3;
  frame.other = 0xfedcba98;
  frame.call = 0x0123456789abcdef;
  frame.token = draw_relay_token();
  return frame;
}

TEST(RelayFrames, AFrameIsReadAsItWasWritten) {
  const RelayFrame frame = some_frame();
  EXPECT_EQ(read_relay_frame(write_relay_frame(frame)), frame);
  EXPECT_EQ(read_relay_frame(write_relay_frame({})), RelayFrame{});
}

TEST(RelayFrames, WhatIsNotAFrameOfThisVersionIsNone) {
  // Magic, version, kind, socket, zero.
  for (const std::size_t at : {0, 3, 4, 5, 6, 7}) {
    RelayFrameBytes bytes = write_relay_frame(some_frame());
    bytes[at] = std::byte{77};
    EXPECT_FALSE(read_relay_frame(bytes)) << at;
  }
  RelayFrameBytes kindless = write_relay_frame(some_frame());
  kindless[5] = std::byte{0};
  EXPECT_FALSE(read_relay_frame(kindless));
  EXPECT_FALSE(read_relay_frame(RelayFrameBytes{}));
}

TEST(RelayFrames, ATokensTextIsReadAsItWasWritten) {
  const RelayToken token = draw_relay_token();
  EXPECT_EQ(read_token(token_text(token)), token);
  const std::string good(32, 'a');
  EXPECT_TRUE(read_token(good));
  for (const std::string& bad : {std::string(), good + "a", good.substr(1), good.substr(2) + "xy",
                                 good.substr(2) + "-1", good.substr(2) + " 1"}) {
    EXPECT_FALSE(read_token(bad)) << bad;
  }
}

}  // namespace
}  // namespace troupe::runtime
