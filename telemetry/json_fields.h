#pragma once

// Fields of JSON that anyone may have written: what is not as it should be reads as nothing.

#include <string>

#include <nlohmann/json.hpp>

namespace troupe::telemetry {

// Null where there is none, or `value` is no object. Lives as long as `value`.
const nlohmann::json& field(const nlohmann::json& value, const char* name);

// Nothing else is taken for JSON by mistake, and no part of what is gone at once is handed out.
const nlohmann::json& field(nlohmann::json&& value, const char* name) = delete;
const nlohmann::json::array_t& items(nlohmann::json&& value) = delete;

std::string text(const nlohmann::json& value);  // "" of what is no string
double number(const nlohmann::json& value);     // 0 of what is no number
// The items of a list; none of anything else. Live as long as `value`.
const nlohmann::json::array_t& items(const nlohmann::json& value);

}  // namespace troupe::telemetry
