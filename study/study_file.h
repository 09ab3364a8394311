#pragma once

// Study files: what a study varies, what it looks for and how. They are read, checked and printed
// as topologies are (config/record.h), with the place of every mistake.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/codec.h"
#include "config/topology.h"
#include "config/units.h"
#include "runtime/base/error.h"
#include "study/space.h"

namespace troupe::study {

// Where a trial's figure comes from.
enum class FigureSource : std::uint8_t {
  kValidation,  // the last validation of its run
  kMetrics,     // the last value of a series, as watching.md names them
  kSummary,     // a number in summary.json
};

// Exactly one of the first two is given.
struct Objective {
  std::optional<std::string> minimise, maximise;
  FigureSource of = FigureSource::kValidation;

  const std::string& figure() const { return minimise ? *minimise : *maximise; }
  // As methods take it: less is better.
  double cost(double value) const { return minimise ? value : -value; }
  bool operator==(const Objective&) const = default;
};

enum class MethodKind : std::uint8_t { kBayesian, kRandom, kGrid, kGenetic };

struct MethodOptions {
  MethodKind kind = MethodKind::kBayesian;
  std::uint32_t trials = 20;      // not of grid
  std::uint64_t seed = 1;         // not of grid
  std::uint32_t first = 10;       // bayesian: trials before anything is learned from
  std::uint32_t levels = 3;       // grid: values of a continuous dimension
  std::uint32_t population = 10;  // genetic, like the next two
  double crossover = 0.8;
  double mutation = 0.5;

  bool operator==(const MethodOptions&) const = default;
};

enum class StopKind : std::uint8_t { kNone, kHalving };

// When the study, or a trial of it, is not worth going on with. A run that stops by itself does so
// by its topology.
//
// kHalving: asynchronous successive halving (Li et al., A System for Massively Parallel
// Hyperparameter Tuning, MLSys 2020). Trials train for a while, and only the best go on to the next
// rung, which is `keep_one_in` times as far.
struct StopOptions {
  StopKind kind = StopKind::kNone;
  config::Every from;  // the first rung: epochs or iterations
  std::uint32_t keep_one_in = 3;
  std::optional<double> target;           // of a figure, which ends the study
  std::optional<std::uint32_t> patience;  // trials that are not better than the best before them

  bool halves() const { return kind == StopKind::kHalving; }
  bool operator==(const StopOptions&) const = default;
};

struct Study {
  std::string name = "study";
  std::string topology;  // its path or, of one that comes with the program, its name
  Space space;
  Objective objective;
  MethodOptions method;
  StopOptions stop;
  // Runs of a trial, each with a seed of its own, or each tested with another part of the events.
  // One of the two is 1.
  std::uint32_t seeds = 1, folds = 1;
  std::uint32_t parallel = 1;  // trials at a time
  // Processes of this machine that compute, which these share besides the nodes of the topology's
  // pools; 0: each trial has those of its topology.
  std::uint32_t workers = 0;

  std::uint32_t repeats() const { return seeds * folds; }
  bool operator==(const Study&) const = default;
};

inline constexpr std::uint32_t kMostTrials = 10'000;
// The effort of a proposal grows with the cube of the trials before it.
inline constexpr std::uint32_t kMostBayesianTrials = 500;
inline constexpr std::uint32_t kMostParallel = 256;
inline constexpr std::uint32_t kMostWorkers = 256;
inline constexpr std::size_t kMostDimensions = 50;

struct LoadedStudy {
  Study study;
  config::Origins origins;
  std::string topology_text;       // of its topology's file
  std::uint64_t train_seed = 0;    // that of the topology
  config::ClusterSection cluster;  // the same
  // How far each rung trains, in the unit of stop.from, the last as far as the topology; without
  // halving there is one, which is 0.
  std::vector<std::uint64_t> rungs{0};
};

// Reads and checks the file: by itself, and against the topology, which has to be sound and to take
// the bounds and the choices of every field of the space. Errors (kTopology) hold every problem,
// one a line, as "path:line:column: field: message". Relative paths are relative to the file's
// folder.
runtime::Result<LoadedStudy> load_study(const std::string& path);
// The same for a text.
runtime::Result<LoadedStudy> parse_study(std::string_view text, const std::string& source,
                                         const std::string& folder);

// Every value as YAML; parse_study gives the same study again, whatever the folder.
std::string print_study(const Study& study);
// Hash of all that a trial's settings and figure depend on, but for what may change while a study
// is stopped.
std::string study_hash(const LoadedStudy& loaded);

// study/study.schema.json: JSON Schema, draft 2020-12.
std::string study_schema_json();
// The tables of fields in docs/studies.md, in Markdown.
std::string study_reference();

}  // namespace troupe::study
