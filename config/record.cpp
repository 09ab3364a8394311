#include "config/record.h"

#include <fmt/format.h>

namespace troupe::config {

const YamlValue* as_section(const YamlValue& value, const std::string& short_field,
                            std::span<const std::string> fields, YamlValue& storage,
                            Reader& reader) {
  // Long lists of fields would not help.
  const std::string what =
      fields.size() > 8 ? "a section" : fmt::format("a section ({})", fmt::join(fields, ", "));
  const YamlValue* short_content = value.find("");
  if (value.is_map() && short_content == nullptr) return &value;
  if (value.is_map() && short_field.empty()) {
    reader.expected(*short_content, what);
    return nullptr;
  }
  storage = YamlValue::map();
  storage.place = value.place;
  if (value.is_null()) return &storage;
  if (short_field.empty()) {
    reader.expected(value, what);
    return nullptr;
  }
  if (!value.is_map()) {
    storage.add(short_field, value);
    return &storage;
  }
  // The short content counts only where the section does not give the same field by its name.
  if (value.find(short_field) == nullptr) storage.add(short_field, *short_content);
  for (const YamlMember& member : value.members) {
    if (!member.key.empty()) storage.members.push_back(member);
  }
  return &storage;
}

}  // namespace troupe::config
