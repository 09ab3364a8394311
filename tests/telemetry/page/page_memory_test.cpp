// The page's server where memory is short, and what it gives back.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "telemetry/page/page_connection.h"
#include "telemetry/page/page_server.h"
#include "tests/telemetry/page/failing_memory.h"
#include "tests/telemetry/page/raw_client.h"
#include "tests/telemetry/page/resident_memory.h"

namespace troupe::telemetry {
namespace {

constexpr std::size_t kTraceBytes = std::size_t{64} << 20;

std::unique_ptr<PageServer> serve() {
  RunSource run;
  run.name = "toy";
  run.history = std::make_shared<History>();
  run.trace = [](const RunSource::Answer& answer) { answer(std::string(kTraceBytes, 'x')); };
  PageServerOptions options;
  options.listen = "127.0.0.1:0";
  auto opened = PageServer::open(options, {run});
  CHECK(opened.ok(), opened.error().message);
  return std::move(*opened);
}

TEST(PageMemory, ConnectionThatFindsNoneIsTheOnlyOneThatIsLost) {
  const auto server = serve();
  fail_once(sizeof(PageConnection), sizeof(PageConnection) + 64);
  RawClient unlucky(server->port());
  EXPECT_EQ(unlucky.rest(), "");
  EXPECT_TRUE(has_failed());
  EXPECT_EQ(body_of(get(server->port(), "/healthz")), "ok\n");
}

// A sanitizer keeps what was freed.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PageMemory, TraceIsGivenBackWhenNobodyIsThereAnyMore) {
  const auto server = serve();
  const std::size_t before = resident_bytes();
  EXPECT_EQ(body_of(get(server->port(), "/api/runs/0/trace", "Connection: close\r\n")).size(),
            kTraceBytes);
  while (resident_bytes() > before + kTraceBytes / 2) std::this_thread::yield();
}
#endif

}  // namespace
}  // namespace troupe::telemetry
