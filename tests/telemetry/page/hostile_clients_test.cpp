// Clients of the page that mean no good, or do not know how.

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/random.h"
#include "telemetry/page/page_server.h"
#include "tests/support/stride.h"
#include "tests/telemetry/page/raw_client.h"
#include "tests/telemetry/page/resident_memory.h"

namespace troupe::telemetry {
namespace {

std::unique_ptr<PageServer> serve(const std::shared_ptr<History>& history,
                                  const PageLimits& limits = {}) {
  RunSource run;
  run.name = "toy";
  run.history = history;
  PageServerOptions options;
  options.listen = "127.0.0.1:0";
  options.limits = limits;
  auto opened = PageServer::open(options, {run});
  CHECK(opened.ok(), opened.error().message);
  return std::move(*opened);
}

bool serves(const PageServer& server) { return body_of(get(server.port(), "/healthz")) == "ok\n"; }

// A request with pieces of it changed, left out, doubled or replaced by any bytes.
class Mangler {
 public:
  explicit Mangler(std::uint64_t seed) : seed_(seed) {}

  std::string request() {
    static const std::vector<std::string> kPieces{"GET ",
                                                  "HEAD ",
                                                  "POST ",
                                                  "/",
                                                  "/api/runs/0/history",
                                                  "/api/runs/0/stream",
                                                  "?token=%00",
                                                  "/api/runs/18446744073709551616/",
                                                  "/../..",
                                                  " HTTP/1.1",
                                                  " HTTP/1.0",
                                                  " HTTP/3",
                                                  "\r\n",
                                                  "\n",
                                                  "\r\n\r\n",
                                                  "Host: localhost",
                                                  "Host: [::1",
                                                  "Host:",
                                                  "Content-Length: 5",
                                                  "Content-Length: -1",
                                                  "Content-Length: 99999999999999999999",
                                                  "Transfer-Encoding: chunked",
                                                  "Connection: close",
                                                  "Connection: upgrade",
                                                  "Last-Event-ID: 1-1",
                                                  "Accept-Encoding: gzip;q=",
                                                  "Cookie: ;;=;",
                                                  "Origin: null",
                                                  "Expect: 100-continue",
                                                  "5\r\nhello\r\n0\r\n\r\n",
                                                  ": ",
                                                  "\t",
                                                  std::string(1, '\0')};
    if (below(8) == 0) return noise(below(2000));
    std::string text;
    if (below(2) == 0) text = "GET /api/runs HTTP/1.1\r\nHost: localhost\r\n";
    for (std::uint32_t i = below(12); i > 0; --i) {
      text += below(10) == 0 ? noise(below(40)) : kPieces[below(kPieces.size())];
    }
    if (below(20) == 0) text += fmt::format("\r\nX: {}", std::string(below(40'000), 'x'));
    if (below(3) > 0) text += "\r\n\r\n";
    return text;
  }
  std::uint32_t below(std::size_t end) {
    const auto word = runtime::mix64(seed_ + 0x9e3779b97f4a7c15 * ++drawn_);
    return static_cast<std::uint32_t>(word % end);
  }

 private:
  std::string noise(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (char& one : text) one = static_cast<char>(below(256));
    return text;
  }

  std::uint64_t seed_, drawn_ = 0;
};

TEST(HostileClients, MangledRequestsHurtNobody) {
  const auto history = std::make_shared<History>();
  const auto server = serve(history);
  Mangler mangler(20260101);
  std::deque<RawClient> kept;
  for (std::uint64_t i = 0; i < 10'000; i += stride(10)) {
    RawClient client(server->port());
    client.say(mangler.request());
    switch (mangler.below(4)) {
      case 0:  // hangs up without listening
        break;
      case 1:
        client.finish();
        break;
      default:
        kept.push_back(std::move(client));
    }
    if (kept.size() > 100) kept.pop_front();
    if (i % 500 == 0) {
      EXPECT_TRUE(serves(*server)) << i;
    }
  }
  EXPECT_TRUE(serves(*server));
}

TEST(HostileClients, WhoNeverReadsCostsATextOthersShareAndHoldsUpNobody) {
  const auto history = std::make_shared<History>();
  PageLimits limits;
  limits.send_buffer_bytes = 65536;
  limits.update_time = std::chrono::milliseconds(10);
  const auto server = serve(history, limits);
  // About a megabyte to tell each time.
  const auto grow = [&](int round) {
    for (int i = 0; i < 500; ++i) {
      history->take_log({1.0, "info", fmt::format("{}{}", round, std::string(2000, 'a'))});
    }
  };
  grow(0);
  const std::size_t before = resident_bytes();
  std::vector<RawClient> deaf;
  RawClient reader(server->port());
  reader.say("GET /api/runs/0/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (int round = 1; round <= 40; ++round) {
    deaf.emplace_back(server->port(), 4096);
    deaf.back().say("GET /api/runs/0/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    grow(round);
    reader.hear(fmt::format("\"{}aaaa", round));
    reader.forget();
  }
  EXPECT_TRUE(serves(*server));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A sanitizer keeps what was freed.
  EXPECT_LT(resident_bytes(), before + (std::size_t{256} << 20));
#else
  static_cast<void>(before);
#endif
}

TEST(HostileClients, WhoTakesNothingForLongIsCutOff) {
  const auto history = std::make_shared<History>();
  for (int i = 0; i < 500; ++i) history->take_log({1.0, "info", std::string(20'000, 'a')});
  PageLimits limits;
  limits.idle_time = std::chrono::milliseconds(100);
  limits.connections = 1;
  const auto server = serve(history, limits);
  RawClient deaf(server->port(), 4096);
  deaf.say("GET /api/runs/0/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  // Nobody else gets in before it is gone.
  while (!serves(*server)) std::this_thread::yield();
}

}  // namespace
}  // namespace troupe::telemetry
