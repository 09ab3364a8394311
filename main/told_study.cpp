#include "main/told_study.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "main/answer.h"
#include "main/served_page.h"
#include "runtime/base/disk.h"
#include "runtime/base/utf8.h"
#include "study/hparams.h"
#include "study/optuna_storage.h"
#include "study/study_page.h"
#include "study/study_report.h"

namespace troupe {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::uint32_t kRenewedSeconds = 3;

// The courses of the best trials, each of its first repeat.
std::vector<study::Curve> curves_of(const SeenStudy& seen) {
  constexpr std::size_t kMost = 30;
  const study::Study& study = seen.open->loaded.study;
  const study::TrialBook& book = seen.open->book;
  std::vector<study::Curve> curves;
  for (const std::uint32_t trial : study::by_figure(study, book)) {
    if (curves.size() == kMost || !book.figure(book.trials()[trial])) break;
    const std::string run = seen.folder.run_folder({trial}, study.repeats());
    curves.push_back(study::read_curve(study.objective, trial, run));
  }
  std::erase_if(curves, [](const study::Curve& curve) { return curve.points.size() < 2; });
  return curves;
}

std::string html_of(const SeenStudy& seen, std::uint32_t renewed_s = 0) {
  return study_html(seen.open->loaded.study, seen.open->book, curves_of(seen), renewed_s);
}

// TensorBoard would take event files in one folder for one run.
Result<void> check_own(const std::string& folder, const std::string& name) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; entry != end;
       entry.increment(failed)) {
    const std::string other = entry->path().filename().string();
    if (!other.starts_with("events.out.tfevents.") || other == name) continue;
    return Error{ErrorKind::kUsage,
                 fmt::format("--tensorboard: {} has the events of another run; give another folder",
                             folder)};
  }
  if (!failed || failed == std::errc::no_such_file_or_directory) return {};
  return Error{ErrorKind::kUsage,
               fmt::format("--tensorboard: {} cannot be read: {}", folder, failed.message())};
}

// The files stand below a folder that has the name of the study's, so that other studies and runs
// may stand beside it.
Result<void> write_events(const std::string& into, const SeenStudy& seen, runtime::Disk& disk) {
  const auto files = hparams_files(seen.open->loaded.study, seen.open->book, seen.lines);
  const std::filesystem::path own =
      std::filesystem::absolute(seen.folder.path() + "/").lexically_normal().parent_path();
  const auto below = [&](const study::EventFile& file) {
    return (std::filesystem::path(into) / own.filename() / file.folder).string();
  };
  for (const study::EventFile& file : files) RETURN_IF_ERROR(check_own(below(file), file.name));
  for (const study::EventFile& file : files) {
    RETURN_IF_ERROR(disk.make_folder(below(file)));
    RETURN_IF_ERROR(
        disk.replace(below(file) + "/" + file.name, std::as_bytes(std::span{file.bytes})));
  }
  return {};
}

// The files of --html, --optuna and --tensorboard.
Result<void> write_files(const CommandLine& line, const SeenStudy& seen) {
  runtime::FileDisk disk;
  const auto write = [&](const char* option, const std::string& text) {
    return disk.replace(line.get<std::string>(option), std::as_bytes(std::span{text}));
  };
  if (line.has("html")) RETURN_IF_ERROR(write("html", html_of(seen)));
  if (line.has("optuna")) {
    ASSIGN_OR_RETURN(const std::string bytes,
                     optuna_storage(seen.open->loaded, seen.open->book, seen.lines));
    RETURN_IF_ERROR(write("optuna", bytes));
  }
  if (!line.has("tensorboard")) return {};
  return write_events(line.get<std::string>("tensorboard"), seen, disk);
}

// The page of a study, made anew when its journal has changed.
class StudyPage {
 public:
  StudyPage(std::string path, const SeenStudy& seen)
      : path_(std::move(path)),
        journal_(seen.folder.journal()),
        bytes_(seen.journal_bytes),
        html_(html_now(seen)) {}

  // The same text until it changes. Any thread.
  std::shared_ptr<const std::string> html() const {
    const std::lock_guard lock(mutex_);
    return html_;
  }
  // The page stays as it is while the study cannot be read, which is said once.
  void renew() {
    if (bytes_of(journal_) == bytes_) return;
    const auto seen = look_at_study(path_);
    std::string wrong = seen.ok() ? "" : seen.error().message;
    if (!wrong.empty() && wrong != wrong_) {
      std::cerr << fmt::format("the page stands still: {}\n", runtime::printable_lines(wrong));
    }
    wrong_ = std::move(wrong);
    if (!seen.ok()) return;
    bytes_ = seen->journal_bytes;
    auto html = html_now(*seen);
    const std::lock_guard lock(mutex_);
    html_ = std::move(html);
  }

 private:
  // Browsers ask again for that of a study that is not over.
  static std::shared_ptr<const std::string> html_now(const SeenStudy& seen) {
    return std::make_shared<const std::string>(html_of(seen, is_over(seen) ? 0 : kRenewedSeconds));
  }
  // A proposal may take its time, and none is needed while a run goes on.
  static bool is_over(const SeenStudy& seen) {
    const study::TrialBook& book = seen.open->book;
    return book.running().empty() && std::holds_alternative<study::TrialBook::Over>(book.next());
  }

  const std::string path_, journal_;
  std::uintmax_t bytes_;  // of the journal that the page shows, or fewer
  std::string wrong_;     // why it could not be read when it was looked at last; "": it could
  mutable std::mutex mutex_;
  std::shared_ptr<const std::string> html_;  // guarded by it
};

int serve_study(const CommandLine& line, const SeenStudy& seen) {
  const auto words = page_words(line);
  if (!words.ok()) return line.usage_error(words.error().message);
  const EndingSignal ending;
  StudyPage page(line.get<std::string>("study"), seen);
  return serve_page(
      *words, {}, ending, [&page] { return page.html(); }, [&page] { page.renew(); });
}

}  // namespace

int tell_trials(const OpenStudy& open, bool json, const std::string& error, int code) {
  if (json) {
    answer(report_members(open.loaded.study, open.book), error, code);
  } else {
    std::cout << report_text(open.loaded.study, open.book);
  }
  return code;
}

int tell_study(const CommandLine& line) {
  const auto seen = look_at_study(line.get<std::string>("study"));
  if (!seen.ok()) return report(seen.error());
  if (const auto written = write_files(line, *seen); !written.ok()) {
    return report(written.error());
  }
  if (line.get<bool>("web")) return serve_study(line, *seen);
  return tell_trials(*seen->open, line.get<bool>("json"));
}

}  // namespace troupe
