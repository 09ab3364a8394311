#include <utility>  // Asio forgets it

#include "telemetry/watch/page_client.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "runtime/base/clock.h"

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

constexpr auto kLook = std::chrono::milliseconds(50);
constexpr std::size_t kMostEventBytes = std::size_t{256} << 20;
constexpr std::size_t kMostAnswerBytes = std::size_t{1} << 30;
constexpr std::size_t kMostRefusalBytes = 4096;

// "error" of a refusal, or what was said instead.
std::string words_of(unsigned status, const std::string& body) {
  const auto value = nlohmann::json::parse(body, nullptr, false);
  if (value.is_object() && value.contains("error") && value["error"].is_string()) {
    return value["error"].get<std::string>();
  }
  return fmt::format("the answer is HTTP {}", status);
}

}  // namespace

// One connection: a request and its answer.
struct PageClient::Exchange {
  Exchange(const PageAddress& where, const Stop& whether)
      : address(where), stop(whether), resolver(io), socket(io) {
    parser.body_limit(std::uint64_t{1} << 40);
  }

  Error lost(std::string_view why) const {
    return {ErrorKind::kLostPeers, fmt::format("{}: {}", address.text(), why)};
  }

  // Runs until an operation that sets `done` has ended; an error when patience or stop() ends it.
  Result<void> await(std::chrono::milliseconds patience) {
    const auto until = runtime::steady_now() + patience;
    io.restart();
    while (!done) {
      io.run_for(kLook);
      if (done) break;
      const bool gives_up = stop && stop();
      if (!gives_up && runtime::steady_now() < until) continue;
      close();
      return lost(gives_up ? "given up" : "no answer in time");
    }
    if (failed && failed != http::error::end_of_stream) return lost(failed.message());
    return {};
  }

  void close() {
    error_code ignored;
    resolver.cancel();
    socket.close(ignored);
    io.restart();
    io.run();  // all that was under way ends with an error
  }

  Result<void> connect(std::chrono::milliseconds patience) {
    done = false;
    resolver.async_resolve(address.host, std::to_string(address.port),
                           [this](const error_code& wrong, const tcp::resolver::results_type& all) {
                             if (wrong) return end(wrong);
                             asio::async_connect(socket, all,
                                                 [this](const error_code& refused,
                                                        const tcp::endpoint&) { end(refused); });
                           });
    return await(patience);
  }

  Result<void> ask(const std::string& request, std::chrono::milliseconds patience) {
    done = false;
    asio::async_write(socket, asio::buffer(request), [this](const error_code& wrong, std::size_t) {
      if (wrong) return end(wrong);
      http::async_read_header(socket, buffer, parser,
                              [this](const error_code& bad, std::size_t) { end(bad); });
    });
    return await(patience);
  }

  // Some more of the body; "" at its end.
  Result<std::string_view> read_some(std::chrono::milliseconds patience) {
    if (parser.is_done()) return std::string_view();
    done = false;
    auto& body = parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    body.more = true;
    http::async_read_some(socket, buffer, parser, [this](error_code wrong, std::size_t) {
      if (wrong == http::error::need_buffer) wrong = {};
      end(wrong);
    });
    RETURN_IF_ERROR(await(patience));
    const std::size_t bytes = piece.size() - parser.get().body().size;
    if (bytes == 0 && !parser.is_done()) return read_some(patience);
    return std::string_view(piece.data(), bytes);
  }

  // All the rest of it.
  Result<std::string> read_all(std::size_t most, std::chrono::milliseconds patience) {
    std::string body;
    while (true) {
      ASSIGN_OR_RETURN(const std::string_view more, read_some(patience));
      if (more.empty()) return body;
      body.append(more);
      if (body.size() > most) return lost("the answer is too long");
    }
  }

  void end(const error_code& with) {
    failed = with;
    done = true;
  }

  const PageAddress& address;
  const Stop& stop;
  asio::io_context io{1};
  tcp::resolver resolver;
  tcp::socket socket;
  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  std::array<char, 65536> piece;
  bool done = false;
  error_code failed;
};

PageClient::PageClient(PageAddress address, Stop stop)
    : address_(std::move(address)), stop_(std::move(stop)) {}

std::string PageClient::request(const std::string& path, const std::string& fields) const {
  std::string access;
  // What has other letters would be more than one field.
  bool plain = !address_.token.empty();
  for (const char letter : address_.token) plain = plain && letter >= ' ' && letter <= '~';
  if (plain) access = fmt::format("Authorization: Bearer {}\r\n", address_.token);
  return fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}{}\r\n", path,
                     address_.text(), access, fields);
}

Result<std::string> PageClient::get(const std::string& path, std::chrono::milliseconds patience) {
  Exchange exchange(address_, stop_);
  RETURN_IF_ERROR(exchange.connect(patience));
  const std::string question = request(path, "");
  RETURN_IF_ERROR(exchange.ask(question, patience));
  const unsigned status = exchange.parser.get().result_int();
  const std::size_t most = status == 200 ? kMostAnswerBytes : kMostRefusalBytes;
  ASSIGN_OR_RETURN(std::string body, exchange.read_all(most, patience));
  if (status == 200) return body;
  return Error{ErrorKind::kUsage,
               fmt::format("{}{}: {}", address_.text(), path, words_of(status, body))};
}

Result<void> PageClient::follow(const std::string& path, const EventReader::Take& take,
                                std::chrono::milliseconds patience) {
  Exchange exchange(address_, stop_);
  RETURN_IF_ERROR(exchange.connect(patience));
  const bool known = !last_id_.empty() && last_id_.size() < 100;
  const std::string question =
      request(path, known ? fmt::format("Last-Event-ID: {}\r\n", last_id_) : "");
  RETURN_IF_ERROR(exchange.ask(question, patience));
  const unsigned status = exchange.parser.get().result_int();
  if (status != 200) {
    const auto body = exchange.read_all(kMostRefusalBytes, patience);
    // What the server cannot do now it can do later.
    return Error{
        status >= 500 ? ErrorKind::kLostPeers : ErrorKind::kUsage,
        fmt::format("{}{}: {}", address_.text(), path, words_of(status, body.ok() ? *body : ""))};
  }
  EventReader reader(
      [&](const EventReader::Event& event) {
        last_id_ = event.id;
        take(event);
      },
      kMostEventBytes);
  while (true) {
    ASSIGN_OR_RETURN(const std::string_view piece, exchange.read_some(patience));
    if (piece.empty()) return {};
    if (!reader.read(piece)) return exchange.lost("an event is too long");
  }
}

}  // namespace troupe::telemetry
