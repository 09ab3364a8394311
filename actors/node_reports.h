#pragma once

// The questions of the Monitor to the members of a run, and their answers: what their nodes do, how
// far their clocks are from its own, and, when somebody wants to know, the traces or the wait-for
// graphs of all. This class sends nothing itself; it says what to send.
//
//   every second:        send reports.beat(now) to each of reports.take_turn(); reports.tend(now)
//   somebody wants:      send *reports.ask(wants, now, done) to each of reports.members()
//   NodeChange came:     reports.take_change(change)
//   NodeReport came:     reports.take(message.sender_name(), *report, message.payloads(), now)

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.h"
#include "runtime/base/buffer.h"
#include "runtime/base/clock.h"
#include "runtime/base/trace.h"
#include "runtime/node/rhythm.h"
#include "telemetry/trace/clock_offset.h"

namespace troupe::actors {

// All that nodes said to one question.
struct NodeAnswers {
  struct Answer {
    std::string node;
    telemetry::ClockOffset::Estimate clock;  // zero for this node
    runtime::Buffer contents;                // as NodeReport has it
  };
  Probe::Wants wants = Probe::Wants::kNothing;
  std::vector<Answer> answers;       // this node's own first, then in the order of names
  std::vector<std::string> missing;  // nodes that did not answer in time, or could not tell
};

// The trace of all nodes (telemetry/trace/trace_json.h), or their wait-for graphs one after the
// other, with the names of nodes that did not answer. Pure; any thread. A trace of many nodes takes
// a second.
std::string text_of(const NodeAnswers& answers);

// The launcher of the node -> Monitor, control: ask all nodes. Never leaves the node.
struct Question {
  static constexpr std::string_view kName = "question";
  Probe::Wants wants = Probe::Wants::kNothing;
  // Called once by the Monitor, on its thread; not called when the Monitor ends before.
  std::function<void(NodeAnswers)> done;
};

// Facts that an actor can tell of the node it runs on: what the node does, its traces() and its
// wait_for_graph(). Called in the actor's handlers; short. Null: nothing is told.
struct NodeHooks {
  std::function<telemetry::NodeSample()> sample = nullptr;
  std::function<std::vector<runtime::ActorTrace>()> trace = nullptr;
  std::function<std::string()> waits = nullptr;
};

// ask() calls the hooks of this node.
struct NodeReportsOptions : NodeHooks {
  std::string node = "head";  // this node
  // How long the members have to answer a question.
  runtime::Duration patience = std::chrono::seconds(2);
  // How many questions may wait for answers at a time.
  std::size_t most_questions = 8;
  // How much is kept of the members' answers to all of these together. A member whose answer does
  // not fit counts as missing. Making a trace of so much takes up to twelve times as much memory
  // (telemetry/trace/trace_bytes.h).
  std::size_t most_bytes = std::size_t{32} << 20;
};

// One thread's.
class NodeReports {
 public:
  using Done = std::function<void(NodeAnswers)>;

  explicit NodeReports(NodeReportsOptions options = {});
  // Answers everybody who still waits with what has come.
  ~NodeReports();
  NodeReports(const NodeReports&) = delete;
  NodeReports& operator=(const NodeReports&) = delete;

  // The members that are here, by name.
  const std::set<std::string>& members() const { return members_; }
  void take_change(const NodeChange& change);

  // The members that are asked next: all, or, of more than kAskedAtOnce, the next so many in turn.
  // So what the head hears does not grow with the members.
  std::vector<std::string> take_turn();
  static constexpr std::size_t kAskedAtOnce = runtime::kPeersABeat;
  // A Probe for them, to be sent at `now`, that asks what their nodes do.
  Probe beat(runtime::TimePoint now);
  // The same, with a question besides. `done` is called once: in take(), take_change() or tend()
  // when all members have answered or had their time, in here when there are none, or in the
  // destructor. Returns nothing when too many questions are open; `done` is not called then.
  std::optional<Probe> ask(Probe::Wants wants, runtime::TimePoint now, Done done);

  // A report came from the member of that name at `now`. It may hold anything.
  void take(std::string_view member, const NodeReport& report,
            std::span<const runtime::Buffer> payloads, runtime::TimePoint now);
  // Gives up on members that had their time. To be called now and then.
  void tend(runtime::TimePoint now);

  // How far a member's clock is off; nothing: it has not answered yet.
  std::optional<telemetry::ClockOffset::Estimate> clock(std::string_view member) const;

 private:
  struct Question {
    Done done;
    NodeAnswers answers;
    std::set<std::string> awaited;
    runtime::TimePoint until{0};
  };

  Probe probe(std::uint64_t request, Probe::Wants wants, runtime::TimePoint now);
  NodeAnswers::Answer own_answer(Probe::Wants wants) const;
  // How much is kept of the members' answers to all open questions.
  std::size_t bytes_of_members() const;
  void finish(std::map<std::uint64_t, Question>::iterator question);

  const NodeReportsOptions options_;
  std::set<std::string> members_;
  std::string asked_last_;
  std::map<std::string, telemetry::ClockOffset, std::less<>> clocks_;
  std::deque<runtime::TimePoint> sent_;          // when the last probes were sent
  std::map<std::uint64_t, Question> questions_;  // by request
  std::uint64_t last_request_ = 0;
};

}  // namespace troupe::actors
