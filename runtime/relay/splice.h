#pragma once

// Two connections of which each is given what comes from the other. For relay.cpp and
// relay_client.cpp alone, which drive it from one thread.

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace troupe::runtime {

// Of TCP, or of the file system.
using StreamSocket = boost::asio::generic::stream_protocol::socket;

// What is sent soon is sent at once, and an end that is silently gone is noticed within a minute.
// Does nothing to a socket that is not TCP.
void prepare_for_relay(StreamSocket& socket);

// Lives as long as bytes may come: its own handlers own it. No more than a buffer for each
// direction waits in it; the rest waits at its sender.
class Splice : public std::enable_shared_from_this<Splice> {
 public:
  // `kept` is held as long as the splice lives.
  Splice(StreamSocket one, StreamSocket other, std::shared_ptr<void> kept = nullptr);
  void begin();

 private:
  void read(std::size_t from);
  void write(std::size_t from, std::size_t bytes);
  void end_of(std::size_t from);
  void close();

  std::array<StreamSocket, 2> sockets_;
  std::array<std::vector<std::byte>, 2> buffers_;
  int ended_ = 0;
  boost::asio::steady_timer last_words_;
  const std::shared_ptr<void> kept_;
};

}  // namespace troupe::runtime
