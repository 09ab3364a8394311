#include "telemetry/page/web_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kPage = *gzip("<html>page</html>");
const PageAsset kAssets[] = {
    {"/", "text/html; charset=utf-8", "\"i\"", std::as_bytes(std::span(kPage))},
    {"/index-12ab.js", "text/javascript", "\"j\"", std::as_bytes(std::span(kPage))},
};

RunSource run_named(const std::string& name) {
  RunSource run;
  run.name = name;
  run.folder = "/tmp/" + name;
  run.history = std::make_shared<History>();
  return run;
}

WebSite site_of_two() {
  WebSite site;
  site.version = "1.2.3";
  site.assets = kAssets;
  site.runs = {run_named("a"), run_named("b")};
  site.runs[1].live = [] { return true; };
  site.runs[1].showers = [](std::uint64_t step) -> runtime::Result<std::string> {
    if (step == 4) return std::string("{\"step\": 4}");
    return runtime::Error{runtime::ErrorKind::kData, "no showers of that step"};
  };
  site.runs[1].trace = site.runs[1].waits = [](const RunSource::Answer&) {};
  return site;
}

WebRequest request_for(const std::string& path) {
  WebRequest request;
  request.method(boost::beast::http::verb::get);
  request.set("Host", "localhost:8400");
  request.target(path);
  return request;
}

TEST(WebSite, EveryAddressHasItsAnswer) {
  const WebSite site = site_of_two();
  const struct {
    const char* path;
    unsigned status;
    const char* type;
    const char* part;
  } table[] = {
      {"/", 200, "text/html", "page"},
      {"/index-12ab.js", 200, "text/javascript", "page"},
      {"/other.js", 404, "application/json", "error"},
      {"/healthz", 200, "text/plain", "ok"},
      {"/metrics", 200, "text/plain; version=0.0.4", "troupe_"},
      {"/api/runs", 200, "application/json",
       R"({"version":"1.2.3","runs":[{"id":0,"name":"a","folder":"/tmp/a","live":false},)"},
      {"/api/runs/0/history", 200, "application/json", R"("whole":true)"},
      {"/api/runs/1/stream", 200, "text/event-stream", ""},
      {"/api/runs/1,0/stream", 200, "text/event-stream", ""},
      {"/api/runs/0,0/stream", 404, "application/json", "no such run"},
      {"/api/runs/0,2/stream", 404, "application/json", "no such run"},
      {"/api/runs/0,/stream", 404, "application/json", "no such run"},
      {"/api/runs/0,1/history", 404, "application/json", "only the stream"},
      {"/api/runs/1/showers/4", 200, "application/json", R"({"step": 4})"},
      {"/api/runs/1/showers/5", 404, "application/json", "no showers of that step"},
      {"/api/runs/1/showers/../../x", 400, "application/json", "a step is a number"},
      {"/api/runs/1/showers/-1", 400, "application/json", "a step is a number"},
      {"/api/runs/0/showers/4", 404, "application/json", "keeps no showers"},
      {"/api/runs/1/trace", 200, "application/json", ""},
      {"/api/runs/1/waits", 200, "text/plain", ""},
      {"/api/runs/0/trace", 404, "application/json", "read from its folder"},
      {"/api/runs/2/history", 404, "application/json", "no such run"},
      {"/api/runs/99999999999999999999/history", 404, "application/json", "no such run"},
      {"/api/runs/x/history", 404, "application/json", "no such run"},
      {"/api/runs/", 404, "application/json", "no such run"},
      {"/api/runs/0", 404, "application/json", "nothing here"},
      {"/api/runs/0/", 404, "application/json", "nothing here"},
      {"/../etc/passwd", 404, "application/json", "nothing here"},
      {"", 404, "application/json", "nothing here"},
      {"*", 404, "application/json", "nothing here"},
  };
  for (const auto& row : table) {
    const WebAnswer got = answer(request_for(row.path), site);
    EXPECT_EQ(got.status, row.status) << row.path;
    EXPECT_THAT(got.content_type, HasSubstr(row.type)) << row.path;
    EXPECT_THAT(std::string(got.body()), HasSubstr(row.part)) << row.path;
  }
  EXPECT_EQ(answer(request_for("/api/runs/1/trace"), site).question, &site.runs[1].trace);
  EXPECT_EQ(answer(request_for("/api/runs/1/waits"), site).question, &site.runs[1].waits);
  EXPECT_THAT(answer(request_for("/api/runs/1/stream"), site).followed, ElementsAre(1u));
  EXPECT_THAT(answer(request_for("/api/runs/1,0/stream"), site).followed, ElementsAre(1u, 0u));
}

TEST(WebSite, RunIsLiveAsLongAsItSaysSo) {
  WebSite site = site_of_two();
  bool live = true;
  site.runs[1].live = [&live] { return live; };
  const auto history = std::make_shared<History>();
  history->end("failed", "");
  site.runs[1].history = history;
  const auto text = [&](const char* path) { return *answer(request_for(path), site).text; };
  EXPECT_THAT(text("/api/runs"), HasSubstr(R"("folder":"/tmp/b","live":true)"));
  EXPECT_THAT(text("/metrics"), HasSubstr("troupe_run_state{state=\"failed\"} 1"));
  live = false;
  EXPECT_THAT(text("/api/runs"), HasSubstr(R"("folder":"/tmp/b","live":false)"));
  // For runs that have all ended, the first.
  EXPECT_THAT(text("/metrics"), HasSubstr("troupe_run_state{state=\"failed\"} 0"));
}

TEST(WebSite, RunHasTheNameThatItsHistoryTells) {
  WebSite site = site_of_two();
  const auto history = std::make_shared<History>();
  site.runs[0].history = history;
  const auto list = [&] { return *answer(request_for("/api/runs"), site).text; };
  EXPECT_THAT(list(), HasSubstr(R"("name":"a")"));
  const auto record = read_record(R"({"kind":"run","time":1.0,"step":0,"name":"first light"})");
  ASSERT_TRUE(record.ok());
  history->take(*record);
  EXPECT_THAT(list(), HasSubstr(R"("name":"first light")"));
}

TEST(WebSite, FrontIsThePageInPlaceOfTheAssets) {
  WebSite site = site_of_two();
  auto front = std::make_shared<const std::string>();
  int asked = 0;
  site.front = [&] {
    ++asked;
    return front;
  };
  for (const char* page : {"<html>1</html>", "<html>2</html>"}) {
    front = std::make_shared<const std::string>(page);
    const WebAnswer got = answer(request_for("/"), site);
    EXPECT_EQ(got.status, 200u);
    EXPECT_EQ(got.content_type, "text/html; charset=utf-8");
    EXPECT_EQ(*got.text, page);
    EXPECT_EQ(got.text, front) << "it is not compressed anew each time";
  }
  EXPECT_EQ(answer(request_for("/index-12ab.js"), site).status, 200u);
  site.access.token = "secret";
  EXPECT_EQ(answer(request_for("/"), site).status, 401u);
  EXPECT_EQ(asked, 2);
}

TEST(WebSite, OnlyReads) {
  WebRequest request = request_for("/api/runs");
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get"}) {
    request.method_string(method);
    EXPECT_EQ(answer(request, site_of_two()).status, 405u) << method;
  }
}

WebSite site_to_change(std::vector<std::string>& wishes) {
  WebSite site = site_of_two();
  site.access.control = "secret";
  site.runs[1].pools = {{"hpc", 16}};
  site.runs[1].burst = [&](const PoolWish& wish, const RunSource::Answer& answer) {
    wishes.push_back(wish.pool + " " + wish.nodes);
    answer(std::string("done"));
  };
  return site;
}

WebRequest change(const std::string& body, const std::string& path = "/api/runs/1/burst") {
  WebRequest request = request_for(path);
  request.method(boost::beast::http::verb::post);
  request.set("Authorization", "Bearer secret");
  request.body() = body;
  return request;
}

TEST(WebSite, PoolsAreChangedByWhoeverHasTheTokenForIt) {
  std::vector<std::string> wishes;
  const WebSite site = site_to_change(wishes);
  const WebAnswer got = answer(change(R"({"pool": "hpc", "nodes": "+4"})"), site);
  EXPECT_EQ(got.status, 200u);
  ASSERT_TRUE(got.change);
  EXPECT_THAT(wishes, ElementsAre());
  std::string told;
  got.change([&](const runtime::Result<std::string>& text) { told = *text; });
  EXPECT_EQ(told, "done");
  EXPECT_THAT(wishes, ElementsAre("hpc +4"));
}

TEST(WebSite, WhatIsNoChangeIsRefused) {
  std::vector<std::string> wishes;
  const WebSite site = site_to_change(wishes);
  const std::string good = R"({"pool": "hpc", "nodes": "8"})";
  for (const std::string& body :
       {std::string(), std::string("hpc 8"), std::string("[]"), std::string(R"({"pool": "hpc"})"),
        std::string(R"({"nodes": "8"})"), std::string(R"({"pool": "", "nodes": "8"})"),
        std::string(R"({"pool": "hpc", "nodes": 8})"), good.substr(1), good + "}",
        std::string(500, '[')}) {
    const WebAnswer got = answer(change(body), site);
    EXPECT_EQ(got.status, 400u) << body;
    EXPECT_THAT(*got.text, HasSubstr("nodes")) << body;
  }
  EXPECT_EQ(answer(change(good, "/api/runs/0/burst"), site).status, 404u) << "it has no pools";
  EXPECT_EQ(answer(change(good, "/api/runs/2/burst"), site).status, 404u);
  EXPECT_EQ(answer(change(good, "/api/runs/0,1/burst"), site).status, 404u);
  EXPECT_EQ(answer(change(good, "/api/runs/burst"), site).status, 404u);
  WebRequest request = change(good);
  for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post"}) {
    request.method_string(method);
    const WebAnswer got = answer(request, site);
    EXPECT_EQ(got.status, 405u) << method;
    EXPECT_THAT(answer_head(got, true), HasSubstr("Allow: POST\r\n")) << method;
    EXPECT_FALSE(got.change) << method;
  }
  request = change(good);
  request.erase("Authorization");
  EXPECT_EQ(answer(request, site).status, 401u);
  EXPECT_EQ(answer(change(good), site_of_two()).status, 403u) << "nobody may";
  EXPECT_THAT(wishes, ElementsAre());
}

TEST(WebSite, PoolsAreListedOnlyWhereSomebodyMayChangeThem) {
  std::vector<std::string> wishes;
  WebSite site = site_to_change(wishes);
  const auto list = [&] { return *answer(request_for("/api/runs"), site).text; };
  EXPECT_THAT(list(), HasSubstr(R"("live":false},)"));
  EXPECT_THAT(list(), HasSubstr(R"("live":true,"pools":[{"name":"hpc","most":16}]})"));
  EXPECT_THAT(list(), Not(HasSubstr("secret")));
  site.access.control = "";
  EXPECT_THAT(list(), Not(HasSubstr("pools")));
}

TEST(WebSite, NothingThatIsReadTakesABody) {
  WebRequest request = request_for("/healthz");
  request.body() = "hello";
  EXPECT_EQ(answer(request, site_of_two()).status, 413u);
}

TEST(WebSite, WithoutThePageTheAddressesAreListed) {
  WebSite site = site_of_two();
  site.assets = {};
  const WebAnswer got = answer(request_for("/"), site);
  EXPECT_EQ(got.status, 200u);
  EXPECT_THAT(*got.text, HasSubstr("/api/runs/0/stream"));
  EXPECT_THAT(*got.text, HasSubstr("npm"));
}

TEST(WebSite, AssetsAreKeptByBrowsersAndThePageIsNot) {
  const WebSite site = site_of_two();
  WebRequest request = request_for("/index-12ab.js");
  EXPECT_THAT(answer(request, site).cache, HasSubstr("immutable"));
  EXPECT_EQ(answer(request_for("/"), site).cache, "no-store");
  request.set("Accept-Encoding", "gzip");
  EXPECT_EQ(answer(request, site).body(), kPage);
  request.set("If-None-Match", "\"j\"");
  EXPECT_EQ(answer(request, site).status, 304u);
  EXPECT_EQ(answer(request, site).body(), "");
}

TEST(WebSite, LongTextsAreCompressedForWhoTakesThemSo) {
  GzipCache cache;
  WebRequest request = request_for("/x");
  const std::string text(5000, 'a');
  WebAnswer plain = text_answer(text);
  compress(plain, request, cache);
  EXPECT_EQ(plain.body(), text);
  request.set("Accept-Encoding", "gzip");
  WebAnswer smaller = text_answer(text);
  compress(smaller, request, cache);
  EXPECT_LT(smaller.body().size(), 100u);
  EXPECT_EQ(gunzip(smaller.body(), 5000), text);
  EXPECT_FALSE(gunzip(smaller.body(), 4999));
  WebAnswer small = text_answer("short");
  compress(small, request, cache);
  EXPECT_EQ(small.body(), "short");
}

TEST(WebSite, AnswersForbidWhatThePageDoesNotNeed) {
  const std::string head = answer_head(answer(request_for("/"), site_of_two()), true);
  EXPECT_THAT(head, HasSubstr("Content-Security-Policy: default-src 'self'; "));
  EXPECT_THAT(head, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(head, HasSubstr("Referrer-Policy: no-referrer\r\n"));
  EXPECT_THAT(head, HasSubstr("Cross-Origin-Resource-Policy: same-origin\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Access-Control")));
}

}  // namespace
}  // namespace troupe::telemetry
