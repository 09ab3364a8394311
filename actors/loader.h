#pragma once

// Feeds the node's replicas: reads the micro-batches of one iteration after another and sends each
// to the replica that owns it, as far ahead as the links' credits allow.
//
// Ports: in control; out "batches.R" per replica R, "metrics". Begins when the Coordinator says so.
// Has a thread of its own: reading blocks.

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/dataset.h"
#include "pipeline/sampler.h"
#include "pipeline/spot_check.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct LoaderOptions {
  std::uint64_t iterations = 0;       // end: number of iterations of the whole run
  std::vector<std::uint32_t> owners;  // replica of each micro-batch index
  // It feeds so many replicas, from this one on.
  std::uint32_t first_replica = 0;
  std::uint32_t replicas = 1;
  // Of these, besides, what their replicas compute to compare.
  pipeline::SpotChecks checks;
};

class Loader final : public runtime::Actor {
 public:
  // `dataset` and `sampler` are the Loader's alone while it lives.
  Loader(LoaderOptions options, pipeline::Dataset& dataset, pipeline::Sampler& sampler);

  void receive(runtime::Context& context, runtime::Message message) override;
  void credit_returned(runtime::Context& context, std::string_view port) override;
  void timer(runtime::Context& context, runtime::TimerId id) override;
  std::string waiting_for() const override;

 private:
  // Where one replica's feed stands.
  struct Feed {
    runtime::PortId port;
    std::uint32_t replica = 0;
    std::vector<std::uint32_t> own;  // ascending
    std::uint64_t iteration = 0;
    std::vector<std::uint32_t> micro_batches;  // of the iteration
    std::size_t next = 0;                      // into micro_batches
    runtime::Message waiting;                  // read, but without credit
    bool told_end = false;
  };
  bool advance(runtime::Context& context, Feed& feed);
  void begin_iteration(Feed& feed, std::uint64_t iteration) const;
  runtime::Result<runtime::Message> read(const Feed& feed);
  void schedule(runtime::Context& context);

  LoaderOptions options_;
  pipeline::Dataset& dataset_;
  pipeline::Sampler& sampler_;
  std::vector<Feed> feeds_;
  std::vector<std::uint64_t> ids_;
  runtime::TimerId turn_;
};

}  // namespace troupe::actors
