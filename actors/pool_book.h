#pragma once

// The book of nodes that a run has asked for: how many each pool shall have, what is known of every
// one, and what is to be done next. Nothing here starts, asks or waits.
//
// A node is forgotten only when its launcher does not list it any more, however it was asked for or
// told to stop. No pool ever has more than its most, those included that are on their way out. A
// pool whose nodes fail is asked again after a pause that doubles.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/launcher.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::actors {

struct PoolLimits {
  std::string name;
  std::uint32_t nodes = 0;  // wanted when the run begins
  std::uint32_t most = 1;
  // How long a node may take from its start to its first member.
  runtime::Duration starts_in = std::chrono::minutes(10);
  bool lists = true;  // Launcher::lists()
};

enum class PoolNodeState : std::uint8_t {
  kAsked,     // its start was decided, and may have been carried out
  kQueued,    // it waits for a machine
  kStarting,  // it has one
  kLearning,  // members have come, and learn the state
  kRunning,   // members train
  kDraining,  // they were asked to leave
  kStopping,  // its launcher was told to stop it
  kGone,
};
// "asked", "queued", ..., "ended" for one that is gone; and back.
const char* word_of(PoolNodeState state);
std::optional<PoolNodeState> pool_node_state(std::string_view word);

// For a node, until some moment.
struct Payment {
  double seconds = 0.0;
  double cost = 0.0;
};

struct PoolNode {
  std::string name;  // "hpc.3"
  std::string pool;
  PoolNodeState state = PoolNodeState::kAsked;
  std::string id{};     // the launcher's; "": not known yet
  std::string where{};  // the machine, for people
  std::string cause{};  // why it is stopped or gone, where nobody asked for it
  // CostBook's; of an adopted one: until it was adopted.
  Payment paid{};
  double price_per_node_hour = 0.0;
};

// What is to be done.
struct AskForNode {
  std::string pool, node;
};
struct StopNode {
  std::string pool, node, id;
};
struct LetMembersGo {
  std::string node;
  std::vector<std::string> members;
};
using PoolOrder = std::variant<AskForNode, StopNode, LetMembersGo>;

// One thread.
class PoolBook {
 public:
  explicit PoolBook(const std::vector<PoolLimits>& pools);

  // What the head before this one knew. Nodes that are gone keep their names. A member of a node
  // that ran has to come back first.
  void adopt(const PoolNode& node, runtime::TimePoint now);

  // How many nodes a pool shall have. kUsage: there is no such pool, or it has not so many.
  runtime::Result<void> want(const std::string& pool, std::uint32_t nodes);
  runtime::Result<std::uint32_t> wanted(const std::string& pool) const;
  // Nodes of it that are neither gone nor on their way out.
  std::uint32_t present(const std::string& pool) const;
  // The run is over: nothing is asked for any more, and what is left is stopped.
  void end(runtime::TimePoint now);

  // What a launcher says.
  void started(const std::string& node, const std::string& id, runtime::TimePoint now);
  void start_failed(const std::string& node, const runtime::Error& why, runtime::TimePoint now);
  // It was not asked for after all.
  void withdraw(const std::string& node, runtime::TimePoint now);
  void stopped(const std::string& node, runtime::TimePoint now);
  // Nodes beside those of the book are stopped, as they may have been started twice.
  void listed(const std::string& pool, const std::vector<ListedNode>& nodes,
              runtime::TimePoint now);

  // A member that was started on a node has come, trains, or is gone.
  void member_came(const std::string& node, const std::string& member, runtime::TimePoint now);
  void member_trains(const std::string& member, runtime::TimePoint now);
  void member_gone(const std::string& member, runtime::TimePoint now);
  // It cannot leave: its node stays, and is wanted. Returns the node's pool; "": it is of none.
  std::string member_kept(const std::string& member, runtime::TimePoint now);
  // It cannot leave yet, and is asked again.
  void ask_member_again(const std::string& member);

  // The next things to do, in this order. Those are counted as done.
  std::vector<PoolOrder> next(runtime::TimePoint now);
  // Nodes that are not as they were when this was called last.
  std::vector<PoolNode> take_changed();
  std::vector<PoolNode> nodes() const;
  // Nothing is left that could cost anything.
  bool all_gone() const;
  // Whether a pool has nodes that are not gone, and whether one of them does not run with members.
  bool has_any(const std::string& pool) const;
  bool changes(const std::string& pool) const;

 private:
  struct Entry : PoolNode {
    runtime::TimePoint since{0};            // of the state
    bool answered = false;                  // start() has returned
    bool failed = false;                    // with an Error: it may be there all the same
    bool seen = false;                      // its launcher has listed it
    std::map<std::string, bool> members{};  // whether each was asked to leave
    bool had_members = false;
    runtime::TimePoint alone_since{0};  // without members, if it had some
    runtime::TimePoint stop_due{0};     // when its launcher is told to stop it next
    bool changed = true;
  };
  struct Pool {
    PoolLimits limits;
    std::uint32_t wanted = 0;
    std::uint32_t next_number = 0;
    std::uint32_t failures = 0;  // in a row
    runtime::TimePoint ask_again{0};
    std::vector<StopNode> strays{};
    bool has_strays = false;      // when it was listed last
    std::uint32_t survivors = 0;  // likewise: strays whose node is gone
  };

  static bool is_present(const Entry& entry);
  Pool& pool_of(const Entry& entry) { return pools_.at(entry.pool); }
  Entry* find(const std::string& node);
  Entry* with_member(const std::string& member);
  void lose(Entry& entry, const std::string& cause, runtime::TimePoint now);
  static void note_failure(Pool& pool, runtime::TimePoint now);
  static void set(Entry& entry, PoolNodeState state, runtime::TimePoint now);
  static void begin_to_stop(Entry& entry, runtime::TimePoint now);
  std::uint32_t not_gone(const std::string& pool) const;
  void look_at(Entry& entry, const ListedNode* row, runtime::TimePoint now);
  void fill(Pool& pool, std::vector<PoolOrder>& orders, runtime::TimePoint now);
  void shrink(Pool& pool, runtime::TimePoint now);
  void look_after(Entry& entry, std::vector<PoolOrder>& orders, runtime::TimePoint now);

  std::map<std::string, Pool> pools_;
  std::vector<Entry> nodes_;  // in the order in which they were asked for
  bool ended_ = false;
};

}  // namespace troupe::actors
