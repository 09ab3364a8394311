#include "telemetry/page/web_request.h"

#include <charconv>

namespace troupe::telemetry {
namespace {

namespace http = boost::beast::http;

constexpr std::string_view kHexadecimal = "0123456789ABCDEF";

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the part up to the separator off the front.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

}  // namespace

std::string_view path_of(const WebRequest& request) {
  std::string_view target(request.target().data(), request.target().size());
  return take_part(target, '?');
}

std::string_view query_of(const WebRequest& request) {
  std::string_view target(request.target().data(), request.target().size());
  take_part(target, '?');
  return target;
}

std::string_view field_of(const WebRequest& request, std::string_view name) {
  const auto value = request[{name.data(), name.size()}];
  return {value.data(), value.size()};
}

std::optional<WebAnswer> refusal_of(const boost::beast::error_code& failed) {
  if (failed == http::error::body_limit) return refusal_of_body();
  if (failed == http::error::header_limit) {
    return refusal(431, "the header of the request is too long");
  }
  if (failed == http::error::bad_version)
    return refusal(505, "only HTTP/1.0 and 1.1 are spoken here");
  const bool is_wrong = failed.category() == make_error_code(http::error::bad_version).category() &&
                        failed != http::error::end_of_stream &&
                        failed != http::error::partial_message;
  if (!is_wrong) return std::nullopt;
  return refusal(400, "this is no HTTP request");
}

WebAnswer refusal_of_body() {
  return refusal(413,
                 "a request with a body: only a POST of a change takes one, and a short one; ask "
                 "with GET");
}

std::string value_of(std::string_view pairs, char separator, std::string_view name) {
  while (!pairs.empty()) {
    std::string_view value = take_part(pairs, separator);
    const bool has_value = value.find('=') != std::string_view::npos;
    if (without_blanks(take_part(value, '=')) == name && has_value) return percent_decoded(value);
  }
  return {};
}

std::string percent_decoded(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    unsigned char code = 0;
    if (text.size() >= 3 && text[0] == '%' &&
        std::from_chars(text.data() + 1, text.data() + 3, code, 16).ptr == text.data() + 3) {
      plain += static_cast<char>(code);
      text.remove_prefix(3);
    } else {
      plain += text[0];
      text.remove_prefix(1);
    }
  }
  return plain;
}

std::string percent_encoded(std::string_view text) {
  std::string coded;
  for (const char letter : text) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') ||
                       std::string_view("-._~").find(letter) != std::string_view::npos;
    const auto code = static_cast<unsigned char>(letter);
    if (plain) {
      coded += letter;
    } else {
      coded += {'%', kHexadecimal[code >> 4], kHexadecimal[code & 15]};
    }
  }
  return coded;
}

std::optional<std::uint64_t> whole_number(std::string_view digits) {
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [behind, failed] = std::from_chars(digits.data(), end, number);
  if (failed != std::errc{} || behind != end) return std::nullopt;
  return number;
}

bool accepts_gzip(std::string_view field) {
  while (!field.empty()) {
    std::string_view weight = take_part(field, ',');
    const std::string_view coding = without_blanks(take_part(weight, ';'));
    if (coding != "gzip" && coding != "*") continue;
    weight = without_blanks(weight);
    // "q=0" and "q=0.0" mean: anything but this.
    const bool never =
        weight.starts_with("q=0") && weight.find_first_of("123456789") == std::string_view::npos;
    if (!never) return true;
  }
  return false;
}

}  // namespace troupe::telemetry
