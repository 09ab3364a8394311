// The `data` section: what to train on and how it is read.

#include <fmt/format.h>

#include "config/field_to_mend.h"
#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"

namespace troupe::config {
namespace {

using pipeline::BadEventPolicy;
using pipeline::CacheMode;
using pipeline::DataSchema;
using pipeline::DatasetNames;
using pipeline::DatasetOptions;
using pipeline::Preprocessing;
using pipeline::ShowerOptions;
using pipeline::SyntheticOptions;

// An option of the dataset, reached from the topology.
template <class T>
auto dataset(T DatasetOptions::*member) {
  return [member](auto& topology) -> auto& { return topology.data.dataset.*member; };
}
template <class T>
auto shower(T ShowerOptions::*member) {
  return [member](auto& synthetic) -> auto& { return synthetic.showers.*member; };
}

// The word `synthetic`, a path or pattern, or a list of them.
class SourceCodec final : public Codec<DataSection> {
 public:
  void read(const YamlValue& value, DataSection& into, Reader& reader) const override {
    into.synthetic = value.is_scalar() && value.scalar == "synthetic";
    into.dataset.paths.clear();
    if (into.synthetic) return;
    if (value.is_scalar()) {
      into.dataset.paths.resize(1);
      return path_->read(value, into.dataset.paths.front(), reader);
    }
    if (!value.is_list()) {
      return reader.expected(value, "synthetic, a path, a pattern or a list of them");
    }
    paths_->read(value, into.dataset.paths, reader);
  }
  YamlValue write(const DataSection& data, Selection selection) const override {
    if (data.synthetic) return YamlValue::plain("synthetic");
    // Where the files are is no part of what they are: their content has a fingerprint of its own.
    if (selection != Selection::kAll) return YamlValue::plain("files");
    return paths_->write(data.dataset.paths, selection);
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kOneOf,
                                               "synthetic, a path, a pattern or a list of them");
    type.parts = {path_->describe(), paths_->describe()};
    return type;
  }

 private:
  CodecOf<std::string> path_ = path_or_pattern("a path or pattern (*, ?, [..])");
  CodecOf<std::vector<std::string>> paths_ = list(path_, 1, 10'000);
};

CodecOf<DatasetNames> names_record() {
  auto record = std::make_shared<Record<DatasetNames>>("names of datasets");
  record
      ->field("image", &DatasetNames::image, text("the name of a dataset"), Scope::kState,
              "Cells, (N,X,Y,Z) or (N,X,Y,Z,1), floating point; `group/name` reaches into groups.")
      .field("energy", &DatasetNames::energy, text("the name of a dataset"), Scope::kState,
             "(N), (N,1) or (N,C).")
      .field("energy_column", &DatasetNames::energy_column, integer(0, 1000), Scope::kState,
             "Which of the C columns.")
      .field("energy_unit", &DatasetNames::energy_unit_gev, positive(), Scope::kState,
             "GeV per stored unit: 100 where E / 100 is stored.")
      .field("angle", &DatasetNames::angle, text("the name of a dataset"), Scope::kState,
             "(N) in rad; without one every event is at pi / 2.");
  return record;
}

CodecOf<Preprocessing> preprocessing_record() {
  auto record = std::make_shared<Record<Preprocessing>>("preprocessing");
  record
      ->field("threshold", &Preprocessing::threshold, number<float>(NumberRange{.least = 0.0}),
              Scope::kState, "Cells under it become 0; in stored units.")
      .field("min_ecal", &Preprocessing::min_ecal, number<float>(NumberRange{.least = -1.0}),
             Scope::kState,
             "Events whose sum of cells is not above it are cut; in stored units; -1: no cut.")
      .field("scale", &Preprocessing::scale, positive<float>(), Scope::kState,
             "Factor on every cell.")
      .field("power", &Preprocessing::power, positive(), Scope::kState,
             "Exponent of every cell, after the scale.");
  return record;
}

RecordOf<SyntheticOptions> synthetic_record() {
  auto record = std::make_shared<Record<SyntheticOptions>>("generated showers");
  const NumberRange energy{1.0, 1000.0, false};
  record
      ->field("events", &SyntheticOptions::events, integer<std::uint64_t>(10, 100'000'000),
              Scope::kState, "Showers made, those for testing included.")
      .field("seed", shower(&ShowerOptions::seed), integer<std::uint64_t>(0, INT64_MAX),
             Scope::kState, "Of the showers.")
      .field("min_energy", shower(&ShowerOptions::min_energy_gev), number(energy), Scope::kState,
             "GeV.")
      .field("max_energy", shower(&ShowerOptions::max_energy_gev), number(energy), Scope::kState,
             "GeV; energies are uniform between the two.")
      .field("min_angle", shower(&ShowerOptions::min_angle_rad), optional(number(1.047, 2.095)),
             Scope::kState,
             "Rad; the detector of schema lcd-angle takes pi / 3 to 2 pi / 3, others none. By "
             "default its least.")
      .field("max_angle", shower(&ShowerOptions::max_angle_rad), optional(number(1.047, 2.095)),
             Scope::kState, "Rad; by default the detector's largest.")
      .field("threshold", shower(&ShowerOptions::threshold_gev), number(0.0, 1.0), Scope::kState,
             "GeV; cells under it are stored as 0.")
      .field("folder", &SyntheticOptions::folder, path("a folder"), Scope::kFree,
             "Where the file is kept and found again; by default the command's choice.")
      .check([](const YamlValue&, const SyntheticOptions& options, Reader& reader) {
        const ShowerOptions& showers = options.showers;
        const std::string path = reader.path() + ".";
        if (showers.min_energy_gev > showers.max_energy_gev) {
          report_rule({path + "min_energy", path + "max_energy"},
                      fmt::format("min_energy ({}) is above max_energy ({})",
                                  showers.min_energy_gev, showers.max_energy_gev),
                      reader);
        }
        if (showers.min_angle_rad && showers.max_angle_rad &&
            *showers.min_angle_rad > *showers.max_angle_rad) {
          report_rule({path + "min_angle", path + "max_angle"},
                      fmt::format("min_angle ({}) is above max_angle ({})", *showers.min_angle_rad,
                                  *showers.max_angle_rad),
                      reader);
        }
      });
  return record;
}

// Names and preprocessing begin as what the schema is known for.
void set_schema_defaults(const YamlValue& section, Topology& topology) {
  DatasetOptions& options = topology.data.dataset;
  DataSchema schema = options.schema;
  if (const YamlValue* value = section.find("schema")) {
    schema = pipeline::parse_schema(value->scalar).value_or(schema);
  }
  options.preprocessing = pipeline::default_preprocessing(schema);
  const YamlValue* names = section.find("names");
  if (names != nullptr) options.names = pipeline::default_names(schema);
}

template <class E>
Word<E> word_of(E value) {
  return {std::string(pipeline::text(value)), value};
}

void add_reading_fields(Record<Topology>& record) {
  record
      .field("test_one_in", dataset(&DatasetOptions::test_one_in),
             integer<std::uint32_t>(0, 1'000'000), Scope::kState,
             "One file in so many, or one event where there are fewer files, is for testing; 0: "
             "none.")
      .field("cache", dataset(&DatasetOptions::cache),
             word<CacheMode>({word_of(CacheMode::kMemory), word_of(CacheMode::kNone)}, {"disk"}),
             Scope::kState, "What is kept of events that were read; `none` shuffles by blocks.")
      .field("window", dataset(&DatasetOptions::window_bytes), byte_size<std::uint64_t>(1 << 20),
             Scope::kState, "With `cache: none`: decoded images that a shuffling window may cover.")
      .field("on_bad_event", dataset(&DatasetOptions::on_bad_event),
             word<BadEventPolicy>({word_of(BadEventPolicy::kFail), word_of(BadEventPolicy::kSkip)}),
             Scope::kState, "A NaN, a negative cell, an energy not above 0: an error, or left out.")
      .field(
          "index_folder", dataset(&DatasetOptions::index_folder), path("a folder"), Scope::kFree,
          "Where the index of each file is kept; by default data/index beside the run's folder.");
}

}  // namespace

std::shared_ptr<Record<Topology>> data_record() {
  auto record = std::make_shared<Record<Topology>>("the data");
  record->before(set_schema_defaults)
      .required(
          "train", [](auto& t) -> auto& { return t.data; },
          CodecOf<DataSection>(std::make_shared<SourceCodec>()), Scope::kState,
          "`synthetic`, HDF5 files or patterns of them; relative to this file.")
      .field("schema", dataset(&DatasetOptions::schema),
             word<DataSchema>({word_of(DataSchema::kLcdFixed), word_of(DataSchema::kLcdAngle),
                               word_of(DataSchema::kCustom)},
                              {"calochallenge", "nnlo", "mnist-idx"}),
             Scope::kState, "Which datasets the files hold, in which units.")
      .field("names", dataset(&DatasetOptions::names), optional(names_record()), Scope::kState,
             "Of the datasets; by default those of the schema.")
      .field("preprocessing", dataset(&DatasetOptions::preprocessing),
             optional(preprocessing_record()), Scope::kState,
             "In this order; by default what the schema is known for.");
  add_reading_fields(*record);
  record->section(
      "synthetic", [](auto& t) -> auto& { return t.data.showers; }, synthetic_record(),
      "With `train: synthetic`: showers made once and kept.");
  return record;
}

}  // namespace troupe::config
