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
#include "telemetry/shower_file.h"
#include "telemetry/watch/file_tail.h"
#include "telemetry/watch/run_files.h"

namespace troupe::telemetry {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::uint64_t kLogBytes = 256 << 10;
constexpr std::size_t kMessageBytes = 4 << 10;  // of a message of several lines, for its end
constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;
// A run on another host, whose lock cannot be seen here, tells something at least so often.
constexpr double kSilenceSeconds = 30.0;

// Which content of a file it is; equal: it has not changed.
struct FileMark {
  ino_t inode = 0;
  off_t size = -1;  // -1: there is no file
  std::int64_t written = 0;
  bool operator==(const FileMark&) const = default;
};

FileMark mark_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return {status.st_ino, status.st_size,
          status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

// "" where there is no such file, or one larger than any of a run is.
std::string text_of(const std::string& path) {
  auto text = runtime::read_file(path, kMostFileBytes);
  return text.ok() ? std::move(*text) : "";
}

}  // namespace

struct RunReader::Impl {
  Impl(std::string where, const RunReaderOptions& wanted)
      : folder(std::move(where)),
        options(wanted),
        history(std::make_shared<History>(wanted.history)),
        metrics(folder + "/metrics.jsonl"),
        log(folder + "/log.txt", kLogBytes) {}

  // All that is new. False: progress() said to stop.
  bool read_all();
  void take_line(std::string_view line);
  void begin_anew();
  void take_log_line(std::string_view line);
  void read_nodes();
  void judge_end(const FileMark& summary);
  std::string why_it_is_silent(bool has_summary) const;
  bool is_held() const;
  void follow();

  const std::string folder;
  const RunReaderOptions options;
  const std::shared_ptr<History> history;
  FileTail metrics, log;
  LogLine last_log;  // the last message, with all its lines
  FileMark nodes_mark, summary_mark;
  std::uint64_t not_understood = 0;  // lines that came whole
  bool told_end = false;
  bool follows = false;  // all that was there at first is read
  std::atomic<bool> live = false;
  std::atomic<std::uint64_t> bad_lines = 0;

  std::mutex mutex;  // of `ending`
  std::condition_variable woken;
  bool ending = false;
  std::thread thread;
};

void RunReader::Impl::take_line(std::string_view line) {
  if (line.empty()) return;
  const auto record = read_record(line);
  if (record.ok()) {
    history->take(*record);
  } else {
    ++not_understood;
  }
}

void RunReader::Impl::begin_anew() {
  history->clear();
  not_understood = 0;
  nodes_mark = summary_mark = {};
  told_end = false;
}

void RunReader::Impl::take_log_line(std::string_view text) {
  LogLine line = read_log_line(text);
  if (!line.level.empty()) {
    last_log = line;
  } else {  // of a message with several lines
    line.level = last_log.level.empty() ? "info" : last_log.level;
    line.time = last_log.time;
    if (last_log.text.size() < kMessageBytes) last_log.text += "\n" + line.text;
  }
  history->take_log(std::move(line));
}

void RunReader::Impl::read_nodes() {
  const std::string path = folder + "/nodes.json";
  const FileMark mark = mark_of(path);
  if (mark == nodes_mark || mark.size < 0) return;
  nodes_mark = mark;
  for (const ListedNode& node : read_nodes_file(text_of(path))) {
    history->take_node(node.facts, runtime::seconds_since_1970(node.since));
  }
}

bool RunReader::Impl::is_held() const {
  const FileMark lock = mark_of(folder + "/.lock");
  if (lock.size < 0) return false;
  return is_locked(text_of("/proc/locks"), static_cast<std::uint64_t>(lock.inode));
}

std::string RunReader::Impl::why_it_is_silent(bool has_summary) const {
  if (has_summary) return fmt::format("{}/summary.json is damaged: how it ended is lost", folder);
  // It failed before it began to train, or was ended while it went on after the error.
  if (last_log.level == "error") {
    return fmt::format("it left no summary.json; the last its log says: {}", last_log.text);
  }
  std::string advice = "it had not begun to train, so start it again";
  if (mark_of(folder + "/topology.yaml").size >= 0) {
    advice = "go on with: troupe run --resume " + folder;
  } else if (metrics.bytes() > 0) {
    advice = "its topology.yaml is missing: put it back to go on";
  }
  return "it ended without a word: it was killed, or its host went down; " + advice;
}

void RunReader::Impl::judge_end(const FileMark& summary) {
  if (summary.size >= 0) {
    if (told_end && summary == summary_mark) return;
    if (const auto end = read_run_end(text_of(folder + "/summary.json"))) {
      history->end(end->state, end->error);
      summary_mark = summary;
      told_end = true;
      live = false;
      return;
    }
  }
  live = is_held() ||
         runtime::seconds_since_1970(runtime::wall_now()) - metrics.written() < kSilenceSeconds;
  if (live) {
    if (told_end) history->begin_again();
    told_end = false;
  } else if (!told_end) {
    history->end("failed", why_it_is_silent(summary.size >= 0));
    summary_mark = summary;
    told_end = true;
  }
}

bool RunReader::Impl::read_all() {
  // It is written behind the last line.
  const FileMark summary = mark_of(folder + "/summary.json");
  const FileTail::Reader lines{[this](std::string_view line) { take_line(line); },
                               [this] { begin_anew(); }};
  const auto read_some = [&] {
    const bool more = metrics.read_some(lines);
    bad_lines = not_understood + metrics.left_out();
    return more;
  };
  while (read_some()) {
    if (options.progress && !follows && !options.progress(metrics.bytes_read(), metrics.bytes())) {
      return false;
    }
    const std::scoped_lock lock(mutex);
    if (ending) return false;
  }
  read_nodes();
  const FileTail::Reader log_lines{[this](std::string_view line) { take_log_line(line); }, [] {}};
  while (log.read_some(log_lines)) {
  }
  judge_end(summary);
  return true;
}

void RunReader::Impl::follow() {
  std::unique_lock lock(mutex);
  while (!woken.wait_for(lock, options.poll, [this] { return ending; })) {
    lock.unlock();
    read_all();
    lock.lock();
  }
}

RunReader::RunReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

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
  auto impl = std::make_unique<Impl>(folder, options);
  if (!impl->read_all()) return Error{ErrorKind::kData, folder + ": reading was stopped"};
  std::unique_ptr<RunReader> reader(new RunReader(std::move(impl)));
  Impl& work = *reader->impl_;
  work.follows = true;
  ASSIGN_OR_RETURN(work.thread,
                   runtime::start_thread("following a run", [&work] { work.follow(); }));
  return reader;
}

RunReader::~RunReader() {
  if (!impl_->thread.joinable()) return;
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->ending = true;
  }
  impl_->woken.notify_all();
  impl_->thread.join();
}

std::shared_ptr<const History> RunReader::history() const { return impl_->history; }
bool RunReader::live() const { return impl_->live; }
std::uint64_t RunReader::bad_lines() const { return impl_->bad_lines; }

RunSource RunReader::source() const {
  RunSource source;
  source.folder = impl_->folder;
  source.live = [impl = impl_.get()] { return impl->live.load(); };
  source.history = impl_->history;
  source.showers = [folder = impl_->folder](std::uint64_t step) {
    return read_showers(folder, step);
  };
  return source;
}

}  // namespace troupe::telemetry
