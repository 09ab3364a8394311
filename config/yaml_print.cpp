#include <fmt/format.h>

#include <algorithm>

#include "config/yaml_value.h"
#include "runtime/base/utf8.h"

namespace troupe::config {
namespace {

bool is_plain_character(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' || c == '-' ||
         c == '+';
}

// Words YAML readers take for something else than text.
bool is_special(std::string_view text) {
  static constexpr std::string_view kSpecial[] = {"null", "Null", "NULL", "true", "false",
                                                  "yes",  "no",   "on",   "off",  "~"};
  return std::find(std::begin(kSpecial), std::end(kSpecial), text) != std::end(kSpecial);
}

bool needs_quotes(const YamlValue& value) {
  const std::string& text = value.scalar;
  if (text.empty()) return true;
  if (!std::all_of(text.begin(), text.end(), is_plain_character)) {
    // Spaces are fine inside: "1 epoch".
    const bool words = std::all_of(text.begin(), text.end(),
                                   [](char c) { return c == ' ' || is_plain_character(c); });
    if (!words || text.front() == ' ' || text.back() == ' ') return true;
  }
  const char first = text.front();
  if (!value.quoted) return false;
  const bool starts_like_number =
      (first >= '0' && first <= '9') || first == '.' || first == '-' || first == '+';
  return starts_like_number || is_special(text);
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string printed_key(const std::string& key) {
  YamlValue value = YamlValue::text(key);
  return needs_quotes(value) ? in_quotes(key) : key;
}

// The different sources below a value, that of the value itself first; defaults only when alone.
void collect_places(const YamlValue& value, std::vector<std::string>& places) {
  const bool leaf = value.items.empty() && value.members.empty();
  if (leaf || !value.place.is_default()) {
    const Place& place = value.place;
    const std::string text =
        place.line == 0 ? place.text() : fmt::format("{}:{}", place.source, place.line);
    if (std::find(places.begin(), places.end(), text) == places.end()) places.push_back(text);
  }
  for (const YamlValue& item : value.items) collect_places(item, places);
  for (const YamlMember& member : value.members) collect_places(member.value, places);
}

std::string comment(const YamlValue& value) {
  std::vector<std::string> places;
  collect_places(value, places);
  if (places.size() > 1) std::erase(places, "default");
  return shown(runtime::valid_utf8(fmt::format("{}", fmt::join(places, ", "))), 400);
}

class Printer {
 public:
  explicit Printer(bool comments) : comments_(comments) {}

  void members(const YamlValue& map, int indent) {
    for (const YamlMember& member : map.members) {
      const std::string head =
          std::string(static_cast<std::size_t>(indent), ' ') + printed_key(member.key) + ":";
      const YamlValue& value = member.value;
      const bool block_map = value.is_map() && !value.members.empty();
      const bool block_list = value.is_list() && !value.items.empty() &&
                              !std::all_of(value.items.begin(), value.items.end(),
                                           [](const YamlValue& v) { return v.is_scalar(); });
      if (block_map) {
        result_ += head + "\n";
        members(value, indent + 2);
      } else if (block_list) {
        result_ += head + "\n";
        items(value, indent + 2);
      } else {
        line(head + " " + flow_yaml(value), value);
      }
    }
  }

  void items(const YamlValue& list, int indent) {
    const std::string head = std::string(static_cast<std::size_t>(indent), ' ') + "- ";
    for (const YamlValue& item : list.items) {
      if (item.is_map() && item.members.size() == 1) {
        const YamlMember& only = item.members.front();
        line(head + printed_key(only.key) + ": " + flow_yaml(only.value), item);
      } else {
        line(head + flow_yaml(item), item);
      }
    }
  }

  void line(const std::string& text, const YamlValue& value) {
    result_ += text;
    if (comments_) result_ += "  # " + comment(value);
    result_ += '\n';
  }

  std::string take() { return std::move(result_); }

 private:
  bool comments_;
  std::string result_;
};

}  // namespace

std::string flow_yaml(const YamlValue& value) {
  std::string result;
  switch (value.kind) {
    case YamlValue::Kind::kNull:
      return "~";
    case YamlValue::Kind::kScalar:
      return needs_quotes(value) ? in_quotes(value.scalar) : value.scalar;
    case YamlValue::Kind::kList:
      for (const YamlValue& item : value.items) {
        result += (result.empty() ? "" : ", ") + flow_yaml(item);
      }
      return "[" + result + "]";
    case YamlValue::Kind::kMap:
      for (const YamlMember& member : value.members) {
        result +=
            (result.empty() ? "" : ", ") + printed_key(member.key) + ": " + flow_yaml(member.value);
      }
      return "{" + result + "}";
  }
  return result;
}

std::string print_yaml(const YamlValue& value, bool comments) {
  Printer printer(comments);
  if (value.is_map() && !value.members.empty()) {
    printer.members(value, 0);
  } else {
    printer.line(flow_yaml(value), value);
  }
  return printer.take();
}

}  // namespace troupe::config
