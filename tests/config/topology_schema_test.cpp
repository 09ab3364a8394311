#include "config/topology_schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <regex>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

// Enough of JSON Schema for the one that is published; a keyword it does not know is a failure.
class SchemaValidator {
 public:
  explicit SchemaValidator(const YamlValue& root) : root_(root) {}

  bool accepts(const YamlValue& value) { return fits(value, root_); }

 private:
  bool fits(const YamlValue& value, const YamlValue& schema) {
    return std::all_of(schema.members.begin(), schema.members.end(), [&](const YamlMember& rule) {
      return keeps(value, rule.key, rule.value, schema);
    });
  }

  bool keeps(const YamlValue& value, const std::string& rule, const YamlValue& of,
             const YamlValue& schema) {
    if (rule == "type") return has_type(value, of);
    if (rule == "enum") {
      return std::any_of(of.items.begin(), of.items.end(),
                         [&](const YamlValue& word) { return word.scalar == value.scalar; });
    }
    if (rule == "anyOf") {
      return std::any_of(of.items.begin(), of.items.end(),
                         [&](const YamlValue& part) { return fits(value, part); });
    }
    if (rule == "$ref") {
      return fits(value, *root_.find("$defs")->find(of.scalar.substr(of.scalar.rfind('/') + 1)));
    }
    if (rule == "items") {
      return std::all_of(value.items.begin(), value.items.end(),
                         [&](const YamlValue& item) { return fits(item, of); });
    }
    if (rule == "properties") {
      return std::all_of(value.members.begin(), value.members.end(), [&](const YamlMember& m) {
        const YamlValue* property = of.find(m.key);
        return property == nullptr || fits(m.value, *property);
      });
    }
    if (rule == "additionalProperties") {
      const YamlValue* known = schema.find("properties");
      return std::all_of(value.members.begin(), value.members.end(), [&](const YamlMember& m) {
        if (known != nullptr && known->find(m.key) != nullptr) return true;
        return of.is_map() && fits(m.value, of);
      });
    }
    return keeps_number(value, rule, of);
  }

  static bool keeps_number(const YamlValue& value, const std::string& rule, const YamlValue& of) {
    if (rule == "required") {
      return std::all_of(of.items.begin(), of.items.end(),
                         [&](const YamlValue& key) { return value.find(key.scalar) != nullptr; });
    }
    if (rule == "pattern") return std::regex_match(value.scalar, std::regex(of.scalar));
    if (rule == "minimum") return number(value) >= number(of);
    if (rule == "maximum") return number(value) <= number(of);
    if (rule == "exclusiveMinimum") return number(value) > number(of);
    if (rule == "minItems") return value.items.size() >= number(of);
    if (rule == "maxItems") return value.items.size() <= number(of);
    if (rule == "minProperties") return value.members.size() >= number(of);
    if (rule == "maxProperties") return value.members.size() <= number(of);
    const std::vector<std::string> notes{"$schema", "title", "description", "default", "$defs"};
    EXPECT_THAT(notes, testing::Contains(rule));
    return true;
  }

  static double number(const YamlValue& value) {
    double number = 0.0;
    const char* end = value.scalar.data() + value.scalar.size();
    const auto [rest, error] = std::from_chars(value.scalar.data(), end, number);
    return rest == end && !value.scalar.empty() ? number : NAN;
  }

  static bool has_type(const YamlValue& value, const YamlValue& type) {
    if (type.is_list()) {
      return std::any_of(type.items.begin(), type.items.end(),
                         [&](const YamlValue& each) { return has_type(value, each); });
    }
    const bool numeric = value.is_scalar() && !value.quoted && !std::isnan(number(value));
    const bool boolean = value.scalar == "true" || value.scalar == "false";
    if (type.scalar == "object") return value.is_map();
    if (type.scalar == "array") return value.is_list();
    if (type.scalar == "null") return value.is_null();
    if (type.scalar == "number") return numeric;
    if (type.scalar == "integer") return numeric && number(value) == std::floor(number(value));
    if (type.scalar == "boolean") return boolean && !value.quoted;
    return value.is_scalar() && (value.quoted || !boolean);
  }

  const YamlValue& root_;
};

// JSON is YAML.
const YamlValue& schema() {
  static const YamlValue kSchema = parse_well(topology_schema_json());
  return kSchema;
}

// Compares a committed text with the generated one; says how to bring it up to date.
void expect_committed(const std::string& committed, const std::string& generated,
                      const std::string& name) {
  if (committed == generated) return;
  const std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << generated;
  ADD_FAILURE() << name << " is not what the table of fields says; the new text is in " << path;
}

// A pattern is compiled only when a value is held against it.
std::size_t compile_patterns(const TypeDescription& type) {
  std::size_t count = type.pattern.empty() ? 0 : 1;
  EXPECT_NO_THROW(std::regex(type.pattern)) << type.name << ": " << type.pattern;
  for (const FieldDescription& field : type.fields) count += compile_patterns(field.type);
  for (const TypeDescription& part : type.parts) count += compile_patterns(part);
  return count;
}

TEST(TopologySchema, EveryPatternIsARegularExpression) {
  EXPECT_GT(compile_patterns(topology_record().describe()), 20u);
}

TEST(TopologySchema, CommittedSchemaIsTheGeneratedOne) {
  expect_committed(read_text(source_path("config/topology.schema.json")), topology_schema_json(),
                   "topology.schema.json");
}

TEST(TopologySchema, CommittedReferenceIsTheGeneratedOne) {
  const std::string text = read_text(source_path("docs/topology.md"));
  const std::string begin = "<!-- fields: generated -->\n", end = "<!-- end of fields -->\n";
  const std::size_t from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to);
  expect_committed(text.substr(from + begin.size(), to - from - begin.size()), topology_reference(),
                   "topology_fields.md");
}

TEST(TopologySchema, AcceptsShippedTopologiesAndTheirEffectiveForm) {
  for (const std::string& path : shipped_topologies()) {
    EXPECT_TRUE(SchemaValidator(schema()).accepts(parse_well(read_text(path)))) << path;
    const auto loaded = load_topology(path);
    ASSERT_TRUE(loaded.ok()) << message_of(loaded);
    EXPECT_TRUE(SchemaValidator(schema()).accepts(parse_well(print_topology(*loaded)))) << path;
  }
}

TEST(TopologySchema, AcceptsPartsOfAZooModelAndEmptySections) {
  EXPECT_TRUE(SchemaValidator(schema()).accepts(
      parse_well("model: {zoo: toy, generator: {latent: {size: 5}}, losses: {ecal: {weight: 1}}}\n"
                 "data: {train: [a.h5]}\ntrain:\nactors: {loader: }\n")));
}

TEST(TopologySchema, RefusesWhatTheParserRefuses) {
  for (const char* line : {
           "name: a b",
           "nam: x",
           "train: {epochs: 0}",
           "train: {epochs: 1.5}",
           "train: 3",
           "train: {schedule: []}",
           "train: {schedule: [d_rael]}",
           "train: {learning_rate: 1e-3}",
           "train: {learning_rate: {g: -1}}",
           "train: {learning_rate: {g: {polcy: constant}}}",
           "train: {optimiser: {d: adamm}}",
           "train: {micro_batch: \"16\"}",
           "actors: {replica: {device: cuda}}",
           "actors: {reducer: {segment: 1MB}}",
           "actors: {checkpointer: {every: 1 week}}",
           "links: [{from: loader}]",
           "cluster: {hosts: [{workers: 2}]}",
           "cluster: {hosts: [{address: a}], bandwidth: [{between: [a, a]}]}",
           "cluster: {bandwidth: [{between: [a], rate: 1Gbit}]}",
           "cluster: {bandwidth: [{between: [a, []], rate: 1Gbit}]}",
           "cluster: {bandwidth: [{between: [a, b], rate: 100MB}]}",
           "cluster: {assign: fast}",
           "cluster: {assign: [-1]}",
           "cluster: {listen: here}",
           "cluster: {failure: {heartbeat: 3}}",
       }) {
    const std::string text = kLeast + line + "\n";
    EXPECT_FALSE(parse(text).ok()) << line;
    EXPECT_FALSE(SchemaValidator(schema()).accepts(parse_well(text))) << line;
  }
  for (const char* layer : {"dens: 3", "dense: {unit: 3}", "convolution", "pad: []", "{}",
                            "{dense: 3, pad: [1, 1]}", "activation: rely", "dropout: 1.5"}) {
    const std::string text = fmt::format(
        "model: {{zoo: toy, generator: {{layers: [{}]}}}}\ndata: {{train: a.h5}}\n", layer);
    EXPECT_FALSE(parse(text).ok()) << layer;
    // A bare kind is accepted for every kind by the schema, whatever its options.
    const bool bare = std::string_view(layer) == "convolution";
    EXPECT_EQ(SchemaValidator(schema()).accepts(parse_well(text)), bare) << layer;
  }
}

}  // namespace
}  // namespace troupe::config
