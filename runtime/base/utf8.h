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

// Whether a character, which is one well-formed sequence, is not shown as what it is: a control
// character (line breaks among them), or a mark that turns the direction in which others are shown
// (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
bool is_hidden(std::string_view character);
// What messages call a hidden character: "the control character U+001B".
std::string hidden_name(std::string_view character);

// The same for every hidden character as well: what others have written becomes part of one line of
// a log or a terminal, and can neither forge lines there nor command it.
std::string printable(std::string_view text);

}  // namespace troupe::runtime
