#include "bench/slow_consumer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/clock.h"
#include "runtime/node/node.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe::bench {

// Found beside the body by the wire's types.
struct Numbered {
  static constexpr std::string_view kName = "numbered";
  std::int64_t number = 0;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<Numbered> auto& body) {
  archive.integer("number", body.number);
}

namespace {

using runtime::Actor;
using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;
using runtime::Result;
using std::chrono::microseconds;

constexpr std::size_t kPayloadBytes = std::size_t{64} << 10;
constexpr std::int64_t kCredits = 32;
constexpr auto kProducing = microseconds(100);
constexpr auto kConsuming = 100 * kProducing;
constexpr auto kSampleEvery = std::chrono::milliseconds(50);

runtime::Buffer payload_of(std::int64_t number) {
  runtime::Buffer bytes = runtime::Buffer::allocate(kPayloadBytes);
  std::memset(bytes.mutable_as<std::byte>().data(), static_cast<int>(number % 251), kPayloadBytes);
  return bytes;
}

bool is_payload_of(const Message& message, std::int64_t number) {
  if (message.payloads().size() != 1) return false;
  const auto bytes = message.payloads().front().bytes();
  const auto expected = static_cast<std::byte>(number % 251);
  return bytes.size() == kPayloadBytes &&
         std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == expected; });
}

// Ends when the consumer has left, which it does when it has had all.
class Producer final : public Actor {
 public:
  explicit Producer(std::int64_t count) : count_(count) {}
  void start(Context& context) override { send_all(context); }
  void credit_returned(Context& context, std::string_view) override { send_all(context); }
  void receive(Context& context, Message message) override {
    if (message.as<runtime::PeerLeft>() != nullptr) {
      if (next_ == count_) return context.finish();
      context.fail({ErrorKind::kInternal, "the consumer left before the end"});
    } else if (const auto* lost = message.as<runtime::PeerLost>()) {
      context.fail(lost->error);
    }
  }

 private:
  void send_all(Context& context) {
    while (next_ < count_ && context.send("out", Message::of(Numbered{next_}, {payload()}))) {
      ++next_;
      made_ = {};
      context.post_progress();
    }
  }
  // Made once, however often it is offered.
  runtime::Buffer payload() {
    if (made_.size() == 0) {
      std::this_thread::sleep_for(kProducing);
      made_ = payload_of(next_);
    }
    return made_;
  }

  const std::int64_t count_;
  std::int64_t next_ = 0;
  runtime::Buffer made_;
};

class Consumer final : public Actor {
 public:
  explicit Consumer(std::int64_t count) : count_(count) {}
  void receive(Context& context, Message message) override {
    if (const auto* lost = message.as<runtime::PeerLost>()) return context.fail(lost->error);
    const auto* numbered = message.as<Numbered>();
    if (numbered == nullptr) return;
    if (numbered->number != next_ || !is_payload_of(message, next_)) {
      return context.fail({ErrorKind::kInternal,
                           fmt::format("message {} came instead of {}", numbered->number, next_)});
    }
    std::this_thread::sleep_for(kConsuming);
    if (++next_ == count_) context.finish();
  }

 private:
  const std::int64_t count_;
  std::int64_t next_ = 0;
};

runtime::Plan plan() {
  runtime::Plan plan;
  plan.actors.push_back({"producer", "producer", "", true, "here"});
  plan.actors.push_back({"consumer", "consumer", "", true, "there"});
  runtime::LinkPlan link;
  link.from = "producer";
  link.from_port = "out";
  link.to = "consumer";
  link.to_port = "in";
  link.message_credits = kCredits;
  plan.links.push_back(link);
  return plan;
}

// The exit code of one of the two processes. `address_pipe` carries the listener's address.
int run_node(bool listens, std::int64_t count, int address_pipe) {
  const runtime::SteadyClock clock;
  auto log = runtime::Log::open({});
  if (!log.ok()) return 1;
  runtime::ZmqWireOptions wire_options;
  wire_options.clock = &clock;
  wire_options.log = *log;
  wire_options.shared_memory = false;  // two hosts have none
  if (listens) wire_options.listen = "127.0.0.1:0";
  auto wire = runtime::ZmqWire::open(wire_options);
  if (!wire.ok()) return 1;

  runtime::GateOptions gate;
  gate.node = listens ? "here" : "there";
  gate.incarnation = static_cast<std::uint64_t>(::getpid());
  if (listens) {
    const std::string address = (*wire)->address() + "\n";
    if (::write(address_pipe, address.data(), address.size()) < 0) return 1;
  } else {
    std::string address;
    for (char byte = 0; ::read(address_pipe, &byte, 1) == 1 && byte != '\n';) address += byte;
    gate.first_address = address;
  }
  runtime::WireTypes types;
  types.add<Numbered>();
  const auto make = [&](const runtime::ActorPlan& actor) -> std::unique_ptr<Actor> {
    if (actor.kind == "producer") return std::make_unique<Producer>(count);
    return std::make_unique<Consumer>(count);
  };
  runtime::Node node(plan(), make, {}, clock, *log,
                     runtime::Uplink{std::move(gate), **wire, types});
  const runtime::NodeEnd end = node.run();
  if (end.error) log->error(end.error->message);
  return end.error ? 1 : 0;
}

pid_t start(bool listens, std::int64_t count, const int* ends) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::close(ends[listens ? 0 : 1]);
  ::_exit(run_node(listens, count, ends[listens ? 1 : 0]));
}

double resident_mb(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

// Of one process, sampled until it ends.
struct Memory {
  pid_t process;
  double first_mb = 0, most_mb = 0;
  bool ended = false;
  int status = 0;

  void look(bool settled) {
    if (!ended && ::waitpid(process, &status, WNOHANG) == process) ended = true;
    const double now_mb = ended ? 0 : resident_mb(process);
    if (!settled || now_mb <= 0) return;
    if (first_mb <= 0) first_mb = now_mb;
    most_mb = std::max(most_mb, now_mb);
  }
  bool well() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

}  // namespace

Result<SlowConsumerRun> run_slow_consumer(double seconds) {
  const std::chrono::duration<double> each = kConsuming;
  SlowConsumerRun run;
  run.messages = std::max<std::int64_t>(100, static_cast<std::int64_t>(seconds / each.count()));
  int ends[2];
  if (::pipe(ends) != 0) return Error{ErrorKind::kInternal, "no pipe"};
  Memory producer{start(true, run.messages, ends)};
  Memory consumer{start(false, run.messages, ends)};
  ::close(ends[0]);
  ::close(ends[1]);
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> settling(std::min(1.0, seconds / 4));
  while (!producer.ended || !consumer.ended) {
    const auto passed = std::chrono::steady_clock::now() - begin;
    producer.look(passed > settling);
    consumer.look(passed > settling);
    // One that failed alone would be waited for in vain.
    for (Memory* one : {&producer, &consumer}) {
      Memory* other = one == &producer ? &consumer : &producer;
      if (one->ended && !one->well() && !other->ended) ::kill(other->process, SIGTERM);
    }
    std::this_thread::sleep_for(kSampleEvery);
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!producer.well() || !consumer.well()) {
    return Error{ErrorKind::kInternal, "messages were lost, or a process failed"};
  }
  run.producer_mb = producer.most_mb;
  run.producer_growth_mb = producer.most_mb - producer.first_mb;
  run.consumer_mb = consumer.most_mb;
  run.consumer_growth_mb = consumer.most_mb - consumer.first_mb;
  return run;
}

}  // namespace troupe::bench
