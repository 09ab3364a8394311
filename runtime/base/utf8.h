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

// True for a character (one well-formed sequence) that is not shown as what it is: a control
// character, a break of lines, or a mark that changes the direction of reading (U+200E, U+202E
// ...).
bool is_hidden(std::string_view character);
// The name of a hidden character in messages: "the control character U+001B".
std::string hidden_name(std::string_view character);

// Makes text that others wrote fit for one line of a log or a terminal: it can neither command the
// terminal nor forge lines. A hidden character becomes an escape such as \n, \x1b and \u202e, and
// so does every byte that is no UTF-8 (\xff).
std::string printable(std::string_view text);

// The same for a text of several lines: line breaks stay, and each line after the first begins with
// two spaces at least.
std::string printable_lines(std::string_view text);

}  // namespace troupe::runtime
