#include "runtime/base/log.h"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "runtime/base/utf8.h"

namespace troupe::runtime {

namespace {

// The library's own file sink cannot be made anew at its place.
class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  FileSink(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  Result<void> put_back() {
    const std::scoped_lock lock(mutex_);
    return runtime::put_back(file_.number(), path_);
  }

 private:
  // A line that cannot be written is given up.
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const char* at = line.data();
    for (std::size_t left = line.size(); left > 0;) {
      const ssize_t written = ::write(file_.number(), at, left);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      at += written;
      left -= static_cast<std::size_t>(written);
    }
  }
  void flush_() override {}

  const std::string path_;
  const Descriptor file_;
};

}  // namespace

struct Log::Sinks {
  explicit Sinks(const LogOptions& options)
      : level(options.level), logger("troupe"), also(options.also) {}

  LogLevel level;
  spdlog::logger logger;
  std::shared_ptr<FileSink> file;  // null: none
  std::mutex also_mutex;
  std::function<void(LogLevel, std::string_view)> also;
};

namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

Result<Log> Log::open(const LogOptions& options) {
  auto sinks = std::make_shared<Sinks>(options);
  if (options.to_stderr) {
    sinks->logger.sinks().push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  }
  if (!options.file.empty()) {
    const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC;
    Descriptor file(::open(options.file.c_str(), flags, 0644));
    if (!file.is_open()) {
      return Error{ErrorKind::kData, "cannot open the log file '" + options.file +
                                         "': " + std::generic_category().message(errno)};
    }
    sinks->file = std::make_shared<FileSink>(options.file, std::move(file));
    sinks->logger.sinks().push_back(sinks->file);
  }
  sinks->logger.set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  sinks->logger.set_level(spdlog_level(options.level));
  sinks->logger.flush_on(spdlog::level::debug);
  // Without a handler spdlog prints its own troubles to standard error.
  sinks->logger.set_error_handler([](const std::string&) {});
  return Log(std::move(sinks));
}

Log Log::silent() {
  LogOptions options;
  options.to_stderr = false;
  return Log(std::make_shared<Sinks>(options));
}

Log Log::named(std::string name) const {
  Log log = *this;
  log.name_ = std::move(name);
  return log;
}

Result<void> Log::put_back() const {
  return sinks_->file == nullptr ? Result<void>{} : sinks_->file->put_back();
}

void Log::write(LogLevel level, std::string_view text) const {
  if (level < sinks_->level) return;
  const std::string line =
      printable_lines(name_.empty() ? std::string(text) : name_ + ": " + std::string(text));
  sinks_->logger.log(spdlog_level(level), "{}", line);
  if (sinks_->also) {
    const std::scoped_lock lock(sinks_->also_mutex);
    sinks_->also(level, line);
  }
}

}  // namespace troupe::runtime
