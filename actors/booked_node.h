#pragma once

// The life of one node in the PoolBook: what its launcher and its members say moves it from state
// to state, and what is to be done with it follows.

#include <map>
#include <string>
#include <vector>

#include "actors/launcher.h"
#include "actors/pool_node.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::actors {

// One thread.
class BookedNode {
 public:
  // It is to be asked for.
  BookedNode(std::string name, std::string pool, runtime::TimePoint now);
  // The head before this one knew it, and it was not gone. A member of one that ran has to come
  // back first. `lists`: Launcher::lists().
  BookedNode(const PoolNode& known, bool lists, runtime::TimePoint now);

  const PoolNode& facts() const { return facts_; }
  bool has_members() const { return !members_.empty(); }
  bool has_member(const std::string& member) const { return members_.contains(member); }
  // Its members were lost with their head, and may still come back to this one.
  bool is_awaited(runtime::TimePoint now) const;
  bool is_of(const ListedNode& row) const;

  // Under which id its launcher will look for it.
  void set_id(const std::string& id);
  // Its launcher has started it, as Launcher::start() says, or has not.
  void started(const std::string& id, bool lists, runtime::TimePoint now);
  void start_failed(const runtime::Error& why, runtime::TimePoint now);
  void gone(runtime::TimePoint now) { set(PoolNodeState::kGone, now); }
  // Its launcher lists this of it; null: nothing. Returns whether it is lost, which nobody asked
  // for, and has not helped.
  bool look_at(const ListedNode* row, runtime::TimePoint now);

  void member_came(const std::string& member, runtime::TimePoint now);
  void member_trains(runtime::TimePoint now);
  void member_gone(const std::string& member, runtime::TimePoint now);
  // It cannot leave. False: the node was not to be given back.
  bool member_kept(const std::string& member, runtime::TimePoint now);
  void ask_again(const std::string& member) { members_[member] = false; }
  // The run is over, so its members end by themselves.
  void release(runtime::TimePoint now);

  // Lets its members go first, where it has any.
  void give_back(runtime::TimePoint now);
  // Gives up one that has not joined in this time, or whose members are gone. Returns whether it
  // has not joined.
  bool look_after(runtime::Duration starts_in, runtime::TimePoint now);
  // Those that are to be asked to leave. They count as asked.
  std::vector<std::string> take_members_to_go();
  // Whether its launcher is to be told now to stop it. It counts as told.
  bool take_stop(runtime::TimePoint now);
  // Whether it is not as it was when this was called last.
  bool take_changed();

 private:
  void set(PoolNodeState state, runtime::TimePoint now);
  void begin_to_stop(runtime::TimePoint now);

  PoolNode facts_;
  runtime::TimePoint since_;               // of the state
  bool answered_ = false;                  // start() has returned
  bool failed_ = false;                    // with an Error: it may be there all the same
  bool seen_ = false;                      // its launcher has listed it
  std::map<std::string, bool> members_{};  // whether each was asked to leave
  bool had_members_ = false;
  runtime::TimePoint alone_since_{0};  // without members, if it had some
  runtime::TimePoint stop_due_{0};     // when its launcher is told to stop it next
  bool changed_ = true;
};

}  // namespace troupe::actors
