#pragma once

// By what a relay knows its clients. A secret of the two: the head draws it, and a member gets it
// with its invitation.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::runtime {

using RelayToken = std::array<std::byte, 16>;

// From the system's randomness.
RelayToken draw_relay_token();

// As text: 32 hexadecimal digits. None: anything else.
std::string token_text(const RelayToken& token);
std::optional<RelayToken> read_token(std::string_view text);

}  // namespace troupe::runtime
