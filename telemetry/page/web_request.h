#pragma once

// What a client of the page asks: the part of HTTP/1.1 that is needed, out of bytes that anybody
// may have sent.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::telemetry {

struct WebRequest {
  std::string method;       // "GET"
  std::string path, query;  // "/api/runs", "token=x": percent signs as they came
  bool keep_alive = false;  // the client would ask more on this connection
  // Header fields; "" where there is none.
  std::string host, origin, authorization, cookie, accept, accept_encoding, last_event_id,
      if_none_match;
  // What a browser says of who asks, and for what: "cross-site", "navigate", "document".
  std::string fetch_site, fetch_mode, fetch_dest;
};

// Bytes of a connection become requests. One thread at a time.
class RequestReader {
 public:
  // A request's line and header may have `header_bytes`.
  explicit RequestReader(std::size_t header_bytes);
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;

  enum class Found : std::uint8_t {
    kMore,     // nothing yet: more bytes are needed
    kRequest,  // request() is whole
    kBroken,   // status() says why; nothing further can be understood
  };
  // Takes what arrived next. Not after kBroken, and after kRequest only when next() has said kMore.
  Found take(std::string_view bytes);
  // Turns to the request behind the last one.
  Found next();

  // Whether a request has begun that is not whole.
  bool is_amid() const { return amid_; }
  const WebRequest& request() const { return request_; }
  // HTTP's number for what is wrong: 400, 413 (a body), 431 (too long a header), 505.
  unsigned status() const { return status_; }

 private:
  struct Parser;
  Found parse();
  Found broken(unsigned status);

  std::size_t header_bytes_;
  std::unique_ptr<Parser> parser_;
  std::string waiting_;  // bytes that no request has taken
  WebRequest request_;
  bool amid_ = false;
  unsigned status_ = 0;
};

// The value of `name` in "a=1&name=2"; percent signs decoded; "" when there is none.
std::string query_value(std::string_view query, std::string_view name);
// "%2F" becomes "/"; what is no such code stays as it is.
std::string percent_decoded(std::string_view text);
// All but letters, digits and "-._~" as percent codes.
std::string percent_encoded(std::string_view text);
// Whether an Accept-Encoding field allows gzip.
bool accepts_gzip(std::string_view field);

}  // namespace troupe::telemetry
