#pragma once

// What clients of the page may send: the first inputs of fuzz_page_request.

#include <string>
#include <utility>
#include <vector>

namespace troupe::fuzz {

// Names and inputs. An input's first byte says in how large pieces the rest arrives.
std::vector<std::pair<std::string, std::string>> page_requests();

}  // namespace troupe::fuzz
