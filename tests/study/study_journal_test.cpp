#include "study/study_journal.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "study/study_folder.h"
#include "study/study_page.h"
#include "study/study_report.h"
#include "tests/study/study_support.h"
#include "tests/support/fails_with.h"
#include "tests/support/json_value.h"
#include "tests/support/process_limits.h"

namespace troupe::study {
namespace {

using runtime::ErrorKind;
using testing::HasSubstr;

const Settings kSettings{{"rate", "0.01"}, {"share", "0.5"}, {"batch", "16"}, {"optimiser", "sgd"}};

TEST(StudyJournal, LinesAreReadAsTheyWereWritten) {
  const RunResult result{0.1 + 0.2, "", "abc", 0, 1.5};
  const auto end = read_journal_line(journal_text(EndLine{{7, 1, 2}, result, "now"}));
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(std::get<EndLine>(*end).run, (RunNumber{7, 1, 2}));
  EXPECT_EQ(std::get<EndLine>(*end).result, result);
  const auto failed =
      read_journal_line(journal_text(EndLine{{}, {{}, "\"diverged\"\n", "", 6, 0.0}, ""}));
  ASSERT_TRUE(failed.ok());
  EXPECT_FALSE(std::get<EndLine>(*failed).result.figure);
  EXPECT_EQ(std::get<EndLine>(*failed).result.error, "\"diverged\"\n");
  const auto trial = read_journal_line(journal_text(TrialLine{3, kSettings}));
  ASSERT_TRUE(trial.ok());
  EXPECT_EQ(point_of(mixed_space(), std::get<TrialLine>(*trial).settings),
            point_of(mixed_space(), kSettings));
}

TEST(StudyJournal, ForeignLinesAreRefusedWithTheirNumber) {
  const TemporaryFolder folder;
  for (const char* line :
       {"", "{}", "[1]", "{\"kind\":\"ended\"}", R"({"kind":"end","trial":0,"figure":1e999})",
        R"({"kind":"end","trial":0,"repeat":0,"figure":null)"}) {
    write_text(folder / "j", journal_text(StudyLine{"h", "v", "t"}) + "\n" + line + "\n");
    EXPECT_THAT(read_study_journal(folder / "j"), FailsWith(ErrorKind::kData, "j:2: ")) << line;
    EXPECT_THAT(StudyJournal::open(folder / "j"), FailsWith(ErrorKind::kData, "j:2: ")) << line;
  }
}

TEST(StudyJournal, LineThatIsNotWholeIsCutOff) {
  const TemporaryFolder folder;
  const std::string first = journal_text(StudyLine{"h", "v", "t"}) + "\n";
  write_text(folder / "j", first + R"({"kind":"trial","tri)");
  EXPECT_EQ(read_study_journal(folder / "j")->size(), 1u);
  auto journal = StudyJournal::open(folder / "j");
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ(journal->lines().size(), 1u);
  ASSERT_TRUE(journal->add(BeginLine{{}, "now"}).ok());
  EXPECT_EQ(read_text(folder / "j"), first + journal_text(BeginLine{{}, "now"}) + "\n");
}

TEST(StudyJournal, FullDiskIsAnErrorAndNoHalfLine) {
  const TemporaryFolder folder;
  auto journal = StudyJournal::open(folder / "j");
  ASSERT_TRUE(journal.ok());
  ASSERT_TRUE(journal->add(StudyLine{"h", "v", "t"}).ok());
  const std::string before = read_text(folder / "j");
  {
    const FileSizeLimit limit(before.size() + 10);
    EXPECT_THAT(journal->add(BeginLine{{}, "now"}), FailsWith(ErrorKind::kData, "write"));
  }
  EXPECT_EQ(read_text(folder / "j"), before);
}

TEST(StudyJournal, LinesThatCannotBeAreNotTold) {
  const Study study = study_of(mixed_space(), MethodKind::kRandom, 5);
  const auto method = make_method(study);
  TrialBook book(study, *method, 1);
  EXPECT_THAT(tell(TrialLine{1, kSettings}, study.space, book),
              FailsWith(ErrorKind::kData, "trial 1 is out of its turn"));
  EXPECT_THAT(tell(TrialLine{0, {{"rate", "5"}}}, study.space, book),
              FailsWith(ErrorKind::kData, "not of the study's space"));
  EXPECT_TRUE(tell(StudyLine{}, study.space, book).ok());
  EXPECT_TRUE(book.trials().empty());
}

const std::vector<JournalLine> kFirst{StudyLine{"hash", "1", "now"}, TrialLine{0, kSettings}};

TEST(StudyFolder, IsLockedAndNotTakenFromOthers) {
  const TemporaryFolder folder;
  runtime::FileDisk disk;
  const Study study = parsed(kLeast).study;
  const std::string path = folder / "search";
  EXPECT_THAT(StudyFolder::reopen(path), FailsWith(ErrorKind::kUsage, "is no study's folder"));
  {
    const auto first = StudyFolder::create(path, study, kFirst, disk);
    ASSERT_TRUE(first.ok()) << first.error().message;
    EXPECT_EQ(first->run_folder({7, 0, 2}, 1), path + "/trials/7");
    EXPECT_EQ(first->run_folder({7, 0, 2}, 3), path + "/trials/7.2");
    EXPECT_THAT(StudyFolder::reopen(path), FailsWith(ErrorKind::kUsage, "still going on"));
  }
  EXPECT_TRUE(StudyFolder::reopen(path).ok());
  EXPECT_THAT(StudyFolder::create(path, study, kFirst, disk),
              FailsWith(ErrorKind::kUsage, "troupe study --resume " + path));
  EXPECT_EQ(load_study(path + "/study.yaml")->study, study);
  EXPECT_FALSE(StudyFolder::is_locked(path));
  EXPECT_FALSE(StudyFolder::is_locked(folder / "nothing"));
  {
    const auto again = StudyFolder::reopen(path);
    EXPECT_TRUE(StudyFolder::is_locked(path));
  }
  std::filesystem::create_directory(folder / "full");
  write_text(folder / "full/notes", "mine");
  EXPECT_THAT(StudyFolder::create(folder / "full", study, kFirst, disk),
              FailsWith(ErrorKind::kUsage, "is not empty"));
  EXPECT_THAT(StudyFolder::create(folder / "full/notes", study, kFirst, disk),
              FailsWith(ErrorKind::kUsage, "notes"));
}

// Full where the journal begins.
class FullDisk final : public runtime::FileDisk {
 public:
  runtime::Result<void> replace(const std::string& path,
                                std::span<const std::byte> bytes) override {
    if (path.ends_with(StudyJournal::kName)) return runtime::Error{ErrorKind::kData, "full"};
    return FileDisk::replace(path, bytes);
  }
};

// Else one that is killed in between would go on without them.
TEST(StudyFolder, HoldsNoStudyBeforeItHasTheFirstLinesOfTheJournal) {
  const TemporaryFolder folder;
  const Study study = parsed(kLeast).study;
  const std::string path = folder / "search";
  FullDisk full;
  EXPECT_THAT(StudyFolder::create(path, study, kFirst, full), FailsWith(ErrorKind::kData, "full"));
  EXPECT_THAT(StudyFolder::reopen(path), FailsWith(ErrorKind::kUsage, "is no study's folder"));
  // As after a kill behind the journal.
  write_text(path + "/study.jsonl", "{\"kind\":\"stu");
  runtime::FileDisk disk;
  const auto made = StudyFolder::create(path, study, kFirst, disk);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto lines = read_study_journal(made->journal());
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  ASSERT_EQ(lines->size(), kFirst.size());
  for (std::size_t i = 0; i < kFirst.size(); ++i) {
    EXPECT_EQ(journal_text(lines->at(i)),
              journal_text(*read_journal_line(journal_text(kFirst[i]))));
  }
}

// The file could not be read again.
TEST(StudyFolder, TopologyWhosePathIsNoTextIsRefused) {
  const TemporaryFolder folder;
  runtime::FileDisk disk;
  Study study = parsed(kLeast).study;
  study.topology = "/l\xe9t/toy.yaml";
  EXPECT_THAT(StudyFolder::create(folder / "search", study, kFirst, disk),
              FailsWith(ErrorKind::kUsage, "the path of /l\\xe9t/toy.yaml is no UTF-8 text"));
  EXPECT_FALSE(std::filesystem::exists(folder / "search"));
}

class Report : public testing::Test {
 protected:
  Report() {
    study_.seeds = 2;
    for (std::uint32_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(book_.propose(*point_of(study_.space, kSettings)).ok());
    }
    run({0, 0, 0}, 2.0);
    run({0, 0, 1}, 3.0);
    run({1, 0, 0}, 1.0);
    run({1, 0, 1}, 1.5);
    run({2, 0, 0}, {});
    EXPECT_TRUE(book_.begin({3, 0, 0}).ok());
  }
  void run(RunNumber number, std::optional<double> figure) {
    EXPECT_TRUE(book_.begin(number).ok());
    const RunResult result{figure, figure ? "" : "diverged", "abc", figure ? 0 : 6, 1.0};
    EXPECT_TRUE(book_.end(number, result).ok());
  }

  Study study_ = study_of(mixed_space(), MethodKind::kRandom, 5);
  const std::unique_ptr<Method> method_ = make_method(study_);
  TrialBook book_{study_, *method_, 1};
};

TEST_F(Report, TableHasTheBestFirstAndTheFailedLast) {
  EXPECT_EQ(report_text(study_, book_),
            "trial  merit         state    seconds  rate  share  batch  optimiser\n"
            "1      1.25 +- 0.35  done     2.0      0.01  0.5    16     sgd\n"
            "0      2.5 +- 0.71   done     2.0      0.01  0.5    16     sgd\n"
            "2      -             failed   1.0      0.01  0.5    16     sgd        diverged\n"
            "3      -             running  0.0      0.01  0.5    16     sgd\n"
            "3 of 5 trials have ended; the best is trial 1: merit 1.25 +- 0.35\n"
            "  troupe run '' --set rate=0.01 --set share=0.5 --set batch=16 --set optimiser=sgd\n");
}

TEST_F(Report, ObjectHasEveryRun) {
  const JsonValue object = parse_json("{" + report_members(study_, book_) + "}");
  EXPECT_EQ(object["figure"].text(), "merit");
  EXPECT_EQ(object["of"].text(), "validation");
  EXPECT_EQ(object["method"].text(), "random");
  EXPECT_FALSE(object["maximise"].truth());
  EXPECT_EQ(object["best"].integer(), 1u);
  EXPECT_EQ(object["trials_wanted"].integer(), 5u);
  const auto& trials = object["trials"].list();
  ASSERT_EQ(trials.size(), 4u);
  EXPECT_EQ(trials[1]["figure"].number(), 1.25);
  EXPECT_NEAR(trials[1]["deviation"].number(), std::sqrt(0.125), 1e-15);
  EXPECT_EQ(trials[1]["settings"]["optimiser"].text(), "sgd");
  EXPECT_EQ(trials[1]["runs"].list()[1]["figure"].number(), 1.5);
  EXPECT_EQ(trials[1]["runs"].list()[1]["state_hash"].text(), "abc");
  EXPECT_TRUE(trials[2]["figure"].is_null());
  EXPECT_EQ(trials[2]["state"].text(), "failed");
  EXPECT_EQ(trials[2]["runs"].list()[0]["exit_code"].integer(), 6u);
  EXPECT_EQ(trials[3]["state"].text(), "running");
}

TEST_F(Report, PageHasAPictureOfEachFieldAndNothingFromElsewhere) {
  study_.name = "<search>";
  study_.space[3].choice->front() = R"(<i>"adam")";
  EXPECT_TRUE(book_.end({3, 0, 0}, {{}, R"(<b>"no"</b>)", "", 4, 1.0}).ok());
  const std::string page = study_html(study_, book_, {{0, {{0, 9}, {4, 2}}}, {1, {{2, 1.25}}}});
  std::size_t pictures = 0;
  for (std::size_t at = 0; (at = page.find("<figure>", at)) != std::string::npos; ++at) ++pictures;
  EXPECT_EQ(pictures, 6u);
  EXPECT_THAT(page, HasSubstr("merit by step"));
  EXPECT_THAT(page, HasSubstr("<title>trial 0</title>"));
  EXPECT_THAT(page, HasSubstr("<h1>&lt;search&gt;</h1>"));
  EXPECT_THAT(page, HasSubstr("<title>trial 1: 1.25</title>"));
  EXPECT_THAT(page, testing::Not(HasSubstr("trial 2: ")));  // it has failed
  EXPECT_THAT(page, HasSubstr("&lt;i&gt;&quot;adam&quot;</text>"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;"));
  for (const char* open : {"<i>", "<b>"}) EXPECT_THAT(page, testing::Not(HasSubstr(open)));
  for (const char* foreign : {"http:", "https:", "src=", "@import", "refresh"}) {
    EXPECT_THAT(page, testing::Not(HasSubstr(foreign)));
  }
  EXPECT_THAT(study_html(study_, book_, {}, 3),
              HasSubstr(R"(<meta http-equiv="refresh" content="3">)"));
}

// The one with the better figure stands first of two on their way to the second rung, and one that
// has a figure of the second before both.
TEST(ReportOfRungs, OrdersByTheRungThatAFigureIsOf) {
  Study study = study_of(mixed_space(), MethodKind::kRandom, 3);
  study.stop.kind = StopKind::kHalving;
  const auto method = make_method(study);
  TrialBook book(study, *method, 2);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(book.propose(*point_of(study.space, kSettings)).ok());
    ASSERT_TRUE(book.begin({i, 0, 0}).ok());
    ASSERT_TRUE(book.end({i, 0, 0}, {3.0 - i, "", "abc", 0, 1.0}).ok());
  }
  for (const std::uint32_t i : {0, 1}) {
    ASSERT_TRUE(book.promote(i).ok());
    ASSERT_TRUE(book.begin({i, 1, 0}).ok());
  }
  ASSERT_TRUE(book.end({0, 1, 0}, {9.0, "", "abc", 0, 1.0}).ok());
  const std::string text = report_text(study, book);
  const std::size_t first = text.find("\n0 "), second = text.find("\n2 "),
                    third = text.find("\n1 ");
  EXPECT_LT(first, second) << text;
  EXPECT_LT(second, third) << text;
}

TEST(ReportOfHangingFields, HasNoValueWhereThereIsNoField) {
  const Study study = study_of(hanging_space(), MethodKind::kRandom, 1);
  const auto method = make_method(study);
  TrialBook book(study, *method, 1);
  ASSERT_TRUE(book.propose({1.0, 0.5, kAbsent, 1.0, 3.0}).ok());
  ASSERT_TRUE(book.begin({0, 0, 0}).ok());
  ASSERT_TRUE(book.end({0, 0, 0}, {1.0, "", "abc", 0, 1.0}).ok());
  EXPECT_THAT(report_text(study, book), HasSubstr("rmsprop    0.5   -     yes       3\n"));
  const JsonValue object = parse_json("{" + report_members(study, book) + "}");
  const auto& settings = object["trials"].list()[0]["settings"];
  EXPECT_EQ(std::get<JsonValue::Object>(settings.content).size(), 4u);
  EXPECT_THAT(study_html(study, book, {}), HasSubstr("merit by beta"));
}

TEST(ReportOfNothing, SaysSo) {
  const Study study = study_of(mixed_space(), MethodKind::kRandom, 5);
  const auto method = make_method(study);
  const TrialBook book(study, *method, 1);
  EXPECT_THAT(report_text(study, book),
              HasSubstr("0 of 5 trials have ended; no trial has a figure"));
  EXPECT_TRUE(parse_json("{" + report_members(study, book) + "}")["best"].is_null());
  EXPECT_THAT(study_html(study, book, {}), HasSubstr("no trial has a figure"));
}

TEST(ReportNames, AreAsShortAsTellsThemApart) {
  const Space space{linear("train.learning_rate.g", 0, 1), linear("train.optimiser.g", 0, 1),
                    linear("train.micro_batch", 0, 1), linear("name", 0, 1)};
  EXPECT_EQ(short_names(space),
            (std::vector<std::string>{"learning_rate.g", "optimiser.g", "micro_batch", "name"}));
}

}  // namespace
}  // namespace troupe::study
