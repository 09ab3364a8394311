#include "study/trial_book.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace troupe::study {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Error impossible(std::uint32_t trial, const std::string& what) {
  return {ErrorKind::kData, fmt::format("trial {} {}", trial, what)};
}

}  // namespace

bool TrialBook::has_ended(const Job& job) const {
  return job.has_failed() || job.results.size() == study_.repeats();
}

// Repeats of a job follow each other.
TrialBook::Step TrialBook::next() const {
  const auto running = std::ranges::count_if(jobs_, &Job::is_running);
  if (running >= std::ptrdiff_t{study_.parallel}) return Wait{};
  for (const Job& job : jobs_) {
    if (job.is_running || has_ended(job)) continue;
    return Begin{{job.trial, job.rung, static_cast<std::uint32_t>(job.results.size())}};
  }
  return decide();
}

// Where the oldest figures that may be used decide nothing, younger ones are waited for, one after
// the other: what is decided by then does not depend on which of them came first.
TrialBook::Step TrialBook::decide() const {
  const auto is_open = [&](const Job& job) { return !has_ended(job); };
  const auto open = std::ranges::count_if(jobs_, is_open);
  const bool has_room = open < std::ptrdiff_t{study_.parallel};
  const StopOptions& stop = study_.stop;
  const bool needs_figures = rungs_ > 1 || stop.target || stop.patience ||
                             method_.learns_for(static_cast<std::uint32_t>(trials_.size()));
  if (!needs_figures && trials_.size() < method_.trials()) {
    if (!has_room) return Wait{};
    return Propose{method_.propose(static_cast<std::uint32_t>(trials_.size()), {})};
  }
  const std::size_t pending = std::min<std::size_t>(jobs_.size(), study_.parallel - 1);
  const auto first_open = std::ranges::find_if(jobs_, is_open) - jobs_.begin();
  for (std::size_t count = jobs_.size() - pending; count <= jobs_.size(); ++count) {
    if (static_cast<std::ptrdiff_t>(count) > first_open) return Wait{};
    if (auto step = decide_by(count)) return *std::move(step);
  }
  return open > 0 ? Step(Wait{}) : Step(Over{});
}

std::optional<TrialBook::Step> TrialBook::decide_by(std::size_t count) const {
  // Open jobs end, but nothing else begins.
  if (has_reached_target(count)) return std::nullopt;
  if (const auto trial = to_promote(count)) return Promote{*trial};
  if (trials_.size() >= method_.trials() || is_out_of_patience(count)) return std::nullopt;
  return Propose{method_.propose(static_cast<std::uint32_t>(trials_.size()), known(count))};
}

// From the highest rung down, the best trial that is among the best of its rung and has not been
// promoted.
std::optional<std::uint32_t> TrialBook::to_promote(std::size_t count) const {
  for (std::uint32_t rung = static_cast<std::uint32_t>(rungs_); rung-- > 1;) {
    std::vector<std::pair<double, std::uint32_t>> below;
    for (const Job& job : std::span(jobs_).first(count)) {
      if (job.rung + 1 == rung) below.emplace_back(cost(job), job.trial);
    }
    std::ranges::sort(below);
    below.resize(below.size() / study_.stop.keep_one_in);
    for (const auto& [cost, trial] : below) {
      if (std::isfinite(cost) && trials_[trial].jobs.size() == rung) return trial;
    }
  }
  return std::nullopt;
}

bool TrialBook::has_reached_target(std::size_t count) const {
  if (!study_.stop.target) return false;
  const double target = study_.objective.cost(*study_.stop.target);
  const auto jobs = std::span(jobs_).first(count);
  return std::ranges::any_of(jobs, [&](const Job& job) { return cost(job) <= target; });
}

// Trials count as they were proposed, by the first rung alone.
bool TrialBook::is_out_of_patience(std::size_t count) const {
  if (!study_.stop.patience) return false;
  double best = std::numeric_limits<double>::infinity();
  std::uint32_t without = 0;
  for (const Job& job : std::span(jobs_).first(count)) {
    if (job.rung > 0) continue;
    without = cost(job) < best ? 0 : without + 1;
    best = std::min(best, cost(job));
  }
  return without >= *study_.stop.patience;
}

double TrialBook::cost(const Job& job) const {
  const auto found = figure(job);
  return found ? study_.objective.cost(found->mean) : std::numeric_limits<double>::infinity();
}

std::vector<double> TrialBook::gains(std::size_t count) const {
  std::vector<std::vector<double>> changes(rungs_);
  for (const Trial& trial : trials_) {
    for (std::size_t rung = 1; rung < trial.jobs.size(); ++rung) {
      if (trial.jobs[rung] >= count) break;
      const double change = cost(jobs_[trial.jobs[rung]]) - cost(jobs_[trial.jobs[rung - 1]]);
      if (std::isfinite(change)) changes[rung].push_back(change);
    }
  }
  std::vector<double> gains;
  double sum = 0.0;
  for (std::vector<double>& own : changes) {
    std::ranges::sort(own);
    if (!own.empty()) sum += own[own.size() / 2];
    gains.push_back(sum);
  }
  return gains;
}

Known TrialBook::known(std::size_t count) const {
  const std::vector<double> gained = gains(count);
  Known known;
  for (const Trial& trial : trials_) {
    std::optional<std::uint32_t> last;
    for (const std::uint32_t job : trial.jobs) {
      if (job < count) last = job;
    }
    if (!last) {
      known.pending.push_back(trial.point);
      continue;
    }
    const double cost_of_it = cost(jobs_[*last]);
    known.ended.push_back({trial.point, std::nullopt});
    if (std::isfinite(cost_of_it)) known.ended.back().cost = cost_of_it - gained[jobs_[*last].rung];
  }
  return known;
}

Result<void> TrialBook::propose(Point point) {
  const auto number = static_cast<std::uint32_t>(trials_.size());
  if (number >= kMostTrials) {
    return Error{ErrorKind::kData, fmt::format("more than {} trials", kMostTrials)};
  }
  trials_.push_back({std::move(point), {static_cast<std::uint32_t>(jobs_.size())}});
  jobs_.push_back({number, 0, {}, false});
  return {};
}

Result<void> TrialBook::promote(std::uint32_t trial) {
  if (trial >= trials_.size()) return impossible(trial, "is promoted before it is proposed");
  const Job& last = last_job(trials_[trial]);
  const std::uint32_t rung = last.rung + 1;
  if (!figure(last)) return impossible(trial, "is promoted without a figure");
  if (rung >= rungs_) return impossible(trial, "is promoted beyond the last rung");
  trials_[trial].jobs.push_back(static_cast<std::uint32_t>(jobs_.size()));
  jobs_.push_back({trial, rung, {}, false});
  return {};
}

Result<void> TrialBook::begin(RunNumber run) {
  if (run.trial >= trials_.size()) return impossible(run.trial, "begins before it is proposed");
  Job& job = jobs_[trials_[run.trial].jobs.back()];
  if (job.is_running) return impossible(run.trial, "begins while it runs");
  if (has_ended(job)) return impossible(run.trial, "begins when it has ended");
  if (run.rung != job.rung || run.repeat != job.results.size()) {
    return impossible(run.trial, "begins a run out of its turn");
  }
  job.is_running = true;
  return {};
}

Result<void> TrialBook::end(RunNumber run, RunResult result) {
  if (run.trial >= trials_.size()) return impossible(run.trial, "ends before it is proposed");
  Job& job = jobs_[trials_[run.trial].jobs.back()];
  if (!job.is_running || run.rung != job.rung || run.repeat != job.results.size()) {
    return impossible(run.trial, "ends a run that has not begun");
  }
  job.is_running = false;
  job.results.push_back(std::move(result));
  return {};
}

std::vector<RunNumber> TrialBook::running() const {
  std::vector<RunNumber> runs;
  for (const Job& job : jobs_) {
    if (!job.is_running) continue;
    runs.push_back({job.trial, job.rung, static_cast<std::uint32_t>(job.results.size())});
  }
  return runs;
}

std::optional<TrialFigure> TrialBook::figure(const Job& job) const {
  if (!has_ended(job) || job.has_failed()) return std::nullopt;
  const auto count = static_cast<double>(job.results.size());
  TrialFigure made{0.0, std::nullopt, job.rung};
  for (const RunResult& result : job.results) made.mean += *result.figure / count;
  if (job.results.size() < 2) return made;
  double squares = 0.0;
  for (const RunResult& result : job.results) {
    squares += (*result.figure - made.mean) * (*result.figure - made.mean);
  }
  made.deviation = std::sqrt(squares / (count - 1.0));
  return made;
}

std::optional<TrialFigure> TrialBook::figure(const Trial& trial) const {
  if (last_job(trial).has_failed()) return std::nullopt;
  std::optional<TrialFigure> last;
  for (const std::uint32_t job : trial.jobs) {
    if (const auto found = figure(jobs_[job])) last = found;
  }
  return last;
}

std::optional<std::uint32_t> TrialBook::best() const {
  std::optional<std::uint32_t> best;
  std::pair<double, double> least;  // the rung, negative, and the cost
  for (const Job& job : jobs_) {
    if (!figure(job) || last_job(trials_[job.trial]).has_failed()) continue;
    const std::pair<double, double> found(-static_cast<double>(job.rung), cost(job));
    if (best && (found > least || (found == least && *best < job.trial))) continue;
    best = job.trial;
    least = found;
  }
  return best;
}

std::vector<Observation> TrialBook::observations() const {
  const std::vector<double> gained = gains(jobs_.size());
  std::vector<Observation> all;
  for (const Trial& trial : trials_) {
    const auto found = figure(trial);
    if (found) {
      all.push_back({trial.point, study_.objective.cost(found->mean) - gained[found->rung]});
    }
    if (last_job(trial).has_failed()) all.push_back({trial.point, std::nullopt});
  }
  return all;
}

}  // namespace troupe::study
