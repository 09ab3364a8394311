#pragma once

// A topology: everything a run is, as plain options composed from those of the layers below. How
// each field is called in a file, its range and its default stand in topology_fields.cpp; the text
// for users is generated from there (docs/topology.md).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/units.h"
#include "model/backend.h"
#include "model/gan.h"
#include "pipeline/data/dataset_options.h"
#include "pipeline/data/sampler.h"
#include "pipeline/data/shower_dataset.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/clock.h"
#include "runtime/node/node_options.h"
#include "runtime/node/patience.h"

namespace troupe::config {

using model::Precision;

// The arithmetic that computes is part of the numerics class.
enum class Kernels : std::uint8_t {
  kPortable,  // our own; the same bits on every host that has AVX2
  kFastest,   // whatever is fastest here; bits belong to hosts of one numerics class
};

// Micro-batches of an iteration.
enum class Scaling : std::uint8_t {
  kStrong,  // as many whatever the number of workers
  kWeak,    // so many for each
};

// The device that is always there.
inline constexpr const char* kProcessor = "cpu";
inline constexpr const char* kGpu = "gpu";
inline constexpr int kMostDevices = 8;  // of a kind, that topologies name: "gpu:7", "cuda:7"

struct ModelSection {
  // The zoo model the description started from; unset: described by the file alone. It says nothing
  // the description does not say.
  std::optional<std::string> zoo;
  // Complete: names, inputs and data_scale are set.
  model::GanDescription gan;
  // Default fp32.
  Precision precision = Precision::kFp32;
  // Default portable.
  Kernels kernels = Kernels::kPortable;
};

struct DataSection {
  // Whether to train on generated showers; else on dataset.paths. No default: a file must say it.
  bool synthetic = true;
  // Paths are absolute, preprocessing is set, expected_shape is the discriminator's input.
  // `threads` is actors.loader.threads, 0 by default. `split` is left to whoever opens the data.
  pipeline::DatasetOptions dataset = [] {
    pipeline::DatasetOptions options;
    options.threads = 0;
    return options;
  }();
  // Default true.
  bool shuffle = true;
  // Their detector is the one of the schema and the discriminator's input. An empty `folder` leaves
  // the choice to the command.
  pipeline::SyntheticOptions showers;
};

struct TrainSection {
  // Passes over the training events, from 1; default 1.
  std::uint64_t epochs = 1;
  // Ends the run earlier: iterations of all epochs together, from 1; default none.
  std::optional<std::uint64_t> iterations;
  // Default strong.
  Scaling scaling = Scaling::kStrong;
  // Default drop.
  pipeline::Remainder remainder = pipeline::Remainder::kDrop;
  // A checkpoint with the same networks, or a file of Keras, whose weights training begins with;
  // default none: weights by the seed.
  std::optional<std::string> from;
  // `lossy` is actors.reducer.reduction; iterations_per_epoch is left to whoever knows the size of
  // the data.
  pipeline::TrainingOptions options;
};

struct LoaderSection {
  // Micro-batches read ahead for each replica; 0, the default: as many as are measured to be
  // needed.
  std::int64_t credits = 0;
};

// Per node.
struct ReplicaSection {
  // Compute streams, from 1; default 1. They share the node's reducer.
  std::uint32_t count = 1;
  // "cpu", "gpu" (the card with the most free memory), "gpu:0" (the first card, and so on, counted
  // round), "cuda:0" or "opencl:0" as `troupe devices` lists them. Default cpu.
  std::string device = kProcessor;
  // Micro-batches each replica computes at a time, one thread for each, from 1; default 1.
  std::uint32_t threads = 1;
  // Whether what the next step can know already is computed, and buckets leave, before a step is
  // complete; default true.
  bool overlap = true;
};

struct ReducerSection {
  // The most that one message carries, bytes, from 4096; default 1 MiB.
  std::int64_t segment_bytes = 1 << 20;
};

struct CheckpointerSection {
  // Default 1 epoch; the end of the run writes one in any case.
  Every every;
  // How many of the newest are kept, from 1; default 3.
  std::uint32_t keep = 3;
  // Where copies of the run's files go: an address of https, s3 or root; default none.
  std::optional<std::string> copies;
};

struct ValidatorSection {
  // Default 1 epoch.
  Every every;
  // Test events compared with as many generated ones, from 1; default 500.
  std::uint64_t events = 500;
  // Begin and end of each; config/validator_statistics.h has what they mean.
  using Bins = std::vector<std::array<double, 2>>;
  // GeV, over which the figure of merit and others take their means; default five from 0 to 500.
  Bins energy_bins = {{0, 100}, {100, 200}, {200, 300}, {300, 400}, {400, 500}};
  // Rad, in which profiles are compared apart; default none. For models that are told angles.
  Bins angle_bins;
  // A cell above it is a hit, GeV; default 3e-4.
  double hit_threshold_gev = 3e-4;
  // A word of model/physics/figures.h for the figure by which the best state is chosen, or one of
  // model/physics/class_figures.h where there is a judge, or of pipeline::quality_words() of a
  // supervised task; default merit.
  std::string best = "merit";
  // A checkpoint of a classifier, absolute, which judges the images; default none: they are
  // showers.
  std::optional<std::string> judge;
  // Whether the losses of the test events are told with each validation; default true.
  bool test_losses = true;

  bool validates() const { return every.unit != Every::Unit::kNever; }
};

// Where people watch the run. Watching can neither change nor slow training.
struct MonitorSection {
  // HOST:PORT of the page; if that is taken, the next free port of a hundred. "none": no page.
  // Default "127.0.0.1:8400".
  std::string listen = "127.0.0.1:8400";
  // File with the word that a browser has to give, absolute; default none: beyond loopback the run
  // makes one, RUN/page.token.
  std::optional<std::string> token;
  // File with the word that a client of the page has to give to change how many nodes pools have,
  // absolute; default none: nobody can.
  std::optional<std::string> control;
  // Address at which ZeroMQ publishes every line of metrics, tcp on loopback or ipc; "none", the
  // default: nowhere.
  std::string publish = "none";
  // Whether event files for TensorBoard are written; default true.
  bool tensorboard = true;
  // For the cost so far, in any currency, from 0; default 0: none is told.
  double price_per_node_hour = 0.0;
};

// Changes what the plan would choose for every link between actors of two kinds. A field that is
// unset stays as the plan has it; at least one is set.
struct LinkOverride {
  // Kind of the sender: "replica".
  std::string from;
  // Kind of the receiver.
  std::string to;
  // Messages sent and not yet given back, from 1.
  std::optional<std::int64_t> credits;
  // Bytes of them, from 1.
  std::optional<std::int64_t> bytes;
  // Messages the receiver may count on before the first is sent, from 0.
  std::optional<std::int32_t> tokens;
};

// A host and the members that run on it.
struct HostSection {
  // Name or number, without a port; no default.
  std::string address;
  // Member processes, from 1; default 1.
  std::uint32_t workers = 1;
};

// How fast hosts reach each other: each of one side each of the other.
struct BandwidthSection {
  // Addresses of cluster.hosts, one at least on each side and none on both; no default.
  std::array<std::vector<std::string>, 2> between;
  // The rate of one connection in the slower of its directions, from 1000; no default.
  std::int64_t bits_per_second = 0;
  // How long a message is under way one way, 10 s at most; default 0, not known.
  runtime::Duration delay{0};
};

// When a node counts as dead, and a run as stuck. The gate's own fields, `heartbeat` and
// `dead_after`, are fields of this section.
struct FailureSection : runtime::SilenceOptions {
  // How long no actor may make progress before the run counts as stuck; default 60 s.
  runtime::Duration stuck_after = runtime::NodeOptions{}.stuck_after;
  // Steps of which one has a micro-batch computed twice, on two members; 0: none; default 100.
  std::uint64_t check_every = 100;
  // Dead members of the supervisor's host that it replaces, and how often it restarts the head;
  // default 3.
  std::uint32_t restart = 3;
  // With fewer members the run waits for others to join, from 1; default 1. A run in one process
  // does not look at it.
  std::uint32_t min_members = 1;
  // How long members go on without a head, from 0; default 10 min.
  runtime::Duration orphan_after = std::chrono::minutes(10);
};

// Most members of one run.
inline constexpr std::uint32_t kMostMembers = 1024;

enum class LauncherKind : std::uint8_t { kSsh, kSlurm, kKubernetes, kCommand };

// Where nodes come from while the run goes on.
struct PoolSection {
  std::string name;  // letters, digits, '-' and '_'
  LauncherKind launcher = LauncherKind::kCommand;
  std::uint32_t nodes = 0;           // that are wanted when the run begins; default 0
  std::uint32_t most = 8;            // that are wanted ever; default 8
  std::uint32_t workers = 1;         // members of a node; default 1
  std::vector<std::string> hosts;    // of ssh
  std::vector<std::string> options;  // of the command line of ssh, sbatch and kubectl
  // These are of kubernetes. No namespace: that of kubectl's context. `pod` is a file with a part
  // of a pod's template; default none.
  std::string namespace_there, image;
  std::optional<std::string> pod;
  std::string program;            // path of this program on a node; "": as here, or the image's
  std::vector<std::string> join;  // further words of `troupe join` there
  // Command lines of `command`; `list` may be "".
  std::string start, stop, list;
  // Default 10 min.
  runtime::Duration starts_in = std::chrono::minutes(10);
  runtime::Duration stops_in = std::chrono::minutes(2);  // default 2 min
  double price_per_node_hour = 0.0;                      // default 0
  std::string price;   // command line that prints it, as it changes; "": it does not
  bool spot = false;   // its nodes may be taken away at any time; default false
  double speed = 1.0;  // of its workers beside those here, until measured; default 1
};

// By which nodes of pools are asked for and given back; one of the first two at least.
struct BurstSection {
  std::optional<runtime::Duration> finish_within;  // from the beginning of the run; default none
  std::optional<double> budget;                    // for nodes of pools; default none
  runtime::Duration decide_every = std::chrono::minutes(1);  // default 1 min
};

// What carries the data between processes. Control is ZeroMQ's.
enum class Fabric : std::uint8_t { kZmq, kUcx };

struct ClusterSection {
  // In the order of the file, which is that of their members; default none: all in one process.
  std::vector<HostSection> hosts;
  // Later ones win; pairs of hosts that none names are faster than all that one does. Default none.
  std::vector<BandwidthSection> bandwidth;
  // `assign` of the file: weight of each member when micro-batches are shared out, one at least
  // above 0. Empty, the default and `auto` in the file: all equal.
  std::vector<std::uint64_t> shares;
  // Micro-batches are shared out anew by measured speed when an epoch has ended; default true. Not
  // where `shares` are given.
  bool rebalance = true;
  // HOST:PORT where the head waits for members; port 0: any free one. Default "127.0.0.1:0".
  std::string listen = "127.0.0.1:0";
  // Folder with the keys of this node and those it admits, absolute; default none.
  std::optional<std::string> keys;
  Fabric fabric = Fabric::kZmq;
  // A network that data of Fabric::kUcx may cross unencrypted, as runtime::NetworkRange::parse()
  // takes it; default none: this machine alone.
  std::optional<std::string> fabric_network;
  // Members that have joined while the run goes on and may be there at the same time, from 0;
  // default 8.
  std::uint32_t joiners = 8;
  // Bytes of sums that may wait for one of these while it learns; default 1 GiB.
  std::int64_t replay_bytes = std::int64_t{1} << 30;
  FailureSection failure;
  // Default none.
  std::vector<PoolSection> pools;
  // Default none: pools stay at `nodes` unless somebody asks.
  std::optional<BurstSection> burst;
};

// Value type; the sections are those of the file, `actors` taken apart.
struct Topology {
  // Names the run's folder; letters, digits, '-', '_' and '.'; default "run".
  std::string name = "run";
  ModelSection model;
  DataSection data;
  TrainSection train;
  LoaderSection loader;
  ReplicaSection replica;
  ReducerSection reducer;
  CheckpointerSection checkpointer;
  ValidatorSection validator;
  MonitorSection monitor;
  // In the order of the file; later ones win. Default none.
  std::vector<LinkOverride> links;
  ClusterSection cluster;

  // For people: the zoo's name of the model, else the topology's own.
  std::string model_name() const { return model.zoo.value_or(name); }
};

}  // namespace troupe::config
