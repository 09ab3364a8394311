#pragma once

// Sums of money, and hours, for people.

#include <string>

namespace troupe::runtime {

// With two decimals, and with two digits where it is smaller: "12.50", "0.0042", "0.00" for
// nothing.
std::string amount_text(double amount);

}  // namespace troupe::runtime
