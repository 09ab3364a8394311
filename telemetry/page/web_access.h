#pragma once

// Who may look: pure decisions over a request.

#include <optional>
#include <string>
#include <string_view>

#include "telemetry/page/web_answer.h"
#include "telemetry/page/web_request.h"

namespace troupe::telemetry {

struct AccessRules {
  // What a client must know. "": nothing, because the server can be reached from this host alone;
  // then requests must name it as such, since a stranger's page may give that address a name of
  // its own (DNS rebinding).
  std::string token;
  // Name of the cookie in which a browser keeps it; cookies do not tell ports apart, so it says
  // one.
  std::string cookie = "troupe";
};

// Nothing: go ahead. Otherwise what to answer: a refusal, or to "/?token=..." with the right one
// the cookie and the way to "/".
std::optional<WebAnswer> refuse(const WebRequest& request, const AccessRules& rules);

// Takes as long for any two texts of these lengths.
bool same_secret(std::string_view given, std::string_view secret);
// "localhost:80", "127.0.0.1", "[::1]:8400": an address that leaves no host.
bool is_loopback_name(std::string_view host);

}  // namespace troupe::telemetry
