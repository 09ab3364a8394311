#pragma once

// Text from anywhere, made fit for formats that demand UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::runtime {

// Bytes of the well-formed UTF-8 sequence at the front, 0 when there is none (surrogates and
// overlong forms are none, nor is an empty text).
std::size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);
// Every byte that is no part of such a sequence becomes U+FFFD.
std::string valid_utf8(std::string_view text);

// The same for every control character as well, line breaks among them: what others have written
// becomes part of one line of a log or a terminal, and can neither forge lines there nor command
// it.
std::string printable(std::string_view text);

}  // namespace troupe::runtime
