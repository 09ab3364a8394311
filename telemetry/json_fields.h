#pragma once

// Fields of JSON that anyone may have written. A value of another kind reads as nothing.

#include <string>

#include <nlohmann/json.hpp>

namespace troupe::telemetry {

// Null where there is none, or `value` is no object. Lives as long as `value`.
const nlohmann::json& field(const nlohmann::json& value, const char* name);

// No part of a temporary is handed out.
const nlohmann::json& field(nlohmann::json&& value, const char* name) = delete;
const nlohmann::json::array_t& items(nlohmann::json&& value) = delete;

std::string text(const nlohmann::json& value);  // "": it is no string
double number(const nlohmann::json& value);     // 0: it is no number
// The items of a list; none where `value` is no list. They live as long as `value`.
const nlohmann::json::array_t& items(const nlohmann::json& value);

}  // namespace troupe::telemetry
