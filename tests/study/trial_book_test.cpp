// Studies without processes: what would be written to the journal is told to the book, runs end in
// an order that is drawn, and the study is cut off behind every line of its journal.

#include "study/trial_book.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "runtime/base/random.h"
#include "study/study_journal.h"
#include "tests/study/study_support.h"
#include "tests/support/fails_with.h"
#include "tests/support/stride.h"

namespace troupe::study {
namespace {

using runtime::ErrorKind;

// A run's result is a function of its settings and numbers, as that of a training. Some fail.
RunResult result_of(const Point& point, RunNumber run) {
  RunResult result;
  const runtime::RandomPosition position{.seed = 3, .micro_batch = run.trial};
  if (runtime::random_uniform(position, run.repeat) < 0.1) {
    result.error = "diverged";
    result.exit_code = 6;
    return result;
  }
  result.figure = std::abs(std::log10(point[0]) + 2.0) + point[1] * point[1] / 3.0 + point[3] +
                  0.01 * run.repeat;
  result.seconds = 0.1 * run.trial;
  return result;
}

class Play {
 public:
  Play(const Study& study, std::size_t rungs, std::uint64_t order)
      : study_(study), order_(order), method_(make_method(study)), book_(study_, *method_, rungs) {}

  // Goes on behind these lines; the runs that had begun begin again.
  void take(const std::vector<std::string>& lines) {
    for (const std::string& text : lines) {
      const auto line = read_journal_line(text);
      ASSERT_TRUE(line.ok()) << text;
      const auto told = tell(*line, study_.space, book_);
      ASSERT_TRUE(told.ok()) << told.error().message;
      journal_.push_back(text);
    }
  }

  // One line further. False: the study is over.
  bool step() {
    const TrialBook::Step next = book_.next();
    most_at_once_ = std::max(most_at_once_, book_.running().size());
    if (const auto* proposal = std::get_if<TrialBook::Propose>(&next)) {
      const auto number = static_cast<std::uint32_t>(book_.trials().size());
      write(TrialLine{number, settings_of(study_.space, proposal->point)});
    } else if (const auto* promotion = std::get_if<TrialBook::Promote>(&next)) {
      write(PromoteLine{promotion->trial});
    } else if (const auto* begin = std::get_if<TrialBook::Begin>(&next)) {
      write(BeginLine{begin->run, "now"});
    } else if (std::holds_alternative<TrialBook::Wait>(next)) {
      end_one();
    } else {
      return false;
    }
    return true;
  }

  void play() {
    while (step()) {
    }
  }

  const std::vector<std::string>& journal() const { return journal_; }
  const TrialBook& book() const { return book_; }
  std::size_t most_at_once() const { return most_at_once_; }
  std::vector<Point> points() const {
    std::vector<Point> points;
    for (const Trial& trial : book_.trials()) points.push_back(trial.point);
    return points;
  }
  // The jobs, which are numbered as they were decided on.
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::vector<RunResult>>> jobs() const {
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::vector<RunResult>>> jobs;
    for (const Job& job : book_.jobs()) jobs.emplace_back(job.trial, job.rung, job.results);
    return jobs;
  }

 private:
  // Any of those that run.
  void end_one() {
    const auto running = book_.running();
    ASSERT_FALSE(running.empty()) << "it waits for nothing";
    const double share = runtime::random_uniform({.seed = order_}, draws_++);
    const RunNumber run = running[static_cast<std::size_t>(share * running.size())];
    write(EndLine{run, result_of(book_.trials()[run.trial].point, run), "now"});
  }

  void write(const JournalLine& line) {
    journal_.push_back(journal_text(line));
    const auto told = tell(line, study_.space, book_);
    ASSERT_TRUE(told.ok()) << told.error().message;
  }

  const Study study_;
  const std::uint64_t order_;
  const std::unique_ptr<Method> method_;
  TrialBook book_;
  std::vector<std::string> journal_;
  std::uint32_t draws_ = 0;
  std::size_t most_at_once_ = 0;
};

Study study_with(MethodKind kind, std::uint32_t parallel, std::uint32_t seeds) {
  Study study = study_of(mixed_space(), kind, 14);
  study.method.first = 5;
  study.method.population = 5;
  study.method.levels = 2;
  study.parallel = parallel;
  study.seeds = seeds;
  return study;
}

struct Setting {
  MethodKind kind;
  std::uint32_t parallel, seeds;
  std::size_t rungs = 1;
  std::optional<double> target = {};
  std::optional<std::uint32_t> patience = {};
};
void PrintTo(const Setting& setting, std::ostream* out) {
  *out << static_cast<int>(setting.kind) << ", " << setting.parallel << " at a time, "
       << setting.seeds << " seeds, " << setting.rungs << " rungs";
}

class AnyStudy : public testing::TestWithParam<Setting> {
 protected:
  static Play play(std::uint64_t order) {
    Study study = study_with(GetParam().kind, GetParam().parallel, GetParam().seeds);
    if (GetParam().rungs > 1) study.stop.kind = StopKind::kHalving;
    study.stop.keep_one_in = 2;
    study.stop.target = GetParam().target;
    study.stop.patience = GetParam().patience;
    return Play(study, GetParam().rungs, order);
  }
};

TEST_P(AnyStudy, ProposesTheSameTrialsWhateverOrderTheyEndIn) {
  Play first = play(1);
  first.play();
  const bool ends_early = GetParam().target || GetParam().patience;
  EXPECT_EQ(first.book().trials().size() < first.book().all_trials(), ends_early);
  EXPECT_EQ(first.book().jobs().size() > first.book().trials().size(), GetParam().rungs > 1);
  EXPECT_LE(first.most_at_once(), GetParam().parallel);
  EXPECT_GT(first.most_at_once(), (GetParam().parallel + 1) / 2 - 1);
  for (std::uint64_t order = 2; order < 5; ++order) {
    Play other = play(order);
    other.play();
    EXPECT_EQ(other.points(), first.points());
    EXPECT_EQ(other.jobs(), first.jobs());
    EXPECT_EQ(other.book().best(), first.book().best());
  }
}

TEST_P(AnyStudy, CutOffBehindAnyLineOfItsJournalGoesOnToTheSameEnd) {
  Play whole = play(1);
  whole.play();
  const std::vector<std::string> lines = whole.journal();
  for (std::size_t cut = 0; cut <= lines.size(); cut += stride(3)) {
    Play next = play(100 + cut);
    next.take({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(cut)});
    next.play();
    EXPECT_EQ(next.points(), whole.points()) << "behind line " << cut;
    EXPECT_EQ(next.jobs(), whole.jobs()) << "behind line " << cut;
    EXPECT_EQ(next.journal().size(), lines.size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, AnyStudy,
    testing::Values(Setting{MethodKind::kGrid, 3, 1}, Setting{MethodKind::kRandom, 4, 2},
                    Setting{MethodKind::kGenetic, 1, 1}, Setting{MethodKind::kGenetic, 3, 1},
                    Setting{MethodKind::kBayesian, 1, 1}, Setting{MethodKind::kBayesian, 3, 2},
                    Setting{MethodKind::kBayesian, 20, 1}, Setting{MethodKind::kRandom, 1, 1, 3},
                    Setting{MethodKind::kRandom, 4, 2, 3}, Setting{MethodKind::kBayesian, 3, 1, 3},
                    Setting{MethodKind::kGenetic, 2, 1, 2},
                    Setting{MethodKind::kRandom, 3, 1, 1, 1.5},
                    Setting{MethodKind::kBayesian, 2, 1, 2, 1.5},
                    Setting{MethodKind::kRandom, 3, 1, 1, {}, 3},
                    Setting{MethodKind::kGenetic, 2, 2, 2, {}, 3}));

RunResult with_figure(double figure) {
  RunResult result;
  result.figure = figure;
  return result;
}

// A method that keeps what it is asked with.
class Listener final : public Method {
 public:
  std::uint32_t trials() const override { return 6; }
  bool learns_for(std::uint32_t trial) const override { return trial > 1; }
  Point propose(std::uint32_t trial, const Known& known) const override {
    heard.push_back(known);
    return {static_cast<double>(trial)};
  }
  mutable std::vector<Known> heard;
};

TEST(TrialBook, ProposalKnowsWhatHadEndedAsManyProposalsBefore) {
  Study study = study_of({whole("a", 0, 9)}, MethodKind::kRandom, 6);
  study.parallel = 3;
  const Listener method;
  TrialBook book(study, method, 1);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(book.propose({static_cast<double>(i)}).ok());
    ASSERT_TRUE(book.begin({i}).ok());
  }
  // The youngest two end, and the oldest is waited for.
  ASSERT_TRUE(book.end({2}, with_figure(2.0)).ok());
  ASSERT_TRUE(book.end({1}, with_figure(1.0)).ok());
  EXPECT_TRUE(std::holds_alternative<TrialBook::Wait>(book.next()));
  ASSERT_TRUE(book.end({0}, {}).ok());
  method.heard.clear();
  EXPECT_TRUE(std::holds_alternative<TrialBook::Propose>(book.next()));
  ASSERT_EQ(method.heard.size(), 1u);
  ASSERT_EQ(method.heard[0].ended.size(), 1u);
  EXPECT_FALSE(method.heard[0].ended[0].cost);
  EXPECT_EQ(method.heard[0].pending, (std::vector<Point>{{1.0}, {2.0}}));
}

TEST(TrialBook, FigureIsTheMeanOfItsSeedsAndCostOfAMaximumIsNegative) {
  Study study = study_of({whole("a", 0, 9)}, MethodKind::kRandom, 2);
  study.objective = {{}, "merit"};
  study.seeds = 2;
  const Listener method;
  TrialBook book(study, method, 1);
  for (std::uint32_t trial = 0; trial < 2; ++trial) {
    ASSERT_TRUE(book.propose({0.0}).ok());
    for (std::uint32_t repeat = 0; repeat < 2; ++repeat) {
      EXPECT_FALSE(book.figure(book.trials()[trial]));
      ASSERT_TRUE(book.begin({trial, 0, repeat}).ok());
      const RunResult result = with_figure(trial + 1.0 + repeat);
      ASSERT_TRUE(book.end({trial, 0, repeat}, result).ok());
    }
  }
  const auto figure = book.figure(book.trials()[0]);
  ASSERT_TRUE(figure && figure->deviation);
  EXPECT_DOUBLE_EQ(figure->mean, 1.5);
  EXPECT_DOUBLE_EQ(*figure->deviation, std::sqrt(0.5));
  EXPECT_EQ(book.best(), 1u);
}

TEST(TrialBook, RefusesWhatCannotBe) {
  const Study study = study_with(MethodKind::kRandom, 2, 2);
  const auto method = make_method(study);
  TrialBook book(study, *method, 1);
  EXPECT_THAT(book.begin({0}), FailsWith(ErrorKind::kData, "begins before it is proposed"));
  EXPECT_THAT(book.promote(0), FailsWith(ErrorKind::kData, "promoted before it is proposed"));
  ASSERT_TRUE(book.propose(random_point(study.space, 1, 0)).ok());
  EXPECT_THAT(book.end({0}, {}), FailsWith(ErrorKind::kData, "ends a run that has not begun"));
  EXPECT_THAT(book.begin({0, 0, 1}), FailsWith(ErrorKind::kData, "out of its turn"));
  EXPECT_THAT(book.begin({0, 1, 0}), FailsWith(ErrorKind::kData, "out of its turn"));
  EXPECT_THAT(book.promote(0), FailsWith(ErrorKind::kData, "promoted without a figure"));
  ASSERT_TRUE(book.begin({0}).ok());
  EXPECT_THAT(book.begin({0}), FailsWith(ErrorKind::kData, "begins while it runs"));
  EXPECT_THAT(book.end({0, 0, 1}, {}), FailsWith(ErrorKind::kData, "has not begun"));
  ASSERT_TRUE(book.end({0}, {}).ok());
  // It has failed.
  EXPECT_THAT(book.begin({0, 0, 1}), FailsWith(ErrorKind::kData, "when it has ended"));
  EXPECT_THAT(book.promote(0), FailsWith(ErrorKind::kData, "promoted without a figure"));
  ASSERT_TRUE(book.propose(random_point(study.space, 1, 1)).ok());
  for (std::uint32_t repeat = 0; repeat < 2; ++repeat) {
    ASSERT_TRUE(book.begin({1, 0, repeat}).ok());
    ASSERT_TRUE(book.end({1, 0, repeat}, with_figure(1.0)).ok());
  }
  EXPECT_THAT(book.promote(1), FailsWith(ErrorKind::kData, "promoted beyond the last rung"));
}

// The costs of nine trials, which are better on higher rungs; one at a time, one of three kept.
// Algorithm 2 of the paper: a trial goes on as soon as it is in the best third of its rung.
TEST(Halving, FollowsItsSchedule) {
  Study study = study_of({whole("a", 0, 9)}, MethodKind::kRandom, 9);
  study.stop.kind = StopKind::kHalving;
  const auto method = make_method(study);
  TrialBook book(study, *method, 3);
  const std::vector<double> costs{5, 3, 8, 1, 9, 2, 7, 4, 6};
  std::vector<std::string> done;
  while (true) {
    const TrialBook::Step step = book.next();
    if (const auto* proposal = std::get_if<TrialBook::Propose>(&step)) {
      ASSERT_TRUE(book.propose(proposal->point).ok());
    } else if (const auto* promotion = std::get_if<TrialBook::Promote>(&step)) {
      ASSERT_TRUE(book.promote(promotion->trial).ok());
    } else if (const auto* begin = std::get_if<TrialBook::Begin>(&step)) {
      ASSERT_TRUE(book.begin(begin->run).ok());
      const RunNumber run = begin->run;
      done.push_back(fmt::format("{}@{}", run.trial, run.rung));
      ASSERT_TRUE(book.end(run, with_figure(costs[run.trial] - 0.1 * run.rung)).ok());
    } else {
      break;
    }
  }
  EXPECT_TRUE(std::holds_alternative<TrialBook::Over>(book.next()));
  // The best of 0, 1 and 2 is 1. When 3 comes, it is the best of four; of six the best two are 3
  // and 5. Three have reached rung 1 by then, and the best of these is 3.
  EXPECT_EQ(done, (std::vector<std::string>{"0@0", "1@0", "2@0", "1@1", "3@0", "3@1", "4@0", "5@0",
                                            "5@1", "3@2", "6@0", "7@0", "8@0"}));
  EXPECT_EQ(book.best(), 3u);
}

// The best of the first rung fails on the second.
TEST(Halving, TrialThatFailsOnItsWayIsNotTheBest) {
  Study study = study_of({whole("a", 0, 9)}, MethodKind::kRandom, 2);
  study.stop.kind = StopKind::kHalving;
  study.stop.keep_one_in = 2;
  const auto method = make_method(study);
  TrialBook book(study, *method, 2);
  for (std::uint32_t trial = 0; trial < 2; ++trial) {
    ASSERT_TRUE(book.propose({0.0}).ok());
    ASSERT_TRUE(book.begin({trial}).ok());
    ASSERT_TRUE(book.end({trial}, with_figure(1.0 + trial)).ok());
  }
  EXPECT_EQ(book.best(), 0u);
  ASSERT_TRUE(book.promote(0).ok());
  ASSERT_TRUE(book.begin({0, 1, 0}).ok());
  EXPECT_EQ(book.best(), 0u);
  EXPECT_EQ(book.figure(book.trials()[0])->rung, 0u);
  ASSERT_TRUE(book.end({0, 1, 0}, {}).ok());
  EXPECT_EQ(book.best(), 1u);
  EXPECT_FALSE(book.figure(book.trials()[0]));
}

// Trials 0 and 1 gain 3 and 5 from the first rung to the second, and 1 gains 2 from there. Half of
// those that went on gain 3 or less.
TEST(Halving, MethodLearnsCostsWithoutWhatLongerTrainingGains) {
  Study study = study_of({whole("a", 0, 9)}, MethodKind::kRandom, 6);
  study.stop.kind = StopKind::kHalving;
  study.stop.keep_one_in = 4;
  const Listener method;
  TrialBook book(study, method, 3);
  const auto run = [&](RunNumber number, double figure) {
    ASSERT_TRUE(book.begin(number).ok());
    ASSERT_TRUE(book.end(number, with_figure(figure)).ok());
  };
  for (std::uint32_t trial = 0; trial < 3; ++trial) {
    ASSERT_TRUE(book.propose({static_cast<double>(trial)}).ok());
    run({trial}, 10.0 + trial);
  }
  for (const std::uint32_t trial : {0, 1}) ASSERT_TRUE(book.promote(trial).ok());
  run({0, 1}, 7.0);
  run({1, 1}, 6.0);
  ASSERT_TRUE(book.promote(1).ok());
  run({1, 2}, 4.0);
  method.heard.clear();
  ASSERT_TRUE(std::holds_alternative<TrialBook::Propose>(book.next()));
  ASSERT_EQ(method.heard.size(), 1u);
  const auto& ended = method.heard[0].ended;
  ASSERT_EQ(ended.size(), 3u);
  EXPECT_EQ(ended[0].cost, 7.0 + 3.0);
  EXPECT_EQ(ended[1].cost, 4.0 + 2.0 + 3.0);
  EXPECT_EQ(ended[2].cost, 12.0);
  EXPECT_EQ(book.observations()[1].cost, 9.0);
  EXPECT_EQ(book.figure(book.trials()[0])->mean, 7.0);
}

TEST(Halving, LeavesFailedTrialsBehind) {
  Study study = study_of({whole("a", 0, 9)}, MethodKind::kRandom, 3);
  study.stop.kind = StopKind::kHalving;
  const auto method = make_method(study);
  TrialBook book(study, *method, 2);
  for (std::uint32_t trial = 0; trial < 3; ++trial) {
    ASSERT_TRUE(book.propose({0.0}).ok());
    ASSERT_TRUE(book.begin({trial}).ok());
    ASSERT_TRUE(book.end({trial}, {}).ok());
  }
  EXPECT_TRUE(std::holds_alternative<TrialBook::Over>(book.next()));
}

}  // namespace
}  // namespace troupe::study
