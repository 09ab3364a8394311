#pragma once

// Bytes of a client that come in pieces, as a stream that Boost.Beast reads from.

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/error.hpp>
#include <cstddef>
#include <string_view>

namespace troupe::telemetry {

struct Pieces {
  std::string_view left;
  std::size_t piece = 1;  // bytes, at most; at least 1

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, boost::beast::error_code& failed) {
    failed = {};
    if (left.empty()) failed = boost::asio::error::eof;
    const auto next = left.substr(0, piece);
    const std::size_t read = boost::asio::buffer_copy(buffers, boost::asio::buffer(next));
    left.remove_prefix(read);
    return read;
  }
  // Beast asks for this one too.
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    boost::beast::error_code failed;
    const std::size_t read = read_some(buffers, failed);
    if (failed) throw boost::beast::system_error(failed);
    return read;
  }
};

}  // namespace troupe::telemetry
