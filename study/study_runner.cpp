#include "study/study_runner.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "launch/folder/run_folder.h"
#include "launch/pools/pool_journal.h"
#include "launch/processes/child_process.h"
#include "launch/processes/command.h"
#include "launch/processes/shell_word.h"
#include "launch/processes/signal_watch.h"
#include "launch/run/run_pools.h"
#include "runtime/base/clock.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "study/run_address.h"
#include "study/shared_pools.h"
#include "study/trial_run.h"
#include "study/watched_process.h"
#include "study/worker_shares.h"

namespace troupe::study {
namespace {

using launch::ChildProcess;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr auto kEndsWithin = std::chrono::seconds(30);
constexpr std::uint32_t kMostFailures = 3;  // of members in a row, behind which a run gets no more
constexpr auto kStays = std::chrono::minutes(1);  // a member that did was no failure
constexpr auto kLookAgain = std::chrono::milliseconds(50);

// The requests to end that have come so far; readable in `descriptor` when one comes.
class StopRequests {
 public:
  StopRequests() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  int descriptor() const { return event_.number(); }
  int count() const { return count_; }
  int first_signal() const { return signal_; }
  // So that it is not readable any more.
  void take() const {
    std::uint64_t value = 0;
    (void)!::read(event_.number(), &value, sizeof value);
  }

 private:
  void hear(int number, int request) {
    if (request == 0) return;  // SIGUSR1
    if (request == 1) signal_ = number;
    count_ = request;
    const std::uint64_t one = 1;
    (void)!::write(event_.number(), &one, sizeof one);
  }

  runtime::Descriptor event_;
  std::atomic<int> count_ = 0, signal_ = 0;
  launch::SignalWatch watch_{[this](int number, int request) { hear(number, request); }};
};

// Runs that ended before this process began may have left nodes behind.
void remember_nodes(const TrialBook& book, const StudyFolder& folder, std::uint32_t repeats,
                    SharedPools& pools) {
  for (const Job& job : book.jobs()) {
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
      const RunNumber run{job.trial, job.rung, repeat};
      pools.begin(run, folder.run_folder(run, repeats));
      pools.end(run);
    }
  }
}

// A run says so itself, but nobody sees that.
void tell_of_nodes_left(const std::string& folder, const runtime::Log& log) {
  const std::string left = launch::left_text(
      launch::nodes_left(launch::read_pool_journal(folder + "/" + launch::PoolJournal::kName)),
      folder);
  if (!left.empty()) log.warning(left);
}

bool has_any_figure(const TrialBook& book) {
  return std::ranges::any_of(book.jobs(), [](const Job& job) {
    return std::ranges::any_of(job.results,
                               [](const RunResult& result) { return result.figure.has_value(); });
  });
}

std::string how_to_go_on(const StudyFolder& folder) {
  return fmt::format("go on with: troupe study --resume {}", launch::shell_word(folder.path()));
}

class StudyRunner {
 public:
  StudyRunner(const RunnerRequest& request, StudyJournal& journal, TrialBook& book,
              const runtime::Log& log)
      : request_(request),
        journal_(journal),
        book_(book),
        log_(log),
        pools_(request.loaded.study.workers > 0 ? request.loaded.cluster.pools
                                                : std::vector<config::PoolSection>()) {}

  Result<RunnerEnd> run() {
    remember_nodes(book_, request_.folder, study().repeats(), pools_);
    runtime::FileDisk disk;
    Result<void> fault = pools_.empty() ? Result<void>{} : request_.folder.make_hosts(disk);
    for (const RunNumber run : book_.running()) {
      if (!fault.ok() || stops_.count() > 0) break;
      fault = go_on_with(run);
    }
    while (true) {
      if (fault.ok() && stops_.count() == 0) fault = do_what_is_next();
      if (fault.ok() && stops_.count() == 0) fault = share_workers();
      if (fault.ok() && stops_.count() == 0) fault = share_nodes();
      if (!fault.ok()) stop(SIGTERM);
      if (children_.empty()) break;
      launch::wait_for_children(
          children_, stops_.descriptor(),
          pools_.empty() ? std::nullopt : std::optional<runtime::Duration>(SharedPools::kLook));
      stops_.take();
      if (stops_.count() > 0) stop(stops_.count() > 1 ? SIGKILL : SIGTERM);
      const Result<void> taken = take_ends(fault.ok() && stops_.count() == 0);
      if (fault.ok()) fault = taken;
    }
    RETURN_IF_ERROR(fault);
    CHECK(stops_.count() > 0 || std::holds_alternative<TrialBook::Over>(book_.next()),
          "the study waits for nothing");
    return RunnerEnd{stops_.first_signal()};
  }

 private:
  // The run had begun before this process did. Where it has come to its end since, that is its end:
  // to begin it again would train nothing, and tell other figures of speed.
  Result<void> go_on_with(RunNumber run) {
    const std::string folder = request_.folder.run_folder(run, study().repeats());
    RETURN_IF_ERROR(wait_until_free(folder));
    if (stops_.count() > 0) return {};
    const std::string summary = whole_summary(request_.loaded, run, folder);
    if (summary.empty()) return start(run);
    return take_end(run, found_by(request_.loaded, run, folder, {{}, summary, "", 0.0}));
  }

  // The processes of a study that was killed may still be about to end, and may not even have
  // written their topology. Until then nobody else works in their folder.
  Result<void> wait_until_free(const std::string& folder) const {
    if (!StudyFolder::is_locked(folder)) return {};
    log_.info(fmt::format("waits for the process that still works in {}", folder));
    const runtime::TimePoint until = clock_.now() + kEndsWithin;
    while (stops_.count() == 0 && StudyFolder::is_locked(folder)) {
      if (clock_.now() >= until) {
        return Error{ErrorKind::kUsage,
                     fmt::format("another process still works in {}; end it, then {}", folder,
                                 how_to_go_on(request_.folder))};
      }
      std::this_thread::sleep_for(kLookAgain);
    }
    return {};
  }

  // Until there is nothing to do but to wait, or nothing at all.
  Result<void> do_what_is_next() {
    while (true) {
      const TrialBook::Step step = book_.next();
      if (const auto* proposal = std::get_if<TrialBook::Propose>(&step)) {
        const auto number = static_cast<std::uint32_t>(book_.trials().size());
        RETURN_IF_ERROR(record(TrialLine{number, settings_of(study().space, proposal->point)}));
      } else if (const auto* promotion = std::get_if<TrialBook::Promote>(&step)) {
        RETURN_IF_ERROR(record(PromoteLine{promotion->trial}));
      } else if (const auto* begin = std::get_if<TrialBook::Begin>(&step)) {
        RETURN_IF_ERROR(record(BeginLine{begin->run, time_of_day()}));
        RETURN_IF_ERROR(start(begin->run));
      } else {
        return {};
      }
    }
  }

  Result<void> record(const JournalLine& line) {
    RETURN_IF_ERROR(journal_.add(line));
    return tell(line, study().space, book_);
  }

  // Each run reads the topology anew, and all train the same one.
  Result<void> check_topology() const {
    ASSIGN_OR_RETURN(const std::string text, config::read_topology_text(study().topology));
    if (text == request_.loaded.topology_text) return {};
    return Error{ErrorKind::kTopology,
                 fmt::format("{} has changed since the study began; put it back as it was, then {}",
                             study().topology, how_to_go_on(request_.folder))};
  }

  Result<void> start(RunNumber run, std::uint32_t turns = 1) {
    RETURN_IF_ERROR(check_topology());
    const Point& point = book_.trials()[run.trial].point;
    auto watched = std::make_unique<Watched>();
    watched->run = run;
    watched->turns = turns;
    watched->folder = request_.folder.run_folder(run, study().repeats());
    if (study().workers > 0) {
      ASSIGN_OR_RETURN(watched->address, run_address(request_.loaded.cluster, turn_++));
      pools_.begin(run, watched->folder);
    }
    log_.info(fmt::format("{} begins: {}", name_of(run),
                          fmt::join(overrides_of(request_.loaded, point, run), " ")));
    const auto words =
        run_words(request_.loaded, point, run, watched->folder, watched->address.listen);
    return start(words, std::move(watched));
  }

  // The words are those behind `troupe`.
  Result<void> start(const std::vector<std::string>& words, std::unique_ptr<Watched> watched) {
    launch::ChildOptions options;
    options.words = {request_.program};
    options.words.insert(options.words.end(), words.begin(), words.end());
    // What others tell is read here, however little people want to read.
    if (watched->kind == Watched::Kind::kRun) {
      options.words.insert(options.words.end(), request_.more_words.begin(),
                           request_.more_words.end());
    }
    options.out = [own = watched.get()](std::string_view line) { own->hear(line); };
    options.err = [own = watched.get()](std::string_view line) { own->hear_error(line); };
    watched->began = clock_.now();
    ASSIGN_OR_RETURN(auto child, ChildProcess::start(options));
    children_.push_back(std::move(child));
    watched_.push_back(std::move(watched));
    return {};
  }

  // Starts such a process for a run, which a verb carries out at the run's head.
  Result<void> start_for(const Watched& run, Watched::Kind kind, const std::string& verb,
                         const NodeWish& wish = {}) {
    auto watched = std::make_unique<Watched>();
    watched->run = run.run;
    watched->kind = kind;
    watched->wish = wish;
    std::vector<std::string> words{verb, run.address.dial};
    if (kind == Watched::Kind::kWish) {
      words.insert(words.end(), {wish.pool, fmt::format("{}", wish.nodes)});
    }
    for (std::string& word : key_words(request_.loaded.cluster)) words.push_back(std::move(word));
    return start(words, std::move(watched));
  }

  Watched* find_run(RunNumber run) {
    const auto found = std::ranges::find_if(watched_, [&](const auto& each) {
      return each->kind == Watched::Kind::kRun && each->run == run;
    });
    return found == watched_.end() ? nullptr : found->get();
  }

  // Runs are told how many nodes of each pool they shall have.
  Result<void> share_nodes() {
    for (const NodeWish& wish : pools_.next(clock_.now())) {
      const Watched* const run = find_run(wish.run);
      CHECK(run != nullptr, "a run that has ended wants nodes");
      RETURN_IF_ERROR(start_for(*run, Watched::Kind::kWish, "burst", wish));
    }
    return {};
  }

  // One that was ended with its run tells nothing of the run that may have begun again.
  void take_wish(const Watched& watched, const launch::ChildEnd& end) {
    using Answer = SharedPools::Answer;
    if (watched.is_leaving) return;
    const NodeWish& wish = watched.wish;
    const bool is_done = end == launch::ChildEnd{0, 0};
    const bool is_refused = is_end_of(ErrorKind::kUsage, end);
    const bool is_first = pools_.answer(wish,
                                        is_done      ? Answer::kDone
                                        : is_refused ? Answer::kRefused
                                                     : Answer::kNone,
                                        clock_.now());
    const Watched* const run = find_run(wish.run);
    if (run == nullptr || run->is_over || stops_.count() > 0) return;
    if (is_done) {
      log_.info(fmt::format("{}: nodes of pool {} from now on: {}", name_of(wish.run), wish.pool,
                            wish.nodes));
    } else if (is_first) {
      log_.warning(fmt::format(
          "{} could not be told to have {} nodes of pool {}, and is told again: {}",
          name_of(wish.run), wish.nodes, wish.pool, launch::shown_line(watched.last_error)));
    }
  }

  // Members of runs that have too many leave, and others come where there are too few.
  Result<void> share_workers() {
    if (study().workers == 0) return {};
    std::vector<Watched*> runs;
    for (const auto& each : watched_) {
      if (each->kind == Watched::Kind::kRun && !each->is_over) runs.push_back(each.get());
    }
    std::vector<RunMembers> members;
    for (const Watched* run : runs) {
      members.push_back({0, 0, run->failures < kMostFailures});
      for (const auto& each : watched_) {
        if (each->kind != Watched::Kind::kMember || each->run != run->run) continue;
        ++(each->is_leaving ? members.back().leaving : members.back().here);
      }
    }
    const std::vector<MemberChange> changes = member_changes(workers(), members);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      let_leave(runs[i]->run, changes[i].leave);
      for (std::uint32_t j = 0; j < changes[i].come; ++j) {
        RETURN_IF_ERROR(start_for(*runs[i], Watched::Kind::kMember, "join"));
      }
    }
    return {};
  }

  // Ends the processes that were started for a run that has ended. Those that were about to join it
  // would wait for its head.
  void end_members(RunNumber run) {
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (watched_[i]->kind == Watched::Kind::kRun || watched_[i]->run != run) continue;
      watched_[i]->is_leaving = true;
      children_[i]->send(SIGKILL);
    }
  }

  // So many members of a run, those first that came last.
  void let_leave(RunNumber run, std::size_t count) {
    for (std::size_t i = children_.size(); i-- > 0 && count > 0;) {
      if (watched_[i]->kind != Watched::Kind::kMember || watched_[i]->run != run) continue;
      if (std::exchange(watched_[i]->is_leaving, true)) continue;
      children_[i]->send(SIGTERM);
      --count;
    }
  }

  // A member has ended that the study has not told to. Where people let it go nobody takes its
  // place. Another one that ends well has been released, so its run trains no more. Any other costs
  // its run nothing, and another one comes; but where one after the other cannot join, or is killed
  // soon, the next ones would be, too.
  void take_member(const Watched& member, const launch::ChildEnd& end) {
    if (member.is_leaving || stops_.count() > 0) return;
    Watched* const run = find_run(member.run);
    if (run == nullptr) return;
    if (end == launch::ChildEnd{0, 0} && member.was_let_go) {
      ++let_go_;
      return log_.info(
          fmt::format("a worker of {} was asked to leave; the study has {} from now on",
                      name_of(member.run), workers()));
    }
    if (end == launch::ChildEnd{0, 0}) {
      run->is_over = true;
      return pools_.end(run->run);
    }
    const bool has_stayed = clock_.now() - member.began >= kStays;
    run->failures = has_stayed ? 0 : run->failures + 1;
    log_.warning(fmt::format("a worker of {} {}{}", name_of(member.run), end.text(),
                             end.signal == 0 ? ": " + launch::shown_line(member.last_error) : ""));
  }

  // Each signal once. Members end with their runs.
  void stop(int signal_number) {
    if (signal_number == told_ || told_ == SIGKILL) return;
    told_ = signal_number;
    if (signal_number == SIGTERM && stops_.count() > 0 && !pools_.empty()) {
      log_.info("waits until the nodes of its runs are gone; a second signal leaves them behind");
    }
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (signal_number == SIGKILL || watched_[i]->kind == Watched::Kind::kRun) {
        children_[i]->send(signal_number);
      }
    }
  }

  // `writes`: what has become of them counts; else they are gone on with another time.
  Result<void> take_ends(bool writes) {
    Result<void> fault;
    for (std::size_t i = children_.size(); i-- > 0;) {
      if (!children_[i]->end()) continue;
      const auto child = std::move(children_[i]);
      const auto watched = std::move(watched_[i]);
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i));
      if (watched->kind != Watched::Kind::kRun) {
        if (watched->kind == Watched::Kind::kMember) take_member(*watched, *child->end());
        if (watched->kind == Watched::Kind::kWish) take_wish(*watched, *child->end());
        continue;
      }
      end_members(watched->run);
      pools_.end(watched->run);
      tell_of_nodes_left(watched->folder, log_);
      const RunEnd end{*child->end(), watched->last_line, launch::shown_line(watched->last_error),
                       runtime::seconds(clock_.now() - watched->began)};
      // One that has ended well has done so, signal or not.
      if (!fault.ok() || (!writes && end.end != launch::ChildEnd{0, 0})) continue;
      if (const std::string why = why_again(*watched, end.end); !why.empty()) {
        log_.warning(fmt::format("{} {}: {}", name_of(watched->run), why, end.last_error));
        fault = start(watched->run, watched->turns + 1);
        continue;
      }
      fault = take_end(watched->run, found_by(request_.loaded, watched->run, watched->folder, end));
    }
    return fault;
  }

  Result<void> take_end(RunNumber run, const RunFound& found) {
    RETURN_IF_ERROR(check_fault(run, found));
    RETURN_IF_ERROR(record(EndLine{run, found.result, time_of_day()}));
    say(run, found.result);
    return {};
  }

  // An end that the trial's settings are not to blame for is not written: the study ends, and the
  // run is gone on with when the study is.
  Result<void> check_fault(RunNumber run, const RunFound& found) const {
    using Fault = RunFound::Fault;
    const std::string what = fmt::format("{}: {}", name_of(run), found.result.error);
    if (found.fault == Fault::kMachine) {
      return Error{static_cast<ErrorKind>(found.result.exit_code),
                   fmt::format("{}\nThe study stops, since all trials would fail so; mend it, then "
                               "{}",
                               what, how_to_go_on(request_.folder))};
    }
    const bool is_of_all = found.fault == Fault::kEndsEarly ||
                           (found.fault == Fault::kNoFigure && !has_any_figure(book_));
    if (!is_of_all) return {};
    return Error{ErrorKind::kTopology,
                 fmt::format("{}\nThe study stops, since all trials would fail so; mend it, and "
                             "begin a study in another folder",
                             what)};
  }

  void say(RunNumber run, const RunResult& result) const {
    if (!result.figure) return log_.warning(name_of(run) + " failed: " + result.error);
    const auto best = book_.best();
    log_.info(fmt::format("{} has {} {:.6g}{}", name_of(run), study().objective.figure(),
                          *result.figure,
                          best ? fmt::format("; the best so far is trial {} with {:.6g}", *best,
                                             book_.figure(book_.trials()[*best])->mean)
                               : ""));
  }

  std::string name_of(RunNumber run) const {
    std::string name = fmt::format("trial {}", run.trial);
    if (book_.rungs() > 1) name += fmt::format(", rung {} of {}", run.rung, book_.rungs());
    if (study().repeats() > 1) name += fmt::format(", run {} of {}", run.repeat, study().repeats());
    return name;
  }

  const Study& study() const { return request_.loaded.study; }
  std::uint32_t workers() const { return study().workers - std::min(study().workers, let_go_); }

  const RunnerRequest& request_;
  StudyJournal& journal_;
  TrialBook& book_;
  const runtime::Log& log_;
  const runtime::SteadyClock clock_;
  SharedPools pools_;                                    // of a study whose trials share workers
  StopRequests stops_;                                   // before any process
  int told_ = 0;                                         // the last signal that the runs were sent
  std::uint32_t turn_ = 0;                               // of looking for ports
  std::uint32_t let_go_ = 0;                             // workers that people have asked to leave
  std::vector<std::unique_ptr<ChildProcess>> children_;  // in the order in which they began
  std::vector<std::unique_ptr<Watched>> watched_;        // of each of them
};

}  // namespace

Result<void> check_address(const LoadedStudy& loaded) {
  if (loaded.study.workers == 0) return {};
  const auto made = run_address(loaded.cluster, 0);
  return made.ok() ? Result<void>{} : Result<void>{made.error()};
}

Result<RunnerEnd> run_study(const RunnerRequest& request, StudyJournal& journal, TrialBook& book,
                            const runtime::Log& log) {
  return StudyRunner(request, journal, book, log).run();
}

}  // namespace troupe::study
