#pragma once

// A request of a client of the page, read from bytes that anybody may have sent.

#include <boost/beast/core/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "telemetry/page/web_answer.h"

namespace troupe::telemetry {

using WebRequest = boost::beast::http::request<boost::beast::http::string_body>;
// The reader sets its limits of header and body.
using RequestParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

// "/api/runs" and "token=x" of "/api/runs?token=x": percent signs as they came.
std::string_view path_of(const WebRequest& request);
std::string_view query_of(const WebRequest& request);
// A header field by its name; "" where there is none.
std::string_view field_of(const WebRequest& request, std::string_view name);

// The answer to bytes that the parser failed on: 400, 413 (too long a body), 431 (too long a
// header) or 505. Nothing: the connection itself failed or ended.
std::optional<WebAnswer> refusal_of(const boost::beast::error_code& failed);
// To a body that is too long, or that nothing takes: 413.
WebAnswer refusal_of_body();

// The value of `name` in "a=1&name=2" or, as cookies have it, "a=1; name=2"; percent signs decoded;
// "" when there is none.
std::string value_of(std::string_view pairs, char separator, std::string_view name);
// "%2F" becomes "/". Anything that is no such code stays as it is.
std::string percent_decoded(std::string_view text);
// All but letters, digits and "-._~" becomes percent codes.
std::string percent_encoded(std::string_view text);
// The number that the digits make. Nothing: there is something else among them.
std::optional<std::uint64_t> whole_number(std::string_view digits);
// Whether an Accept-Encoding field allows gzip.
bool accepts_gzip(std::string_view field);

}  // namespace troupe::telemetry
