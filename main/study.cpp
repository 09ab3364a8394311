#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "launch/folder/run_folder.h"
#include "launch/processes/signal_watch.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "main/open_study.h"
#include "main/served_page.h"
#include "main/told_study.h"
#include "runtime/base/disk.h"
#include "runtime/base/utf8.h"
#include "study/optuna_storage.h"
#include "study/study_folder.h"
#include "study/study_journal.h"
#include "study/study_runner.h"

namespace troupe {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using study::LoadedStudy;
using study::StudyFolder;
using study::StudyJournal;

// It begins with what its study was.
Result<void> check_same(const StudyJournal& journal, const OpenStudy& open,
                        const std::string& folder) {
  const auto* const first =
      journal.lines().empty() ? nullptr : std::get_if<study::StudyLine>(&journal.lines().front());
  if (first == nullptr) {
    return Error{ErrorKind::kData,
                 fmt::format("{} has a study and no journal; put {} back, or begin another study "
                             "in another folder",
                             folder, StudyJournal::kName)};
  }
  if (first->hash == study_hash(open.loaded)) return {};
  return Error{
      ErrorKind::kTopology,
      fmt::format("{} cannot go on: its study.yaml or the topology {} is not what it was "
                  "begun with; only trials, target, patience and workers may change. Begin another "
                  "study in another folder",
                  folder, open.loaded.study.topology)};
}

// The journal of the study, and the book where it ends.
Result<StudyJournal> open_journal(const StudyFolder& folder, OpenStudy& open) {
  ASSIGN_OR_RETURN(StudyJournal journal, StudyJournal::open(folder.journal()));
  RETURN_IF_ERROR(check_same(journal, open, folder.path()));
  RETURN_IF_ERROR(replay(journal.lines(), open));
  return journal;
}

std::vector<std::string> words_of_runs(const CommandLine& line) {
  return log_level_words(log_level(line));
}

int carry_on(OpenStudy& open, const StudyFolder& folder, StudyJournal& journal,
             const CommandLine& line) {
  const auto log = open_log(log_level(line));
  if (!log.ok()) return report(log.error());
  const study::RunnerRequest request{open.loaded, folder,
                                     std::filesystem::read_symlink("/proc/self/exe").string(),
                                     words_of_runs(line)};
  const auto ended = run_study(request, journal, open.book, *log);
  if (!ended.ok()) return report(ended.error(), *log);
  std::cerr << fmt::format("study folder: {}\n", runtime::printable(folder.path()));
  if (ended->signal == 0) return tell_trials(open, line.get<bool>("json"));
  log->warning(fmt::format("stopped by signal {}; go on with: troupe study --resume {}",
                           ended->signal, folder.path()));
  return tell_trials(open, line.get<bool>("json"), "", 128 + ended->signal);
}

// Trials of a study of Optuna, with which this one begins.
Result<std::vector<study::ForeignTrial>> known_trials(const CommandLine& line,
                                                      const OpenStudy& open) {
  if (!line.has("from")) return std::vector<study::ForeignTrial>{};
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  const study::Study& study = open.loaded.study;
  const auto file = line.get<std::string>("from");
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorKind::kUsage, fmt::format("--from {}: {}", file, what)};
  };
  if (study.method.kind == study::MethodKind::kGrid || study.stop.halves() || study.repeats() > 1) {
    return wrong("only a study without a grid, halving and repeats begins with other trials");
  }
  ASSIGN_OR_RETURN(std::string bytes, runtime::read_file(file, kMostBytes));
  std::string name;
  line.take("from-study", name);
  auto trials = study::read_optuna_storage(std::move(bytes), name, study);
  if (!trials.ok()) return Error{trials.error().kind, file + ": " + trials.error().message};
  if (trials->size() <= open.book.all_trials()) return trials;
  return wrong(fmt::format("it has {} trials, more than method.trials, which is {}", trials->size(),
                           open.book.all_trials()));
}

// The study itself, and the known trials, which count as trials of it that have been run.
std::vector<study::JournalLine> first_lines(const LoadedStudy& loaded,
                                            const std::vector<study::ForeignTrial>& known) {
  const std::string now = study::time_of_day();
  std::vector<study::JournalLine> lines{study::StudyLine{study_hash(loaded), TROUPE_VERSION, now}};
  std::uint32_t number = 0;
  for (const study::ForeignTrial& trial : known) {
    const study::RunNumber run{number++};
    lines.emplace_back(study::TrialLine{run.trial, trial.settings});
    lines.emplace_back(study::BeginLine{run, now});
    lines.emplace_back(study::EndLine{run, {trial.figure, "", "", 0, 0.0}, now});
  }
  return lines;
}

int begin(const CommandLine& line) {
  auto loaded = study::load_study(line.get<std::string>("study"));
  if (!loaded.ok()) return report(loaded.error());
  OpenStudy open(std::move(*loaded));
  const auto known = known_trials(line, open);
  if (!known.ok()) return report(known.error());
  std::string path = launch::new_run_folder(open.loaded.study.name);
  line.take("out", path);
  // Else no trial could begin, and the topology of the study could not be mended any more.
  if (const auto heads = check_address(open.loaded); !heads.ok()) return report(heads.error());
  launch::hold_signals();
  runtime::FileDisk disk;
  const auto folder =
      StudyFolder::create(path, open.loaded.study, first_lines(open.loaded, *known), disk);
  if (!folder.ok()) return report(folder.error());
  auto journal = open_journal(*folder, open);
  if (!journal.ok()) return report(journal.error());
  return carry_on(open, *folder, *journal, line);
}

int resume(const CommandLine& line) {
  const auto path = line.get<std::string>("resume");
  const auto folder = StudyFolder::reopen(path);
  if (!folder.ok()) return report(folder.error());
  auto loaded = study::load_study(path + "/" + StudyFolder::kStudy);
  if (!loaded.ok()) return report(loaded.error());
  OpenStudy open(std::move(*loaded));
  auto journal = open_journal(*folder, open);
  if (!journal.ok()) return report(journal.error());
  launch::hold_signals();
  return carry_on(open, *folder, *journal, line);
}

int carry_out_study(const CommandLine& line) {
  const bool reports = line.get<bool>("report");
  if (line.has("resume") && (line.has("study") || line.has("out"))) {
    return line.usage_error("--resume names the folder already; leave out the rest");
  }
  if (line.has("resume") && reports) {
    return line.usage_error("--report runs nothing; give it the folder without --resume");
  }
  if (line.has("out") && reports) {
    return line.usage_error("--report begins no study; leave out --out");
  }
  for (const char* option : {"html", "optuna", "tensorboard", "web"}) {
    if (line.has(option) && !reports) {
      return line.usage_error(fmt::format("--{} goes with --report", option));
    }
  }
  if (line.has("web") && line.get<bool>("json")) {
    return line.usage_error("--web serves a page; leave out --json");
  }
  for (const char* option : {"listen", "token"}) {
    if (line.has(option) && !line.has("web")) {
      return line.usage_error(fmt::format("--{} goes with --web", option));
    }
  }
  if (line.has("from") && (line.has("resume") || reports)) {
    return line.usage_error("--from goes with a study that begins");
  }
  if (line.has("from-study") && !line.has("from")) {
    return line.usage_error("--from-study goes with --from");
  }
  if (line.has("resume")) return resume(line);
  if (!line.has("study")) return line.usage_error("which study file?");
  return reports ? tell_study(line) : begin(line);
}

std::vector<Option> study_options() {
  std::vector<Option> options{
      {.name = "out",
       .value = "DIR",
       .about = "folder of the study (default runs/NAME-TIME)",
       .takes = Takes::kFolder},
      {.name = "resume",
       .value = "DIR",
       .about = "goes on with the study in this folder",
       .takes = Takes::kFolder},
      {.name = "report",
       .about = "tells what is known of the study in the folder DIR, and runs "
                "nothing"},
      {.name = "html",
       .value = "FILE",
       .about = "with --report: writes it, with pictures, as a page of HTML",
       .takes = Takes::kFile},
      {.name = "optuna",
       .value = "FILE",
       .about = "with --report: writes the study as Optuna keeps its own, for "
                "sqlite:///FILE",
       .takes = Takes::kFile},
      {.name = "tensorboard",
       .value = "DIR",
       .about = "with --report: writes event files for TensorBoard's table of "
                "hyperparameters",
       .takes = Takes::kFolder},
      {.name = "web",
       .about = "with --report: serves it, with pictures, as a page that follows the "
                "study until it is ended"}};
  for (Option& option : page_options("--web")) options.push_back(std::move(option));
  const std::vector<Option> others{
      {.name = "from",
       .value = "FILE",
       .about = "begins with the complete trials of a study in such a file",
       .takes = Takes::kFile},
      {.name = "from-study",
       .value = "NAME",
       .about = "which one of several in that file",
       .takes = Takes::kText},
      log_level_option(),
      json_option()};
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

}  // namespace

Command study_verb() {
  return {.name = "study",
          .summary = "search a space of topologies for the best one, run by run",
          .about =
              "Trains the topology of a study file with one choice of settings after the other, "
              "each an ordinary run in a folder of its own, and tells which is the best. A study "
              "that was stopped or killed goes on with --resume.",
          .example = "troupe study config/studies/toy_search.yaml --out runs/search",
          .forms = {"STUDY [OPTION]...", "--resume DIR [OPTION]...", "DIR --report [--json]",
                    "DIR --report --web [--listen HOST:PORT] [--token FILE]"},
          .places = {{.name = "study", .takes = Takes::kFile}},
          .options = study_options(),
          .synonyms = {"tune", "search", "optimise", "optimize", "sweep"},
          .carry_out = carry_out_study};
}

}  // namespace troupe
