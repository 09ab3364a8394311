#include "study/study_fields.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/shipped.h"
#include "study/method.h"

namespace troupe::study {
namespace {

using config::CodecOf;
using config::Reader;
using config::Record;
using config::RecordOf;
using config::Scope;
using config::Selection;
using config::TypeDescription;
using config::YamlMember;
using config::YamlValue;
using Kind = TypeDescription::Kind;

// A path, or the name of a topology that comes with the program.
CodecOf<std::string> topology_path() {
  const auto path =
      config::path("a topology's path, or the name of one that comes with the program");
  return config::codec_of<std::string>(
      path->describe(),
      [path](const YamlValue& value, std::string& into, Reader& reader) {
        const bool is_shipped = value.is_scalar() && config::shipped_text(value.scalar);
        if (!is_shipped) return path->read(value, into, reader);
        into = value.scalar;
      },
      [path](const std::string& value, Selection selection) {
        return path->write(value, selection);
      });
}

// Any value that a field may have, kept as YAML on one line. Whether it is one, the topology tells.
CodecOf<std::string> topology_value() {
  constexpr const char* kWhat = "a value of the field";
  return config::codec_of<std::string>(
      TypeDescription::of(Kind::kOneOf, kWhat),
      [](const YamlValue& value, std::string& into, Reader& reader) {
        if (value.is_null()) return reader.expected(value, kWhat);
        into = config::flow_yaml(value);
        if (into.size() <= kLongestValue) return;
        reader.problem(value.place, fmt::format("the value has {} bytes, more than {}", into.size(),
                                                kLongestValue));
      },
      [](const std::string& value, Selection) {
        config::Problems none;
        return config::parse_yaml(value, "", none);
      });
}

// A section of one field of the space, and one or several of its values. SpaceCodec checks them.
CodecOf<Condition> condition() {
  constexpr const char* kWhat =
      "a field of the space with one of its values or a list of these, such as "
      "{train.optimiser.g.kind: adam}";
  TypeDescription type = TypeDescription::of(Kind::kNamed, kWhat);
  type.parts = {topology_value()->describe()};
  return config::codec_of<Condition>(
      std::move(type),
      [](const YamlValue& value, Condition& into, Reader& reader) {
        if (!value.is_map() || value.members.size() != 1) return reader.expected(value, kWhat);
        const YamlMember& member = value.members.front();
        const YamlValue& values = member.value;
        into = {member.key, {}};
        for (const YamlValue& each : values.is_list() ? values.items : std::vector{values}) {
          into.values.push_back(config::flow_yaml(each));
        }
      },
      [](const Condition& value, Selection) {
        config::Problems none;
        YamlValue values = YamlValue::list(), section = YamlValue::map();
        for (const std::string& each : value.values) {
          values.items.push_back(config::parse_yaml(each, "", none));
        }
        section.add(value.path, std::move(values));
        return section;
      });
}

template <class T>
void check_order(const char* kind, const std::optional<std::array<T, 2>>& bounds, Reader& reader) {
  if (!bounds || bounds->front() < bounds->back()) return;
  reader.problem_at(fmt::format("{}.{}", reader.path(), kind),
                    fmt::format("the lower bound comes first, and {} is not below {}",
                                bounds->front(), bounds->back()));
}

void check_dimension(const YamlValue& value, const Dimension& dimension, Reader& reader) {
  const int given = dimension.log.has_value() + dimension.linear.has_value() +
                    dimension.integer.has_value() + dimension.choice.has_value();
  if (given != 1) {
    return reader.problem(value.place, "give one of log, linear, integer and choice");
  }
  check_order("log", dimension.log, reader);
  check_order("linear", dimension.linear, reader);
  check_order("integer", dimension.integer, reader);
  if (!dimension.choice) return;
  const std::set<std::string> different(dimension.choice->begin(), dimension.choice->end());
  if (different.size() < dimension.choice->size()) {
    reader.problem_at(reader.path() + ".choice", "a value stands here twice");
  }
}

constexpr std::int64_t kMostInteger = std::int64_t{1} << 52;  // doubles hold them

RecordOf<Dimension> dimension_record() {
  using config::array;
  using config::optional;
  auto record = std::make_shared<Record<Dimension>>(
      "the values of a field, such as {log: [1e-4, 1e-2]} or {choice: [adam, rmsprop]}");
  record
      ->field("log", &Dimension::log, optional(array<2>(config::positive())), Scope::kState,
              "Numbers between two bounds, each factor as likely as the next.")
      .field("linear", &Dimension::linear, optional(array<2>(config::number())), Scope::kState,
             "Numbers between two bounds.")
      .field("integer", &Dimension::integer,
             optional(array<2>(config::integer<std::int64_t>(-kMostInteger, kMostInteger))),
             Scope::kState, "Whole numbers from the first bound, at most the second.")
      .field("step", &Dimension::step, config::integer<std::int64_t>(1, kMostInteger),
             Scope::kState, "Distance between two of these.")
      .used_if("integer", [](const Dimension& dimension) { return dimension.integer.has_value(); })
      .field("choice", &Dimension::choice,
             optional(config::list<std::string>(topology_value(), 1, 100)), Scope::kState,
             "Values without an order; a single one fixes the field.")
      .field("only_with", &Dimension::only_with, optional(condition()), Scope::kState,
             "Field with a choice that stands before this one, and those of its values with which "
             "this one exists. With others it is left out.")
      .check(check_dimension);
  return record;
}

// One is part of the other: "train.learning_rate" and "train.learning_rate.g".
bool is_within(const std::string& path, const std::string& whole) {
  return path == whole || path.starts_with(whole + ".");
}

// Names and numbers with points between them. A number is written in one way.
bool is_plain_path(const std::string& path) {
  if (path.size() > kLongestPath) return false;
  std::size_t from = 0;
  while (true) {
    const std::size_t end = std::min(path.find('.', from), path.size());
    const std::string_view part = std::string_view(path).substr(from, end - from);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto is_sign = [&](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
             c == '-';
    };
    const bool is_number = std::ranges::all_of(part, is_digit);
    if (part.empty() || !std::ranges::all_of(part, is_sign)) return false;
    if (is_number && part.size() > 1 && part.front() == '0') return false;
    if (end == path.size()) return true;
    from = end + 1;
  }
}

class SpaceCodec final : public config::Codec<Space> {
 public:
  void read(const YamlValue& value, Space& into, Reader& reader) const override {
    if (!value.is_map() || value.members.empty() || value.members.size() > kMostDimensions) {
      return reader.expected(
          value, fmt::format("a section of 1 to {} fields of the topology", kMostDimensions));
    }
    into.clear();
    for (const YamlMember& member : value.members) {
      const Reader::Step step(reader, member.key);
      reader.remember(member.key_place);
      if (!is_plain_path(member.key)) {
        reader.problem(
            member.key_place,
            "expected a field's path, such as train.learning_rate.g or layers.3.dropout");
        continue;
      }
      Dimension dimension;
      record_->read(member.value, dimension, reader);
      dimension.path = member.key;
      for (const Dimension& other : into) {
        if (!is_within(other.path, member.key) && !is_within(member.key, other.path)) continue;
        reader.problem(member.key_place, fmt::format("{} varies a part of the same", other.path));
      }
      if (dimension.only_with && !reader.has_problem_below(reader.path() + ".only_with")) {
        check_condition(*dimension.only_with, into, reader);
      }
      into.push_back(std::move(dimension));
    }
  }
  YamlValue write(const Space& space, Selection selection) const override {
    YamlValue section = YamlValue::map();
    for (const Dimension& dimension : space) {
      section.add(dimension.path, record_->write(dimension, selection));
    }
    return section;
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(Kind::kNamed, "fields of the topology");
    type.parts = {record_->describe()};
    return type;
  }

 private:
  static void check_condition(const Condition& condition, const Space& before, Reader& reader) {
    const std::string field = reader.path() + ".only_with";
    const auto other = std::ranges::find(before, condition.path, &Dimension::path);
    if (other == before.end() || !other->choice) {
      return reader.problem_at(
          field, fmt::format("no choice of {} stands before it in the space", condition.path));
    }
    for (const std::string& value : condition.values) {
      if (std::ranges::find(*other->choice, value) != other->choice->end()) continue;
      reader.problem_at(field, fmt::format("{} is none of the choices of {}", value, other->path));
    }
    if (condition.values.empty()) reader.problem_at(field, "it names no value");
  }

  RecordOf<Dimension> record_ = dimension_record();
};

RecordOf<Objective> objective_record() {
  auto record = std::make_shared<Record<Objective>>("an objective such as {minimise: merit}");
  const auto name = config::text("a figure's name");
  record
      ->field("minimise", &Objective::minimise, config::optional(name), Scope::kState,
              "Name of the figure that shall be small.")
      .field("maximise", &Objective::maximise, config::optional(name), Scope::kState,
             "Name of the figure that shall be large.")
      .field("of", &Objective::of,
             config::word<FigureSource>({{"validation", FigureSource::kValidation},
                                         {"metrics", FigureSource::kMetrics},
                                         {"summary", FigureSource::kSummary}}),
             Scope::kState,
             "Where it stands: in the last validation of a run, in metrics.jsonl as the last value "
             "of a series, or in summary.json.")
      .check([](const YamlValue& value, const Objective& objective, Reader& reader) {
        if (objective.minimise.has_value() != objective.maximise.has_value()) return;
        reader.problem(value.place, "give one of minimise and maximise");
      });
  return record;
}

auto of_kinds(std::vector<MethodKind> kinds) {
  return [kinds](const MethodOptions& method) {
    return std::ranges::find(kinds, method.kind) != kinds.end();
  };
}

constexpr const char* kLearningKinds = "kind: bayesian, random or genetic";

void add_genetic_fields(Record<MethodOptions>& record) {
  const auto is_genetic = of_kinds({MethodKind::kGenetic});
  record
      .field("population", &MethodOptions::population, config::integer<std::uint32_t>(2, 1000),
             Scope::kState,
             "Trials that are drawn at random at first, and the best of which later ones descend "
             "from.")
      .used_if("kind: genetic", is_genetic)
      .field("crossover", &MethodOptions::crossover, config::number(0.0, 1.0), Scope::kState,
             "Probability that a trial descends from two others, not from one.")
      .used_if("kind: genetic", is_genetic)
      .field("mutation", &MethodOptions::mutation, config::number(0.0, 1.0), Scope::kState,
             "Probability that a value changes on the way, by less and less.")
      .used_if("kind: genetic", is_genetic);
}

RecordOf<MethodOptions> method_record() {
  auto record = std::make_shared<Record<MethodOptions>>("a method such as {kind: random}");
  const auto is_drawn =
      of_kinds({MethodKind::kBayesian, MethodKind::kRandom, MethodKind::kGenetic});
  record
      ->field("kind", &MethodOptions::kind,
              config::word<MethodKind>({{"bayesian", MethodKind::kBayesian},
                                        {"random", MethodKind::kRandom},
                                        {"grid", MethodKind::kGrid},
                                        {"genetic", MethodKind::kGenetic}}),
              Scope::kState,
              "How trials are chosen: by what a Gaussian process expects, at random, all of a "
              "grid, or by descent.")
      .field("trials", &MethodOptions::trials, config::integer<std::uint32_t>(1, kMostTrials),
             Scope::kFree, "Number of trials; may be raised in the study.yaml of a study's folder.")
      .used_if(kLearningKinds, is_drawn)
      .field("seed", &MethodOptions::seed, config::integer<std::uint64_t>(0), Scope::kState,
             "Seed of the method's random numbers; those of the trials come from the topology.")
      .used_if(kLearningKinds, is_drawn)
      .field("first", &MethodOptions::first, config::integer<std::uint32_t>(2, kMostTrials),
             Scope::kState,
             "Trials that are spread over the space before the process learns from any.")
      .used_if("kind: bayesian", of_kinds({MethodKind::kBayesian}))
      .field("levels", &MethodOptions::levels, config::integer<std::uint32_t>(2, 1000),
             Scope::kState, "Values that a grid has of a field with log or linear bounds.")
      .used_if("kind: grid", of_kinds({MethodKind::kGrid}));
  add_genetic_fields(*record);
  record->check([](const YamlValue&, const MethodOptions& method, Reader& reader) {
    if (method.kind != MethodKind::kBayesian || method.trials <= kMostBayesianTrials) return;
    reader.problem_at(reader.path() + ".trials",
                      fmt::format("a Gaussian process learns from {} trials at most; take kind: "
                                  "random or genetic for more",
                                  kMostBayesianTrials));
  });
  return record;
}

RecordOf<StopOptions> stop_record() {
  auto record = std::make_shared<Record<StopOptions>>("limits such as {target: 0.1}");
  const auto halves = [](const StopOptions& stop) { return stop.halves(); };
  record
      ->field("kind", &StopOptions::kind,
              config::word<StopKind>({{"none", StopKind::kNone}, {"halving", StopKind::kHalving}}),
              Scope::kState,
              "Whether every trial trains to its end, or only the best go on from rung to rung.")
      .field("from", &StopOptions::from, config::every(), Scope::kState,
             "How far every trial trains.")
      .used_if("kind: halving", halves)
      .field("keep_one_in", &StopOptions::keep_one_in, config::integer<std::uint32_t>(2, 100),
             Scope::kState,
             "One trial in so many goes on, and trains so many times as far, until it has trained "
             "as far as the topology says.")
      .used_if("kind: halving", halves)
      .field("target", &StopOptions::target, config::optional(config::number()), Scope::kFree,
             "Figure that is good enough: behind a trial that has it, no more than the others that "
             "`parallel` allows begin.")
      .field("patience", &StopOptions::patience,
             config::optional(config::integer<std::uint32_t>(1, kMostTrials)), Scope::kFree,
             "Number of trials in a row without a better figure, behind which no new one begins.")
      .check([](const YamlValue&, const StopOptions& stop, Reader& reader) {
        if (!stop.halves() || stop.from.unit != config::Every::Unit::kNever) return;
        reader.problem_at(reader.path() + ".from", "expected \"1 epoch\" or \"50 iterations\"");
      });
  return record;
}

// The section `repeat`, of the whole study.
RecordOf<Study> repeat_record() {
  auto record = std::make_shared<Record<Study>>("repeats such as {seeds: 3} or {folds: 5}");
  record
      ->field("seeds", &Study::seeds, config::integer<std::uint32_t>(1, 100), Scope::kState,
              "Runs of each trial, with the topology's train.seed and those that follow it. A "
              "trial's figure is their mean.")
      .field("folds", &Study::folds,
             config::newer(config::integer<std::uint32_t>(1, 100), std::uint32_t{1}), Scope::kState,
             "Runs of each trial, of which each leaves another part of the events out of training "
             "and is tested with it. A trial's figure is their mean.")
      .check([](const YamlValue& value, const Study& study, Reader& reader) {
        if (study.seeds == 1 || study.folds == 1) return;
        reader.problem(value.place, "give one of seeds and folds");
      });
  return record;
}

void check_study(const YamlValue&, const Study& study, Reader& reader) {
  if (study.workers > 0 && study.workers < study.parallel) {
    reader.broken_rule({"workers", "parallel"},
                       fmt::format("each of {} trials at a time needs a worker, and there are {}",
                                   study.parallel, study.workers));
  }
  const MethodOptions& method = study.method;
  if (method.kind != MethodKind::kGrid || reader.has_problem_below("space")) return;
  if (grid_points(study.space, method.levels, kMostTrials + 1).size() <= kMostTrials) return;
  reader.broken_rule({"space", "method.levels"},
                     fmt::format("the grid has more than {} trials; widen steps, or take kind: "
                                 "random",
                                 kMostTrials));
}

}  // namespace

const Record<Study>& study_record() {
  static const auto kRecord = [] {
    auto record = std::make_shared<Record<Study>>("a study");
    record
        ->field("name", &Study::name,
                config::text("a name of at most 100 letters, digits, '-', '_' and '.'",
                             "[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"),
                Scope::kFree, "Name of the study, for its folder and report.")
        .required("topology", &Study::topology, topology_path(), Scope::kFree,
                  "The topology that every trial trains, relative to this file, or the name of one "
                  "that comes with the program.")
        .required("space", &Study::space, CodecOf<Space>(std::make_shared<SpaceCodec>()),
                  Scope::kState,
                  "Fields of the topology, as for --set, and the values that each may take.")
        .section("objective", &Study::objective, objective_record(),
                 "The figure by which trials are judged.")
        .must_be_given()
        .section("method", &Study::method, method_record(), "How trials are chosen.")
        .section(
            "stop", &Study::stop, stop_record(),
            "Rules that end trials, or the study, early. Rules by which a run ends stand in its "
            "topology.")
        .section(
            "repeat", [](auto& study) -> auto& { return study; }, repeat_record(),
            "How often a trial is run.")
        .field(
            "parallel", &Study::parallel, config::integer<std::uint32_t>(1, kMostParallel),
            Scope::kState,
            "Trials at a time. A trial is chosen by the figures of those that were chosen so many "
            "before it, or earlier.")
        .field("workers", &Study::workers, config::integer<std::uint32_t>(0, kMostWorkers),
               Scope::kFree,
               "Worker processes of this machine that the trials which go on share out among them, "
               "as they do the nodes of the topology's pools; 0: each trial has the workers and "
               "the nodes that its topology says.")
        .check(check_study);
    return record;
  }();
  return *kRecord;
}

}  // namespace troupe::study
