#pragma once

// Who computes a kernel: one thread, or a team of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/base/thread_team.h"

namespace troupe::model {

class Crew {
 public:
  // The caller alone.
  explicit Crew(std::byte* scratch) : own_(scratch) {}
  // Scratch memory for each thread of the team; the first is the caller's.
  Crew(runtime::ThreadTeam& team, std::span<std::byte* const> scratches)
      : team_(&team), scratches_(scratches), own_(scratches[0]) {}

  // Of a thread, as many bytes as the Kernel asked for, aligned to 64.
  std::byte* scratch(int thread = 0) const {
    return team_ == nullptr ? own_ : scratches_[static_cast<std::size_t>(thread)];
  }

  // Calls part(i, thread) for every i < count, each once, in any order; returns when all are done.
  template <class Part>
  void run(std::int64_t count, const Part& part) const {
    if (team_ != nullptr) return team_->run(count, std::cref(part));
    for (std::int64_t i = 0; i < count; ++i) part(i, 0);
  }

 private:
  runtime::ThreadTeam* team_ = nullptr;
  std::span<std::byte* const> scratches_;
  std::byte* own_;
};

}  // namespace troupe::model
