#include "tests/main/json_value.h"

#include <cctype>
#include <regex>
#include <stdexcept>

namespace troupe {
namespace {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text), size_(text.size()) {}

  JsonValue whole() {
    JsonValue value = any();
    skip_space();
    if (!rest_.empty()) fail("nothing more");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& wanted) const {
    throw std::runtime_error("JSON, byte " + std::to_string(size_ - rest_.size()) + ": wanted " +
                             wanted + " at: " + std::string(rest_.substr(0, 40)));
  }
  void skip_space() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n\r"), rest_.size()));
  }
  bool take(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void need(std::string_view word) {
    if (!take(word)) fail(std::string(word));
  }

  JsonValue any() {
    if (take("null")) return {nullptr};
    if (take("true")) return {true};
    if (take("false")) return {false};
    skip_space();
    if (rest_.starts_with('"')) return {string()};
    if (take("{")) return {object()};
    if (take("[")) return {list()};
    return {number()};
  }

  JsonValue::Object object() {
    JsonValue::Object members;
    if (take("}")) return members;
    do {
      skip_space();
      std::string key = string();
      need(":");
      if (!members.emplace(std::move(key), any()).second) fail("another key");
    } while (take(","));
    need("}");
    return members;
  }

  JsonValue::List list() {
    JsonValue::List items;
    if (take("]")) return items;
    do items.push_back(any());
    while (take(","));
    need("]");
    return items;
  }

  std::string string() {
    need("\"");
    std::string value;
    while (!rest_.starts_with('"')) {
      if (rest_.empty() || static_cast<unsigned char>(rest_[0]) < 0x20) fail("a character");
      if (rest_[0] == '\\')
        escape(value);
      else
        value += rest_[0];
      rest_.remove_prefix(1);
    }
    rest_.remove_prefix(1);
    return value;
  }

  // Leaves the last character of the escape in front.
  void escape(std::string& value) {
    static const std::map<char, char> kShort{{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'b', '\b'},
                                             {'f', '\f'}, {'n', '\n'},  {'r', '\r'}, {'t', '\t'}};
    rest_.remove_prefix(1);
    if (rest_.empty()) fail("an escape");
    if (const auto found = kShort.find(rest_[0]); found != kShort.end()) {
      value += found->second;
      return;
    }
    static const std::regex kUnicode("u[0-9a-fA-F]{4}");
    const std::string code(rest_.substr(0, 5));
    if (!std::regex_match(code, kUnicode)) fail("an escape");
    const int number = std::stoi(code.substr(1), nullptr, 16);
    value += number < 0x80 ? std::string(1, static_cast<char>(number)) : "\\" + code;
    rest_.remove_prefix(4);
  }

  JsonValue::Number number() {
    static const std::regex kNumber(R"(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?)");
    std::match_results<std::string_view::const_iterator> found;
    if (!std::regex_search(rest_.begin(), rest_.end(), found, kNumber,
                           std::regex_constants::match_continuous)) {
      fail("a value");
    }
    JsonValue::Number value{found.str()};
    rest_.remove_prefix(value.text.size());
    return value;
  }

  std::string_view rest_;
  std::size_t size_;
};

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

JsonValue parse_json(std::string_view text) { return JsonReader(text).whole(); }

}  // namespace troupe
