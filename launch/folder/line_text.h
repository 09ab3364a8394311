#pragma once

// Lines of a LineFile: a JSON object each, `kind` first (Line::kKind), then the line's fields.

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/json_reader.h"
#include "runtime/base/json_writer.h"

namespace troupe::launch {

template <class Line>
std::string text_of(const Line& line) {
  return fmt::format(R"({{"kind":"{}",{}}})", Line::kKind, runtime::json_members(line));
}

// Whether `text` is a sound line of that kind.
template <class Line>
bool read_line(const nlohmann::json& text, Line& line) {
  return text.is_object() && text.value("kind", nlohmann::json()) == Line::kKind &&
         runtime::read_object(text, line);
}

}  // namespace troupe::launch
