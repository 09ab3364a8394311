#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/layer_kinds.h"
#include "config/topology_fields.h"
#include "config/topology_schema.h"

namespace troupe::config {
namespace {

using Kind = TypeDescription::Kind;

// The section among what a type may be; null if it is none.
const TypeDescription* section_of(const TypeDescription& type) {
  if (type.kind == Kind::kSection) return &type;
  for (const TypeDescription& part : type.parts) {
    if (part.kind == Kind::kSection) return &part;
  }
  return nullptr;
}

std::string in_table(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "\\|");
  }
  return text;
}

std::string effect(Scope scope) {
  switch (scope) {
    case Scope::kState:
      return "state";
    case Scope::kFixed:
      return "run";
    case Scope::kFree:
      return "free";
  }
  return {};
}

std::string row(const FieldDescription& field) {
  std::string doc = field.doc;
  if (!field.when.empty()) doc += fmt::format(" Only with `{}`.", field.when);
  const YamlValue& value = field.default_value;
  const std::string shown_default = value.is_null() ? "" : fmt::format("`{}`", flow_yaml(value));
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", field.name, in_table(field.type.name),
                     field.required ? "required" : in_table(shown_default), effect(field.scope),
                     in_table(doc));
}

bool is_plain_field(const FieldDescription& field) {
  const TypeDescription* section = section_of(field.type);
  return section == nullptr || field.type.kind == Kind::kList || field.type.kind == Kind::kNamed;
}

constexpr std::string_view kHeader =
    "\n| field | what | default | changes | meaning |\n| --- | --- | --- | --- | --- |\n";

// One heading per section, then its fields, then the sections below it.
void describe_section(const std::string& path, const std::string& doc,
                      const TypeDescription& section, std::string& out) {
  out += fmt::format("\n### `{}`\n\n{}\n", path, doc);
  std::string rows;
  for (const FieldDescription& field : section.fields) {
    if (is_plain_field(field)) rows += row(field);
  }
  if (!rows.empty()) out += std::string(kHeader) + rows;
  std::map<std::string, std::string> described;  // paths of shared sections
  for (const FieldDescription& field : section.fields) {
    if (is_plain_field(field)) continue;
    const std::string below = path + "." + field.name;
    if (const auto known = described.find(field.type.shared); known != described.end()) {
      out += fmt::format("\n### `{}`\n\n{} As `{}`.\n", below, field.doc, known->second);
      continue;
    }
    if (!field.type.shared.empty()) described[field.type.shared] = below;
    const std::string short_form =
        field.type.kind == Kind::kOneOf
            ? fmt::format(" In short: {}.", field.type.parts.front().name)
            : "";
    describe_section(below, field.doc + short_form, *section_of(field.type), out);
  }
}

const FieldDescription& field_of(const TypeDescription& section, std::string_view name) {
  for (const FieldDescription& field : section.fields) {
    if (field.name == name) return field;
  }
  CHECK(false, name);
  return section.fields.front();
}

std::string layer_table() {
  std::string text =
      "\n### Layers\n\nEvery kind also takes `name`, unique in the network and by default the kind "
      "and its number, and `input`, the layer it reads (`input`: the network's input), by default "
      "the one before.\n\n| kind | short form | options |\n| --- | --- | --- |\n";
  for (const KindEntry& kind : kind_table()) {
    const TypeDescription type = kind.codec->describe();
    std::vector<std::string> options;
    for (const FieldDescription& field : section_of(type)->fields) {
      if (field.name == "name" || field.name == "input") continue;
      const std::string given =
          field.required ? "required" : fmt::format("`{}`", flow_yaml(field.default_value));
      options.push_back(fmt::format("`{}` ({}; {}): {}", field.name, in_table(field.type.name),
                                    given, in_table(field.doc)));
    }
    const std::string short_form =
        type.kind == Kind::kOneOf
            ? fmt::format("`{}: {}`", kind.word, section_of(type)->fields.front().name)
            : fmt::format("`{}`", kind.word);
    // A kind without required options may stand as a bare word.
    const auto& fields = section_of(type)->fields;
    const bool bare =
        type.kind == Kind::kOneOf ||
        std::none_of(fields.begin(), fields.end(), [](const auto& each) { return each.required; });
    text += fmt::format("| `{}` | {} | {} |\n", kind.word, bare ? short_form : "",
                        fmt::join(options, "<br>"));
  }
  return text;
}

}  // namespace

std::string reference_of_each(const FieldDescription& field) {
  std::string rows{kHeader};
  for (const FieldDescription& each : section_of(field.type.parts.front())->fields) {
    rows += row(each);
  }
  return rows;
}

std::string reference_of(const TypeDescription& root,
                         const std::function<std::string(const FieldDescription&)>& behind) {
  std::string out{kHeader};
  for (const FieldDescription& field : root.fields) {
    if (is_plain_field(field)) out += row(field);
  }
  for (const FieldDescription& field : root.fields) {
    if (is_plain_field(field)) continue;
    describe_section(field.name, field.doc, *section_of(field.type), out);
    if (behind) out += behind(field);
  }
  return out;
}

std::string topology_reference() {
  const TypeDescription topology = topology_record().describe();
  const auto behind = [](const FieldDescription& field) {
    const TypeDescription& section = *section_of(field.type);
    std::string out;
    if (field.name == "model") {
      out += "\n### `model.losses.OUTPUT`\n" + reference_of_each(field_of(section, "losses")) +
             layer_table();
    }
    if (field.name == "train") {
      const TypeDescription& rates = *section_of(field_of(section, "learning_rate").type);
      out += "\n### `train.learning_rate.NETWORK.parts`, each\n" +
             reference_of_each(field_of(*section_of(rates.fields.front().type), "parts"));
    }
    if (field.name == "cluster") {
      for (const char* const list : {"hosts", "bandwidth", "pools"}) {
        out += fmt::format("\n### `cluster.{}`, each\n{}", list,
                           reference_of_each(field_of(section, list)));
      }
    }
    return out;
  };
  return reference_of(topology, behind) + "\n### `links`, each\n" +
         reference_of_each(field_of(topology, "links"));
}

}  // namespace troupe::config
