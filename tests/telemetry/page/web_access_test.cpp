#include "telemetry/page/web_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe::telemetry {
namespace {

using testing::HasSubstr;

const AccessRules kOpen{"", "troupe_1"};
const AccessRules kGuarded{"a secret;=", "troupe_1"};

WebRequest request_for(const std::string& path, const std::string& host) {
  WebRequest request;
  request.method(boost::beast::http::verb::get);
  request.target(path);
  request.set("Host", host);
  return request;
}

unsigned status(const WebRequest& request, const AccessRules& rules) {
  const auto refused = refuse(request, rules);
  return refused ? refused->status : 200;
}

TEST(WebAccess, WithoutATokenOnlyNamesOfThisHostAreAnswered) {
  for (const char* host : {"localhost", "LOCALHOST:8400", "127.0.0.1:1", "127.1.2.3", "[::1]:80"}) {
    EXPECT_EQ(status(request_for("/", host), kOpen), 200u) << host;
  }
  // An attacker's name may lead here as well as to the attacker.
  for (const char* host : {"example.org", "localhost.example.org:8400", "127.0.0.1.example.org",
                           "10.0.0.1", "[::2]", "[::1].example.org", "0.0.0.0:8400", "127.0.0.x"}) {
    EXPECT_EQ(status(request_for("/", host), kOpen), 403u) << host;
  }
  EXPECT_EQ(status(request_for("/", ""), kOpen), 400u);
}

TEST(WebAccess, PagesOfOthersMayNotRead) {
  for (const AccessRules& rules : {kOpen, kGuarded}) {
    WebRequest request = request_for("/healthz", "localhost:8400");
    for (const char* origin : {"http://localhost:8400", "http://LOCALHOST:8400"}) {
      request.set("Origin", origin);
      EXPECT_EQ(status(request, rules), 200u) << origin;
    }
    for (const char* origin : {"http://localhost:8401", "http://example.org", "null",
                               "http://localhost:8400.example.org"}) {
      request.set("Origin", origin);
      EXPECT_EQ(status(request, rules), 403u) << origin;
    }
  }
}

WebRequest fetched(const std::string& path, const std::string& site, const std::string& mode,
                   const std::string& dest) {
  WebRequest request = request_for(path, "localhost:8400");
  request.set("Sec-Fetch-Site", site);
  request.set("Sec-Fetch-Mode", mode);
  request.set("Sec-Fetch-Dest", dest);
  return request;
}

TEST(WebAccess, PagesOfOthersMayNotFetchButLinkToThePage) {
  for (const AccessRules& rules : {kOpen, kGuarded}) {
    for (const char* site : {"same-origin", "none", ""}) {
      EXPECT_EQ(status(fetched("/healthz", site, "no-cors", "image"), rules), 200u) << site;
    }
    for (const char* site : {"cross-site", "same-site", "Cross-Site"}) {
      for (const char* mode : {"no-cors", "cors", "navigate", ""}) {
        EXPECT_EQ(status(fetched("/healthz", site, mode, ""), rules), 403u) << site << mode;
      }
      EXPECT_EQ(status(fetched("/", site, "no-cors", "script"), rules), 403u) << site;
      EXPECT_EQ(status(fetched("/", site, "navigate", "iframe"), rules), 403u) << site;
      EXPECT_EQ(status(fetched("/", site, "navigate", "document"), rules),
                rules.token.empty() ? 200u : 401u)
          << site;
    }
  }
}

TEST(WebAccess, TokenIsAskedForWhicheverWayItComes) {
  WebRequest request = request_for("/api/runs", "anything.example.org");
  EXPECT_EQ(status(request, kGuarded), 401u);
  request.set("Authorization", "Bearer a secret;=");
  EXPECT_EQ(status(request, kGuarded), 200u);
  for (const char* wrong : {"Bearer a secret;", "Bearer a secret;==", "Bearer ", "Bearer",
                            "Basic a secret;=", "a secret;="}) {
    request.set("Authorization", wrong);
    EXPECT_EQ(status(request, kGuarded), 401u) << wrong;
  }
  request.erase("Authorization");
  request.set("Cookie", "x=1; troupe_1=a%20secret%3B%3D; y=2");
  EXPECT_EQ(status(request, kGuarded), 200u);
  for (const char* wrong :
       {"troupe_2=a%20secret%3B%3D", "troupe_1=", "troupe_1", "xtroupe_1=a%20secret%3B%3D"}) {
    request.set("Cookie", wrong);
    EXPECT_EQ(status(request, kGuarded), 401u) << wrong;
  }
}

TEST(WebAccess, TokenInThePagesAddressBecomesACookie) {
  WebRequest request = request_for("/", "host");
  request.target("/?token=a%20secret%3B%3D");
  const auto welcome = refuse(request, kGuarded);
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->status, 303u);
  const std::string head = answer_head(*welcome, true);
  EXPECT_THAT(head, HasSubstr("Location: /\r\n"));
  EXPECT_THAT(head, HasSubstr("Set-Cookie: troupe_1=a%20secret%3B%3D; Path=/; HttpOnly; "
                              "SameSite=Strict\r\n"));
  request.target("/?token=wrong");
  EXPECT_EQ(status(request, kGuarded), 401u);
  request.target("/api/runs?token=a%20secret%3B%3D");
  EXPECT_EQ(status(request, kGuarded), 401u);
}

TEST(WebAccess, ChangeNeedsATokenOfItsOwnInTheFieldThatNoBrowserSendsByItself) {
  AccessRules rules = kGuarded;
  rules.control = "another secret";
  const auto may_change = [&](const WebRequest& request) {
    const auto refused = refuse_change(request, rules);
    return refused ? refused->status : 200;
  };
  WebRequest request = request_for("/api/runs/0/burst", "anything.example.org");
  EXPECT_EQ(may_change(request), 401u);
  request.set("Authorization", "Bearer another secret");
  EXPECT_EQ(may_change(request), 200u);
  EXPECT_EQ(status(request, kGuarded), 401u) << "it does not let anybody look";
  for (const char* wrong : {"Bearer a secret;=", "Bearer another secre", "Bearer ", "Bearer",
                            "Basic another secret", "another secret"}) {
    request.set("Authorization", wrong);
    EXPECT_EQ(may_change(request), 401u) << wrong;
  }
  request.erase("Authorization");
  request.set("Cookie", "troupe_1=another%20secret");
  EXPECT_EQ(may_change(request), 401u);
  request.target("/api/runs/0/burst?token=another%20secret");
  EXPECT_EQ(may_change(request), 401u);
}

TEST(WebAccess, NoPageOfOthersMayChangeAnythingWhateverItKnows) {
  AccessRules rules = kOpen;
  rules.control = "another secret";
  WebRequest request = request_for("/api/runs/0/burst", "localhost:8400");
  request.set("Authorization", "Bearer another secret");
  EXPECT_FALSE(refuse_change(request, rules));
  request.set("Origin", "http://localhost:8401");
  EXPECT_EQ(refuse_change(request, rules)->status, 403u);
  request.erase("Origin");
  request.set("Sec-Fetch-Site", "cross-site");
  EXPECT_EQ(refuse_change(request, rules)->status, 403u);
  request.erase("Sec-Fetch-Site");
  request.set("Host", "localhost.example.org:8400");
  EXPECT_EQ(refuse_change(request, rules)->status, 403u);
}

TEST(WebAccess, WithoutATokenForChangesNobodyMayChangeAnything) {
  WebRequest request = request_for("/api/runs/0/burst", "localhost");
  for (const char* told : {"", "Bearer ", "Bearer a secret;="}) {
    request.set("Authorization", told);
    for (const AccessRules& rules : {kOpen, kGuarded}) {
      const auto refused = refuse_change(request, rules);
      ASSERT_TRUE(refused) << told;
      EXPECT_EQ(refused->status, 403u) << told;
      EXPECT_THAT(*refused->text, HasSubstr("actors.monitor.control")) << told;
    }
  }
}

TEST(WebAccess, RefusalSpeaksToPeopleOnThePageAndToProgramsElsewhere) {
  const auto page = refuse(request_for("/", "host"), kGuarded);
  EXPECT_THAT(page->content_type, HasSubstr("text/html"));
  const auto other = refuse(request_for("/metrics", "host"), kGuarded);
  EXPECT_THAT(other->content_type, HasSubstr("application/json"));
  EXPECT_THAT(*other->text, HasSubstr("\"error\""));
}

TEST(WebAccess, SecretsAreTheSameOnlyIfTheyAre) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* other : {"", "ab", "abcabc", "abd", "abcd"}) {
    EXPECT_FALSE(same_secret(other, "abc")) << other;
  }
}

}  // namespace
}  // namespace troupe::telemetry
