#pragma once

// Tells of the steps that a replica has applied: their lines, numbers for curves, and how
// fast it computes. Remembers the newest steps, because the Monitor may have missed some while the
// head was away. One thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "actors/messages.h"
#include "actors/sample_teller.h"
#include "actors/step_engine.h"
#include "pipeline/steps/step_record.h"
#include "runtime/actor.h"

namespace troupe::actors {

// Steps that a replica can tell again.
inline constexpr std::size_t kRememberedSteps = 4096;

// The seconds since the last step, by what they were spent on.
class Laps {
 public:
  void begin(runtime::TimePoint now) { last_ = now; }
  // Seconds since the last call of one of these three, for what the caller knows they were spent
  // on.
  double take(runtime::TimePoint now);
  void spend(StepEngine::Waits waits, runtime::TimePoint now);
  void spend_computing(runtime::TimePoint now) { compute_ += take(now); }
  // Writes them into the step's metrics, and begins anew.
  void put_into(StepMetrics& metrics);

 private:
  runtime::TimePoint last_{0};
  double load_ = 0.0, compute_ = 0.0, reduce_ = 0.0;
};

// Wall time and events of the iterations after a replica's first.
struct IterationTimes {
  std::uint64_t first_iteration = 0;
  runtime::TimePoint from{0}, to{0};
  std::uint64_t events = 0;
  // An iteration was completed, so that the state is at this one.
  void add(std::uint64_t iteration, std::uint64_t events_of_step, runtime::TimePoint now);
};

// Measures how fast a replica gets through its micro-batches, over whole iterations between changes
// of the View.
class PaceMeter {
 public:
  // Another View begins: the iteration under way is not counted. Paces come quickly at first.
  void restart();

  // A step kept the replica busy for so long, computing or waiting for events.
  void add_step(double seconds) { seconds_ += seconds; }
  // The iteration of these steps is over. So many of its micro-batches were the replica's.
  void end_iteration(std::uint64_t micro_batches);

  // The pace since it was last taken. Nothing while it is too early for another one, or these were
  // too few iterations to tell; they are then counted with the next ones.
  std::optional<Pace> take(std::uint32_t replica, std::uint64_t iteration, runtime::TimePoint now);

 private:
  bool is_whole_ = false;  // the iteration under way began after restart()
  std::uint64_t iterations_ = 0, micro_batches_ = 0;
  double seconds_ = 0.0, measured_seconds_ = 0.0;
  std::optional<runtime::TimePoint> taken_;  // or when the first iteration of the View was over
  runtime::Duration pause_{0};               // until the next
};

class StepTeller {
  using Context = runtime::Context;

 public:
  StepTeller(std::uint32_t replica, TrainingContext training)
      : replica_(replica), training_(training) {}

  // In start(): finds the out ports "metrics" and "samples".
  void start(Context& context);
  // In another View, of so many members. A replica that does not lead tells no steps.
  void enter(Context& context, bool leads, std::size_t members);

  // The engine has applied this step. `in_view`: with the others, not as a newcomer.
  void tell(Context& context, StepEngine& engine, const pipeline::StepRecord& record,
            StepMetrics metrics, bool in_view);
  // Tells the Monitor all remembered steps from this one on again. A replica that does not lead
  // does so in the next View, if it leads in that: it may still lack steps of the one before.
  void tell_again(Context& context, std::uint64_t from);
  // Tells what waits for room in front of the Monitor, in its order. True: nothing waits any more.
  // Nobody says when there is room.
  bool tell_untold(Context& context);
  // As many lines of turns wait as may.
  bool is_full() const {
    return training_.options.has_turns() && untold_.size() >= kRememberedSteps / 2;
  }
  // No step follows: tells what was put off.
  void finish(Context& context);

  // The newest step; null: none was applied.
  const StepMetrics* newest() const { return last_steps_.empty() ? nullptr : &last_steps_.back(); }

 private:
  void tell_line(Context& context, StepMetrics step);
  void tell_samples(Context& context, StepEngine& engine, const pipeline::StepRecord& record,
                    const StepMetrics& step);
  void tell_gradient(Context& context, const pipeline::StepRecord& record, std::uint32_t slot);
  void tell_pace(Context& context, StepEngine& engine, const StepMetrics& step);

  std::uint32_t replica_;
  TrainingContext training_;
  runtime::PortId metrics_;
  SampleTeller samples_;
  PaceMeter pace_;
  bool told_idle_ = false;  // in this View
  bool leads_ = false, is_over_ = false;
  std::optional<std::uint64_t> asked_from_;  // to be told again when it leads
  std::array<std::optional<runtime::TimePoint>, 2> gradient_told_;  // by network
  std::deque<StepMetrics> last_steps_;                              // the newest applied, in order
  std::deque<StepMetrics> untold_;  // the ones of these that wait for credit, and newer ones
  bool next_is_again_ = false;      // the Monitor asked again when there was nothing to tell
};

}  // namespace troupe::actors
