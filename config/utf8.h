#pragma once

// Which bytes are text.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::config {

// Bytes of the UTF-8 character at `at`, 0 if it is none (overlong forms and surrogates included).
std::size_t character_bytes(std::string_view text, std::size_t at);

bool is_utf8(std::string_view text);
// Every byte that is part of no character replaced by '?'.
std::string as_utf8(std::string_view text);

}  // namespace troupe::config
