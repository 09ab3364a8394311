#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "actors/message_fields.h"
#include "actors/reducer.h"
#include "bench/allreduce_case.h"
#include "config/plan_links.h"
#include "config/topology.h"
#include "runtime/base/buffer.h"
#include "runtime/base/clock.h"
#include "runtime/node/node.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/support/temporary_folder.h"

namespace troupe::bench {
namespace {

using actors::BucketMessage;
using actors::HeaderMessage;
using actors::Reducer;
using actors::ReducerOptions;
using actors::ViewMessage;
using runtime::Actor;
using runtime::Buffer;
using runtime::Context;
using runtime::Message;

const runtime::SteadyClock kClock;

struct Job {
  AllreduceLoad load;
  AllreduceFormat format;
  AllreduceMedium medium;
  std::string folder;  // of sockets

  bool exact() const { return format == AllreduceFormat::kExact; }
  std::uint32_t members() const { return static_cast<std::uint32_t>(load.processes); }
  std::int64_t segment_bytes() const {
    return load.segment_bytes > 0 ? load.segment_bytes : config::ReducerSection{}.segment_bytes;
  }
  pipeline::SumLayout layout() const {
    const auto elements = static_cast<std::int64_t>(load.elements());
    if (exact()) return {elements, {}};
    return {elements, {elements, pipeline::SumKind::kFloat32}};
  }
};

// The id of the only View.
constexpr pipeline::ViewId kView{1, 1};

// In the place of a replica: contributes the same buffer step after step, and puts what comes back
// together as a replica does.
class Driver final : public Actor {
 public:
  Driver(const Job& job, int rank, AllreduceRun& run)
      : job_(job),
        run_(run),
        buckets_(pipeline::make_buckets(job.layout(), job.segment_bytes(), job.members())),
        input_(Buffer::allocate(job.layout().bytes())),
        sums_(Buffer::allocate(job.layout().bytes())) {
    const auto fill_with = [&](auto values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] =
            static_cast<std::ranges::range_value_t<decltype(values)>>(contribution(rank, i));
      }
    };
    if (job.exact()) {
      fill_with(input_.mutable_as<std::int64_t>());
    } else {
      fill_with(input_.mutable_as<float>());
    }
  }

  void start(Context& context) override { out_ = context.out("contributions"); }

  void receive(Context& context, Message message) override {
    if (const auto* bucket = message.as<BucketMessage>()) {
      const Buffer& part = message.payloads().front();
      std::memcpy(sums_.mutable_data() + job_.layout().offset(bucket->begin), part.data(),
                  part.size());
    } else if (message.as<HeaderMessage>() != nullptr) {
      step_done(context);
    } else if (message.as<ViewMessage>() != nullptr) {
      contribute(context);
    }
  }

  void credit_returned(Context& context, std::string_view) override { flush(context); }

 private:
  void contribute(Context& context) {
    std::uint32_t number = 0;
    for (const pipeline::Bucket& bucket : buckets_) {
      const BucketMessage body{step_, 0, number++, bucket.offset, bucket.end(), bucket.kind, kView};
      outbox_.push_back(
          Message::of(BucketMessage(body),
                      {input_.slice(job_.layout().offset(bucket.offset), bucket.bytes())}));
    }
    pipeline::StepHeader header;
    header.step = step_;
    header.exponents = {0};
    header.micro_batches = header.events = 1;
    outbox_.push_back(Message::of(HeaderMessage{std::move(header), kView}));
    flush(context);
  }

  void flush(Context& context) {
    while (!outbox_.empty() && context.send(out_, outbox_.front())) outbox_.pop_front();
  }

  void step_done(Context& context) {
    if (step_ == 0) run_.complaint = fault();
    if (++step_ == kWarmingSteps) watch_.start();
    if (step_ == std::uint64_t{kWarmingSteps} + static_cast<std::uint64_t>(job_.load.steps)) {
      const std::string fault = run_.complaint;
      run_ = watch_.stop(job_.load);
      run_.complaint = fault;
      context.finish();
    } else {
      contribute(context);
    }
  }

  std::string fault() const {
    if (!job_.exact()) return fault_of(job_.load, sums_.as<float>());
    const auto integers = sums_.as<std::int64_t>();
    const std::vector<float> sums(integers.begin(), integers.end());
    return fault_of(job_.load, sums);
  }

  const Job job_;
  AllreduceRun& run_;
  const std::vector<pipeline::Bucket> buckets_;
  Buffer input_, sums_;
  runtime::PortId out_;
  std::deque<Message> outbox_;
  std::uint64_t step_ = 0;
  AllreduceWatch watch_;
};

// Tells the reducer beside it of the View, as a coordinator would, and ends when its driver has.
class Root final : public Actor {
 public:
  Root(const Job& job, int rank) : members_(job.members()), rank_(rank) {}

  void start(Context& context) override {
    pipeline::View view;
    view.id = kView;
    for (std::uint32_t i = 0; i < members_; ++i) {
      view.ring.push_back(i);
      view.owners.push_back(i);
    }
    view.reached.assign(members_, 0);
    context.send_control(
        fmt::format("reducer.{}", rank_),
        Message::of(ViewMessage{std::make_shared<const pipeline::View>(std::move(view))}));
  }
  void receive(Context& context, Message message) override {
    if (const auto* lost = message.as<runtime::PeerLost>()) context.fail(lost->error);
  }
  runtime::ChildDecision child_ended(Context& context, const runtime::ChildEnd& end) override {
    if (end.error) return runtime::ChildDecision::kEscalate;
    context.finish();
    return runtime::ChildDecision::kIgnore;
  }

 private:
  const std::uint32_t members_;
  const int rank_;
};

std::string name(const char* kind, int rank) { return fmt::format("{}.{}", kind, rank); }

// As of a cluster, without what does not reduce.
runtime::Plan make_plan(const Job& job) {
  runtime::Plan plan;
  config::Topology topology;
  topology.reducer.segment_bytes = job.segment_bytes();
  // The room of 64-bit integers, whatever the elements are.
  const config::NetworkSizes sizes{0, static_cast<std::int64_t>(job.load.elements()), 0};
  std::vector<std::string> reducers;
  const auto buckets = static_cast<std::int64_t>(
      pipeline::make_buckets(job.layout(), job.segment_bytes(), job.members()).size());
  const std::int64_t messages = 2 * (buckets + 1);
  const std::int64_t bytes = 2 * static_cast<std::int64_t>(job.layout().bytes()) +
                             (messages + 1) * Message::kOverheadBytes;
  for (int rank = 0; rank < job.load.processes; ++rank) {
    const std::string node = name("member", rank), root = name("root", rank);
    const std::string driver = name("driver", rank), reducer = name("reducer", rank);
    plan.actors.push_back({root, "root", "", false, node});
    plan.actors.push_back({driver, "driver", root, true, node});
    plan.actors.push_back({reducer, "reducer", root, false, node});
    plan.links.push_back({driver, "contributions", reducer, "contributions", runtime::Lane::kData,
                          messages, bytes, 0});
    plan.links.push_back({reducer, fmt::format("reduced.{}", rank), driver, "reduced",
                          runtime::Lane::kData, messages, bytes, 1});
    reducers.push_back(reducer);
  }
  config::add_ring_links({topology, sizes, job.members()}, reducers, plan);
  return plan;
}

ReducerOptions reducer_options(const Job& job, int rank) {
  ReducerOptions options;
  options.first_replica = static_cast<std::uint32_t>(rank);
  options.micro_batches = job.members();
  options.events = job.members();
  options.member = static_cast<std::uint32_t>(rank);
  if (!job.exact()) {
    options.lossy = pipeline::ReductionFormat::kFp32;
    options.slot_floats = {job.load.elements()};
  }
  return options;
}

// How the ranks find the first one: it writes its address once for every other.
struct Addresses {
  struct Line {
    char text[256] = "";
  };
  Addresses() { CHECK(::pipe(ends) == 0, "no descriptors are left"); }
  ~Addresses() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void tell(const std::string& address, int times) const {
    Line line;
    CHECK(address.size() < sizeof(line.text), "a long address");
    std::memcpy(line.text, address.data(), address.size());
    for (int i = 0; i < times; ++i) {
      CHECK(::write(ends[1], &line, sizeof(line)) == sizeof(line), "the others are gone");
    }
  }
  std::string hear() const {
    Line line;
    CHECK(::read(ends[0], &line, sizeof(line)) == sizeof(line), "the first one is gone");
    return line.text;
  }
  int ends[2];
};

AllreduceRun be_rank(const Job& job, const Addresses& addresses, int rank) {
  static const runtime::WireTypes kTypes = [] {
    runtime::WireTypes types;
    actors::add_wire_messages(types);
    return types;
  }();
  runtime::keep_freed_memory();  // as a member does
  runtime::ZmqWireOptions options;
  options.clock = &kClock;
  options.shared_memory = job.medium == AllreduceMedium::kSharedMemory;
  if (job.medium == AllreduceMedium::kUcxShm || job.medium == AllreduceMedium::kUcxTcp) {
    ::setenv("UCX_TLS", job.medium == AllreduceMedium::kUcxShm ? "shm" : "tcp", 1);
    options.ucx = std::make_shared<runtime::UcxFabric>(kClock);
    const auto opened = options.ucx->open({});
    if (!opened.ok()) return {0, 0, opened.error().message};
  }
  options.listen =
      options.shared_memory ? fmt::format("ipc://{}/{}", job.folder, rank) : "tcp://127.0.0.1:0";
  auto wire = std::move(runtime::ZmqWire::open(options)).value();
  runtime::GateOptions gate;
  gate.node = name("member", rank);
  gate.incarnation = static_cast<std::uint64_t>(::getpid());
  // The machine may be busy with something else, and nobody is to be taken for dead over it.
  gate.dead_after = std::chrono::seconds(30);
  if (rank == 0) {
    addresses.tell(wire->address(), job.load.processes - 1);
  } else {
    gate.head_address = addresses.hear();
  }
  runtime::NodeOptions node_options;
  node_options.scheduler_threads = 1;  // as a member has, too
  runtime::Log log = runtime::Log::silent();
  AllreduceRun run;
  const auto make = [&](const runtime::ActorPlan& actor) -> std::unique_ptr<Actor> {
    if (actor.kind == "root") return std::make_unique<Root>(job, rank);
    if (actor.kind == "driver") return std::make_unique<Driver>(job, rank, run);
    return std::make_unique<Reducer>(reducer_options(job, rank));
  };
  runtime::Node node(make_plan(job), make, node_options, kClock, log,
                     runtime::Uplink{std::move(gate), *wire, kTypes});
  const runtime::NodeEnd end = node.run();
  if (end.error && run.complaint.empty()) run.complaint = end.error->message;
  return run;
}

}  // namespace

AllreduceRun allreduce_on_troupe(const AllreduceLoad& load, AllreduceFormat format,
                                 AllreduceMedium medium) {
  const TemporaryFolder folder;
  const Job job{load, format, medium, folder.path()};
  const Addresses addresses;
  return run_forked(load.processes, [&](int rank) { return be_rank(job, addresses, rank); });
}

}  // namespace troupe::bench
