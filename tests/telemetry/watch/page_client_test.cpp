#include "telemetry/watch/page_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "telemetry/page/page_server.h"

namespace troupe::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> events_of(std::string_view text, std::size_t piece) {
  std::vector<std::string> heard;
  EventReader reader(
      [&](const EventReader::Event& event) {
        heard.push_back(event.name + "|" + event.id + "|" + event.data);
      },
      1000);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    EXPECT_TRUE(reader.read(text.substr(at, piece)));
  }
  return heard;
}

TEST(EventReader, EventsInAnyPiecesAreTheSame) {
  const std::string text =
      "retry: 2000\n\n:\n\nevent: history\nid: 1-2\ndata: {\"a\":1}\n\n: alive\n\n"
      "data: x\ndata:y\r\n\r\nevent: none\n\nevent: cut\ndata: z\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_THAT(events_of(text, piece), ElementsAre("history|1-2|{\"a\":1}", "|1-2|x\ny"));
  }
}

TEST(EventReader, TooLongEventEndsAllInAnyPieces) {
  const std::string text = "data: aa\n\n" + std::string(1000, 'x') + "\n\ndata: b\n\n";
  for (std::size_t most : {999, 1000}) {
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
      std::string heard;
      EventReader reader([&](const EventReader::Event& event) { heard += event.data; }, most);
      for (std::size_t at = 0; at < text.size(); at += piece) reader.read(text.substr(at, piece));
      EXPECT_EQ(heard, most == 1000 ? "aab" : "aa") << piece;
    }
  }
}

TEST(EventReader, EventWithoutEndIsRefused) {
  for (const char* endless : {"data: aaaaaaaaaaaaaaaaaaaaaa", "data: aaaaaaaaaaaaaaaaaaa\n"}) {
    EventReader reader([](const EventReader::Event&) {}, 1000);
    int rounds = 0;
    while (reader.read(endless) && rounds < 10'000) ++rounds;
    EXPECT_LT(rounds, 100);
  }
}

TEST(PageAddress, IsReadAsPeopleCopyIt) {
  const auto text = [](const char* given) {
    const auto address = parse_page_address(given);
    return address.ok() ? address->text() + "|" + address->token : "no";
  };
  EXPECT_EQ(text("http://127.0.0.1:8400"), "127.0.0.1:8400|");
  EXPECT_EQ(text("http://[::1]:8400/"), "[::1]:8400|");
  EXPECT_EQ(text("http://host"), "host:80|");
  EXPECT_EQ(text("http://host:1/?token=a%20b#x"), "host:1|a b");
  EXPECT_EQ(text("http://host:1?x=1&token=c"), "host:1|c");
  EXPECT_EQ(text("127.0.0.1:8400"), "127.0.0.1:8400|");
  EXPECT_EQ(text("host:1/?token=c"), "host:1|c");
  for (const char* wrong :
       {"", "host", "host:x", ":1", "host:0", "https://host:1", "http://", "http://:80",
        "http://h:0", "http://h:x", "http://a b:1", "http://h:99999", "runs/first"}) {
    EXPECT_EQ(text(wrong), "no") << wrong;
  }
}

TEST(PageAddress, IsToldFromAFolder) {
  for (const char* address :
       {"http://host", "https://host", "127.0.0.1:8400", "[::1]:8400", "localhost:8400/?token=a"}) {
    EXPECT_TRUE(looks_like_address(address)) << address;
  }
  for (const char* folder :
       {"", "runs", "runs/first", "runs/a:1", "a:", ":1", "a:1b", "s3://b/run"}) {
    EXPECT_FALSE(looks_like_address(folder)) << folder;
  }
}

struct ServedHistory {
  explicit ServedHistory(const std::string& token = "") {
    RunSource run;
    run.name = "toy";
    run.history = history;
    PageServerOptions options;
    options.listen = "127.0.0.1:0";
    options.token = token;
    server = *PageServer::open(options, {run});
  }
  PageAddress address(const std::string& token = "") const {
    return {"127.0.0.1", server->port(), token};
  }
  std::shared_ptr<History> history = std::make_shared<History>();
  std::unique_ptr<PageServer> server;
};

TEST(PageClient, ReadsAnswersAndRefusals) {
  const ServedHistory served("secret\r\nX: y");
  const ServedHistory open;
  PageClient client(open.address());
  EXPECT_EQ(*client.get("/healthz"), "ok\n");
  const auto refused = client.get("/api/runs/7/history");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, runtime::ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("no such run"));
  PageClient unknown(served.address());
  EXPECT_THAT(unknown.get("/api/runs").error().message, HasSubstr("token"));
  EXPECT_THAT(unknown.follow("/api/runs/0/stream", {}).error().message, HasSubstr("token"));
}

TEST(PageClient, GivesItsToken) {
  for (const char* token : {"secret", "two words", "=;%20\""}) {
    const ServedHistory served(token);
    PageClient client(served.address(token));
    const auto told = client.get("/api/runs");
    ASSERT_TRUE(told.ok()) << told.error().message;
    EXPECT_THAT(*told, HasSubstr("toy"));
  }
}

TEST(PageClient, FollowsAndGoesOnWhereItWas) {
  const ServedHistory served;
  bool enough = false;
  std::vector<std::string> heard;
  PageClient client(served.address(), [&] { return enough; });
  const auto take = [&](const EventReader::Event& event) {
    heard.push_back(event.name);
    if (heard.size() == 1) served.history->take_log({1.0, "info", "news"});
    enough = heard.size() != 1;
  };
  EXPECT_FALSE(client.follow("/api/runs/0/stream", take).ok());
  EXPECT_THAT(heard, ElementsAre("history", "update"));
  served.history->take_log({1.0, "info", "more news"});
  enough = false;
  EXPECT_FALSE(client.follow("/api/runs/0/stream", take).ok());
  EXPECT_THAT(heard, ElementsAre("history", "update", "update"));
}

TEST(PageClient, NobodyThereAndNoAnswerAreLostPeers) {
  PageAddress address;
  {
    const ServedHistory served;
    address = served.address();
  }
  PageClient client(address);
  const auto refused = client.get("/healthz");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, runtime::ErrorKind::kLostPeers);
  EXPECT_THAT(refused.error().message, HasSubstr(address.text()));
  const ServedHistory silent;
  PageLimits limits;
  limits.idle_time = std::chrono::milliseconds(300);
  PageClient patient(silent.address(), {}, limits);
  const auto quiet = patient.follow("/api/runs/0/stream", [](const EventReader::Event&) {});
  ASSERT_FALSE(quiet.ok());
  EXPECT_THAT(quiet.error().message, HasSubstr("in time"));
}

}  // namespace
}  // namespace troupe::telemetry
