#include "config/field_search.h"

#include <algorithm>
#include <span>

#include "config/topology_fields.h"
#include "runtime/base/nearest_word.h"

namespace troupe::config {
namespace {

using Kind = TypeDescription::Kind;

constexpr std::size_t kMostFields = 3;

struct KnownField {
  std::string path;
  TypeDescription type;

  std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  // "" of a field at the top.
  std::string_view section() const {
    const std::size_t dot = path.rfind('.');
    return dot == std::string::npos ? std::string_view() : std::string_view(path).substr(0, dot);
  }
};

void add_fields(const std::string& prefix, const std::vector<FieldDescription>& fields,
                std::vector<KnownField>& found) {
  for (const FieldDescription& field : fields) {
    const std::string path = prefix + field.name;
    if (field.type.kind != Kind::kSection) found.push_back({path, field.type});
    const std::span<const TypeDescription> forms =
        field.type.kind == Kind::kOneOf ? std::span(field.type.parts) : std::span(&field.type, 1);
    for (const TypeDescription& form : forms) {
      if (form.kind == Kind::kSection) add_fields(path + ".", form.fields, found);
    }
  }
}

const std::vector<KnownField>& all_fields() {
  static const std::vector<KnownField> kFields = [] {
    std::vector<KnownField> found;
    add_fields("", topology_record().describe().fields, found);
    return found;
  }();
  return kFields;
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && runtime::edit_distance(a, b) == 0;
}

template <class Meant>
std::vector<std::string> paths_where(const Meant& meant) {
  std::vector<std::string> paths;
  for (const KnownField& field : all_fields()) {
    if (meant(field) && paths.size() < kMostFields) paths.push_back(field.path);
  }
  return paths;
}

}  // namespace

std::vector<std::string> fields_named(std::string_view word) {
  if (word.empty()) return {};  // as which a field at the top has its section
  auto paths = paths_where([&](const KnownField& field) { return same(field.path, word); });
  if (paths.empty()) {
    paths = paths_where([&](const KnownField& field) { return same(field.name(), word); });
  }
  if (paths.empty()) {
    paths = paths_where([&](const KnownField& field) {
      const std::string_view section = field.section();
      return same(section, word) || same(section.substr(section.rfind('.') + 1), word);
    });
  }
  return paths;
}

std::vector<std::string> fields_near(std::string_view word) {
  // Every letter is near to a name of one letter.
  constexpr std::size_t kShortest = 3;
  std::vector<std::string> names;
  for (const KnownField& field : all_fields()) {
    if (field.name().size() >= kShortest) names.emplace_back(field.name());
  }
  const std::string nearest = runtime::nearest_word(word, names);
  return paths_where([&](const KnownField& field) { return field.name() == nearest; });
}

std::vector<FieldOfWord> fields_taking(std::string_view word) {
  std::vector<FieldOfWord> found;
  for (const KnownField& field : all_fields()) {
    for (const std::string& known : field.type.words) {
      if (same(known, word)) found.push_back({field.path, ""});
    }
    for (const std::string& later : field.type.later_words) {
      if (same(later, word)) found.push_back({field.path, later_word_refused(field.type, later)});
    }
  }
  return found;
}

std::vector<std::string> words_of(std::string_view path) {
  const auto& fields = all_fields();
  const auto field = std::find_if(fields.begin(), fields.end(),
                                  [&](const KnownField& each) { return each.path == path; });
  CHECK(field != fields.end(), path);
  return field->type.words;
}

}  // namespace troupe::config
