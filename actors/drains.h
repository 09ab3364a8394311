#pragma once

// Requests from outside (`troupe drain`) that a member leave, and their answers.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/steps/roster.h"
#include "runtime/base/error.h"
#include "runtime/transport/drain.h"

namespace troupe::actors {

// Why the node cannot be asked to leave, for whoever asks; nothing: it can. Pure.
std::optional<runtime::Error> objection_to_drain(const pipeline::Roster& roster,
                                                 const std::string& node);
// The same of the last member that makes steps.
runtime::Error objection_to_last(const std::string& node);

// Those that wait for a member to leave. One thread.
class Drains {
 public:
  bool has(std::uint32_t member) const { return replies_.contains(member); }
  void add(std::uint32_t member, std::shared_ptr<runtime::DrainReply> reply) {
    replies_.emplace(member, std::move(reply));
  }
  // Answers all that wait for the member.
  void answer(std::uint32_t member, const runtime::Result<void>& answer) {
    const auto [first, last] = replies_.equal_range(member);
    for (auto each = first; each != last; ++each) each->second->answer(answer);
    replies_.erase(first, last);
  }

 private:
  std::multimap<std::uint32_t, std::shared_ptr<runtime::DrainReply>> replies_;
};

}  // namespace troupe::actors
