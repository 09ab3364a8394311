#include "launch/run/run_page.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/disk.h"
#include "runtime/base/secret.h"
#include "runtime/base/start_thread.h"
#include "runtime/transport/head_request.h"
#include "telemetry/page/token_file.h"
#include "telemetry/page/web_access.h"
#include "telemetry/watch/run_files.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;
using runtime::Result;

telemetry::RunSource source_of(const HeadRunRequest& request, const RunFolder& folder) {
  telemetry::RunSource source;
  source.name = request.loaded.topology.name;
  source.folder = folder.path();
  source.live = [] { return true; };
  source.history = request.history;
  source.showers = [path = folder.path()](std::uint64_t step) {
    return telemetry::read_showers(path, step);
  };
  const config::ClusterSection& cluster = request.loaded.topology.cluster;
  // Its limits decide, and nobody else; and a run in one process takes no nodes.
  if (cluster.burst || request.members == 0) return source;
  for (const config::PoolSection& pool : cluster.pools) {
    source.pools.push_back({pool.name, pool.most});
  }
  return source;
}

// 128 bits.
std::string new_token() {
  return fmt::format("{:016x}{:016x}", runtime::secret_number(), runtime::secret_number());
}

// For its owner's eyes alone; a file that is there stays. kData: it cannot be written.
Result<void> write_token(const std::string& path, const std::string& token) {
  const auto written = runtime::write_new_file(path, token + "\n", 0600);
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? Result<void>{} : written;
}

// The word that a browser beyond this machine has to give before it sees a run: what the topology's
// file has; else, for a page that is reached from other machines, that of `own_file`, which is made
// where there is none ("": a new one, which is written nowhere); else "". kUsage: a file that
// cannot be read, is empty, or longer than any token; kData: one that cannot be made.
Result<std::string> page_token(const config::MonitorSection& monitor, const std::string& own_file) {
  if (monitor.token) return telemetry::read_token_file(*monitor.token, "actors.monitor.token");
  if (telemetry::is_loopback_name(monitor.listen)) return std::string();
  if (own_file.empty()) return new_token();
  RETURN_IF_ERROR(write_token(own_file, new_token()));
  return telemetry::read_token_file(own_file, own_file);
}

// The word that a client has to give to change something; "": nobody may. kUsage: as above, or it
// is the one that lets people look.
Result<std::string> control_token(const config::MonitorSection& monitor, const std::string& token) {
  if (!monitor.control) return std::string();
  ASSIGN_OR_RETURN(const std::string control,
                   telemetry::read_token_file(*monitor.control, "actors.monitor.control"));
  if (control != token) return control;
  return Error{ErrorKind::kUsage,
               fmt::format("actors.monitor.control: {} holds the token that lets people look; "
                           "changes need another one",
                           *monitor.control)};
}

Result<telemetry::PageServerOptions> server_options(const config::MonitorSection& monitor,
                                                    const std::string& own_file) {
  telemetry::PageServerOptions options;
  options.listen = monitor.listen;
  options.next_free_port = true;
  ASSIGN_OR_RETURN(options.token, page_token(monitor, own_file));
  ASSIGN_OR_RETURN(options.control, control_token(monitor, options.token));
  return options;
}

Error not_training() {
  return {ErrorKind::kUsage, "the run does not train at the moment; ask it later"};
}

std::string no_page(const Error& why) { return "there is no page: " + why.message; }

// A trace may need much memory, which is no reason to end a run.
Result<std::string> words_of(const actors::NodeAnswers& answers) {
  try {
    return actors::text_of(answers);
  } catch (const std::exception& failure) {
    return Error{ErrorKind::kInternal, fmt::format("the answer is too long: {}", failure.what())};
  }
}

}  // namespace

std::optional<std::string> try_page(const config::MonitorSection& monitor) {
  if (monitor.listen == "none") return std::nullopt;
  const auto options = server_options(monitor, "");
  if (!options.ok()) return no_page(options.error());
  const auto server = telemetry::PageServer::open(*options, {});
  if (!server.ok()) return no_page(server.error());
  return std::nullopt;
}

RunPage::RunPage(const HeadRunRequest& request, const RunFolder& folder, const runtime::Log& log)
    : history_(request.history) {
  if (history_ == nullptr || request.loaded.topology.monitor.listen == "none") return;
  if (const auto opened = open(request, folder, log); !opened.ok()) {
    log.warning(no_page(opened.error()));
  }
}

runtime::Result<void> RunPage::open(const HeadRunRequest& request, const RunFolder& folder,
                                    const runtime::Log& log) {
  const config::MonitorSection& monitor = request.loaded.topology.monitor;
  ASSIGN_OR_RETURN(telemetry::PageServerOptions options,
                   server_options(monitor, folder.file(RunFolder::kPageToken)));
  if (!monitor.token) own_token_ = options.token;
  telemetry::RunSource source = source_of(request, folder);
  source.trace = [this](Answer answer) { ask(actors::Probe::Wants::kTrace, std::move(answer)); };
  source.waits = [this](Answer answer) { ask(actors::Probe::Wants::kWaits, std::move(answer)); };
  if (request.members > 0 && !request.loaded.topology.cluster.pools.empty()) {
    source.burst = [this](const telemetry::PoolWish& wish, Answer answer) {
      burst(wish, std::move(answer));
    };
  }
  options.version = request.version;
  options.assets = request.page;
  ASSIGN_OR_RETURN(writer_,
                   runtime::start_thread("the page's answers", [this] { write_answers(); }));
  ASSIGN_OR_RETURN(server_, telemetry::PageServer::open(options, {std::move(source)}));
  const std::string token_file = monitor.token.value_or(folder.file(RunFolder::kPageToken));
  log.info(fmt::format("watch it at {}{}", server_->address(),
                       options.token.empty() ? "" : " with the token in " + token_file));
  return {};
}

RunPage::~RunPage() {
  leave();
  if (history_ != nullptr && !ended_) history_->end("failed", "the run could not begin");
  server_.reset();
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  if (writer_.joinable()) writer_.join();
}

Result<void> RunPage::put_back(const RunFolder& folder) const {
  return own_token_.empty() ? Result<void>{}
                            : write_token(folder.file(RunFolder::kPageToken), own_token_);
}

void RunPage::look_into(runtime::Node& node) {
  const std::scoped_lock lock(mutex_);
  node_ = &node;
}

void RunPage::leave() {
  const std::scoped_lock lock(mutex_);
  node_ = nullptr;
}

void RunPage::tell_end(const HeadRunResult& result) {
  if (history_ == nullptr) return;
  const char* const state = result.error ? "failed" : result.signal != 0 ? "stopped" : "ended";
  ended_ = true;
  history_->end(state, result.error ? result.error->message : "");
  server_.reset();
}

// The answer is put into words on a thread of its own: that of a long trace takes a second.
void RunPage::ask(actors::Probe::Wants wants, Answer answer) {
  const std::scoped_lock lock(mutex_);
  if (node_ == nullptr) return answer(not_training());
  const auto done = [this, answer = std::move(answer)](actors::NodeAnswers answers) {
    {
      const std::scoped_lock again(mutex_);
      tasks_.push_back({std::move(answers), answer});
    }
    changed_.notify_one();
  };
  node_->send_control("monitor", Message::of(actors::Question{wants, done}));
}

// As its gate passes on what `troupe burst` asks for.
void RunPage::burst(const telemetry::PoolWish& wish, Answer answer) {
  const std::scoped_lock lock(mutex_);
  if (node_ == nullptr) return answer(not_training());
  runtime::HeadRequest request;
  request.kind = runtime::HeadRequest::Kind::kBurst;
  request.name = wish.pool;
  request.change = wish.nodes;
  auto reply = std::make_shared<runtime::RequestReply>(std::move(answer));
  node_->send_control("coordinator", Message::of(runtime::RequestAsked{
                                         std::move(request), "on the page", std::move(reply)}));
}

void RunPage::write_answers() {
  ::pthread_setname_np(::pthread_self(), "answers");  // for people with a debugger
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), telemetry::PageServer::kNice);
  for (std::unique_lock lock(mutex_);;) {
    changed_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
    if (closed_) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task.answer(words_of(task.answers));
    lock.lock();
  }
}

}  // namespace troupe::launch
