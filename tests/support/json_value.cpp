#include "tests/support/json_value.h"

#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using nlohmann::json;

JsonValue value_of(const json& value) {
  if (value.is_null()) return {nullptr};
  if (value.is_boolean()) return {value.get<bool>()};
  if (value.is_string()) return {value.get<std::string>()};
  if (value.is_number()) return {JsonValue::Number{value.dump()}};
  if (value.is_array()) {
    JsonValue::List items;
    for (const json& item : value) items.push_back(value_of(item));
    return {items};
  }
  JsonValue::Object members;
  for (const auto& [key, member] : value.items()) members.emplace(key, value_of(member));
  return {members};
}

template <class T>
const T& as(const JsonValue& value, const char* what) {
  if (const T* found = std::get_if<T>(&value.content)) return *found;
  throw std::runtime_error(std::string("JSON: not ") + what);
}

}  // namespace

bool JsonValue::has(const std::string& key) const {
  return as<Object>(*this, "an object").contains(key);
}

const JsonValue& JsonValue::operator[](const std::string& key) const {
  const Object& members = as<Object>(*this, "an object");
  const auto found = members.find(key);
  if (found == members.end()) throw std::runtime_error("JSON: no member " + key);
  return found->second;
}

const JsonValue::List& JsonValue::list() const { return as<List>(*this, "a list"); }
const std::string& JsonValue::text() const { return as<std::string>(*this, "a string"); }
double JsonValue::number() const { return std::stod(as<Number>(*this, "a number").text); }
unsigned long long JsonValue::integer() const {
  return std::stoull(as<Number>(*this, "a number").text);
}
bool JsonValue::truth() const { return as<bool>(*this, "true or false"); }

JsonValue parse_json(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto note_key = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key &&
        !keys.back().insert(parsed.get<std::string>()).second) {
      throw std::runtime_error("JSON: another key " + parsed.dump());
    }
    return true;
  };
  return value_of(json::parse(text, note_key));
}

}  // namespace troupe
