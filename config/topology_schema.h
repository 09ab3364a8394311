#pragma once

// The topology language described: for editors and for readers. Both come from the table the parser
// uses (topology_fields.h), and tests compare the committed files with them.

#include <string>

namespace troupe::config {

// config/topology.schema.json: JSON Schema, draft 2020-12.
std::string topology_schema_json();

// The field tables of docs/topology.md, in Markdown.
std::string topology_reference();

}  // namespace troupe::config
