#pragma once

// JSON (RFC 8259) as a strict reader sees it, which is not what writes it in the program.

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

struct JsonValue {
  using List = std::vector<JsonValue>;
  using Object = std::map<std::string, JsonValue>;
  struct Number {
    std::string text;  // as written, so that 64-bit numbers stay exact
  };
  std::variant<std::nullptr_t, bool, Number, std::string, List, Object> content = nullptr;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(content); }
  bool is_object() const { return std::holds_alternative<Object>(content); }
  bool has(const std::string& key) const;
  // Throw std::runtime_error, which fails the test, when the value is of another kind or absent.
  const JsonValue& operator[](const std::string& key) const;
  const List& list() const;
  const std::string& text() const;
  double number() const;
  unsigned long long integer() const;
  bool truth() const;
};

// One whole value; throws std::exception where the text is none, or an object has a key twice.
JsonValue parse_json(std::string_view text);

}  // namespace troupe
