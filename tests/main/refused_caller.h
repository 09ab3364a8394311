#pragma once

// Somebody who dials a head by hand, and is refused for what it says.

#include <functional>
#include <string>

#include "runtime/transport/packets.h"

namespace troupe {

// Dials `address`, says `word()` first of all, and waits up to half a minute for an answer: the
// refusal's text, "something else", or how the connection ended. "" if nothing happens.
std::string refusal_of(const std::string& address, const std::function<runtime::Packet()>& word);

}  // namespace troupe
