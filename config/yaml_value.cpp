#include "config/yaml_value.h"

#include <fmt/format.h>

#include <charconv>

namespace troupe::config {
namespace {

bool is_number(const std::string& scalar) {
  double number = 0.0;
  // std::from_chars() knows no plus sign.
  const char* begin = scalar.data() + (scalar.starts_with('+') ? 1 : 0);
  const char* end = scalar.data() + scalar.size();
  const auto [rest, error] = std::from_chars(begin, end, number);
  return error == std::errc() && rest == end && begin != end;
}

YamlValue of_kind(YamlValue::Kind kind) {
  YamlValue value;
  value.kind = kind;
  return value;
}

}  // namespace

YamlValue YamlValue::text(std::string text) {
  YamlValue value = plain(std::move(text));
  value.quoted = true;
  return value;
}

YamlValue YamlValue::plain(std::string scalar) {
  YamlValue value = of_kind(Kind::kScalar);
  value.scalar = std::move(scalar);
  return value;
}

YamlValue YamlValue::list() { return of_kind(Kind::kList); }

YamlValue YamlValue::map() { return of_kind(Kind::kMap); }

const YamlValue* YamlValue::find(std::string_view key) const {
  for (const YamlMember& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

YamlValue* YamlValue::find(std::string_view key) {
  return const_cast<YamlValue*>(std::as_const(*this).find(key));
}

YamlValue& YamlValue::add(std::string key, YamlValue value) {
  Place key_place = value.place;
  members.push_back({std::move(key), std::move(key_place), std::move(value)});
  return members.back().value;
}

std::string YamlValue::found() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a section";
    case Kind::kScalar:
      break;
  }
  if (!quoted && is_number(scalar)) return "the number " + shown(scalar);
  return fmt::format("text \"{}\"", shown(scalar));
}

// Lists are replaced as a whole. New keys go behind those of the base. A merged section counts as
// the overlay's, and so has its place.
YamlValue merge(YamlValue base, const YamlValue& overlay) {
  if (!base.is_map() || !overlay.is_map()) return overlay;
  base.place = overlay.place;
  for (const YamlMember& member : overlay.members) {
    if (YamlValue* under = base.find(member.key)) {
      *under = merge(std::move(*under), member.value);
    } else {
      base.members.push_back(member);
    }
  }
  return base;
}

}  // namespace troupe::config
