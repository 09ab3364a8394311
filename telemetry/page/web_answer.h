#pragma once

// An answer to a client of the page.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::telemetry {

struct WebAnswer {
  // What the body is.
  enum class Rest : std::uint8_t {
    kBody,    // `text` or `fixed`
    kStream,  // events of `runs`, without end
    kTrace,   // the trace, for which the only one of `runs` has to be asked
    kWaits,   // who waits for whom, likewise
  };

  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string cache = "no-store";
  std::vector<std::pair<std::string, std::string>> headers;  // further ones
  Rest rest = Rest::kBody;
  std::vector<std::size_t> runs;
  // The body: a text that other answers may share, or one that is part of the program.
  std::shared_ptr<const std::string> text;
  std::string_view fixed;

  std::string_view body() const { return text != nullptr ? std::string_view(*text) : fixed; }
};

WebAnswer text_answer(std::string text, std::string content_type = "text/plain; charset=utf-8");
WebAnswer json_answer(std::shared_ptr<const std::string> json);
// {"error": what}
WebAnswer refusal(unsigned status, std::string_view what);

// Status line, header fields and the blank line. A stream has no length and ends with its
// connection.
std::string answer_head(const WebAnswer& answer, bool keep_alive);

}  // namespace troupe::telemetry
