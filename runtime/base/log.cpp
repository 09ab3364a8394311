#include "runtime/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>

namespace troupe::runtime {

struct Log::Sinks {
  explicit Sinks(const LogOptions& options)
      : level(options.level), logger("troupe"), also(options.also) {}

  LogLevel level;
  spdlog::logger logger;
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
  try {
    if (options.to_stderr) {
      sinks->logger.sinks().push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    }
    if (!options.file.empty()) {
      sinks->logger.sinks().push_back(
          std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
    }
    sinks->logger.set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  } catch (const std::exception& failure) {
    return Error{ErrorKind::kData,
                 "cannot open the log file '" + options.file + "': " + failure.what()};
  }
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

void Log::write(LogLevel level, std::string_view text) const {
  if (level < sinks_->level) return;
  const std::string line = name_.empty() ? std::string(text) : name_ + ": " + std::string(text);
  sinks_->logger.log(spdlog_level(level), "{}", line);
  if (sinks_->also) {
    const std::scoped_lock lock(sinks_->also_mutex);
    sinks_->also(level, line);
  }
}

}  // namespace troupe::runtime
