#pragma once

// Feeds the node's replicas or, on the head, the replicas of members without data. It reads the
// micro-batches of one iteration after another and sends each to the replica that owns it, as far
// ahead as is measured to be needed or as the links' credits allow.
//
// Ports: in control; out "batches.R" per replica R, "samples" (Monitor). A replica says what it
// wants to be fed, and says so again when that changes (Feed). A replica that has said nothing
// costs nothing. One that cannot be reached any more, or has been sent everything, is forgotten.
// The Loader has a thread of its own because reading blocks.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.h"
#include "actors/sample_teller.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/read_ahead.h"
#include "pipeline/data/read_threads.h"
#include "pipeline/data/sampler.h"
#include "pipeline/steps/spot_check.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct LoaderOptions {
  std::uint64_t iterations = 0;  // of the whole run; nothing is read beyond
  // Which micro-batches are computed twice; members and owners come from each View.
  pipeline::SpotChecks checks;
  // The most threads that read, as many as are measured to be needed; 0: those of the dataset.
  int most_threads = 0;
  // The most micro-batches that are read ahead for a replica, as many as are measured to be needed;
  // 0: as the links' credits allow. Measured for replicas of this node: along a slow line what is
  // under way cannot be told from what lies ready.
  std::int64_t most_ahead = 0;
};

class Loader final : public runtime::Actor {
  using Context = runtime::Context;
  using Message = runtime::Message;

 public:
  // `dataset` and `sampler` are the Loader's alone while it lives.
  Loader(LoaderOptions options, pipeline::Dataset& dataset, pipeline::Sampler& sampler);

  void start(Context& context) override;
  void credit_returned(Context& context, std::string_view port) override;
  void timer(Context& context, runtime::TimerId id) override;
  // A micro-batch came back, because its replica has ended or is lost with its node.
  void undeliverable(Context& context, Message message, const runtime::Error& cause) override;
  std::string waiting_for() const override;

 private:
  struct Which {
    std::uint64_t iteration = 0;
    std::uint32_t micro_batch = 0;
  };
  // How far one replica's feed has come.
  struct Line {
    runtime::PortId port;
    std::uint32_t replica = 0;
    std::uint32_t feed = 0;
    std::deque<Which> missing;  // these go before all others
    ViewPointer view;
    std::uint64_t iteration = 0;
    std::vector<std::uint32_t> micro_batches;  // of the iteration
    std::size_t next = 0;                      // into micro_batches
    Message waiting;                           // read, but without credit
    bool told_end = false;
  };
  void receive_feed(Context& context, const Feed& feed, Message& message);
  void begin(Context& context, const Feed& feed);
  // The fault of the feed; null: it can be followed. A replica of another node may send
  // anything.
  const char* fault_of(Context& context, const Feed& feed, std::string_view sender) const;
  bool has_ended(const Line& line) const;
  bool advance(Context& context, Line& line);
  // The micro-batches of an iteration that are read for the line.
  std::vector<std::uint32_t> micro_batches_in(const Line& line, std::uint64_t iteration) const;
  // With a dataset that keeps a shard: says what is read next, when half of what was said is read.
  runtime::Result<void> look_ahead();
  bool has_more(const Line& line, std::uint64_t iteration) const;
  void begin_iteration(Line& line, std::uint64_t iteration) const;
  runtime::Result<Message> read(const Line& line);
  runtime::Result<Message> read(const Line& line, const Which& which);
  void schedule(Context& context);
  // A reading for the line has ended, before which so many messages were ready.
  void note_ready(Context& context, const Line& line, std::int64_t before);
  // So long it read, or waited for room.
  void note_pace(Context& context, runtime::Duration reading, runtime::Duration waiting);

  LoaderOptions options_;
  pipeline::Dataset& dataset_;
  pipeline::Sampler& sampler_;
  std::map<std::uint32_t, Line> lines_;  // by replica, until they end
  bool fed_ = false;                     // some replica has asked
  std::vector<std::uint64_t> ids_;
  std::size_t front_ = 0;        // micro-batches that the last look had read; 0: none since a feed
  std::size_t reads_ahead_ = 0;  // how many more before it looks ahead again
  runtime::TimerId turn_;
  std::optional<pipeline::ReadThreads> threads_;
  std::map<std::uint32_t, pipeline::ReadAhead> ahead_;  // by replica, where it is measured
  std::optional<runtime::TimePoint> waits_since_;       // for room
  SampleTeller samples_;
};

}  // namespace troupe::actors
