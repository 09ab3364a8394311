#pragma once

// Feeds the node's replicas, or, on the head, those of members without data: reads the
// micro-batches of one iteration after another and sends each to the replica that owns it, as far
// ahead as the links' credits allow.
//
// Ports: in control; out "batches.R" per replica R, "samples" (Monitor). A replica says what it is
// to be fed, and again when that changes (Feed): who has said nothing costs nothing, and who cannot
// be reached any more, or has been sent all, is forgotten. Has a thread of its own: reading blocks.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.h"
#include "actors/sample_teller.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/sampler.h"
#include "pipeline/steps/spot_check.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct LoaderOptions {
  std::uint64_t iterations = 0;  // end: number of iterations of the whole run
  // What replicas compute to compare; members and owners are those of a View.
  pipeline::SpotChecks checks;
};

class Loader final : public runtime::Actor {
 public:
  // `dataset` and `sampler` are the Loader's alone while it lives.
  Loader(LoaderOptions options, pipeline::Dataset& dataset, pipeline::Sampler& sampler);

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void credit_returned(runtime::Context& context, std::string_view port) override;
  void timer(runtime::Context& context, runtime::TimerId id) override;
  // To a replica that has ended, or is lost with its node.
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override;
  std::string waiting_for() const override;

 private:
  struct Which {
    std::uint64_t iteration = 0;
    std::uint32_t micro_batch = 0;
  };
  // Where one replica's feed stands.
  struct Line {
    runtime::PortId port;
    std::uint32_t replica = 0;
    std::uint32_t feed = 0;
    std::deque<Which> missing;  // before all others
    ViewPointer view;
    std::uint64_t iteration = 0;
    std::vector<std::uint32_t> micro_batches;  // of the iteration
    std::size_t next = 0;                      // into micro_batches
    runtime::Message waiting;                  // read, but without credit
    bool told_end = false;
  };
  void begin(runtime::Context& context, const Feed& feed);
  // Null: the feed can be followed. Others than the node's own replicas may send anything.
  const char* fault_of(runtime::Context& context, const Feed& feed, std::string_view sender) const;
  bool has_ended(const Line& line) const;
  bool advance(runtime::Context& context, Line& line);
  bool has_more(const Line& line, std::uint64_t iteration) const;
  void begin_iteration(Line& line, std::uint64_t iteration) const;
  runtime::Result<runtime::Message> read(const Line& line);
  runtime::Result<runtime::Message> read(const Line& line, const Which& which);
  void schedule(runtime::Context& context);

  LoaderOptions options_;
  pipeline::Dataset& dataset_;
  pipeline::Sampler& sampler_;
  std::map<std::uint32_t, Line> lines_;  // by replica, until they end
  bool fed_ = false;                     // somebody, ever
  std::vector<std::uint64_t> ids_;
  runtime::TimerId turn_;
  SampleTeller samples_;
};

}  // namespace troupe::actors
