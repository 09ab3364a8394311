#pragma once

// Reads the fields of a struct (runtime/base/fields.h) from a JSON object of any origin. A field
// that is absent, of another kind or out of its range stays as it was. An item of a list or a map
// that is of another kind is left out. Lengths of texts are not looked at.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/fields.h"

namespace troupe::runtime {

class JsonReader {
 public:
  using Json = nlohmann::json;

  // `value` outlives this. An object's fields are found by their names, an array's by their order.
  explicit JsonReader(const Json& value) : value_(value) {}
  explicit JsonReader(Json&& value) = delete;

  template <std::unsigned_integral T>
  void number(std::string_view name, T& value, std::uint64_t most = std::numeric_limits<T>::max()) {
    const Json* const found = take(name, &Json::is_number_unsigned);
    if (found != nullptr && found->get<std::uint64_t>() <= most) value = found->get<T>();
  }
  template <std::signed_integral T>
  void integer(std::string_view name, T& value, std::int64_t least = std::numeric_limits<T>::min(),
               std::int64_t most = std::numeric_limits<T>::max()) {
    const Json* const found = take(name, &Json::is_number_integer);
    if (found == nullptr) return;
    const bool fits = !found->is_number_unsigned() || found->get<std::uint64_t>() <= INT64_MAX;
    const auto read = found->get<std::int64_t>();
    if (fits && read >= least && read <= most) value = static_cast<T>(read);
  }
  // Null stands for a number that JSON cannot write.
  void real(std::string_view name, double& value, int = 9) {
    const Json* const found = take(name, &Json::is_primitive);
    if (found == nullptr) return;
    if (found->is_null()) value = std::numeric_limits<double>::quiet_NaN();
    if (found->is_number()) value = found->get<double>();
    if (!found->is_null() && !found->is_number()) is_foreign_ = true;
  }
  void moment(std::string_view name, double& value) {
    if (const Json* const found = take(name, &Json::is_number)) value = found->get<double>();
  }
  void bits(std::string_view name, std::uint64_t& value) {
    std::string digits;
    text(name, digits, 16);
    const bool sound = !digits.empty() && digits.size() <= 16 &&
                       digits.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (sound) value = std::stoull(digits, nullptr, 16);
  }
  void flag(std::string_view name, bool& value) {
    if (const Json* const found = take(name, &Json::is_boolean)) value = found->get<bool>();
  }
  void text(std::string_view name, std::string& value, std::size_t) {
    const Json* const found = take(name, &Json::is_string);
    if (found != nullptr) value = found->get_ref<const std::string&>();
  }
  void prose(std::string_view name, std::string& value, std::size_t most) {
    text(name, value, most);
  }
  void converted(std::string_view name, auto& value, std::size_t most, auto, auto from_text) {
    std::string read;
    text(name, read, most);
    if (const auto made = from_text(read)) value = *made;
  }
  template <class Struct>
  void object(std::string_view name, Struct& value) {
    group(name, [&](JsonReader& members) { fields(members, value); });
  }
  template <class T>
  void list(std::string_view name, std::vector<T>& values, std::size_t most) {
    list(name, values, most, [](JsonReader& item, T& value) { item.element(value); });
  }
  // Items that are there already are read over and stay, so that several lists fill one vector.
  template <class T>
  void list(std::string_view name, std::vector<T>& values, std::size_t most, auto each) {
    const Json* const found = take(name, &Json::is_array);
    if (found == nullptr) return;
    const std::size_t before = values.size();
    std::size_t count = 0;
    for (const Json& item : *found) {
      if (count == most) break;
      if (count == values.size()) values.emplace_back();
      JsonReader reader(item);
      each(reader, values[count]);
      if (!reader.is_foreign_) {
        ++count;
      } else if (count >= before) {
        values.pop_back();
      }
    }
  }
  template <class T>
  void perhaps(std::string_view name, std::optional<T>& value) {
    perhaps(name, value, [](JsonReader& item, T& content) { item.element(content); });
  }
  template <class T>
  void perhaps(std::string_view name, std::optional<T>& value, auto each) {
    const Json* const found = find(name);
    if (found == nullptr || found->is_null()) return;
    JsonReader reader(*found);
    each(reader, value.emplace());
    if (reader.is_foreign_) value.reset();
  }
  template <class Struct>
  void inlined(Struct& value) {
    fields(*this, value);
  }
  template <class T>
  void last(std::string_view name, T& value) {
    if constexpr (requires { value.has_value(); }) {
      perhaps(name, value);
    } else {
      named(name, value);
    }
  }
  void json(std::string_view name, std::string& value) {
    const Json* const found = find(name);
    if (found != nullptr) value = found->dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  template <class T>
  void map(std::string_view name, std::vector<std::pair<std::string, T>>& entries, auto each) {
    const Json* const found = take(name, &Json::is_object);
    if (found == nullptr) return;
    for (const auto& [entry, item] : found->items()) {
      JsonReader reader(item);
      each(reader, entries.emplace_back(entry, T()).second);
      if (reader.is_foreign_) entries.pop_back();
    }
  }
  void tuple(std::string_view name, auto inside) {
    const Json* const found = take(name, &Json::is_array);
    if (found == nullptr) return;
    JsonReader items(*found);
    items.in_order_ = true;
    inside(items);
    if (items.is_foreign_ || items.next_ != found->size()) is_foreign_ = true;
  }
  void group(std::string_view name, auto inside) {
    const Json* const found = take(name, &Json::is_object);
    if (found == nullptr) return;
    JsonReader members(*found);
    inside(members);
  }

  // An item of a list.
  void element(auto& value) { named("", value); }

 private:
  template <class T>
  void named(std::string_view name, T& value) {
    if constexpr (std::same_as<T, bool>) {
      flag(name, value);
    } else if constexpr (std::unsigned_integral<T>) {
      number(name, value);
    } else if constexpr (std::signed_integral<T>) {
      integer(name, value);
    } else if constexpr (std::floating_point<T>) {
      real(name, value);
    } else if constexpr (std::same_as<T, std::string>) {
      text(name, value, 0);
    } else if constexpr (requires { value.begin(); }) {
      list(name, value, SIZE_MAX);
    } else {
      object(name, value);
    }
  }
  // Null: there is none.
  const Json* find(std::string_view name) {
    if (in_order_) {
      is_foreign_ = is_foreign_ || next_ >= value_.size();
      return next_ < value_.size() ? &value_[next_++] : nullptr;
    }
    if (name.empty()) return &value_;
    if (!value_.is_object()) return nullptr;
    const auto found = value_.find(name);
    return found == value_.end() ? nullptr : &*found;
  }
  // Null: there is none, or it is of another kind.
  const Json* take(std::string_view name, bool (Json::*is_of_kind)() const) {
    const Json* const found = find(name);
    if (found == nullptr || (found->*is_of_kind)()) return found;
    is_foreign_ = true;
    return nullptr;
  }

  const Json& value_;
  bool in_order_ = false;
  std::size_t next_ = 0;
  bool is_foreign_ = false;  // a value was of another kind than its field
};

// A value that is copied or printed takes stack for each of its levels.
inline constexpr int kMostJsonDepth = 64;

// The text as a value; a discarded one where it is no JSON, or deeper than kMostJsonDepth.
nlohmann::json parse_json(std::string_view text);

// False: the value is no object, or the struct is not sound; see fault_of() in fields.h.
template <class Struct>
bool read_object(const nlohmann::json& json, Struct& value) {
  if (!json.is_object()) return false;
  JsonReader reader(json);
  fields(reader, value);
  return fault_in(value) == nullptr;
}

// The same for a text, which may be anything.
template <class Struct>
bool read_json(std::string_view text, Struct& value) {
  const nlohmann::json json = parse_json(text);
  return read_object(json, value);
}

}  // namespace troupe::runtime
