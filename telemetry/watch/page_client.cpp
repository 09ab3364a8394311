#include <utility>  // Asio forgets it

#include "telemetry/watch/page_client.h"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "runtime/base/json_reader.h"

namespace troupe::telemetry {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using Request = http::request<http::empty_body>;

constexpr auto kLook = std::chrono::milliseconds(50);
constexpr std::size_t kMostRefusalBytes = 4096;

Request request_to(const PageAddress& address, const std::string& path) {
  Request request(http::verb::get, path, 11);
  request.set(http::field::host, address.text());
  request.set(http::field::connection, "close");
  // A token with a line break would become more than one field.
  const bool is_plain = std::all_of(address.token.begin(), address.token.end(),
                                    [](char letter) { return letter >= ' ' && letter <= '~'; });
  if (is_plain && !address.token.empty()) {
    request.set(http::field::authorization, "Bearer " + address.token);
  }
  return request;
}

// One connection: a request and its answer.
class Exchange {
 public:
  // All three outlive it.
  Exchange(const PageAddress& address, const PageClient::Stop& stop, const PageLimits& limits)
      : address_(address), stop_(stop), limits_(limits) {
    parser_.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    parser_.body_limit(std::numeric_limits<std::uint64_t>::max());
  }

  Error lost(std::string_view why) const {
    return {ErrorKind::kLostPeers, fmt::format("{}: {}", address_.text(), why)};
  }

  // Reads the answer's header. Returns the status.
  Result<unsigned> ask(const Request& request) {
    error_code failed;
    const auto found =
        tcp::resolver(io_).resolve(address_.host, std::to_string(address_.port), failed);
    if (failed) return lost(failed.message());
    RETURN_IF_ERROR(await([&](const auto& done) { stream_.async_connect(found, done); }));
    RETURN_IF_ERROR(await([&](const auto& done) { http::async_write(stream_, request, done); }));
    RETURN_IF_ERROR(
        await([&](const auto& done) { http::async_read_header(stream_, buffer_, parser_, done); }));
    return parser_.get().result_int();
  }

  // Reads some more of the body. "": it has ended.
  Result<std::string_view> read_some() {
    auto& body = parser_.get().body();
    while (!parser_.is_done()) {
      body.data = piece_.data();
      body.size = piece_.size();
      body.more = true;
      RETURN_IF_ERROR(
          await([&](const auto& done) { http::async_read_some(stream_, buffer_, parser_, done); }));
      const std::size_t bytes = piece_.size() - body.size;
      if (bytes > 0) return std::string_view(piece_.data(), bytes);
    }
    return std::string_view();
  }

  // Reads all the rest of the body.
  Result<std::string> read_all(std::size_t most) {
    std::string body;
    while (true) {
      ASSIGN_OR_RETURN(const std::string_view more, read_some());
      if (more.empty()) return body;
      body.append(more);
      if (body.size() > most) return lost("the answer is too long");
    }
  }

  // Why the server refused: "error" of its answer.
  Error refused(ErrorKind kind, const std::string& path) {
    const auto body = read_all(kMostRefusalBytes);
    const auto value = runtime::parse_json(body.ok() ? *body : "");
    std::string words;
    runtime::JsonReader(value).text("error", words, kMostRefusalBytes);
    if (words.empty()) words = fmt::format("the answer is HTTP {}", parser_.get().result_int());
    return {kind, fmt::format("{}{}: {}", address_.text(), path, words)};
  }

 private:
  // Runs the operation that `begin` begins, to which it gives the handler, to its end.
  template <class Begin>
  Result<void> await(const Begin& begin) {
    std::optional<error_code> ended;
    stream_.expires_after(limits_.idle_time);
    begin([&ended](const error_code& with, const auto&) { ended = with; });
    io_.restart();
    while (!ended) {
      io_.run_for(kLook);
      if (ended || !stop_ || !stop_()) continue;
      stream_.close();
      io_.run();
      return lost("given up");
    }
    if (!*ended || *ended == http::error::need_buffer) return {};
    return lost(*ended == beast::error::timeout ? "no answer in time" : ended->message());
  }

  const PageAddress& address_;
  const PageClient::Stop& stop_;
  const PageLimits& limits_;
  asio::io_context io_{1};
  beast::tcp_stream stream_{io_};
  beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
  std::array<char, 65536> piece_;
};

}  // namespace

PageClient::PageClient(PageAddress address, Stop stop, const PageLimits& limits)
    : address_(std::move(address)), stop_(std::move(stop)), limits_(limits) {}

Result<std::string> PageClient::get(const std::string& path) {
  Exchange exchange(address_, stop_, limits_);
  ASSIGN_OR_RETURN(const unsigned status, exchange.ask(request_to(address_, path)));
  if (status != 200) return exchange.refused(ErrorKind::kUsage, path);
  return exchange.read_all(limits_.answer_bytes);
}

Result<void> PageClient::follow(const std::string& path, const EventReader::Take& take) {
  Exchange exchange(address_, stop_, limits_);
  Request request = request_to(address_, path);
  const bool known = !last_id_.empty() && last_id_.size() < 100;
  if (known) request.set("Last-Event-ID", last_id_);
  ASSIGN_OR_RETURN(const unsigned status, exchange.ask(request));
  // The server may be able to do it later.
  if (status >= 500) return exchange.refused(ErrorKind::kLostPeers, path);
  if (status != 200) return exchange.refused(ErrorKind::kUsage, path);
  EventReader reader(
      [&](const EventReader::Event& event) {
        last_id_ = event.id;
        take(event);
      },
      limits_.event_bytes);
  while (true) {
    ASSIGN_OR_RETURN(const std::string_view piece, exchange.read_some());
    if (piece.empty()) return {};
    if (!reader.read(piece)) return exchange.lost("an event is too long");
  }
}

}  // namespace troupe::telemetry
