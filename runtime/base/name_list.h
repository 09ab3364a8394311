#pragma once

// Lists of names, for people.

#include <string>
#include <vector>

namespace troupe::runtime {

// All names with commas between; of more than 16 the first 12, and how many others there are.
std::string name_list(const std::vector<std::string>& names);

}  // namespace troupe::runtime
