#include "config/topology_schema.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/topology_fields.h"

namespace troupe::config {
namespace {

using Json = nlohmann::ordered_json;
using Kind = TypeDescription::Kind;

// Values as written by codecs; plain scalars are numbers, booleans or words.
Json value_of(const YamlValue& value, const TypeDescription& type) {
  const bool raw =
      type.kind == Kind::kBoolean || type.kind == Kind::kInteger || type.kind == Kind::kNumber;
  if (value.is_scalar()) return raw ? Json::parse(value.scalar) : Json(value.scalar);
  Json items = Json::array();
  for (const YamlValue& item : value.items) items.push_back(value_of(item, type.parts.front()));
  return items;
}

// Writes the schema of a type, and of those that are described once, beside each other.
class SchemaWriter {
 public:
  std::string write(const std::string& title, const TypeDescription& root) {
    Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
    add_type(root, schema);
    schema["$defs"] = std::move(shared_);
    return schema.dump(2) + "\n";
  }

 private:
  // `notes` are the members it begins with.
  Json schema_of(const TypeDescription& type, Json notes = Json::object()) {
    if (type.shared.empty()) {
      add_type(type, notes);
      return notes;
    }
    if (!shared_.contains(type.shared)) {
      shared_[type.shared] = nullptr;  // so that a type within itself ends
      Json described = Json::object();
      add_type(type, described);
      shared_[type.shared] = std::move(described);
    }
    notes["$ref"] = "#/$defs/" + type.shared;
    return notes;
  }

  void add_type(const TypeDescription& type, Json& schema) {
    switch (type.kind) {
      case Kind::kBoolean:
        schema["type"] = "boolean";
        break;
      case Kind::kInteger:
      case Kind::kNumber:
        add_number(type, schema);
        break;
      case Kind::kText:
        // Text without quotes may look like a number to a YAML reader.
        schema["type"] = {"string", "number"};
        if (!type.pattern.empty()) schema["pattern"] = type.pattern;
        break;
      case Kind::kWord:
        schema["enum"] = type.words;
        break;
      case Kind::kList:
        schema["type"] = "array";
        if (type.least_items > 0) schema["minItems"] = type.least_items;
        if (type.most_items > 0) schema["maxItems"] = type.most_items;
        schema["items"] = schema_of(type.parts.front());
        break;
      case Kind::kSection:
        add_section(type, schema);
        break;
      case Kind::kNamed:
        schema["type"] = "object";
        schema["additionalProperties"] = schema_of(type.parts.front());
        break;
      case Kind::kOneOf:
        for (const TypeDescription& part : type.parts) schema["anyOf"].push_back(schema_of(part));
        break;
    }
  }

  static void add_number(const TypeDescription& type, Json& schema) {
    const bool is_whole = type.kind == Kind::kInteger;
    const auto bound = [&](double number) {
      if (!is_whole) return Json(number);
      return number < 0 ? Json(static_cast<std::int64_t>(number))
                        : Json(static_cast<std::uint64_t>(number));
    };
    schema["type"] = is_whole ? "integer" : "number";
    if (type.minimum) {
      schema[type.above_minimum ? "exclusiveMinimum" : "minimum"] = bound(*type.minimum);
    }
    if (type.maximum) schema["maximum"] = bound(*type.maximum);
  }

  void add_section(const TypeDescription& type, Json& schema) {
    Json properties = Json::object(), required = Json::array();
    for (const FieldDescription& field : type.fields) {
      properties[field.name] = schema_of(field.type, notes_of(field));
      if (field.required && !type.partial) required.push_back(field.name);
    }
    // An empty section, `train:` with nothing below, is null.
    const bool may_be_empty = required.empty() && !type.exclusive;
    schema["type"] = may_be_empty ? Json{"object", "null"} : Json("object");
    schema["properties"] = std::move(properties);
    if (!required.empty()) schema["required"] = std::move(required);
    if (type.exclusive) {
      schema["maxProperties"] = 1;
      schema["minProperties"] = 1;
    }
    schema["additionalProperties"] = false;
  }

  static Json notes_of(const FieldDescription& field) {
    Json notes = Json::object();
    std::string description = field.doc;
    if (!field.when.empty()) description += " Only with " + field.when + ".";
    if (!description.empty()) notes["description"] = std::move(description);
    if (!field.default_value.is_null()) {
      notes["default"] = value_of(field.default_value, field.type);
    }
    return notes;
  }

  Json shared_ = Json::object();
};

}  // namespace

std::string schema_json(const std::string& title, const TypeDescription& root) {
  return SchemaWriter().write(title, root);
}

std::string topology_schema_json() {
  return schema_json("Troupe topology", topology_record().describe());
}

}  // namespace troupe::config
