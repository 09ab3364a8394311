#pragma once

// An answer to a client of the page.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/run_source.h"

namespace troupe::telemetry {

struct WebAnswer {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string cache = "no-store";
  std::vector<std::pair<std::string, std::string>> headers;  // further ones
  // The body: a text that other answers may share, or one that is part of the program.
  std::shared_ptr<const std::string> text;
  std::string_view fixed;
  // Without either, the body is the events of these runs, without end, or the answer of a run: to
  // this question of the site, or to the change that one client asks for.
  std::vector<std::size_t> followed;
  const RunSource::Question* question = nullptr;
  RunSource::Question change{};

  std::string_view body() const { return text != nullptr ? std::string_view(*text) : fixed; }
};

inline constexpr const char* kJson = "application/json";
WebAnswer text_answer(std::string text, std::string content_type = "text/plain; charset=utf-8");
// {"error": what}
WebAnswer refusal(unsigned status, std::string_view what);

// Status line, header fields and the blank line. A stream has no length and ends with its
// connection.
std::string answer_head(const WebAnswer& answer, bool keep_alive);

}  // namespace troupe::telemetry
