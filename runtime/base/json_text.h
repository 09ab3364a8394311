#pragma once

// The little JSON that Troupe writes itself.

#include <string>
#include <string_view>

namespace troupe::runtime {

// The text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// The number with so many significant digits. JSON has no NaN or infinity, so these become null.
std::string json_number(double value, int digits = 9);

}  // namespace troupe::runtime
