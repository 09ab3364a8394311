#include "config/network_fields.h"

#include <algorithm>
#include <map>

#include "config/layer_kinds.h"
#include "config/list_codecs.h"
#include "config/scalar_codecs.h"

namespace troupe::config {
namespace {

using model::Layer;

// Far beyond any use.
constexpr std::int64_t kMostCells = std::int64_t{1} << 36;
constexpr std::size_t kMostLayers = 1000;

class LayersCodec final : public Codec<std::vector<Layer>> {
 public:
  void read(const YamlValue& value, std::vector<Layer>& into, Reader& reader) const override {
    if (!check_items(value, 1, kMostLayers, kWhat, reader)) return;
    into.clear();
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const Reader::Step step(reader, std::to_string(i));
      reader.remember(value.items[i].place);
      Layer layer;
      read_layer(value.items[i], layer, reader);
      into.push_back(std::move(layer));
    }
    name_layers(into);
  }

  YamlValue write(const std::vector<Layer>& layers, Selection selection) const override {
    YamlValue list = YamlValue::list();
    for (const Layer& layer : layers) {
      const KindEntry& kind = kind_entry(layer.kind);
      YamlValue item = YamlValue::map();
      item.add(kind.word, kind.codec->write(layer, selection));
      list.items.push_back(std::move(item));
    }
    return list;
  }

  TypeDescription describe() const override {
    TypeDescription bare = TypeDescription::of(TypeDescription::Kind::kWord, "a kind");
    TypeDescription kinds = TypeDescription::of(TypeDescription::Kind::kSection, kWhat);
    kinds.exclusive = true;
    for (const KindEntry& kind : kind_table()) {
      FieldDescription field;
      field.name = kind.word;
      field.type = kind.codec->describe();
      kinds.fields.push_back(std::move(field));
      bare.words.push_back(kind.word);
    }
    TypeDescription item = TypeDescription::of(TypeDescription::Kind::kOneOf, kWhat);
    item.parts = {std::move(bare), std::move(kinds)};
    TypeDescription list =
        TypeDescription::of(TypeDescription::Kind::kList, std::string("a list, each ") + kWhat);
    list.shared = "layers";
    list.least_items = 1;
    list.most_items = kMostLayers;
    list.parts = {std::move(item)};
    return list;
  }

 private:
  static constexpr const char* kWhat = "a layer such as `dense: {units: 64}`";

  static void read_layer(const YamlValue& value, Layer& into, Reader& reader) {
    if (value.is_scalar()) {
      YamlValue nothing;
      nothing.place = value.place;
      return read_kind(value.scalar, value.place, nothing, into, reader);
    }
    if (!value.is_map()) return reader.expected(value, kWhat);
    // An override below a bare kind: the kind under the empty key, its options beside it.
    const YamlValue* bare = value.find("");
    if (bare != nullptr && value.members.size() == 2 && value.members[1].key == bare->scalar) {
      return read_kind(bare->scalar, bare->place, value.members[1].value, into, reader);
    }
    if (value.members.size() != 1) {
      return reader.problem(value.place,
                            "a layer has one kind, with its options inside: `dense: {units: 64}`");
    }
    const YamlMember& member = value.members.front();
    read_kind(member.key, member.key_place, member.value, into, reader);
  }

  static void read_kind(const std::string& word, const Place& place, const YamlValue& options,
                        Layer& into, Reader& reader) {
    for (const KindEntry& kind : kind_table()) {
      if (kind.word != word) continue;
      const Reader::Step step(reader, word);
      return kind.codec->read(options, into, reader);
    }
    reader.problem(
        place, "unknown kind of layer \"" + shown(word) + "\"" + suggestion(word, layer_kinds()));
  }

  static void name_layers(std::vector<Layer>& layers) {
    std::map<std::string, int> counts;
    for (Layer& layer : layers) {
      const std::string& word = kind_entry(layer.kind).word;
      const int number = ++counts[word];
      if (layer.name.empty()) layer.name = word + std::to_string(number);
    }
  }
};

model::Shape shape_of(const std::vector<std::int64_t>& numbers) {
  if (numbers.size() == 1) return model::Shape::features(numbers[0]);
  model::Shape shape{{1, 1, 1}, numbers.back(), static_cast<int>(numbers.size()) - 1};
  std::copy(numbers.begin(), numbers.end() - 1, shape.space.begin());
  return shape;
}

using Ends = std::array<std::int64_t, 2>;  // before an axis and behind it

CodecOf<Ends> ends(std::int64_t most) {
  const auto number = integer<std::int64_t>(0, most);
  const auto pair = array<2>(number);
  TypeDescription type = TypeDescription::of(TypeDescription::Kind::kOneOf,
                                             number->describe().name + " or [before, behind]");
  type.parts = {number->describe(), pair->describe()};
  return codec_of<Ends>(
      std::move(type),
      [=](const YamlValue& value, Ends& into, Reader& reader) {
        if (value.is_list()) return pair->read(value, into, reader);
        number->read(value, into[0], reader);
        into[1] = into[0];
      },
      [=](const Ends& value, Selection selection) {
        return value[0] == value[1] ? number->write(value[0], selection)
                                    : pair->write(value, selection);
      });
}

constexpr const char* kShape =
    "a shape: [features], [x, channels], [x, y, channels] or [x, y, z, channels]";

}  // namespace

CodecOf<model::Extent> extent(std::int64_t least, std::int64_t most, std::int64_t fill) {
  return array<3>(integer<std::int64_t>(least, most), 1, fill);
}

CodecOf<model::Margins> margins(std::int64_t most) {
  const auto axes = array<3>(ends(most), 1, Ends{0, 0});
  return codec_of<model::Margins>(
      axes->describe(),
      [axes](const YamlValue& value, model::Margins& into, Reader& reader) {
        std::array<Ends, 3> given{};
        axes->read(value, given, reader);
        for (std::size_t axis = 0; axis < 3; ++axis) {
          into.before[axis] = given[axis][0];
          into.behind[axis] = given[axis][1];
        }
      },
      [axes](const model::Margins& value, Selection selection) {
        std::array<Ends, 3> given{};
        for (std::size_t axis = 0; axis < 3; ++axis) {
          given[axis] = {value.before[axis], value.behind[axis]};
        }
        return axes->write(given, selection);
      });
}

CodecOf<model::Shape> shape() {
  const auto list = config::list(integer<std::int64_t>(1, kMostUnits), 1, 4);
  TypeDescription type = list->describe();
  type.name = kShape;
  return codec_of<model::Shape>(
      type,
      [list](const YamlValue& value, model::Shape& into, Reader& reader) {
        std::vector<std::int64_t> numbers;
        list->read(value, numbers, reader);
        if (numbers.empty()) return;
        // Where a number could not be read there is a problem already, and the rest still makes a
        // shape.
        for (std::int64_t& number : numbers) number = std::max<std::int64_t>(number, 1);
        into = shape_of(numbers);
        if (into.space[0] > kMostCells / into.space[1] / into.space[2]) {
          reader.problem(value.place, "more than 2^36 cells");
          into = model::Shape::features(1);
        }
      },
      [list](const model::Shape& value, Selection selection) {
        std::vector<std::int64_t> numbers(value.space.begin(),
                                          value.space.begin() + value.spatial_rank);
        numbers.push_back(value.channels);
        return list->write(numbers, selection);
      });
}

CodecOf<std::vector<model::Layer>> layers() { return std::make_shared<LayersCodec>(); }

}  // namespace troupe::config
