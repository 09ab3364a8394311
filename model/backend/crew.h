#pragma once

// The threads that compute a kernel: one, or a team.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::model {

class Crew {
 public:
  // Multiply-adds of one thread in about the time that it takes to begin and end a round of a team.
  static constexpr double kWorthARound = 4e6;

  // The caller alone.
  explicit Crew(std::byte* scratch) : own_(scratch) {}
  // `scratch` has memory for each thread of the team, first the caller's. The team must be idle and
  // have no other caller. A round of fewer multiply-adds than `worth_a_round` is not shared out.
  Crew(runtime::ThreadTeam& team, std::span<std::byte* const> scratches,
       double worth_a_round = kWorthARound)
      : team_(&team), scratches_(scratches), own_(scratches[0]), worth_a_round_(worth_a_round) {
    CHECK(scratches.size() == static_cast<std::size_t>(team.threads()), "memory for each thread");
  }

  // The thread's scratch memory: as many bytes as the Kernel asked for, aligned to 64.
  std::byte* scratch(int thread = 0) const {
    return team_ == nullptr ? own_ : scratches_[static_cast<std::size_t>(thread)];
  }

  // The threads that are to do so much work in so many rounds: this crew, or the caller alone.
  Crew for_work(double products, std::int64_t rounds) const {
    const bool worth_it = products >= worth_a_round_ * static_cast<double>(rounds);
    return team_ != nullptr && worth_it ? *this : Crew(own_);
  }

  // Calls part(i, thread) for every i < count, each once, in any order; returns when all are done.
  template <class Part>
  void run(std::int64_t count, const Part& part) const {
    if (team_ != nullptr && count > 1) return team_->run(count, std::cref(part));
    for (std::int64_t i = 0; i < count; ++i) part(i, 0);
  }

 private:
  runtime::ThreadTeam* team_ = nullptr;
  std::span<std::byte* const> scratches_;
  std::byte* own_;
  double worth_a_round_ = kWorthARound;
};

}  // namespace troupe::model
