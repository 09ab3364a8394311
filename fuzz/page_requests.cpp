#include "fuzz/page_requests.h"

namespace troupe::fuzz {

std::vector<std::pair<std::string, std::string>> page_requests() {
  const auto get = [](const std::string& path, const std::string& fields = "") {
    return "\xff"
           "GET " +
           path + " HTTP/1.1\r\nHost: localhost:8400\r\n" + fields + "\r\n";
  };
  return {
      {"page", get("/", "Accept-Encoding: gzip\r\n")},
      {"welcome", get("/?token=a%20secret")},
      {"asset", get("/main-AAAA.js", "If-None-Match: \"a\"\r\nAuthorization: Bearer a secret\r\n")},
      {"runs", get("/api/runs", "Cookie: x=1; troupe=a%20secret\r\n")},
      {"history", get("/api/runs/0/history", "Accept-Encoding: br, gzip;q=0.5\r\n")},
      {"stream", get("/api/runs/0/stream", "Last-Event-ID: 7-2\r\n")},
      {"showers", get("/api/runs/0/showers/88")},
      {"trace", get("/api/runs/0/trace", "Origin: http://localhost:8400\r\n")},
      {"metrics", get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n")},
      {"stranger", "\xffHEAD / HTTP/1.0\r\nHost: example.org\r\nConnection: keep-alive\r\n\r\n"},
      {"pipelined", "\x03GET /1 HTTP/1.1\r\nHost: [::1]\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n"},
      {"body", "\x10POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"},
      {"chunked",
       "\x10GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
  };
}

}  // namespace troupe::fuzz
