#pragma once

// Gets nodes for the run from its pools, and gives them back: carries out what the PoolBook
// decides, with the tools of the pools. What is asked for is in the journal before it is asked, so
// that the next head finds, adopts or stops it. At the end it stops what has not ended, and ends
// when nothing is left, or some time later.
//
// With limits (cluster.burst) a Treasurer decides how many nodes are wanted, else people do. The
// Monitor gets the bill now and then, and the run's outcome in the end.
//
// It receives control messages only: changes of members, Views, paces and bursts (`troupe burst`)
// from the Coordinator. Called "provisioner" in the plan. Has a thread of its own: tools take
// seconds.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.h"
#include "actors/no_more_nodes.h"
#include "actors/pool_book.h"
#include "actors/pool_tools.h"
#include "actors/pool_waits.h"
#include "actors/run_ending.h"
#include "actors/treasurer.h"
#include "config/topology.h"
#include "runtime/actor.h"
#include "runtime/transport/head_request.h"

namespace troupe::actors {

struct ProvisionerOptions {
  TreasurerOptions treasurer;
  std::vector<PoolTools::Pool> pools;
  // All nodes of the heads before this one.
  std::vector<PoolNode> adopted;
  std::map<std::string, std::uint32_t> wanted;  // by pool
  // Write down what is about to be done. Where that fails no node is asked for.
  std::function<runtime::Result<void>(const PoolNode&)> note_node;
  std::function<runtime::Result<void>(const std::string& pool, std::uint32_t nodes)> note_wanted;
  // A token with which the members of one node may join; "": the run has no keys.
  std::function<runtime::Result<std::string>()> token;
  // What the next head goes on from besides: iterations by pool ("": by workers of no pool), and
  // the first forecast.
  std::function<runtime::Result<void>(const std::map<std::string, double>& contributed,
                                      const std::optional<FirstForecast>& forecast)>
      note_work;
  // The pool's node that a member was started on; "": none.
  std::function<std::string(const std::string& member)> launched_on;
};

class Provisioner final : public runtime::Actor {
  using Context = runtime::Context;
  using Message = runtime::Message;

 public:
  // The outcome gets the bill in the end.
  Provisioner(ProvisionerOptions options, std::shared_ptr<RunOutcome> outcome);

  void start(Context& context) override;
  void timer(Context& context, runtime::TimerId id) override;
  void stop(Context& context) override;
  // The Monitor may have ended before it.
  void undeliverable(Context&, Message, const runtime::Error&) override {}
  std::string waiting_for() const override;

 private:
  // To itself: it is to act.
  struct Turn {
    static constexpr std::string_view kName = "provisioner-turn";
  };

  void receive_change(Context& context, const NodeChange& change);
  void receive_kept(Context& context, const Kept& kept);
  void receive_view(Context& context, const ViewMessage& view);
  void receive_pace(Context& context, const Pace& pace);
  void receive_burst(Context& context, const runtime::RequestAsked& asked);
  void receive_no_more(Context& context, const NoMoreNodes& told);
  void receive_turn(Context& context, const Turn& turn);
  runtime::Result<std::string> burst(const runtime::HeadRequest& request);

  // Asks the launchers, decides, and carries it out.
  void act(Context& context);
  void ask_for_turn(Context& context);
  // What the limits of the run make of what is known.
  void decide(Context& context);
  // A deadline cannot be kept any more, or can be again.
  void tell_deadline(Context& context, const pipeline::BurstDecision& decision);
  void tell_bill(Context& context, const std::string& decision);
  void finish(Context& context);
  void ask_prices(Context& context);
  // Puts into the journal what was paid for it so far.
  runtime::Result<void> write_down(Context& context, PoolNode& node);
  void ask_for(Context& context, const AskForNode& asked,
               const std::optional<runtime::Error>& unwritten);
  // Writes down and tells what has changed; returns why something could not be written.
  std::optional<runtime::Error> tell_changes(Context& context);
  // Where nobody trains before a node comes: says why none does.
  void tell_wait(Context& context);

  ProvisionerOptions options_;
  std::shared_ptr<RunOutcome> outcome_;
  PoolTools tools_;
  PoolBook book_;
  Treasurer treasurer_;
  std::map<std::uint32_t, std::string> members_;  // what the newest process of each is called
  PoolWaits waits_;
  std::optional<runtime::TimePoint> bill_told_, work_noted_;
  bool turn_is_due_ = false;
  bool told_to_end_ = false;                   // the run, since its budget is spent
  bool told_late_ = false;                     // that the deadline cannot be kept
  bool is_closed_ = false;                     // no further node is of use
  std::optional<runtime::TimePoint> ends_by_;  // it was told to stop
};

}  // namespace troupe::actors
