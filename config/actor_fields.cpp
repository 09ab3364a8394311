// The `actors` section: who does the work.

#include "config/scalar_codecs.h"
#include "config/topology_fields.h"

namespace troupe::config {
namespace {

constexpr auto kSelf = [](auto& topology) -> auto& { return topology; };

// The loader's threads are the dataset's.
RecordOf<Topology> loader_record() {
  auto record = std::make_shared<Record<Topology>>("the loader");
  record
      ->field(
          "threads", [](auto& t) -> auto& { return t.data.dataset.threads; }, integer(1, 256),
          Scope::kFree, "Threads that decompress and preprocess.")
      .field(
          "credits", [](auto& t) -> auto& { return t.loader.credits; },
          integer<std::int64_t>(1, 1024), Scope::kFixed,
          "Micro-batches read ahead for each replica.");
  return record;
}

RecordOf<ReplicaSection> replica_record() {
  auto record = std::make_shared<Record<ReplicaSection>>("replicas");
  record
      ->field("count", &ReplicaSection::count, integer<std::uint32_t>(1, 1024), Scope::kFree,
              "Compute streams of a node; they share its reducer.")
      .field("device", &ReplicaSection::device, word<Device>({{"cpu", Device::kCpu}}, {"cuda"}),
             Scope::kState, "What they compute on.")
      .field("threads", &ReplicaSection::threads, integer<std::uint32_t>(1, 1024), Scope::kFree,
             "Micro-batches each computes at a time, one thread for each; for a single one all "
             "threads.")
      .field("overlap", &ReplicaSection::overlap, boolean(), Scope::kFree,
             "Whether they compute while a step is being reduced; `false` shows what that saves.");
  return record;
}

RecordOf<ReducerSection> reducer_record() {
  auto record = std::make_shared<Record<ReducerSection>>("the reducer");
  record
      ->field("reduction", &ReducerSection::reduction,
              word<Reduction>({{"exact", Reduction::kExact},
                               {"fp32", Reduction::kFp32},
                               {"bf16", Reduction::kBf16},
                               {"int8", Reduction::kInt8}}),
              Scope::kState,
              "How gradients are summed over members: `exact` takes 8 bytes each and does not "
              "depend on the workers; `fp32`, `bf16` and `int8` take 4, 2 and 1, and do.")
      .field("segment", &ReducerSection::segment_bytes, byte_size<std::int64_t>(4096),
             Scope::kFixed, "What one message of a ring between nodes carries.");
  return record;
}

RecordOf<CheckpointerSection> checkpointer_record() {
  auto record = std::make_shared<Record<CheckpointerSection>>("the checkpointer");
  record
      ->field("every", &CheckpointerSection::every, every(), Scope::kFixed,
              "How often a checkpoint is written; one is written at the end in any case.")
      .field("keep", &CheckpointerSection::keep, integer<std::uint32_t>(1, 1'000'000),
             Scope::kFixed, "The newest that are kept; the best by validation is kept besides.");
  return record;
}

RecordOf<ValidatorSection> validator_record() {
  auto record = std::make_shared<Record<ValidatorSection>>("the validator");
  record
      ->field("every", &ValidatorSection::every, every(), Scope::kFixed,
              "How often generated showers are compared with those kept for testing.")
      .field("events", &ValidatorSection::events, integer<std::uint64_t>(1, 10'000'000),
             Scope::kFixed, "Showers of each.");
  return record;
}

}  // namespace

std::shared_ptr<Record<Topology>> actors_record() {
  auto record = std::make_shared<Record<Topology>>("the actors");
  record->section("loader", kSelf, loader_record(), "Reads events ahead of the replicas.")
      .section("replica", &Topology::replica, replica_record(), "Computes gradients.")
      .section("reducer", &Topology::reducer, reducer_record(), "Sums gradients.")
      .section("checkpointer", &Topology::checkpointer, checkpointer_record(),
               "Writes the state beside training.")
      .section("validator", &Topology::validator, validator_record(),
               "Compares generated showers with real ones.")
      .later("monitor",
             "there is no page; progress goes to standard error and metrics.jsonl; leave it out");
  return record;
}

}  // namespace troupe::config
