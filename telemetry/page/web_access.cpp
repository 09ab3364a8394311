#include "telemetry/page/web_access.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace troupe::telemetry {
namespace {

constexpr std::string_view kAskForToken =
    "<!doctype html><title>Troupe</title><p>This page is for those who know its token, which was "
    "not sent, or is another one: add <code>?token=...</code> to the address. It stands in the "
    "file that <code>--token</code> of the program names, or <code>actors.monitor.token</code> of "
    "the run's topology, or else in <code>page.token</code> of the run's folder.</p>\n";

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return out;
}

// "localhost:8400" -> "localhost", "[::1]:8400" -> "[::1]".
std::string_view without_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const std::size_t bracket = host.rfind(']');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || bracket < colon);
  return has_port ? host.substr(0, colon) : host;
}

// A page of another site, or of another port of this host, may not read here, nor have the browser
// fetch anything as its picture or script. A link to the page may be followed. Browsers say who
// asks in one of two ways; other clients say nothing.
bool is_foreign(const WebRequest& request) {
  const std::string site = lower(field_of(request, "Sec-Fetch-Site"));
  if (site == "cross-site" || site == "same-site") {
    const std::string_view wanted_as = field_of(request, "Sec-Fetch-Dest");
    const bool follows_link = path_of(request) == "/" &&
                              field_of(request, "Sec-Fetch-Mode") == "navigate" &&
                              (wanted_as.empty() || wanted_as == "document");
    if (!follows_link) return true;
  }
  const std::string origin = lower(field_of(request, "Origin"));
  const std::string host = lower(field_of(request, "Host"));
  return !origin.empty() && origin != "http://" + host && origin != "https://" + host;
}

// The token that the Authorization field has; none: it has no such token.
std::optional<std::string_view> bearer_of(const WebRequest& request) {
  const std::string_view told = field_of(request, "Authorization");
  if (lower(told.substr(0, 7)) != "bearer ") return std::nullopt;
  return told.substr(7);
}

bool knows_token(const WebRequest& request, const AccessRules& rules) {
  if (const auto told = bearer_of(request)) return same_secret(*told, rules.token);
  return same_secret(value_of(field_of(request, "Cookie"), ';', rules.cookie), rules.token);
}

WebAnswer welcome(const AccessRules& rules) {
  WebAnswer answer = text_answer("");
  answer.status = 303;
  answer.headers = {{"Location", "/"},
                    {"Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict",
                                               rules.cookie, percent_encoded(rules.token))}};
  return answer;
}

WebAnswer asking_for_bearer(WebAnswer answer) {
  answer.status = 401;
  answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

WebAnswer unknown(const WebRequest& request) {
  return asking_for_bearer(
      path_of(request) == "/"
          ? text_answer(std::string(kAskForToken), "text/html; charset=utf-8")
          : refusal(401,
                    "the page's token is needed, and was not sent or is another one; it stands in "
                    "the file that --token or actors.monitor.token names, or else in "
                    "RUN/page.token: troupe watch --token FILE, or open the page once at "
                    "/?token=TOKEN, or send 'Authorization: Bearer TOKEN'"));
}

// Foreign pages are refused before any token is looked at: the browser that asks for them may have
// the cookie, and send it along.
std::optional<WebAnswer> refuse_way(const WebRequest& request, const AccessRules& rules) {
  const std::string_view host = field_of(request, "Host"), origin = field_of(request, "Origin");
  if (host.empty()) return refusal(400, "the request has no Host field");
  if (is_foreign(request)) {
    return refusal(403, fmt::format("pages of {} may not read this one",
                                    origin.empty() ? "other sites" : origin));
  }
  if (!rules.token.empty() || is_loopback_name(host)) return std::nullopt;
  return refusal(403, fmt::format("this server is not '{}': open it as localhost or 127.0.0.1, "
                                  "or give it a token",
                                  host));
}

}  // namespace

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char other = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

bool is_loopback_name(std::string_view host) {
  const std::string name = lower(without_port(host));
  if (name == "localhost" || name == "[::1]") return true;
  return name.starts_with("127.") &&
         name.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::optional<WebAnswer> refuse(const WebRequest& request, const AccessRules& rules) {
  if (auto refused = refuse_way(request, rules)) return refused;
  if (rules.token.empty()) return std::nullopt;
  // It says nothing of the run, and a watchdog of services has no token.
  const std::string_view path = path_of(request), query = query_of(request);
  if (path == "/healthz") return std::nullopt;
  if (path == "/" && query.find("token=") != std::string_view::npos) {
    const bool right = same_secret(value_of(query, '&', "token"), rules.token);
    return right ? welcome(rules) : unknown(request);
  }
  if (knows_token(request, rules)) return std::nullopt;
  return unknown(request);
}

std::optional<WebAnswer> refuse_change(const WebRequest& request, const AccessRules& rules) {
  if (auto refused = refuse_way(request, rules)) return refused;
  if (rules.control.empty()) {
    return refusal(403,
                   "nobody may change a run here: write a token into a file, name it at "
                   "actors.monitor.control of the topology and resume the run, or use troupe "
                   "burst");
  }
  if (same_secret(bearer_of(request).value_or(""), rules.control)) return std::nullopt;
  return asking_for_bearer(refusal(
      401,
      "the token for changes is needed, and was not sent or is another one; it stands in the file "
      "that actors.monitor.control of the run's topology names: send 'Authorization: Bearer "
      "TOKEN'"));
}

}  // namespace troupe::telemetry
