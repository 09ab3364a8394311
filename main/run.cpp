#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "config/shipped.h"
#include "config/topology_file.h"
#include "config/topology_identity.h"
#include "config/workers.h"
#include "launch/folder/run_folder.h"
#include "launch/folder/run_summary.h"
#include "launch/meeting/allocation.h"
#include "launch/meeting/placement.h"
#include "launch/processes/shell_word.h"
#include "launch/processes/signal_watch.h"
#include "launch/run/head_run.h"
#include "launch/run/judgement.h"
#include "launch/run/member_run.h"
#include "launch/run/result_copies.h"
#include "launch/run/supervise.h"
#include "launch/run/turn_order.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "main/files.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_text.h"
#include "runtime/base/utf8.h"
#include "telemetry/history.h"

namespace troupe {
namespace {

using runtime::Result;

// Between a value and its origin in what print_topology writes.
constexpr std::string_view kOriginMark = "  # ";

// How long the first of several processes that were started alike may take to leave its address,
// and its head to make data and answer.
constexpr auto kMeetsWithin = std::chrono::minutes(10);
constexpr auto kHeadIsReadyWithin = std::chrono::hours(24);

// Where a head finds the topology that the process above it has read and judged.
constexpr const char* kHandedTopology = "/dev/stdin";

struct RunArguments {
  std::string topology;  // empty with --resume: the run's own
  std::vector<std::string> overrides;
  std::string out;
  bool json = false;
  runtime::LogLevel log_level = runtime::LogLevel::kInfo;
  std::optional<std::uint32_t> workers;
  // This process is one of several that were started alike.
  std::optional<launch::Allocation> allocation;
  std::optional<launch::Meeting> meeting;  // of the first of them
  // As far as the words tell: what train() fills in besides follows from the topology.
  launch::HeadRunRequest request;

  // Another process of ours has started this one, and placed the run.
  bool is_head() const { return !request.listen.empty(); }
  bool has_handed_topology() const { return topology == kHandedTopology && is_head(); }
};

// A text that print_topology() wrote says itself where its values came from. Takes that in place of
// their places in this text, for the text is written again.
Result<void> keep_origins(const std::string& own, config::Origins& origins) {
  ASSIGN_OR_RETURN(const std::string text, config::read_topology_text(own));
  std::vector<std::string> comments;  // of each line; empty for one without
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.rfind(kOriginMark);
    comments.push_back(at == std::string::npos ? "" : line.substr(at + kOriginMark.size()));
  }
  for (auto& [path, place] : origins) {
    const auto line = static_cast<std::size_t>(place.line);
    if (place.source != own || line < 1 || line > comments.size()) continue;
    if (const std::string& comment = comments[line - 1]; !comment.empty()) place = {comment, 0, 0};
  }
  return {};
}

Result<config::LoadedTopology> load(const RunArguments& arguments) {
  ASSIGN_OR_RETURN(config::LoadedTopology loaded,
                   config::load_topology(arguments.topology, arguments.overrides));
  if (arguments.has_handed_topology()) {
    RETURN_IF_ERROR(keep_origins(arguments.topology, loaded.origins));
  }
  return loaded;
}

// The topology to go on with: it may differ from the run's own only where that is allowed.
Result<config::LoadedTopology> load_to_resume(const RunArguments& arguments) {
  if (arguments.has_handed_topology()) return load(arguments);
  const std::string own = arguments.out + "/topology.yaml";
  ASSIGN_OR_RETURN(config::LoadedTopology before, config::load_topology(own));
  const std::string& path = arguments.topology.empty() ? own : arguments.topology;
  ASSIGN_OR_RETURN(config::LoadedTopology now, config::load_topology(path, arguments.overrides));
  RETURN_IF_ERROR(keep_origins(own, now.origins));
  const auto problems = config::resume_problems(before.topology, now.topology);
  if (problems.empty()) return now;
  return runtime::Error{runtime::ErrorKind::kTopology,
                        fmt::format("{} cannot go on with this topology:\n  {}", arguments.out,
                                    fmt::join(problems, "\n  "))};
}

// As shells complete a folder's name: "runs/first/".
std::string without_slashes_behind(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

int finish_run(const launch::HeadRunResult& result, const RunArguments& arguments,
               const runtime::Log& log) {
  if (!result.table.empty()) std::cout << result.table;
  if (arguments.json) {
    answer_object(result.summary_json);
  } else {
    std::cerr << fmt::format("run folder: {}\n", runtime::printable(arguments.out));
  }
  if (result.signal != 0) {
    log.info(fmt::format("stopped by signal {}; go on with: troupe run --resume {}", result.signal,
                         launch::shell_word(result.resume_from)));
  }
  if (result.error) log.error(result.error->message);
  if (!result.nodes_left.empty()) log.error(result.nodes_left);
  return result.exit_code();
}

// The log of a run: standard error, RUN/log.txt, and the lines that its page shows.
Result<runtime::Log> open_run_log(const launch::RunFolder& folder,
                                  std::shared_ptr<telemetry::History> history,
                                  runtime::LogLevel level) {
  runtime::LogOptions options;
  options.level = level;
  options.file = folder.file(launch::RunFolder::kLog);
  options.also = [history = std::move(history)](runtime::LogLevel of_line, std::string_view line) {
    const double now = runtime::seconds_since_1970(runtime::wall_now());
    history->take_log({now, log_level_word(of_line), std::string(line)});
  };
  return runtime::Log::open(options);
}

int train(const config::LoadedTopology& loaded, launch::RunFolder& folder, runtime::Disk& disk,
          const RunArguments& arguments) {
  auto history = std::make_shared<telemetry::History>();
  auto log = open_run_log(folder, history, arguments.log_level);
  if (!log.ok()) return report(log.error());

  launch::HeadRunRequest request = arguments.request;
  request.loaded = loaded;
  request.version = TROUPE_VERSION;
  request.history = std::move(history);
  request.page = telemetry::page_assets();
  if (arguments.is_head()) {
    request.members = config::workers_of(loaded.topology, arguments.workers);
  }
  // Runs whose folders lie beside each other share their data.
  request.data_folder =
      (std::filesystem::absolute(arguments.out) / "../data").lexically_normal().string();
  if (arguments.json) request.last_words = answer_object;
  request.progress = stderr;
  request.progress_on_terminal = ::isatty(STDERR_FILENO) == 1;
  const auto copies =
      launch::ResultCopies::begin(folder.path(), loaded.topology.checkpointer.copies, disk, *log);
  if (!copies.ok()) return report(copies.error(), *log);
  const auto result = launch::run_locally(request, folder, (*copies)->disk(), *log);
  // The answer comes first: copies may take a while.
  const int code =
      result.ok() ? finish_run(*result, arguments, *log) : report(result.error(), *log);
  (*copies)->finish();
  return code;
}

// The folder beside which a run's folder lies.
std::string folder_of_runs(const RunArguments& arguments) {
  const std::string out = arguments.out.empty() ? "runs/new" : arguments.out;
  return std::filesystem::absolute(out).lexically_normal().parent_path().string();
}

// How the folder begins where processes that were started alike meet. A run without --out has a
// folder that only the first of them knows.
std::string meeting_prefix(const RunArguments& arguments) {
  const std::string name = std::filesystem::path(arguments.out).filename().string();
  return fmt::format("{}/.{}{}", folder_of_runs(arguments), name, name.empty() ? "" : "-");
}

Result<void> can_be_shared(const config::LoadedTopology& loaded, const RunArguments& arguments) {
  if (loaded.topology.cluster.hosts.empty()) return {};
  return runtime::Error{
      runtime::ErrorKind::kUsage,
      fmt::format(
          "this is one of the {} processes of {}, each of which is a member of the run, and "
          "cluster.hosts names others; leave that out, or let this process be alone with "
          "--workers",
          arguments.allocation->size, arguments.allocation->name)};
}

// The head waits where the others look for it, if there are any that were started alike.
Result<void> meet_others(config::LoadedTopology& loaded, RunArguments& arguments) {
  if (!arguments.allocation) return {};
  RETURN_IF_ERROR(can_be_shared(loaded, arguments));
  runtime::FileDisk disk;
  auto& cluster = loaded.topology.cluster;
  std::optional<std::string> listen;
  const auto origin = loaded.origins.find("cluster.listen");
  if (origin != loaded.origins.end() && !origin->second.is_default()) listen = cluster.listen;
  ASSIGN_OR_RETURN(arguments.meeting,
                   launch::open_meeting(*arguments.allocation, cluster.keys, listen,
                                        meeting_prefix(arguments), disk));
  cluster.keys = arguments.meeting->keys;
  loaded.origins["cluster.keys"] = {arguments.allocation->name, 0, 0};
  return {};
}

// Decides where the run is carried out, and refuses what can be refused before there is a folder.
// A head was placed by the process above it.
Result<launch::Placement> place(const config::LoadedTopology& loaded,
                                const RunArguments& arguments) {
  if (arguments.is_head()) {
    return launch::Placement{config::workers_of(loaded.topology, arguments.workers), {}, {}, {}};
  }
  std::optional<launch::Placement> placed;
  if (arguments.meeting) placed = placement_in(*arguments.allocation, *arguments.meeting);
  ASSIGN_OR_RETURN(launch::Judgement judgement,
                   launch::judge_run(loaded, arguments.workers, std::move(placed)));
  if (!judgement.here.empty()) return judgement.here.front();
  if (judgement.idle) std::cerr << "troupe: warning: " << *judgement.idle << "\n";
  if (!arguments.request.order.empty()) {
    runtime::FileDisk disk;
    const auto scaled = config::scaled(loaded.topology, judgement.placement.members);
    RETURN_IF_ERROR(launch::read_turn_log(arguments.request.order,
                                          config::options_between_members(scaled), disk));
  }
  return std::move(judgement.placement);
}

// Whether the topology is no pipe and not typed. "": the run's own.
bool is_readable_again(const std::string& topology) {
  std::error_code error;
  return topology.empty() || std::filesystem::is_regular_file(topology, error) ||
         config::shipped_text(topology);
}

// Verb and arguments that make another process the head of this run, which `resumes`.
std::vector<std::string> head_words(const RunArguments& arguments, std::uint32_t members,
                                    bool resumes) {
  std::vector<std::string> words{"run",         kHandedTopology, resumes ? "--resume" : "--out",
                                 arguments.out, "--workers",     std::to_string(members)};
  if (arguments.json) words.emplace_back("--json");
  if (arguments.request.trace) words.emplace_back("--trace");
  if (!arguments.request.order.empty()) {
    words.insert(words.end(), {"--order", arguments.request.order});
  }
  if (arguments.allocation) {
    words.insert(words.end(), {"--others-of", arguments.allocation->name});
  }
  const auto level = log_level_words(arguments.log_level);
  words.insert(words.end(), level.begin(), level.end());
  return words;
}

// And the next one, when that was lost.
std::vector<std::string> next_head_words(const RunArguments& arguments, std::uint32_t members) {
  std::vector<std::string> words = head_words(arguments, members, true);
  words.emplace_back("--head-returns");
  return words;
}

// The run takes several processes, and this one looks after them.
int look_after(const config::LoadedTopology& loaded, launch::Placement placement,
               const RunArguments& arguments) {
  auto log = open_log(arguments.log_level);
  if (!log.ok()) return report(log.error());
  if (placement.unheeded) log->warning(*placement.unheeded);
  launch::SuperviseRequest request;
  request.loaded = loaded;
  request.head_words = head_words(arguments, placement.members, arguments.request.resume);
  request.next_head_words = next_head_words(arguments, placement.members);
  request.run_folder = arguments.out;
  request.placement = std::move(placement);
  request.member_words = log_level_words(arguments.log_level);
  request.trace = arguments.request.trace;
  std::optional<launch::MeetingNote> note;
  if (arguments.meeting) {
    runtime::FileDisk disk;
    const auto left = note.emplace(*arguments.meeting).leave(disk);
    if (!left.ok()) return report(left.error(), *log);
  }
  const auto end = launch::supervise(request, *log);
  if (!end.ok()) return report(end.error());
  if (end->error) report(*end->error, *log);
  return end->exit_code;
}

// One that is not the first of those that were started alike.
int be_member(const RunArguments& arguments) {
  auto log = open_log(arguments.log_level);
  if (!log.ok()) return report(log.error());
  // A member needs nothing of the topology but the keys: the head sends it.
  const auto loaded =
      arguments.topology.empty()
          ? config::load_topology(arguments.out + "/topology.yaml", arguments.overrides)
          : load(arguments);
  if (!loaded.ok()) return report(loaded.error());
  if (const auto can = can_be_shared(*loaded, arguments); !can.ok()) return report(can.error());
  const launch::Allocation& allocation = *arguments.allocation;
  const runtime::SteadyClock clock;
  const auto meeting =
      launch::find_meeting(allocation, loaded->topology.cluster.keys, meeting_prefix(arguments),
                           clock, clock.now() + kMeetsWithin, *log);
  if (!meeting.ok()) return report(meeting.error(), *log);
  launch::MemberRequest request;
  request.enrol.address = meeting->dial;
  request.listen = meeting->neighbours;
  request.enrol.request.node = config::member_name(allocation.rank);
  // The head answers while it makes data, and then has a slot.
  request.enrol.within = kMeetsWithin;
  request.enrol.for_a_slot = kHeadIsReadyWithin;
  request.credentials.key_folder = meeting->keys;
  request.data_folder = folder_of_runs(arguments) + "/data";
  if (loaded->topology.replica.device == config::kGpu) {
    request.device = fmt::format("{}:{}", config::kGpu, allocation.place % config::kMostDevices);
  }
  const auto ended = launch::run_member(request, *log);
  return ended.ok() ? 0 : report(ended.error(), *log);
}

int begin(RunArguments arguments) {
  auto loaded = load(arguments);
  if (!loaded.ok()) return report(loaded.error());
  launch::hold_signals();  // where it was waited for, too
  if (const auto met = meet_others(*loaded, arguments); !met.ok()) return report(met.error());
  const auto placement = place(*loaded, arguments);
  if (!placement.ok()) return report(placement.error());
  if (arguments.out.empty()) arguments.out = launch::new_run_folder(loaded->topology.name);
  const bool supervises = placement->members > 0 && !arguments.is_head();
  if (supervises) return look_after(*loaded, *placement, arguments);
  runtime::FileDisk disk;
  auto folder = launch::RunFolder::create(arguments.out, disk);
  if (!folder.ok()) return report(folder.error());
  return train(*loaded, *folder, disk, arguments);
}

int resume(RunArguments arguments) {
  runtime::FileDisk disk;
  std::optional<Result<launch::RunFolder>> folder = launch::RunFolder::reopen(arguments.out, disk);
  if (!folder->ok()) return report(folder->error());
  auto loaded = load_to_resume(arguments);
  if (!loaded.ok()) return report(loaded.error());
  if (const auto met = meet_others(*loaded, arguments); !met.ok()) return report(met.error());
  const auto placement = place(*loaded, arguments);
  if (!placement.ok()) return report(placement.error());
  const bool supervises = placement->members > 0 && !arguments.is_head();
  if (!supervises) return train(*loaded, **folder, disk, arguments);
  folder.reset();  // it is the head's to lock
  return look_after(*loaded, *placement, arguments);
}

RunArguments read_arguments(const CommandLine& line) {
  RunArguments parsed;
  line.take("topology", parsed.topology);
  line.take("workers", parsed.workers);
  line.take("head-at", parsed.request.listen);
  line.take("member-here", parsed.request.members_here);
  line.take("head-returns", parsed.request.returns);
  line.take("others-of", parsed.request.others_of);
  parsed.overrides = settings(line);
  if (line.has("seed")) {
    parsed.overrides.push_back(fmt::format("train.seed={}", line.get<std::uint64_t>("seed")));
  }
  line.take("out", parsed.out);
  line.take("resume", parsed.out);
  parsed.out = without_slashes_behind(parsed.out);
  parsed.request.resume = line.has("resume");
  line.take("json", parsed.json);
  line.take("trace", parsed.request.trace);
  line.take("order", parsed.request.order);
  std::error_code ignored;
  if (std::filesystem::is_directory(parsed.request.order, ignored)) {
    parsed.request.order = without_slashes_behind(parsed.request.order) + "/metrics.jsonl";
  }
  parsed.log_level = log_level(line);
  return parsed;
}

int run(const CommandLine& line) {
  if (line.has("out") && line.has("resume")) {
    return line.usage_error("--resume names the folder already; leave out --out");
  }
  RunArguments parsed = read_arguments(line);
  if (line.has("from")) {
    if (parsed.request.resume) {
      return line.usage_error("--from is for a run that begins; one that is resumed has weights");
    }
    runtime::FileDisk disk;
    const auto weights = checkpoint_at(line.get<std::string>("from"), disk);
    if (!weights.ok()) return report(weights.error());
    // Before data are read or made for nothing.
    if (!std::ifstream(*weights)) {
      return report({runtime::ErrorKind::kData, "train.from: cannot open " + *weights});
    }
    parsed.overrides.push_back("train.from=" + runtime::json_string(*weights));
  }
  if (parsed.topology.empty() && !parsed.request.resume)
    return line.usage_error("which topology file?");
  // With --workers it is alone, whoever was started with it.
  if (!parsed.is_head() && !parsed.workers) {
    auto allocation = launch::find_allocation([](const char* name) {
      const char* const value = std::getenv(name);
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
    if (!allocation.ok()) return report(allocation.error());
    parsed.allocation = *std::move(allocation);
    if (parsed.allocation && parsed.allocation->rank > 0) return be_member(parsed);
  }
  // Until there is somebody to tell of them. A topology may have to be waited for, which they end.
  if (is_readable_again(parsed.topology)) launch::hold_signals();
  if (!parsed.is_head()) tell_if_shipped(parsed.topology);
  return parsed.request.resume ? resume(std::move(parsed)) : begin(std::move(parsed));
}

std::vector<Option> run_options() {
  return {setting_option(),
          {.name = "out",
           .value = "DIR",
           .about = "folder of the run (default runs/NAME-TIME)",
           .takes = Takes::kFolder},
          {.name = "resume",
           .value = "DIR",
           .about = "goes on with the run in this folder",
           .takes = Takes::kFolder},
          workers_option("member processes on this host; 0: all in one process (default: those of "
                         "cluster.hosts)"),
          {.name = "seed",
           .value = "S",
           .about = "the same as --set train.seed=S",
           .takes = Takes::kWhole},
          {.name = "from",
           .value = "FILE",
           .about = "begins with the weights of this checkpoint, of a run's best one, or of a file "
                    "of Keras, as train.from does",
           .takes = Takes::kFile},
          {.name = "order",
           .value = "RUN",
           .about = "of a strategy whose workers take turns: they take them as in the run of this "
                    "folder, or of this metrics.jsonl, and make the same bits",
           .takes = Takes::kFile},
          {.name = "trace",
           .about = "writes DIR/trace/ at the end, and not only when the run fails: what every "
                    "actor of every process here did lately"},
          log_level_option(),
          json_option(),
          {.name = "head-at", .value = "ADDRESS", .takes = Takes::kText, .hidden = true},
          {.name = "member-here",
           .value = "NAME",
           .takes = Takes::kText,
           .repeats = true,
           .hidden = true},
          {.name = "others-of", .value = "NAME", .takes = Takes::kText, .hidden = true},
          {.name = "head-returns", .hidden = true}};
}

}  // namespace

Command run_verb() {
  return {.name = "run",
          .summary = "train: launch a topology file, all of it",
          .about =
              "Trains what the topology file describes, or the topology of that name that comes "
              "with the program. Progress and logs go to standard error; the table data against "
              "generated, and with --json the summary, to standard output.",
          .example =
              "troupe run config/topologies/quickstart.yaml --set train.epochs=1 --out runs/first",
          .forms = {"TOPOLOGY [OPTION]...", "--resume DIR [OPTION]..."},
          .places = {{.name = "topology", .takes = Takes::kTopology}},
          .options = run_options(),
          .synonyms = {"train", "start", "launch", "fit"},
          .failed = launch::summary_of_failure,
          .carry_out = run};
}

}  // namespace troupe
