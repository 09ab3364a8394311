#pragma once

// A request of a client of the page, read from bytes that anybody may have sent.

#include <boost/beast/core/error.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "telemetry/page/web_answer.h"

namespace troupe::telemetry {

struct WebRequest {
  std::string method;       // "GET"
  std::string path, query;  // "/api/runs", "token=x": percent signs as they came
  bool keep_alive = false;  // the client would ask more on this connection
  // Header fields; "" where there is none.
  std::string host, origin, authorization, cookie, accept, accept_encoding, last_event_id,
      if_none_match;
  // A browser says with these who asks, and for what: "cross-site", "navigate", "document".
  std::string fetch_site, fetch_mode, fetch_dest;
};

// Reads one request, whose body has to be empty.
struct RequestParser : boost::beast::http::request_parser<boost::beast::http::empty_body> {
  // The first line and the header fields may have `header_bytes`.
  explicit RequestParser(std::size_t header_bytes);
};

// The parser has read a whole request.
WebRequest request_of(const RequestParser& parser);
// The answer to bytes that the parser failed on: 400, 413 (a body), 431 (too long a header) or 505.
// Nothing: the connection itself failed or ended.
std::optional<WebAnswer> refusal_of(const boost::beast::error_code& failed);

// The value of `name` in "a=1&name=2"; percent signs decoded; "" when there is none.
std::string query_value(std::string_view query, std::string_view name);
// "%2F" becomes "/". Anything that is no such code stays as it is.
std::string percent_decoded(std::string_view text);
// All but letters, digits and "-._~" becomes percent codes.
std::string percent_encoded(std::string_view text);
// The number that the digits make. Nothing: there is something else among them.
std::optional<std::uint64_t> whole_number(std::string_view digits);
// Whether an Accept-Encoding field allows gzip.
bool accepts_gzip(std::string_view field);

}  // namespace troupe::telemetry
