#pragma once

// The actors of simulated runs that train nothing: workers that make, pass on and use up items at
// their own pace, and the roots of the nodes, the first of which ends the run.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/actor.h"
#include "tests/sim/ledger.h"

namespace troupe::sim {

// What one worker does. All of it happens at once in zero time where no time is given.
struct WorkerTraits {
  struct Out {
    std::string port;
    std::uint32_t link = 0;   // position in the plan
    std::uint64_t items = 0;  // to make of its own accord
    bool relay = false;       // one more for each item that was received
  };
  std::vector<Out> outs;
  std::size_t most_bytes = 64;   // of an item's payload
  Duration pause{0};             // between items it makes
  Duration work{0};              // for each item it receives, which it keeps meanwhile
  std::optional<Duration> life;  // after which it ends, come what may
};

class Worker final : public runtime::Actor {
 public:
  // World and ledger outlive the actor.
  Worker(World& world, Ledger& ledger, ProcessId process, WorkerTraits traits);
  ~Worker() override;

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void credit_returned(runtime::Context& context, std::string_view port) override;
  void timer(runtime::Context& context, runtime::TimerId id) override;
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override;
  void stop(runtime::Context& context) override;

 private:
  // A received item; says so when it is let go.
  struct Held {
    Held(Ledger& to_tell, runtime::Message held) : ledger(to_tell), message(std::move(held)) {}
    ~Held();
    Ledger& ledger;
    runtime::Message message;
  };
  struct Sending {
    std::uint64_t to_send = 0;
    runtime::Message next;  // made, not taken yet
  };

  void send_all(runtime::Context& context);
  bool send_one(runtime::Context& context, std::size_t out);
  void work(runtime::Context& context);
  void use_up_first(runtime::Context& context);
  void end_when_settled(runtime::Context& context);

  World& world_;
  Ledger& ledger_;
  const ProcessId process_;
  const WorkerTraits traits_;
  std::string name_;
  std::vector<Sending> sending_;
  std::deque<std::unique_ptr<Held>> held_;
  runtime::TimerId working_, pausing_, dying_, ending_;
  std::optional<TimePoint> stopped_;
};

// Ends its node when the first node's root tells it to, or has gone; the first one ends itself and
// all others when the ledger is settled.
class SimRoot final : public runtime::Actor {
 public:
  // `mild`: no peer may be lost that has not ended.
  SimRoot(World& world, Ledger& ledger, ProcessId process, std::vector<std::string> roots,
          bool mild)
      : world_(world), ledger_(ledger), process_(process), roots_(std::move(roots)), mild_(mild) {}

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void timer(runtime::Context& context, runtime::TimerId id) override;
  void undeliverable(runtime::Context&, runtime::Message, const runtime::Error&) override {}

 private:
  bool first() const { return process_ == 0; }
  bool everybody_came() const;

  World& world_;
  Ledger& ledger_;
  const ProcessId process_;
  const std::vector<std::string> roots_;  // by process
  const bool mild_;
  std::set<std::string> met_;
};

}  // namespace troupe::sim
