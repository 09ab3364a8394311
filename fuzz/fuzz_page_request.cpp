// What arrives at the page's server on a connection, in pieces, from anybody who can reach it.
// Every request has an answer whose header is sound, and what an unknown client sends is refused.

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <string>
#include <string_view>

#include "fuzz/memory_meter.h"
#include "runtime/base/error.h"
#include "telemetry/page/event_stream.h"
#include "telemetry/page/web_site.h"
#include "tests/telemetry/page/pieces.h"

namespace {

using namespace troupe;
using telemetry::field_of;
using telemetry::path_of;
using telemetry::WebAnswer;

// Histories and lists of the site, and the parser.
constexpr std::size_t kConstantBytes = std::size_t{1} << 20;
constexpr std::size_t kHeaderBytes = 4096, kBodyBytes = 256;

telemetry::WebSite make_site(const std::string& token) {
  telemetry::WebSite site;
  site.version = std::string(1, '1');
  site.access.token = token;
  site.access.control = "another word";
  telemetry::RunSource run;
  run.name = "toy";
  run.history = std::make_shared<telemetry::History>();
  run.showers = [](std::uint64_t step) -> runtime::Result<std::string> {
    return std::to_string(step);
  };
  run.trace = [](const telemetry::RunSource::Answer&) {};
  run.burst = [](const telemetry::PoolWish& wish, const telemetry::RunSource::Answer&) {
    CHECK(!wish.pool.empty() && !wish.nodes.empty(), "half a wish");
  };
  site.runs = {run};
  return site;
}

void check_head(const std::string& head) {
  CHECK(head.starts_with("HTTP/1.1 ") && head.ends_with("\r\n\r\n"), "no header");
  CHECK(head.find("\r\n\r\n") == head.size() - 4, "a header that ends twice");
  for (const char letter : head) {
    CHECK(letter == '\r' || letter == '\n' || (letter >= ' ' && letter <= '~'), "a raw byte");
  }
}

void answer_both_ways(const telemetry::WebRequest& request) {
  static const telemetry::WebSite open = make_site(""), guarded = make_site("a secret");
  static telemetry::GzipCache cache;
  for (const telemetry::WebSite* site : {&open, &guarded}) {
    WebAnswer answer = telemetry::answer(request, *site);
    CHECK(answer.status >= 200 && answer.status < 600, "no status");
    if (answer.change) {
      CHECK(field_of(request, "Authorization").ends_with("another word"), "an unknown client may");
      answer.change([](const auto&) {});
    } else if (site == &guarded && answer.status == 200) {
      CHECK(path_of(request) == "/healthz" ||
                field_of(request, "Authorization").ends_with("a secret") ||
                !field_of(request, "Cookie").empty(),
            "an unknown client was let in");
    }
    telemetry::compress(answer, request, cache);
    check_head(answer_head(answer, request.keep_alive()));
    if (!answer.followed.empty()) {
      telemetry::EventStream(7, field_of(request, "Last-Event-ID"), answer.followed)
          .next(open.runs);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = std::size_t{data[0]} + 1;
  const fuzz::MemoryMeter meter;
  telemetry::Pieces stream{all, piece};
  boost::beast::flat_buffer buffer;
  while (true) {
    telemetry::RequestParser parser;
    parser.header_limit(kHeaderBytes);
    parser.body_limit(kBodyBytes);
    boost::beast::error_code failed;
    boost::beast::http::read(stream, buffer, parser, failed);
    if (!failed) {
      answer_both_ways(parser.get());
      continue;
    }
    const auto refused = telemetry::refusal_of(failed);
    CHECK(!refused || (refused->status >= 400 && refused->status < 600), "no status");
    break;
  }
  meter.check(size, kConstantBytes);
  return 0;
}
