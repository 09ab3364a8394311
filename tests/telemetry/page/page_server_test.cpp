// The page's server over real sockets: what it serves, and that nobody keeps it from doing so.

#include "telemetry/page/page_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "telemetry/deflate.h"
#include "tests/telemetry/page/raw_client.h"

namespace troupe::telemetry {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Served {
  explicit Served(PageServerOptions options = {}) {
    RunSource run;
    run.name = "toy";
    run.live = [] { return true; };
    run.history = history;
    run.trace = [this](RunSource::Answer answer) {
      ++traces;
      std::thread([answer] { answer(std::string("[\"trace\"]")); }).detach();
    };
    run.waits = [this](RunSource::Answer answer) { unanswered.push_back(std::move(answer)); };
    run.burst = [this](const PoolWish& wish, RunSource::Answer answer) {
      if (wish.pool == "lost") return unanswered.push_back(std::move(answer));
      std::thread([wish, answer] {
        if (wish.pool == "hpc") return answer(wish.nodes + " nodes are wanted");
        answer(runtime::Error{runtime::ErrorKind::kUsage, "no pool '" + wish.pool + "'"});
      }).detach();
    };
    options.listen = "127.0.0.1:0";
    options.version = "1.2.3";
    auto opened = PageServer::open(options, {run});
    CHECK(opened.ok(), opened.error().message);
    server = std::move(*opened);
    port = server->port();
  }

  std::shared_ptr<History> history = std::make_shared<History>();
  std::atomic<int> traces = 0;
  std::vector<RunSource::Answer> unanswered;
  std::unique_ptr<PageServer> server;
  std::uint16_t port = 0;
};

RawClient follower(std::uint16_t port, const std::string& fields = "", int receive_bytes = 0) {
  RawClient client(port, receive_bytes);
  client.say("GET /api/runs/0/stream HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n");
  return client;
}

bool serves(const Served& served) { return body_of(get(served.port, "/healthz")) == "ok\n"; }

TEST(PageServer, ServesHistoryPageAndMetrics) {
  const Served served;
  EXPECT_EQ(served.server->address(), "http://127.0.0.1:" + std::to_string(served.port) + "/");
  EXPECT_THAT(get(served.port, "/"), HasSubstr("without the page"));
  EXPECT_THAT(body_of(get(served.port, "/api/runs")), HasSubstr("\"toy\""));
  EXPECT_THAT(body_of(get(served.port, "/api/runs/0/history")), HasSubstr("\"whole\":true"));
  EXPECT_THAT(get(served.port, "/metrics", "Accept: application/openmetrics-text\r\n"),
              HasSubstr("# EOF"));
  EXPECT_EQ(status_of(get(served.port, "/none")), 404);
}

TEST(PageServer, OneStreamTellsOfSeveralRunsToTheirEnds) {
  std::vector<std::shared_ptr<History>> histories;
  std::vector<RunSource> runs(3);
  for (RunSource& run : runs) run.history = histories.emplace_back(std::make_shared<History>());
  PageServerOptions options;
  options.listen = "127.0.0.1:0";
  auto server = PageServer::open(options, runs);
  ASSERT_TRUE(server.ok()) << server.error().message;
  RawClient client((*server)->port());
  client.say("GET /api/runs/0,2/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.hear("event: history 0\n");
  client.hear("event: history 2\n");
  histories[1]->take_log({1.0, "info", "of a run that is not followed"});
  histories[0]->take_log({1.0, "info", "news of the first"});
  histories[2]->take_log({1.0, "info", "news of the last"});
  EXPECT_THAT(client.hear("news of the first"), HasSubstr("event: update 0\n"));
  EXPECT_THAT(client.hear("news of the last"), HasSubstr("event: update 2\n"));
  // The last news of all of them, as the server ends.
  histories[0]->end("ended", "");
  histories[2]->end("failed", "the power failed");
  server->reset();
  const std::string rest = client.rest();
  const std::string heard = client.heard() + rest;
  EXPECT_THAT(heard, HasSubstr(R"("state":"ended")"));
  EXPECT_THAT(heard, HasSubstr("the power failed"));
  EXPECT_THAT(heard, Not(HasSubstr("not followed")));
}

TEST(PageServer, HeadPipeliningAndCompression) {
  const Served served;
  for (int i = 0; i < 50; ++i) served.history->take_log({1.0, "info", std::string(100, 'a')});
  RawClient client(served.port);
  client.say(
      "HEAD /api/runs/0/history HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "GET /api/runs/0/history HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n"
      "Connection: close\r\n\r\n");
  const std::string heard = client.rest();
  const std::size_t second = heard.find("HTTP/1.1 200", 1);
  EXPECT_EQ(body_of(heard.substr(0, second)), "");
  const std::size_t third = heard.find("HTTP/1.1 200", second + 1);
  EXPECT_EQ(body_of(heard.substr(second, third - second)), "ok\n");
  EXPECT_EQ(gunzip(body_of(heard.substr(third)), 1 << 20), *served.history->whole().json);
}

TEST(PageServer, RunIsAskedForItsTraceOnceForAll) {
  Served served;
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(served.port);
    clients.back().say(
        "GET /api/runs/0/trace HTTP/1.1\r\nHost: localhost\r\n"
        "Connection: close\r\n\r\n");
  }
  for (RawClient& client : clients) EXPECT_EQ(body_of(client.rest()), "[\"trace\"]");
  EXPECT_LT(served.traces, 20);
}

TEST(PageServer, RunThatDoesNotAnswerIsATimeout) {
  PageServerOptions options;
  options.limits.idle_time = std::chrono::milliseconds(50);
  Served served(options);
  const std::string told = get(served.port, "/api/runs/0/waits");
  EXPECT_EQ(status_of(told), 503);
  EXPECT_THAT(told, HasSubstr("not answered in time"));
  served.server.reset();
  for (const auto& answer : served.unanswered) answer(std::string("too late"));
}

std::string burst(const Served& served, const std::string& pool,
                  const std::string& fields = "Authorization: Bearer secret\r\n") {
  return post(served.port, "/api/runs/0/burst", R"({"pool": ")" + pool + R"(", "nodes": "5"})",
              fields);
}

TEST(PageServer, ChangeIsAnsweredWithWhatTheRunSays) {
  PageServerOptions options;
  options.control = "secret";
  options.limits.idle_time = std::chrono::milliseconds(1000);
  Served served(options);
  const std::string done = burst(served, "hpc");
  EXPECT_EQ(status_of(done), 200);
  EXPECT_EQ(body_of(done), "5 nodes are wanted\n");
  const std::string refused = burst(served, "other");
  EXPECT_EQ(status_of(refused), 409);
  EXPECT_THAT(refused, HasSubstr("no pool 'other'"));
  EXPECT_EQ(status_of(burst(served, "hpc", "")), 401);
  EXPECT_EQ(status_of(burst(served, std::string(1100, 'a'))), 413);
  const std::string lost = burst(served, "lost");
  EXPECT_EQ(status_of(lost), 503);
  EXPECT_THAT(lost, HasSubstr("not answered in time"));
  served.server.reset();
  for (const auto& answer : served.unanswered) answer(std::string("too late"));
}

TEST(PageServer, ClientsThatWaitForTheirChangesHoldUpNobody) {
  PageServerOptions options;
  options.control = "secret";
  Served served(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(served.port);
    clients.back().say(
        "POST /api/runs/0/burst HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n"
        "Content-Length: 30\r\n\r\n{\"pool\": \"lost\", \"nodes\": \"5\"}");
  }
  EXPECT_EQ(body_of(burst(served, "hpc")), "5 nodes are wanted\n");
  EXPECT_TRUE(serves(served));
}

TEST(PageServer, BeyondThisHostATokenIsNeeded) {
  PageServerOptions options;
  options.listen = "0.0.0.0:0";
  const auto refused = PageServer::open(options, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, runtime::ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("token"));
  EXPECT_THAT(refused.error().message, HasSubstr("ssh -L"));
  options.token = "secret";
  EXPECT_TRUE(PageServer::open(options, {}).ok());
}

TEST(PageServer, TokenIsAskedOfEverybody) {
  PageServerOptions options;
  options.token = "secret";
  const Served served(options);
  EXPECT_EQ(status_of(get(served.port, "/api/runs")), 401);
  EXPECT_EQ(status_of(get(served.port, "/api/runs", "Authorization: Bearer secret\r\n")), 200);
  EXPECT_THAT(get(served.port, "/?token=secret"),
              HasSubstr("Set-Cookie: troupe_" + std::to_string(served.port) + "=secret;"));
  EXPECT_TRUE(serves(served));
}

TEST(PageServer, TakenPortIsRefusedOrTheNextOneTaken) {
  const Served served;
  PageServerOptions options;
  options.listen = "127.0.0.1:" + std::to_string(served.port);
  const auto refused = PageServer::open(options, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr(options.listen));
  options.next_free_port = true;
  const auto next = PageServer::open(options, {});
  if (served.port < 65000) {
    ASSERT_TRUE(next.ok());
    EXPECT_GT((*next)->port(), served.port);
  }
  options.listen = "nonsense";
  EXPECT_FALSE(PageServer::open(options, {}).ok());
}

TEST(PageServer, SilentStreamIsKeptAlive) {
  PageServerOptions options;
  options.limits.comment_time = std::chrono::milliseconds(20);
  const Served served(options);
  RawClient client = follower(served.port);
  client.hear("\n:\n\n:\n\n");
}

TEST(PageServer, TwoHundredFollowersHearTheSame) {
  const Served served;
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(follower(served.port));
  for (RawClient& client : clients) client.hear("\n\nevent: history");
  served.history->take_log({1.0, "info", "news for all"});
  for (RawClient& client : clients)
    EXPECT_THAT(client.hear("news for all"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(serves(served));
}

TEST(PageServer, WhoeverAsksTooSlowlyOrNothingIsCutOff) {
  PageServerOptions options;
  options.limits.connections = 2;
  options.limits.idle_time = std::chrono::milliseconds(100);
  const Served served(options);
  RawClient half(served.port), silent(served.port);
  half.say("GET /healthz HT");
  EXPECT_EQ(half.rest(), "");
  EXPECT_EQ(silent.rest(), "");
  EXPECT_TRUE(serves(served));
}

TEST(PageServer, WhatIsNoRequestIsToldWhatIsWrongWithIt) {
  const Served served;
  const auto told = [&](const std::string& said) {
    RawClient client(served.port);
    client.say(said);
    client.finish();
    return client.rest();
  };
  const std::string get = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_THAT(told(get + "Content-Length: 5\r\n\r\nhello"), HasSubstr("ask with GET"));
  EXPECT_THAT(told(get + "Content-Length: 5000\r\n\r\nhello"), HasSubstr("ask with GET"));
  EXPECT_THAT(told(get + "A: " + std::string(20'000, 'a')), HasSubstr("header of the request"));
  EXPECT_THAT(told("GET / HTTP/9.9\r\n\r\n"), HasSubstr("only HTTP/1.0 and 1.1"));
  EXPECT_THAT(told("good day\r\n\r\n"), HasSubstr("no HTTP request"));
}

TEST(PageServer, FollowersBeyondTheLimitAreTurnedAway) {
  PageServerOptions options;
  options.limits.connections = 4;
  const Served served(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(follower(served.port));
    clients.back().hear("event: history");
  }
  RawClient fifth(served.port);
  EXPECT_EQ(status_of(fifth.hear("\r\n\r\n")), 503);
  clients.pop_back();
  // Its place is free once its end was heard.
  while (status_of(get(served.port, "/healthz")) != 200) std::this_thread::yield();
}

TEST(PageServer, EndsWhileClientsHang) {
  Served served;
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(follower(served.port, "", 4096));
  clients.emplace_back(served.port);
  clients.back().say("GET /");
  served.server.reset();
  for (RawClient& client : clients) client.rest();
}

}  // namespace
}  // namespace troupe::telemetry
