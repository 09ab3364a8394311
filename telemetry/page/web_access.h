#pragma once

// Decides who may look and who may change something, by the request alone.

#include <optional>
#include <string>
#include <string_view>

#include "telemetry/page/web_answer.h"
#include "telemetry/page/web_request.h"

namespace troupe::telemetry {

struct AccessRules {
  // What a client must know. "": nothing, because the server can be reached from this host alone.
  // Then requests must name the host as localhost or by its address, since a foreign page may
  // give that address another name (DNS rebinding).
  std::string token;
  // The name of the cookie in which a browser keeps the token. It has the port in it, since
  // browsers send a cookie to all ports of a host.
  std::string cookie = "troupe";
  // What a client must send with every change, in the Authorization field: no browser sends that of
  // its own accord. "": nobody may change anything.
  std::string control{};
};

// Nothing: the client may look. Else the answer: a refusal, or for "/?token=..." with the right
// token the cookie and the way to "/".
std::optional<WebAnswer> refuse(const WebRequest& request, const AccessRules& rules);
// Nothing: the client may change the run, whether it may look or not. Else the refusal.
std::optional<WebAnswer> refuse_change(const WebRequest& request, const AccessRules& rules);

// Takes the same time for any two texts of these lengths.
bool same_secret(std::string_view given, std::string_view secret);
// "localhost:80", "127.0.0.1", "[::1]:8400": an address that leads to this host alone.
bool is_loopback_name(std::string_view host);

}  // namespace troupe::telemetry
