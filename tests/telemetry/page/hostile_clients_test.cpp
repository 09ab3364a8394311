// Clients of the page that mean no good, or do not know how.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "telemetry/page/page_server.h"
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

// The fuzz target of requests says what is made of them.
TEST(HostileClients, WhoHangsUpBeforeTheAnswerHurtsNobody) {
  const auto history = std::make_shared<History>();
  const auto server = serve(history);
  for (int i = 0; i < 200; ++i) {
    for (const char* said : {"GET /api/runs/0/history HTTP/1.1\r\nHost: localhost\r\n\r\n",
                             "GET /api/runs/0/stream HTTP/1.1\r\nHost: localhost\r\n\r\n",
                             "GET /api/runs HTTP/1.1\r\nHost", "\xff\r\n\r\n\r\n", ""}) {
      RawClient client(server->port());
      client.say(said);
      if (i % 2 == 0) client.finish();
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
