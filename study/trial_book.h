#pragma once

// The trials of a study: what was proposed, what runs, what has ended, and what is to be done next.
// It changes by what the journal says and by nothing else, so that a study that goes on is where it
// was.
//
// A job is a trial's training up to one rung, in all its repeats. Jobs are numbered in the order in
// which they are decided on. With `parallel: k` the decision on a job depends on the jobs that were
// decided on k jobs before it or earlier, and never on when any of them ended.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/error.h"
#include "study/method.h"
#include "study/study_file.h"

namespace troupe::study {

// One run of a job: all numbers from 0.
struct RunNumber {
  std::uint32_t trial = 0;
  std::uint32_t rung = 0;
  std::uint32_t repeat = 0;

  bool operator==(const RunNumber&) const = default;
};

// The end of a run.
struct RunResult {
  std::optional<double> figure;  // none: the run has failed
  std::string error;             // why; "" otherwise
  std::string state_hash;        // of what was trained; "": not known
  int exit_code = 0;
  double seconds = 0.0;

  bool operator==(const RunResult&) const = default;
};

struct Job {
  std::uint32_t trial = 0;
  std::uint32_t rung = 0;
  std::vector<RunResult> results;  // of its repeats, in their order
  bool is_running = false;         // the repeat behind these

  bool has_failed() const { return !results.empty() && !results.back().figure; }
};

struct Trial {
  Point point;
  std::vector<std::uint32_t> jobs;  // one of each rung, from the first on
};

// Over a job's repeats.
struct TrialFigure {
  double mean = 0.0;
  std::optional<double> deviation;  // standard, of one repeat; none: there is one
  std::uint32_t rung = 0;           // of the job
};

class TrialBook {
 public:
  // The next thing to do. It is to be written first, then told to the book, then done.
  struct Propose {
    Point point;
  };
  struct Promote {  // the trial to its next rung
    std::uint32_t trial;
  };
  struct Begin {
    RunNumber run;
  };
  struct Wait {};  // until a run ends
  struct Over {};
  using Step = std::variant<Propose, Promote, Begin, Wait, Over>;

  // Both outlive it. `rungs`: how many there are.
  TrialBook(const Study& study, const Method& method, std::size_t rungs)
      : study_(study), method_(method), rungs_(rungs) {}

  Step next() const;

  // kData: that cannot be, by what was told before.
  runtime::Result<void> propose(Point point);
  runtime::Result<void> promote(std::uint32_t trial);
  runtime::Result<void> begin(RunNumber run);
  runtime::Result<void> end(RunNumber run, RunResult result);

  const std::vector<Trial>& trials() const { return trials_; }
  const std::vector<Job>& jobs() const { return jobs_; }
  // How many trials there will be, unless the study ends early.
  std::uint32_t all_trials() const { return method_.trials(); }
  std::size_t rungs() const { return rungs_; }
  // Those that were begun and have not ended.
  std::vector<RunNumber> running() const;
  // A job whose repeats have ended, or that has failed.
  bool has_ended(const Job& job) const;
  // Nothing: it has not ended, or failed.
  std::optional<TrialFigure> figure(const Job& job) const;
  // That of the highest rung that it has one of; nothing once a job of it has failed.
  std::optional<TrialFigure> figure(const Trial& trial) const;
  const Job& last_job(const Trial& trial) const { return jobs_[trial.jobs.back()]; }
  // The number of the best of those that have a figure of the highest rung of all; of equal ones
  // the older. Nothing: none has a figure.
  std::optional<std::uint32_t> best() const;
  // The trials that have a figure, and those that have failed. The cost is that of the highest
  // rung, less what trials gain in the middle on the way to that rung: else those that trained
  // further would seem to have better settings.
  std::vector<Observation> observations() const;

 private:
  Step decide() const;
  // The decision by the first `count` jobs, all of which have ended; nothing: they decide nothing.
  std::optional<Step> decide_by(std::size_t count) const;
  std::optional<std::uint32_t> to_promote(std::size_t count) const;
  bool has_reached_target(std::size_t count) const;
  bool is_out_of_patience(std::size_t count) const;
  Known known(std::size_t count) const;
  // By how much costs change from the first rung to each one, by the median of the trials that went
  // on from one to the next among the first `count` jobs.
  std::vector<double> gains(std::size_t count) const;
  double cost(const Job& job) const;  // infinite: it has failed

  const Study& study_;
  const Method& method_;
  const std::size_t rungs_;
  std::vector<Trial> trials_;
  std::vector<Job> jobs_;
};

}  // namespace troupe::study
