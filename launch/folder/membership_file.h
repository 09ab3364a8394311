#pragma once

// RUN/membership.jsonl. The head of a run over several processes leaves it for the head that takes
// its place when it is lost. One JSON object per line, "kind" first:
//
//   head        term and incarnation of a head that has begun
//   slot        a member that a process was asked to become, the token by which the relay knows it,
//               if there is one, and the pool's node it was started on. Once a View was told, no
//               later head gives the slot away again
//   neighbours  two members and their number (Gatekeeper::number_between)
//   view        a View, as summary.json has it, before its members are told
//
// These numbers and tokens let anybody pose as a member.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launch/folder/line_file.h"
#include "runtime/base/error.h"
#include "runtime/relay/relay_frames.h"
#include "telemetry/record.h"

namespace troupe::launch {

struct HeadHistory {
  // The last process that was asked to become each member, by the member's number.
  std::map<std::uint32_t, std::uint32_t> processes() const;
  // Members of the newest View that another process was asked to become since.
  std::set<std::uint32_t> renewed() const;
  // The name of each last process that is not the first, by the name of the first.
  std::map<std::string, std::string> called() const;

  std::uint32_t term = 0;  // of the newest head; 0: there was none
  std::vector<std::uint64_t> incarnations;
  std::set<std::string> slots;
  std::map<std::string, std::string> launched;  // the pool's node that a member was started on
  std::map<std::string, runtime::RelayToken> relay_tokens;                  // by member
  std::map<std::pair<std::string, std::string>, std::uint64_t> neighbours;  // the lesser name first
  // After the first, and how often a process was lost before one of them.
  std::vector<telemetry::ViewFacts> views;
  std::size_t failures = 0;
  std::vector<std::string> members;  // processes of the newest View; empty: none was told
};

// Any thread.
class MembershipFile {
 public:
  static constexpr const char* kName = "membership.jsonl";

  // `goes_on`: what is there is kept, and becomes the history; else it is removed first. A last
  // line that is not whole is left out. kData: the file cannot be read or written.
  static runtime::Result<MembershipFile> open(const std::string& path, bool goes_on);

  // As it was when the file was opened.
  const HeadHistory& history() const { return history_; }

  // Each kData when the line cannot be written; it is left out then, and those that follow are not.
  runtime::Result<void> add_head(std::uint32_t term, std::uint64_t incarnation);
  runtime::Result<void> add_slot(
      const std::string& member,
      const std::optional<runtime::RelayToken>& relay_token = std::nullopt,
      const std::string& launched = "");
  runtime::Result<void> add_neighbours(const std::string& one, const std::string& other,
                                       std::uint64_t number);
  // `first`: of the run.
  runtime::Result<void> add_view(const telemetry::ViewFacts& view, bool first);
  // The mark with which a member was launched, also one that was written since; "": none.
  std::string launched(const std::string& member) const;
  runtime::Result<void> put_back() const { return file_.put_back(); }

 private:
  MembershipFile(LineFile file, HeadHistory history)
      : file_(std::move(file)), history_(std::move(history)) {}

  // Those that were written since the file was opened.
  struct Launched {
    std::mutex mutex;
    std::map<std::string, std::string> marks;  // by member
  };

  LineFile file_;
  HeadHistory history_;
  std::unique_ptr<Launched> launched_ = std::make_unique<Launched>();
};

}  // namespace troupe::launch
