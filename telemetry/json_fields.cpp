#include "telemetry/json_fields.h"

namespace troupe::telemetry {

using nlohmann::json;

const json& field(const json& value, const char* name) {
  static const json kNothing;
  if (!value.is_object()) return kNothing;
  const auto found = value.find(name);
  return found == value.end() ? kNothing : *found;
}

std::string text(const json& value) { return value.is_string() ? value.get<std::string>() : ""; }

double number(const json& value) { return value.is_number() ? value.get<double>() : 0.0; }

const json::array_t& items(const json& value) {
  static const json::array_t kNone;
  return value.is_array() ? value.get_ref<const json::array_t&>() : kNone;
}

}  // namespace troupe::telemetry
