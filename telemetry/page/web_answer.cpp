#include "telemetry/page/web_answer.h"

#include <fmt/format.h>

#include "runtime/base/json_text.h"

namespace troupe::telemetry {
namespace {

// Everything the page needs comes from here; nobody else's page may hold it or learn its address.
constexpr std::string_view kSafety =
    "Content-Security-Policy: default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

std::string_view reason(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

WebAnswer text_answer(std::string text, std::string content_type) {
  WebAnswer answer;
  answer.content_type = std::move(content_type);
  answer.text = std::make_shared<const std::string>(std::move(text));
  return answer;
}

WebAnswer json_answer(std::shared_ptr<const std::string> json) {
  WebAnswer answer;
  answer.content_type = "application/json";
  answer.text = std::move(json);
  return answer;
}

WebAnswer refusal(unsigned status, std::string_view what) {
  WebAnswer answer = json_answer(std::make_shared<const std::string>(
      fmt::format("{{\"error\": {}}}\n", runtime::json_string(what))));
  answer.status = status;
  return answer;
}

std::string answer_head(const WebAnswer& answer, bool keep_alive) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: {}\r\n", answer.status,
                  reason(answer.status), answer.content_type, answer.cache);
  for (const auto& [name, value] : answer.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (answer.rest != WebAnswer::Rest::kStream && answer.status != 304) {
    head += fmt::format("Content-Length: {}\r\n", answer.body().size());
  }
  head += kSafety;
  head += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

}  // namespace troupe::telemetry
