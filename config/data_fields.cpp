// The `data` section: what to train on and how it is read.

#include <fmt/format.h>

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"
#include "pipeline/data/remote_source.h"

namespace troupe::config {
namespace {

using pipeline::BadEventPolicy;
using pipeline::CacheMode;
using pipeline::DataSchema;
using pipeline::DatasetNames;
using pipeline::DatasetOptions;
using pipeline::Particle;
using pipeline::Preprocessing;
using pipeline::ShowerOptions;
using pipeline::SyntheticOptions;

// A path or pattern, or the address of a file.
CodecOf<std::string> file_or_address() {
  const CodecOf<std::string> path =
      path_or_pattern("a path, a pattern (*, ?, [..]) or an address (https, http, s3, root)");
  return codec_of<std::string>(
      path->describe(),
      [path](const YamlValue& value, std::string& into, Reader& reader) {
        if (!value.is_scalar() || !pipeline::is_readable_address(value.scalar)) {
          return path->read(value, into, reader);
        }
        into = value.scalar;
      },
      [path](const std::string& value, Selection selection) {
        return path->write(value, selection);
      });
}

// The word `synthetic`, a path, pattern or address, or a list of them.
CodecOf<DataSection> source() {
  const CodecOf<std::string> path = file_or_address();
  const CodecOf<std::vector<std::string>> paths = list(path, 1, 10'000);
  TypeDescription type = TypeDescription::of(
      TypeDescription::Kind::kOneOf, "synthetic, a path, a pattern, an address or a list of them");
  type.parts = {path->describe(), paths->describe()};
  return codec_of<DataSection>(
      type,
      [path, paths, what = type.name](const YamlValue& value, DataSection& into, Reader& reader) {
        into.synthetic = value.is_scalar() && value.scalar == "synthetic";
        into.dataset.paths.clear();
        if (into.synthetic) return;
        if (value.is_list()) return paths->read(value, into.dataset.paths, reader);
        if (!value.is_scalar()) return reader.expected(value, what);
        into.dataset.paths.resize(1);
        path->read(value, into.dataset.paths.front(), reader);
      },
      [paths](const DataSection& data, Selection selection) {
        if (data.synthetic) return YamlValue::plain("synthetic");
        // Where the files are is no part of what they are: their content has a fingerprint of its
        // own.
        if (selection != Selection::kAll) return YamlValue::plain("files");
        return paths->write(data.dataset.paths, selection);
      });
}

// The name of one part, or those of several.
CodecOf<std::vector<std::string>> name_or_names() {
  const CodecOf<std::string> name = text("the name of a dataset");
  const CodecOf<std::vector<std::string>> names = list(name, 1, 16);
  TypeDescription type =
      TypeDescription::of(TypeDescription::Kind::kOneOf, "the name of a dataset or a list of them");
  type.parts = {name->describe(), names->describe()};
  return codec_of<std::vector<std::string>>(
      type,
      [name, names, what = type.name](const YamlValue& value, std::vector<std::string>& into,
                                      Reader& reader) {
        if (value.is_list()) return names->read(value, into, reader);
        if (!value.is_scalar()) return reader.expected(value, what);
        into.resize(1);
        name->read(value, into.front(), reader);
      },
      // A list of one says the same as its name.
      [name, names](const std::vector<std::string>& value, Selection selection) {
        return value.size() == 1 ? name->write(value.front(), selection)
                                 : names->write(value, selection);
      });
}

CodecOf<DatasetNames> names_record() {
  auto record = std::make_shared<Record<DatasetNames>>("names of datasets");
  record
      ->field("image", &DatasetNames::images, name_or_names(), Scope::kState,
              "Cells: (N,X,Y) or (N,X,Y,Z), either with an axis of channels behind, or (N,values); "
              "numbers of any type. `group/name` reaches into groups. Those of a list follow each "
              "other in one image of (N,values).")
      .field("energy", &DatasetNames::energy, text("the name of a dataset"), Scope::kState,
             "(N), (N,1) or (N,C): the first condition, which is above 0.")
      .field("energy_column", &DatasetNames::energy_column, integer(0, 1000), Scope::kState,
             "Which of the C columns.")
      .field("energy_offset", &DatasetNames::energy_offset, newer(number(), 0.0), Scope::kState,
             "Added to the stored number before the unit, as 1 where labels begin at 0.")
      .field("energy_unit", &DatasetNames::energy_unit_gev, positive(), Scope::kState,
             "GeV per stored unit: 100 where E / 100 is stored.")
      .field("angle", &DatasetNames::angle, text("the name of a dataset"), Scope::kState,
             "(N) in rad, such as `theta` or `mtheta`; without one every event is at pi / 2.");
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

template <class E>
Word<E> word_of(E value) {
  return {std::string(pipeline::text(value)), value};
}

CodecOf<Particle> particle_word() {
  std::vector<Word<Particle>> words;
  for (const Particle particle : pipeline::kParticles) words.push_back(word_of(particle));
  return word<Particle>(words);
}

RecordOf<SyntheticOptions> synthetic_record() {
  auto record = std::make_shared<Record<SyntheticOptions>>("generated showers");
  const NumberRange energy{1.0, 1000.0, false};
  record
      ->field("events", &SyntheticOptions::events, integer<std::uint64_t>(10, 100'000'000),
              Scope::kState, "Showers made, those for testing included.")
      .field("seed", within(&SyntheticOptions::showers, &ShowerOptions::seed),
             integer<std::uint64_t>(0, INT64_MAX), Scope::kState, "Seed of the generated showers.")
      .field("min_energy", within(&SyntheticOptions::showers, &ShowerOptions::min_energy_gev),
             number(energy), Scope::kState, "Smallest energy in GeV.")
      .field("max_energy", within(&SyntheticOptions::showers, &ShowerOptions::max_energy_gev),
             number(energy), Scope::kState,
             "Largest energy in GeV; energies are uniform between the two.")
      .field("min_angle", within(&SyntheticOptions::showers, &ShowerOptions::min_angle_rad),
             optional(number(1.047, 2.095)), Scope::kState,
             "Smallest angle in rad. The detector of schema lcd-angle takes pi / 3 to 2 pi / 3, "
             "others take none. By default its smallest.")
      .field("max_angle", within(&SyntheticOptions::showers, &ShowerOptions::max_angle_rad),
             optional(number(1.047, 2.095)), Scope::kState,
             "Largest angle in rad; by default the detector's largest.")
      .field("threshold", within(&SyntheticOptions::showers, &ShowerOptions::threshold_gev),
             number(0.0, 1.0), Scope::kState, "GeV; cells under it are stored as 0.")
      .field("particles", within(&SyntheticOptions::showers, &ShowerOptions::particles),
             newer(list(particle_word(), 1, 3), std::vector{Particle::kElectron}), Scope::kState,
             "The particles that make showers: each shower has one of these.")
      .field("folder", &SyntheticOptions::folder, path("a folder"), Scope::kFree,
             "Where the file is kept and found again; by default the command's choice.")
      .check([](const YamlValue&, const SyntheticOptions& options, Reader& reader) {
        const ShowerOptions& showers = options.showers;
        const std::string path = reader.path() + ".";
        if (showers.min_energy_gev > showers.max_energy_gev) {
          reader.broken_rule({path + "min_energy", path + "max_energy"},
                             fmt::format("min_energy ({}) is above max_energy ({})",
                                         showers.min_energy_gev, showers.max_energy_gev));
        }
        if (showers.min_angle_rad && showers.max_angle_rad &&
            *showers.min_angle_rad > *showers.max_angle_rad) {
          reader.broken_rule({path + "min_angle", path + "max_angle"},
                             fmt::format("min_angle ({}) is above max_angle ({})",
                                         *showers.min_angle_rad, *showers.max_angle_rad));
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

// Events in memory, in files of the cache folder and in shards train the same, and a run may go on
// with another of these.
CodecOf<CacheMode> cache_word() {
  const CodecOf<CacheMode> words =
      word<CacheMode>({word_of(CacheMode::kMemory), word_of(CacheMode::kDisk),
                       word_of(CacheMode::kShard), word_of(CacheMode::kNone)});
  return codec_of<CacheMode>(
      words->describe(),
      [words](const YamlValue& value, CacheMode& into, Reader& reader) {
        words->read(value, into, reader);
      },
      [words](const CacheMode& value, Selection selection) {
        const bool same = selection != Selection::kAll && value != CacheMode::kNone;
        return words->write(same ? CacheMode::kMemory : value, selection);
      });
}

void add_reading_fields(Record<Topology>& record) {
  record
      .field("test_one_in",
             within(&Topology::data, &DataSection::dataset, &DatasetOptions::test_one_in),
             integer<std::uint32_t>(0, 1'000'000), Scope::kState,
             "One file in so many, or one event where there are fewer files, is for testing; 0: "
             "none.")
      .field("test_part",
             within(&Topology::data, &DataSection::dataset, &DatasetOptions::test_part),
             newer(integer<std::uint32_t>(0, 999'999), std::uint32_t{0}), Scope::kState,
             "Which part of the files or events these are, of as many equal ones as `test_one_in` "
             "says: 0 is the last one, 1 the one before it, and so on.")
      .field("events", within(&Topology::data, &DataSection::dataset, &DatasetOptions::events),
             newer(integer<std::uint64_t>(0, INT64_MAX), std::uint64_t{0}), Scope::kState,
             "For trials: the most events that are trained on, and as many for testing; 0: all.")
      .field("shuffle", within(&Topology::data, &DataSection::shuffle), newer(boolean(), true),
             Scope::kState,
             "Whether each epoch has the events in another order; else it is that of the files.")
      .field(
          "cache", within(&Topology::data, &DataSection::dataset, &DatasetOptions::cache),
          cache_word(), Scope::kState,
          "Where events that were read are kept: in each process, in files that the processes of "
          "a machine share, in each process those that it computes with soon, or nowhere; `none` "
          "shuffles by blocks.")
      .field("cache_folder",
             within(&Topology::data, &DataSection::dataset, &DatasetOptions::cache_folder),
             path("a folder"), Scope::kFree,
             "Where events of `cache: disk` and copies of files on servers are kept, for all runs "
             "and processes; by default data beside the run's folder.")
      .field("cache_limit",
             within(&Topology::data, &DataSection::dataset, &DatasetOptions::cache_limit),
             byte_size<std::uint64_t>(0), Scope::kFree,
             "The most bytes of these; those used longest ago go, none that is in use. 0: as the "
             "disk has room.")
      .field("shard_memory",
             within(&Topology::data, &DataSection::dataset, &DatasetOptions::shard_bytes),
             byte_size<std::uint64_t>(1 << 16), Scope::kFree,
             "With `cache: shard`: the most that each process keeps of the events that it computes "
             "with soon.")
      .field("window",
             within(&Topology::data, &DataSection::dataset, &DatasetOptions::window_bytes),
             byte_size<std::uint64_t>(1 << 20), Scope::kState,
             "With `cache: none`: decoded images in one shuffling window.")
      .field("on_bad_event",
             within(&Topology::data, &DataSection::dataset, &DatasetOptions::on_bad_event),
             word<BadEventPolicy>({word_of(BadEventPolicy::kFail), word_of(BadEventPolicy::kSkip)}),
             Scope::kState,
             "Whether an event with a NaN, a negative cell or an energy not above 0 is an error or "
             "is left out.")
      .field(
          "index_folder",
          within(&Topology::data, &DataSection::dataset, &DatasetOptions::index_folder),
          path("a folder"), Scope::kFree,
          "Where the index of each file is kept; by default data/index beside the run's folder.");
}

std::vector<Word<DataSchema>> words_of_schemas() {
  std::vector<Word<DataSchema>> words;
  for (const pipeline::SchemaFacts& facts : pipeline::all_schemas()) {
    words.push_back(word_of(facts.schema));
  }
  return words;
}

}  // namespace

std::shared_ptr<Record<Topology>> data_record() {
  auto record = std::make_shared<Record<Topology>>("the data");
  record->before(set_schema_defaults)
      .required(
          "train", &Topology::data, source(), Scope::kState,
          "`synthetic`, files, patterns or addresses of them; paths are relative to this file.")
      .field("schema", within(&Topology::data, &DataSection::dataset, &DatasetOptions::schema),
             word<DataSchema>(words_of_schemas()), Scope::kState,
             "Which parts the files hold, in which units.")
      .field("names", within(&Topology::data, &DataSection::dataset, &DatasetOptions::names),
             optional(names_record()), Scope::kState,
             "Names of the parts; by default those of the schema.")
      .field(
          "binning", within(&Topology::data, &DataSection::dataset, &DatasetOptions::binning),
          path("a file"), Scope::kFree,
          "With schema calochallenge: the XML file of the binning, by which showers are boxes of "
          "angles, radii and layers; without one they are vectors.")
      .field("preprocessing",
             within(&Topology::data, &DataSection::dataset, &DatasetOptions::preprocessing),
             optional(preprocessing_record()), Scope::kState,
             "The steps that events go through, in this order; by default those that the schema "
             "needs.");
  add_reading_fields(*record);
  record->section("synthetic", within(&Topology::data, &DataSection::showers), synthetic_record(),
                  "With `train: synthetic`: showers made once and kept.");
  return record;
}

}  // namespace troupe::config
