#include "bench/watched_run.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <zmq.hpp>

#include "actors/sample_teller.h"
#include "actors/spawn.h"
#include "bench/measure.h"
#include "bench/thread_share.h"
#include "config/topology_file.h"
#include "launch/run/node_run.h"
#include "launch/run/training_setup.h"
#include "telemetry/page/page_server.h"
#include "tests/support/temporary_folder.h"

namespace troupe::bench {
namespace {

using std::chrono::milliseconds;

double unix_seconds() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return now.count();
}

// Seldom enough that waking up to tell numbers is not what is measured.
constexpr milliseconds kPause(20);

// Tells so many numbers a second, whatever else happens.
class Flood final : public runtime::Actor {
 public:
  Flood(int per_second, std::atomic<std::uint64_t>& told) : per_second_(per_second), told_(told) {}
  void start(runtime::Context& context) override {
    teller_.start(context);
    next_ = context.now();
    context.after(kPause);
  }
  void receive(runtime::Context&, runtime::Message) override {}
  void timer(runtime::Context& context, runtime::TimerId) override {
    const auto pause = std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second_;
    for (; next_ <= context.now(); next_ += pause) {
      teller_.add(context, "number", static_cast<double>(told_++ % 100));
    }
    teller_.tell(context);
    context.after(kPause);
  }

 private:
  const int per_second_;
  std::atomic<std::uint64_t>& told_;
  actors::SampleTeller teller_;
  runtime::TimePoint next_{0};
};

// Watchers are on another machine, as a rule. Here they get the time that nobody else wants.
void be_far_away() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19); }

int connect_to(std::uint16_t port, int receive_bytes) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_bytes > 0) {
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket, where, sizeof(address)) == 0) return socket;
  ::close(socket);
  return -1;
}

// Follows the page, and takes the time of every line's way: "newest" of an event's progress is the
// time of the newest line in it.
class Client {
 public:
  explicit Client(std::uint16_t port) : thread_([this, port] { follow(port); }) {}
  ~Client() {
    ends_ = true;
    thread_.join();
  }
  // Waits until the page has told something, so that a short run does not end before.
  void wait_for_page() const {
    const auto until = runtime::steady_now() + std::chrono::seconds(30);
    while (runtime::steady_now() < until) {
      {
        const std::scoped_lock lock(mutex_);
        if (updates_ > 0) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(false, "the page tells nothing");
  }
  // When no more comes.
  void add_to(WatchedRunEnd& end) const {
    const std::scoped_lock lock(mutex_);
    end.updates += updates_;
    end.latencies.insert(end.latencies.end(), latencies_.begin(), latencies_.end());
  }

 private:
  void follow(std::uint16_t port) {
    be_far_away();
    const int socket = connect_to(port, 0);
    CHECK(socket >= 0, "no page to follow");
    const timeval patience{0, 100'000};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const std::string request =
        fmt::format("GET /api/runs/0/stream HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", port);
    CHECK(::send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0, "nobody listens");
    std::string heard(1 << 16, '\0'), line;
    while (!ends_) {
      const ssize_t got = ::recv(socket, heard.data(), heard.size(), 0);
      if (got == 0) break;
      for (ssize_t i = 0; i < got; ++i) {
        if (heard[static_cast<std::size_t>(i)] != '\n') {
          line.push_back(heard[static_cast<std::size_t>(i)]);
          continue;
        }
        take(line);
        line.clear();
      }
    }
    ::close(socket);
  }
  void take(std::string_view line) {
    if (!line.starts_with("data:")) return;
    constexpr std::string_view kKey = "\"newest\":";
    const std::size_t at = line.find(kKey);
    const std::scoped_lock lock(mutex_);
    ++updates_;
    double newest = 0.0;
    if (at == std::string_view::npos) return;
    std::from_chars(line.data() + at + kKey.size(), line.data() + line.size(), newest);
    if (newest <= newest_) return;
    // The first tells of all that was before this client came.
    if (newest_ > 0.0) latencies_.push_back(unix_seconds() - newest);
    newest_ = newest;
  }

  std::atomic<bool> ends_{false};
  mutable std::mutex mutex_;
  std::uint64_t updates_ = 0;
  std::vector<double> latencies_;
  double newest_ = 0.0;
  std::thread thread_;
};

class Subscriber {
 public:
  explicit Subscriber(const std::string& address) : thread_([this, address] { follow(address); }) {}
  std::uint64_t end() {
    ends_ = true;
    thread_.join();
    return heard_;
  }

 private:
  void follow(const std::string& address) {
    be_far_away();
    zmq::context_t context(1);
    zmq::socket_t socket(context, zmq::socket_type::sub);
    socket.set(zmq::sockopt::subscribe, "");
    socket.set(zmq::sockopt::rcvtimeo, 100);
    socket.set(zmq::sockopt::linger, 0);
    socket.connect(address);
    while (!ends_) {
      zmq::message_t frame;
      if (socket.recv(frame) && !frame.more()) ++heard_;
    }
  }

  std::atomic<bool> ends_{false};
  std::uint64_t heard_ = 0;
  std::thread thread_;
};

// Two hundred that follow and never read, and ten thousand that talk nonsense.
class Crowd {
 public:
  explicit Crowd(std::uint16_t port) {
    const std::string request =
        fmt::format("GET /api/runs/0/stream HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", port);
    for (int i = 0; i < 200; ++i) {
      const int socket = connect_to(port, 4096);
      CHECK(socket >= 0, "the page takes nobody more");
      CHECK(::send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0, "nobody listens");
      deaf_.push_back(socket);
    }
    thread_ = std::thread([this, port] { talk_nonsense(port); });
  }
  // How many have talked.
  std::uint64_t end() {
    ends_ = true;
    thread_.join();
    for (const int socket : deaf_) ::close(socket);
    return talked_;
  }

 private:
  void talk_nonsense(std::uint16_t port) {
    be_far_away();
    std::mt19937_64 random(7);
    for (int i = 0; i < 10'000 && !ends_; ++i) {
      std::string bytes(random() % 2000, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      const int socket = connect_to(port, 0);
      if (socket < 0) continue;
      ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::close(socket);
      ++talked_;
    }
  }

  std::vector<int> deaf_;
  std::atomic<bool> ends_{false};
  std::uint64_t talked_ = 0;
  std::thread thread_;
};

std::uint64_t bytes_of_event_files(const TemporaryFolder& folder) {
  std::uint64_t bytes = 0;
  for (const std::string& name : folder.names()) {
    if (name.starts_with("events.out.tfevents")) bytes += std::filesystem::file_size(folder / name);
  }
  return bytes;
}

config::Topology topology_of(const WatchedRunRequest& request) {
  const std::string text = fmt::format(
      "name: watched\nmodel: {{zoo: {}}}\n"
      "data: {{train: synthetic, schema: lcd-fixed, synthetic: {{events: 512, seed: 1}}, "
      "preprocessing: {{power: 0.35}}}}\n"
      "train: {{micro_batch: 16, micro_batches: 2, iterations: {}, epochs: 1000}}\n"
      "actors: {{replica: {{count: 2}}, checkpointer: {{every: none}}, validator: {{every: "
      "none}}}}\n",
      request.model, request.iterations);
  auto loaded = config::parse_topology(text, "watched", ".", {});
  CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().message);
  return std::move(loaded->topology);
}

// Everything that watches, from before the run to after it.
struct Watchers {
  std::shared_ptr<telemetry::History> history;
  std::unique_ptr<telemetry::PageServer> server;
  std::vector<std::unique_ptr<Client>> clients;
  std::unique_ptr<Subscriber> subscriber;
  std::unique_ptr<Crowd> crowd;
};

Watchers watch(const WatchedRunRequest& request, const TemporaryFolder& folder,
               actors::MonitorOptions& monitor) {
  Watchers watchers;
  watchers.history = std::make_shared<telemetry::History>();
  monitor.sinks.history = watchers.history;
  monitor.sinks.tensorboard_folder = folder.path();
  monitor.sinks.publish = "ipc://" + folder / "stream";
  telemetry::PageServerOptions options;
  options.listen = "127.0.0.1:0";
  telemetry::RunSource source;
  source.name = "watched";
  source.live = [] { return true; };
  source.history = watchers.history;
  auto server = telemetry::PageServer::open(options, {source});
  CHECK(server.ok(), server.ok() ? "" : server.error().message);
  watchers.server = std::move(server).value();
  for (int i = 0; i < request.clients; ++i) {
    watchers.clients.push_back(std::make_unique<Client>(watchers.server->port()));
  }
  if (request.beset) {
    monitor.sinks.metrics_path = "/dev/full";
    watchers.crowd = std::make_unique<Crowd>(watchers.server->port());
  }
  watchers.subscriber = std::make_unique<Subscriber>(monitor.sinks.publish);
  return watchers;
}

std::vector<std::string> telling_threads(bool watched) {
  if (!watched) return {"monitor"};
  return {"monitor", "page", "flood", "ZMQbg/IO"};
}

}  // namespace

WatchedRunEnd run_watched(const WatchedRunRequest& request) {
  const TemporaryFolder folder;
  const config::Topology topology = topology_of(request);
  runtime::Log log = runtime::Log::silent();
  auto made = launch::set_up_training({topology, {}}, launch::size_of_run(topology, 0),
                                      folder / "data", false, log);
  CHECK(made.ok(), made.ok() ? "" : made.error().message);
  launch::TrainingSetup& setup = *made;
  runtime::FileDisk disk;
  actors::NodeParts parts = launch::computing_parts(setup, disk, 0);
  const auto state = std::make_shared<const pipeline::TrainingState>(pipeline::initial_state(
      *setup.gan, setup.options, setup.backend->numerics_class(), setup.identity.fingerprint));
  parts.coordinator = launch::coordinator_options(setup, state);
  parts.checkpointer.folder = folder / "checkpoints";
  CHECK(disk.make_folder(parts.checkpointer.folder).ok());
  parts.monitor.sinks.metrics_path = folder / "metrics.jsonl";
  parts.monitor.losses = topology.model.gan.losses;
  parts.monitor.schedule = setup.options.schedule;
  parts.monitor.progress.iterations = setup.iterations;
  parts.monitor.facts.iterations = setup.iterations;
  parts.monitor.node = {"local", "", "all", 1, "running", ""};
  for (const model::SlotKind slot : setup.options.schedule) {
    parts.monitor.facts.schedule.push_back(model::slot_name(slot));
  }

  std::atomic<std::uint64_t> told{0};
  runtime::Plan plan = setup.plan;
  Watchers watchers;
  if (request.watched) {
    watchers = watch(request, folder, parts.monitor);
    plan.actors.push_back({"flood", "flood", "coordinator", true});
    plan.links.push_back({"flood", "samples", "monitor", "metrics", runtime::Lane::kMetrics, 64,
                          std::int64_t{1} << 18, 0});
  }
  const auto make = actors::make_actor_factory(parts);
  const auto factory = [&](const runtime::ActorPlan& actor) -> std::unique_ptr<runtime::Actor> {
    if (actor.kind == "flood") return std::make_unique<Flood>(request.samples_per_second, told);
    return make(actor);
  };
  const runtime::SteadyClock clock;
  std::optional<runtime::Node> node;
  if (request.watched) {
    parts.monitor.sample = [&] { return launch::sample_node("local", *node); };
  }
  node.emplace(plan, factory, runtime::NodeOptions{}, clock, log);
  for (const auto& client : watchers.clients) client->wait_for_page();
  const double cores = core_seconds();
  ThreadShare telling(telling_threads(request.watched));
  const runtime::NodeEnd node_end = node->run();
  WatchedRunEnd end;
  end.telling = telling.end();
  end.core_seconds = core_seconds() - cores;
  CHECK(!node_end.error, node_end.error ? node_end.error->message : "");
  CHECK(parts.outcome->state != nullptr, "a run without an end");
  end.state_hash = pipeline::hash_of_state(*parts.outcome->state);
  end.events_per_second = static_cast<double>(parts.outcome->timed_events) / parts.outcome->seconds;
  for (const runtime::LinkStats& link : node->link_stats()) {
    end.dropped += static_cast<std::uint64_t>(link.dropped);
  }
  end.resident_bytes = launch::sample_node("local", *node).resident_bytes;
  if (!request.watched) return end;
  if (watchers.crowd) end.garbage = watchers.crowd->end();
  end.samples = told;
  end.published = watchers.subscriber->end();
  watchers.server.reset();
  for (const auto& client : watchers.clients) client->add_to(end);
  end.event_file_bytes = bytes_of_event_files(folder);
  return end;
}

}  // namespace troupe::bench
