#include "telemetry/page/web_request.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe::telemetry {
namespace {

using Found = RequestReader::Found;

constexpr std::size_t kHeaderBytes = 4096;

TEST(RequestReader, RequestInAnyPiecesIsTheSame) {
  const std::string text =
      "GET /api/runs/0/stream?a=1 HTTP/1.1\r\nHost: localhost:8400\r\nLast-Event-ID: 7-9\r\n"
      "Accept-Encoding: gzip, br\r\n\r\n";
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    RequestReader reader(kHeaderBytes);
    if (cut > 0) {
      ASSERT_EQ(reader.take(text.substr(0, cut)), Found::kMore) << cut;
      EXPECT_TRUE(reader.is_amid()) << cut;
    }
    ASSERT_EQ(reader.take(text.substr(cut)), Found::kRequest) << cut;
    EXPECT_EQ(reader.request().method, "GET");
    EXPECT_EQ(reader.request().path, "/api/runs/0/stream");
    EXPECT_EQ(reader.request().query, "a=1");
    EXPECT_EQ(reader.request().host, "localhost:8400");
    EXPECT_EQ(reader.request().last_event_id, "7-9");
    EXPECT_EQ(reader.request().accept_encoding, "gzip, br");
    EXPECT_TRUE(reader.request().keep_alive);
    EXPECT_EQ(reader.next(), Found::kMore);
  }
}

TEST(RequestReader, PipelinedRequestsComeOneAfterTheOther) {
  RequestReader reader(kHeaderBytes);
  ASSERT_EQ(reader.take("GET /1 HTTP/1.1\r\n\r\nHEAD /2 HTTP/1.0\r\n\r\nGET /3 HT"),
            Found::kRequest);
  EXPECT_EQ(reader.request().path, "/1");
  ASSERT_EQ(reader.next(), Found::kRequest);
  EXPECT_EQ(reader.request().path, "/2");
  EXPECT_EQ(reader.request().method, "HEAD");
  EXPECT_FALSE(reader.request().keep_alive);
  ASSERT_EQ(reader.next(), Found::kMore);
  ASSERT_EQ(reader.take("TP/1.1\r\n\r\n"), Found::kRequest);
  EXPECT_EQ(reader.request().path, "/3");
}

TEST(RequestReader, WhatIsNoRequestIsBrokenWithItsStatus) {
  const auto status = [](const std::string& text) {
    RequestReader reader(kHeaderBytes);
    return reader.take(text) == Found::kBroken ? reader.status() : 0;
  };
  EXPECT_EQ(status("\x16\x03\x01\x02"), 400u);  // a browser that expects encryption
  EXPECT_EQ(status("hello\r\n\r\n"), 400u);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400u);
  EXPECT_EQ(status("GET / HTTP/9.9\r\n\r\n"), 505u);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), 413u);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA: " + std::string(2 * kHeaderBytes, 'a')), 431u);
  EXPECT_EQ(status("GET /" + std::string(2 * kHeaderBytes, 'a')), 431u);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n"), 0u);
}

TEST(RequestReader, HeaderThatNeverEndsIsTooLong) {
  RequestReader reader(kHeaderBytes);
  Found found = reader.take("GET / HTTP/1.1\r\n");
  int lines = 0;
  while (found == Found::kMore && lines < 10'000) {
    found = reader.take("A: b\r\n");
    ++lines;
  }
  EXPECT_EQ(found, Found::kBroken);
  EXPECT_EQ(reader.status(), 431u);
  EXPECT_LT(lines, 2000);
}

TEST(Query, ValuesAreFoundAndDecoded) {
  EXPECT_EQ(query_value("a=1&token=x%2By%20z&b", "token"), "x+y z");
  EXPECT_EQ(query_value("a=1&b", "b"), "");
  EXPECT_EQ(query_value("", "b"), "");
  EXPECT_EQ(query_value("xtoken=1", "token"), "");
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
