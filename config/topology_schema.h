#pragma once

// The topology language described: for editors and for readers. Both come from the table the parser
// uses (topology_fields.h), and tests compare the committed files with them.

#include <functional>
#include <string>

#include "config/codec.h"

namespace troupe::config {

// The same of any language that is a table of fields.
std::string schema_json(const std::string& title, const TypeDescription& root);
// Fields of the root, then those of each section below it; what `behind` gives stands behind a
// section of the root.
std::string reference_of(
    const TypeDescription& root,
    const std::function<std::string(const FieldDescription& section)>& behind = nullptr);
// Fields of a list's items or of a named section's values.
std::string reference_of_each(const FieldDescription& field);

// config/topology.schema.json: JSON Schema, draft 2020-12.
std::string topology_schema_json();

// The field tables of docs/topology.md, in Markdown.
std::string topology_reference();

}  // namespace troupe::config
