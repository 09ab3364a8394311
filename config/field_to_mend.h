#pragma once

// Which field of a rule over several is named when the rule is broken.

#include <string>
#include <vector>

#include "config/codec.h"

namespace troupe::config {

// One of the paths of the rule's fields: the first that an override gave, else the first that the
// author of the file wrote, else (all are defaults or the zoo's) the first. CHECKs that there is
// one.
std::string field_to_mend(const std::vector<std::string>& fields, const Origins& origins);

// Reports the problem there: `fields` are whole paths, not below where the reader is.
void report_rule(const std::vector<std::string>& fields, const std::string& message,
                 Reader& reader);

}  // namespace troupe::config
