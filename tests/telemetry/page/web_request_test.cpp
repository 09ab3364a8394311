#include "telemetry/page/web_request.h"

#include <gtest/gtest.h>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <optional>
#include <string>

#include "tests/telemetry/page/pieces.h"

namespace troupe::telemetry {
namespace {

constexpr std::size_t kHeaderBytes = 4096, kBodyBytes = 16;

// A connection on which `text` comes in pieces of so many bytes.
struct Caller {
  explicit Caller(std::string_view text, std::size_t piece = 1 << 20) : stream{text, piece} {}

  // The next request; nothing: there is none, and `status` tells what was answered.
  std::optional<WebRequest> next() {
    RequestParser parser;
    parser.header_limit(kHeaderBytes);
    parser.body_limit(kBodyBytes);
    boost::beast::error_code failed;
    boost::beast::http::read(stream, buffer, parser, failed);
    if (!failed) return parser.release();
    const auto refused = refusal_of(failed);
    status = refused ? refused->status : 0;
    return std::nullopt;
  }

  Pieces stream;
  boost::beast::flat_buffer buffer;
  unsigned status = 0;  // 0: the client hung up
};

TEST(RequestParser, RequestInAnyPiecesIsTheSame) {
  const std::string text =
      "GET /api/runs/0/stream?a=1 HTTP/1.1\r\nHost: localhost:8400\r\nLast-Event-ID: 7-9\r\n"
      "Accept-Encoding: gzip, br\r\n\r\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    Caller caller(text, piece);
    const auto request = caller.next();
    ASSERT_TRUE(request) << piece;
    EXPECT_EQ(request->method_string(), "GET");
    EXPECT_EQ(path_of(*request), "/api/runs/0/stream");
    EXPECT_EQ(query_of(*request), "a=1");
    EXPECT_EQ(field_of(*request, "Host"), "localhost:8400");
    EXPECT_EQ(field_of(*request, "Last-Event-ID"), "7-9");
    EXPECT_EQ(field_of(*request, "Accept-Encoding"), "gzip, br");
    EXPECT_TRUE(request->keep_alive());
    EXPECT_FALSE(caller.next());
    EXPECT_EQ(caller.status, 0u);
  }
}

TEST(RequestParser, PipelinedRequestsComeOneAfterTheOther) {
  const std::string text = "GET /1 HTTP/1.1\r\n\r\nHEAD /2 HTTP/1.0\r\n\r\nGET /3 HTTP/1.1\r\n\r\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    Caller caller(text, piece);
    EXPECT_EQ(path_of(*caller.next()), "/1");
    const auto second = caller.next();
    EXPECT_EQ(path_of(*second), "/2");
    EXPECT_EQ(second->method_string(), "HEAD");
    EXPECT_FALSE(second->keep_alive());
    EXPECT_EQ(path_of(*caller.next()), "/3");
    EXPECT_FALSE(caller.next());
  }
}

TEST(RequestParser, ShortBodyComesWithItsRequest) {
  const std::string text =
      "POST /1 HTTP/1.1\r\nContent-Length: 16\r\n\r\n0123456789abcdefGET /2 HTTP/1.1\r\n\r\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    Caller caller(text, piece);
    EXPECT_EQ(caller.next()->body(), "0123456789abcdef");
    EXPECT_EQ(path_of(*caller.next()), "/2");
  }
}

TEST(RequestParser, WhatIsNoRequestIsRefusedWithItsStatus) {
  const auto status = [](const std::string& text) {
    Caller caller(text);
    EXPECT_FALSE(caller.next());
    return caller.status;
  };
  EXPECT_EQ(status("\x16\x03\x01\x02\r\n"), 400u);  // a browser that expects encryption
  EXPECT_EQ(status("hello\r\n\r\n"), 400u);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400u);
  EXPECT_EQ(status("GET / HTTP/9.9\r\n\r\n"), 505u);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 17\r\n\r\n"), 413u);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), 400u);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n9\r\n"
                   "123456789\r\n0\r\n\r\n"),
            413u);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA: " + std::string(2 * kHeaderBytes, 'a')), 431u);
  EXPECT_EQ(status("GET /" + std::string(2 * kHeaderBytes, 'a')), 431u);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n"), 0u);
}

TEST(RequestParser, HeaderThatNeverEndsIsTooLong) {
  std::string text = "GET / HTTP/1.1\r\n";
  for (int line = 0; line < 2000; ++line) text += "A: b\r\n";
  Caller caller(text, 6);
  EXPECT_FALSE(caller.next());
  EXPECT_EQ(caller.status, 431u);
  EXPECT_GT(caller.stream.left.size(), text.size() / 2);
}

TEST(Query, ValuesAreFoundAndDecoded) {
  EXPECT_EQ(value_of("a=1&token=x%2By%20z&b", '&', "token"), "x+y z");
  EXPECT_EQ(value_of("a=1&b", '&', "b"), "");
  EXPECT_EQ(value_of("", '&', "b"), "");
  EXPECT_EQ(value_of("xtoken=1", '&', "token"), "");
  EXPECT_EQ(value_of("a=1; b; token=x%2By", ';', "token"), "x+y");
  EXPECT_EQ(value_of("token; token=x", ';', "token"), "x");
  EXPECT_EQ(percent_decoded("%zz%4"), "%zz%4");
  EXPECT_EQ(percent_encoded("a b+\xff"), "a%20b%2B%FF");
  EXPECT_EQ(percent_decoded(percent_encoded("/?=;\"\x01")), "/?=;\"\x01");
}

TEST(AcceptEncoding, GzipIsUsedWhereItIsWanted) {
  for (const char* yes : {"gzip", "br, gzip;q=0.5", "*", "deflate , gzip"}) {
    EXPECT_TRUE(accepts_gzip(yes)) << yes;
  }
  for (const char* no : {"", "br", "gzip;q=0", "gzip; q=0.000", "xgzip"}) {
    EXPECT_FALSE(accepts_gzip(no)) << no;
  }
}

}  // namespace
}  // namespace troupe::telemetry
