#pragma once

// Adds the integers of all replicas of the run, bucket by bucket, and gives every replica the sums
// and the combined header. One per run.
//
// Ports: in "contributions"; out "reduced.R" per replica R. Messages of a step carry its number and
// attempt; one that fits nothing ends the run, naming its sender. Needs no thread of its own.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/messages.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct ReducerOptions {
  std::uint32_t replicas = 1;
  std::uint32_t micro_batches = 1;  // M: how many a complete sum holds
};

class Reducer final : public runtime::Actor {
 public:
  explicit Reducer(ReducerOptions options) : options_(options) {}

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void credit_returned(runtime::Context& context, std::string_view port) override;
  std::string waiting_for() const override;

 private:
  struct Bucket {
    std::uint32_t replicas = 0;  // how many have been added
    std::int64_t begin = 0, end = 0;
    runtime::Buffer sum;
  };
  void add_bucket(runtime::Context& context, const BucketMessage& body, runtime::Buffer part,
                  std::string_view who);
  void add_header(runtime::Context& context, const pipeline::StepHeader& header,
                  std::string_view who);
  // False: the actor has failed, because `who` contributed what does not belong here.
  bool check_round(runtime::Context& context, std::uint64_t step, std::uint32_t attempt,
                   std::string_view who);
  void refuse(runtime::Context& context, std::string_view who, std::string_view what);
  void send_to_all(runtime::Context& context, auto make_message);
  void flush(runtime::Context& context, std::size_t replica);

  ReducerOptions options_;
  std::vector<runtime::PortId> ports_;
  // Sums without credit yet, per replica, in order; bounded by one round's buckets and header.
  std::vector<std::vector<runtime::Message>> waiting_;
  std::vector<Bucket> buckets_;                 // of the round at hand
  std::optional<pipeline::StepHeader> header_;  // combined so far
  std::uint32_t headers_ = 0;
  std::optional<std::uint64_t> step_;  // of the round at hand
  std::uint32_t attempt_ = 0;
};

}  // namespace troupe::actors
