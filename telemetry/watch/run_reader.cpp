#include "telemetry/watch/run_reader.h"

#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/start_thread.h"
#include "telemetry/watch/file_tail.h"
#include "telemetry/watch/run_files.h"

namespace troupe::telemetry {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::uint64_t kLogBytes = 256 << 10;
constexpr std::size_t kMessageBytes = 4 << 10;  // kept of a message of several lines
constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;
// The lock of a run on another host cannot be seen here. Such a run writes at least so often.
constexpr double kSilenceSeconds = 30.0;

using FileMark = RunReader::FileMark;

FileMark mark_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return {status.st_ino, status.st_size,
          status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

// "": there is no such file, or it is larger than any of a run.
std::string text_of(const std::string& path) {
  auto text = runtime::read_file(path, kMostFileBytes);
  return text.ok() ? std::move(*text) : "";
}

}  // namespace

RunReader::RunReader(const std::string& folder, const RunReaderOptions& options)
    : folder_(folder),
      options_(options),
      history_(std::make_shared<History>()),
      metrics_(folder + "/metrics.jsonl"),
      log_(folder + "/log.txt", kLogBytes) {}

void RunReader::take_line(std::string_view line) {
  if (line.empty()) return;
  const auto record = read_record(line);
  if (record.ok()) {
    history_->take(*record);
  } else {
    ++not_understood_;
  }
}

// The marks are forgotten too, so that the cleared history is told of the nodes and the end again.
void RunReader::begin_anew() {
  history_->clear();
  not_understood_ = 0;
  nodes_mark_ = summary_mark_ = {};
  told_end_ = false;
}

void RunReader::take_log_line(std::string_view text) {
  LogLine line = read_log_line(text);
  if (!line.level.empty()) {
    last_log_ = line;
  } else {  // of a message with several lines
    line.level = last_log_.level.empty() ? "info" : last_log_.level;
    line.time = last_log_.time;
    if (last_log_.text.size() < kMessageBytes) last_log_.text += "\n" + line.text;
  }
  history_->take_log(std::move(line));
}

void RunReader::read_nodes() {
  const std::string path = folder_ + "/nodes.json";
  const FileMark mark = mark_of(path);
  if (mark == nodes_mark_ || mark.size < 0) return;
  nodes_mark_ = mark;
  for (const ListedNode& node : read_nodes_file(text_of(path))) {
    history_->take_node(node.facts, runtime::seconds_since_1970(node.since));
  }
}

bool RunReader::is_held() const {
  const FileMark lock = mark_of(folder_ + "/.lock");
  if (lock.size < 0) return false;
  return is_locked(text_of("/proc/locks"), static_cast<std::uint64_t>(lock.inode));
}

std::string RunReader::why_it_is_silent(bool has_summary) const {
  if (has_summary) return fmt::format("{}/summary.json is damaged: how it ended is lost", folder_);
  // It failed before it began to train, or was ended after the error.
  if (last_log_.level == "error") {
    return fmt::format("it left no summary.json; the last its log says: {}", last_log_.text);
  }
  std::string advice = "it had not begun to train, so start it again";
  if (mark_of(folder_ + "/topology.yaml").size >= 0) {
    advice = "go on with: troupe run --resume " + folder_;
  } else if (metrics_.bytes() > 0) {
    advice = "its topology.yaml is missing: put it back to go on";
  }
  return "it ended without a word: it was killed, or its host went down; " + advice;
}

// An end is told once for each summary. Without one that can be read, the run goes on while its
// lock is held or its metrics are young; after that it has failed. A run that is live after its end
// was told is being resumed.
void RunReader::judge_end(const FileMark& summary) {
  if (summary.size >= 0) {
    if (told_end_ && summary == summary_mark_) return;
    if (const auto end = read_run_end(text_of(folder_ + "/summary.json"))) {
      history_->end(end->state, end->error);
      summary_mark_ = summary;
      told_end_ = true;
      live_ = false;
      return;
    }
  }
  live_ = is_held() ||
          runtime::seconds_since_1970(runtime::wall_now()) - metrics_.written() < kSilenceSeconds;
  if (live_) {
    if (told_end_) history_->begin_again();
    told_end_ = false;
  } else if (!told_end_) {
    history_->end("failed", why_it_is_silent(summary.size >= 0));
    summary_mark_ = summary;
    told_end_ = true;
  }
}

bool RunReader::read_all() {
  // The summary is written after the last line, so it is looked at before the lines.
  const FileMark summary = mark_of(folder_ + "/summary.json");
  const FileTail::Reader lines{[this](std::string_view line) { take_line(line); },
                               [this] { begin_anew(); }};
  const auto read_some = [&] {
    const bool more = metrics_.read_some(lines);
    bad_lines_ = not_understood_ + metrics_.left_out();
    return more;
  };
  while (read_some()) {
    if (options_.progress && !follows_ &&
        !options_.progress(metrics_.bytes_read(), metrics_.bytes())) {
      return false;
    }
    const std::scoped_lock lock(mutex_);
    if (ending_) return false;
  }
  read_nodes();
  const FileTail::Reader log_lines{[this](std::string_view line) { take_log_line(line); }, [] {}};
  while (log_.read_some(log_lines)) {
  }
  judge_end(summary);
  return true;
}

void RunReader::follow() {
  std::unique_lock lock(mutex_);
  while (!woken_.wait_for(lock, options_.poll, [this] { return ending_; })) {
    lock.unlock();
    read_all();
    lock.lock();
  }
}

Result<std::unique_ptr<RunReader>> RunReader::open(const std::string& folder,
                                                   const RunReaderOptions& options) {
  // A run that begins makes its lock before anything else.
  bool has_run = false;
  for (const char* name : {"/metrics.jsonl", "/topology.yaml", "/.lock"}) {
    has_run = has_run || mark_of(folder + name).size >= 0;
  }
  if (!has_run) {
    return Error{ErrorKind::kData,
                 fmt::format("{} holds no run (neither metrics.jsonl nor topology.yaml); name a "
                             "folder that troupe run --out made, or the address of a page",
                             folder)};
  }
  std::unique_ptr<RunReader> reader(new RunReader(folder, options));
  if (!reader->read_all()) return Error{ErrorKind::kData, folder + ": reading was stopped"};
  reader->follows_ = true;
  ASSIGN_OR_RETURN(reader->thread_,
                   runtime::start_thread("following a run", [it = reader.get()] { it->follow(); }));
  return reader;
}

RunReader::~RunReader() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

RunSource RunReader::source() const {
  RunSource source;
  source.folder = folder_;
  source.live = [this] { return live(); };
  source.history = history_;
  source.showers = [folder = folder_](std::uint64_t step) { return read_showers(folder, step); };
  return source;
}

}  // namespace troupe::telemetry
