#include "config/topology_schema.h"

#include <fmt/format.h>

#include <map>

#include "config/topology_fields.h"
#include "runtime/base/json_text.h"

namespace troupe::config {
namespace {

using Kind = TypeDescription::Kind;
using Members = std::vector<std::string>;  // complete `"key": value` texts

using runtime::json_string;

std::string strings(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) items.push_back(json_string(text));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// Values as written by codecs; plain scalars are numbers, booleans or words.
std::string json(const YamlValue& value, const TypeDescription& type) {
  const bool raw =
      type.kind == Kind::kBoolean || type.kind == Kind::kInteger || type.kind == Kind::kNumber;
  if (value.is_scalar()) return raw ? value.scalar : json_string(value.scalar);
  std::vector<std::string> items;
  for (const YamlValue& item : value.items) items.push_back(json(item, type.parts.front()));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

class SchemaWriter {
 public:
  std::string write(const TypeDescription& root) {
    Members members{"\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"",
                    "\"title\": \"Troupe topology\""};
    add_type(root, members, 0);
    Members shared;
    for (const auto& [name, text] : shared_) shared.push_back(json_string(name) + ": " + text);
    members.push_back("\"$defs\": " + object(shared, 1));
    return object(members, 0) + "\n";
  }

 private:
  // Two spaces per level.
  static std::string object(const Members& members, int level) {
    if (members.empty()) return "{}";
    const std::string indent(static_cast<std::size_t>(2 * (level + 1)), ' ');
    return fmt::format("{{\n{}{}\n{}}}", indent, fmt::join(members, ",\n" + indent),
                       std::string(static_cast<std::size_t>(2 * level), ' '));
  }

  std::string schema(const TypeDescription& type, Members notes, int level) {
    if (type.shared.empty()) {
      add_type(type, notes, level);
    } else {
      if (!shared_.contains(type.shared)) {
        shared_[type.shared] = "";  // so that a type within itself ends
        Members members;
        add_type(type, members, 2);
        shared_[type.shared] = object(members, 2);
      }
      notes.push_back("\"$ref\": " + json_string("#/$defs/" + type.shared));
    }
    return object(notes, level);
  }

  void add_type(const TypeDescription& type, Members& members, int level) {
    switch (type.kind) {
      case Kind::kBoolean:
        members.push_back("\"type\": \"boolean\"");
        break;
      case Kind::kInteger:
      case Kind::kNumber:
        add_number(type, members);
        break;
      case Kind::kText:
        // Text without quotes may look like a number to a YAML reader.
        members.push_back("\"type\": [\"string\", \"number\"]");
        if (!type.pattern.empty()) members.push_back("\"pattern\": " + json_string(type.pattern));
        break;
      case Kind::kWord:
        members.push_back("\"enum\": " + strings(type.words));
        break;
      case Kind::kList:
        add_list(type, members, level);
        break;
      case Kind::kSection:
        add_section(type, members, level);
        break;
      case Kind::kNamed:
        members.push_back("\"type\": \"object\"");
        members.push_back("\"additionalProperties\": " + schema(type.parts.front(), {}, level + 1));
        break;
      case Kind::kOneOf: {
        std::vector<std::string> parts;
        for (const TypeDescription& part : type.parts) parts.push_back(schema(part, {}, level + 1));
        members.push_back(fmt::format("\"anyOf\": [{}]", fmt::join(parts, ", ")));
        break;
      }
    }
  }

  static void add_number(const TypeDescription& type, Members& members) {
    const bool whole = type.kind == Kind::kInteger;
    members.push_back(whole ? "\"type\": \"integer\"" : "\"type\": \"number\"");
    if (type.minimum) {
      members.push_back(fmt::format(
          "\"{}\": {}", type.above_minimum ? "exclusiveMinimum" : "minimum", *type.minimum));
    }
    if (type.maximum) members.push_back(fmt::format("\"maximum\": {}", *type.maximum));
  }

  void add_list(const TypeDescription& type, Members& members, int level) {
    members.push_back("\"type\": \"array\"");
    if (type.least_items > 0) members.push_back(fmt::format("\"minItems\": {}", type.least_items));
    if (type.most_items > 0) members.push_back(fmt::format("\"maxItems\": {}", type.most_items));
    members.push_back("\"items\": " + schema(type.parts.front(), {}, level + 1));
  }

  void add_section(const TypeDescription& type, Members& members, int level) {
    Members properties, required;
    for (const FieldDescription& field : type.fields) {
      if (!field.available) continue;
      properties.push_back(json_string(field.name) + ": " +
                           schema(field.type, notes(field), level + 2));
      if (field.required && !type.partial) required.push_back(field.name);
    }
    // An empty section, `train:` with nothing below, is null.
    const bool may_be_empty = required.empty() && !type.exclusive;
    members.push_back(may_be_empty ? "\"type\": [\"object\", \"null\"]" : "\"type\": \"object\"");
    members.push_back("\"properties\": " + object(properties, level + 1));
    if (!required.empty()) members.push_back("\"required\": " + strings(required));
    if (type.exclusive) members.push_back("\"minProperties\": 1, \"maxProperties\": 1");
    members.push_back("\"additionalProperties\": false");
  }

  static Members notes(const FieldDescription& field) {
    Members notes;
    std::string description = field.doc;
    if (!field.when.empty()) description += " Only with " + field.when + ".";
    if (!description.empty()) notes.push_back("\"description\": " + json_string(description));
    if (!field.default_value.is_null()) {
      notes.push_back("\"default\": " + json(field.default_value, field.type));
    }
    return notes;
  }

  std::map<std::string, std::string> shared_;
};

}  // namespace

std::string topology_schema_json() { return SchemaWriter().write(topology_record().describe()); }

}  // namespace troupe::config
