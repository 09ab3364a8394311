#pragma once

// A topology: everything a run is, as plain options composed from those of the layers below. How
// each field is called in a file, its range and its default stand in topology_fields.cpp; the text
// for users is generated from there (docs/topology.md).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/units.h"
#include "model/gan.h"
#include "pipeline/dataset_options.h"
#include "pipeline/synthetic.h"
#include "pipeline/training_state.h"
#include "runtime/base/clock.h"

namespace troupe::config {

enum class Precision : std::uint8_t { kFp32 };

enum class Kernels : std::uint8_t {
  kPortable,  // the same bits on every host
  kFastest,   // whatever is fastest here; bits belong to hosts of one numerics class
};

enum class Scaling : std::uint8_t {
  kStrong,  // M micro-batches whatever the number of members
  kWeak,    // M per member
};

enum class Device : std::uint8_t { kCpu };
enum class Reduction : std::uint8_t { kExact };
enum class Assignment : std::uint8_t { kAuto };  // of micro-batches to members: by speed

struct ModelSection {
  std::optional<std::string> zoo;  // the zoo model the description started from
  model::GanDescription gan;
  Precision precision = Precision::kFp32;
  Kernels kernels = Kernels::kPortable;
};

struct DataSection {
  bool synthetic = true;  // train on generated showers; else on dataset.paths
  // Paths absolute; preprocessing set; expected_shape that of the discriminator's input. `threads`
  // is actors.loader.threads; `split` is left to whoever opens the data.
  pipeline::DatasetOptions dataset;
  // Its detector is the one of the schema and the discriminator's input. `folder` empty: the
  // command's choice.
  pipeline::SyntheticOptions showers;
};

struct TrainSection {
  std::uint64_t epochs = 1;
  std::optional<std::uint64_t> iterations;  // ends the run earlier: iterations of all epochs
  Scaling scaling = Scaling::kStrong;
  // iterations_per_epoch is left to whoever knows the size of the data.
  pipeline::TrainingOptions options;
};

struct LoaderSection {
  std::int64_t credits = 4;  // micro-batches read ahead per replica
};

// Per node.
struct ReplicaSection {
  std::uint32_t count = 1;  // compute streams, each with a thread of its own at least
  Device device = Device::kCpu;
  std::uint32_t threads = 1;  // micro-batches a replica computes at a time
};

struct ReducerSection {
  Reduction reduction = Reduction::kExact;
  std::int64_t segment_bytes = 1 << 20;  // of a ring between nodes
};

struct CheckpointerSection {
  Every every;
  std::uint32_t keep = 3;  // the newest that are kept beside the best
};

struct ValidatorSection {
  Every every;
  std::uint64_t events = 500;  // test events compared with as many generated ones
};

struct MonitorSection {
  std::string listen = "127.0.0.1:8400";  // HOST:PORT of the page; port 0: any free one
};

// Sets what the plan would choose for every link between actors of two kinds.
struct LinkOverride {
  std::string from;                     // kind of the sender: "replica"
  std::string to;                       // kind of the receiver
  std::optional<std::int64_t> credits;  // messages sent and not given back
  std::optional<std::int64_t> bytes;    // bytes of them
  std::optional<std::int32_t> tokens;   // messages the receiver may count on at the start
};

// When a member or an actor counts as lost, and what then.
struct FailureSection {
  runtime::Duration heartbeat = std::chrono::milliseconds(500);
  runtime::Duration dead_after = std::chrono::seconds(2);     // without a heartbeat
  runtime::Duration stuck_after = std::chrono::seconds(60);   // without progress
  runtime::Duration drain_grace = std::chrono::seconds(20);   // to finish a step when leaving
  runtime::Duration orphan_after = std::chrono::minutes(10);  // without a head process
  std::uint32_t min_members = 1;
  std::uint32_t restart = 3;  // times an actor is restarted before the run fails
  std::uint64_t check_every =
      100;  // steps between comparing one micro-batch on two members; 0: never
};

struct ClusterSection {
  Assignment assign = Assignment::kAuto;
  FailureSection failure;
};

struct Topology {
  std::string name = "run";  // names the run's folder
  ModelSection model;
  DataSection data;
  TrainSection train;
  LoaderSection loader;
  ReplicaSection replica;
  ReducerSection reducer;
  CheckpointerSection checkpointer;
  ValidatorSection validator;
  MonitorSection monitor;
  std::vector<LinkOverride> links;
  ClusterSection cluster;
};

}  // namespace troupe::config
