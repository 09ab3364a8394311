#include "telemetry/page/web_answer.h"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/write.hpp>
#include <sstream>

#include "runtime/base/json_writer.h"

namespace troupe::telemetry {
namespace {

namespace http = boost::beast::http;

// All that the page needs comes from here. No other page may hold it or learn its address.
constexpr const char* kContentPolicy =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

}  // namespace

WebAnswer text_answer(std::string text, std::string content_type) {
  WebAnswer answer;
  answer.content_type = std::move(content_type);
  answer.text = std::make_shared<const std::string>(std::move(text));
  return answer;
}

WebAnswer refusal(unsigned status, std::string_view what) {
  std::string json = "{";
  runtime::JsonWriter(json).text("error", what, what.size());
  WebAnswer answer = text_answer(json + "}\n", kJson);
  answer.status = status;
  return answer;
}

std::string answer_head(const WebAnswer& answer, bool keep_alive) {
  http::response<http::empty_body> response(http::int_to_status(answer.status), 11);
  response.set(http::field::content_type, answer.content_type);
  response.set(http::field::cache_control, answer.cache);
  for (const auto& [name, value] : answer.headers) response.set(name, value);
  const bool has_length = answer.followed.empty() && answer.status != 304;
  if (has_length) response.content_length(answer.body().size());
  response.set("Content-Security-Policy", kContentPolicy);
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.set(http::field::connection, keep_alive ? "keep-alive" : "close");
  std::ostringstream head;
  head << response.base();
  return std::move(head).str();
}

}  // namespace troupe::telemetry
