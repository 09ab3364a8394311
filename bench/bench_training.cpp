// Training events per second of the zoo's models next to PyTorch doing the same iteration, with the
// schedule and optimisers of the shipped topology, as many events per optimiser step and as many
// threads. Both sides first compute one iteration from the same weights, noise, masks and flips and
// must find the same losses, and two of our runs the same state; then both train in turns, each in
// a process of its own.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/answering.h"
#include "bench/measure.h"
#include "bench/training_on_troupe.h"

namespace troupe::bench {
namespace {

constexpr std::uint32_t kCheckedEvents = 2;

struct Model {
  const char* name;
  double gflop_per_event;  // of the plain network, whatever a side saves; 0: not counted
  std::uint32_t events;    // per optimiser step
};

struct Extent {
  std::vector<Model> models;
  std::vector<int> threads;
  int rounds;
  bool choose;  // let PyTorch try its ways before it is timed
};

const Extent kFull{{{"gan3d_25", 19.3, 8},
                    {"gan3d_51", 80.8, 4},
                    {"gan3d_12", 0.0, 32},
                    {"gan3d_12_dense", 0.0, 64},
                    {"dcgan_mnist", 0.0, 64},
                    {"calo_unet_12", 0.0, 32},
                    {"calo_unet_25", 0.0, 16},
                    {"particle_12", 0.0, 32},
                    {"digits", 0.0, 64}},
                   {1, 2},
                   5,
                   true};
const Extent kSmall{{{"gan3d_25", 19.3, 2},
                     {"gan3d_12_dense", 0.0, 2},
                     {"dcgan_mnist", 0.0, 2},
                     {"calo_unet_12", 0.0, 2},
                     {"particle_12", 0.0, 2}},
                    {1},
                    1,
                    false};

// One of the two that train, with what it measured.
class Side {
 public:
  Side(std::string name, const std::vector<std::string>& words)
      : name_(std::move(name)), program_(std::make_unique<Answering>(words)) {
    const auto first = program_->answer();
    version_ = first.ok() ? *first : first.error().message;
    missing_ = version_.starts_with("missing") || program_->is_missing();
    if (!first.ok()) program_.reset();
  }

  bool ready() const { return program_ != nullptr; }
  // Not installed; otherwise a side that is not ready is a defect.
  bool missing() const { return missing_; }
  // What it is, or why it is not ready.
  const std::string& version() const { return version_; }

  // Says why on standard error when there is no good answer.
  std::optional<std::string> ask(const std::string& request) {
    auto answer = program_->ask(request);
    if (answer.ok()) return std::move(answer).value();
    fmt::print(stderr, "{}, asked to {}: {}\n", name_, request, answer.error().message);
    return std::nullopt;
  }

  bool time_iteration() {
    const auto answer = ask("time 1");
    if (!answer) return false;
    std::istringstream words(*answer);
    words >> wall_.emplace_back() >> processor_.emplace_back();
    return true;
  }

  Spread rate(double events) const { return rates_of(events, wall_); }
  double processor_seconds(double events) const { return 1 / rates_of(events, processor_).median; }
  long peak_mebibytes() {
    const auto answer = ask("peak");
    return answer ? std::stol(*answer) / 1024 : 0;
  }

 private:
  std::string name_;
  std::unique_ptr<Answering> program_;
  std::string version_;
  bool missing_ = false;
  std::vector<double> wall_, processor_;  // seconds of one iteration
};

std::map<std::string, double> parse_losses(const std::string& text) {
  std::map<std::string, double> losses;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    losses[word.substr(0, equals)] = std::stod(word.substr(equals + 1));
  }
  return losses;
}

// Relative. Names begin with the slot in the schedule, whose first two are the discriminator's. In
// the generator's steps both sides are further from each other than rounding: a pre-activation that
// rounds to the other side of a kink changes a gradient, and so the weights, by up to a per cent.
// With bf16 they round other numbers, and so do their weights after the first step.
double tolerance_of(const std::string& name, bool bf16) {
  if (name < "2") return bf16 ? 5e-2 : 2e-4;
  return bf16 ? 0.4 : 2e-2;
}

bool same_losses(const std::string& ours, const std::string& theirs, bool bf16) {
  const auto found = parse_losses(ours), judge = parse_losses(theirs);
  bool same = found.size() == judge.size() && !found.empty();
  for (const auto& [name, value] : found) {
    const auto other = judge.find(name);
    same &= other != judge.end() &&
            std::fabs(other->second - value) <= tolerance_of(name, bf16) * std::fabs(value);
  }
  if (!same) fmt::print(stderr, "different losses\n  ours:    {}\n  PyTorch: {}\n", ours, theirs);
  return same;
}

// Both sides in one precision.
class Pair {
 public:
  Pair(const Model& model, int threads, const char* precision)
      : model_(model),
        threads_(threads),
        precision_(precision),
        ours_("Troupe", arguments({std::filesystem::read_symlink("/proc/self/exe"), "--worker"})),
        peer_("PyTorch", arguments({TROUPE_PYTHON, TROUPE_TRAINING_PEER})) {}

  // False when a result was wrong. `hash` is that of earlier numbers of threads, empty at first.
  bool prepare(bool choose, std::string& hash) {
    return start() && check(hash) && (!peer_.ready() || !choose || this->choose());
  }

  bool time_iteration() {
    return ours_.time_iteration() && (!peer_.ready() || peer_.time_iteration());
  }

  Spread rate() const { return ours_.rate(model_.events); }

  void print() {
    const Spread ours = rate();
    const double our_work = ours_.processor_seconds(model_.events);
    fmt::print("{}, {} events, {} thread{}, {}: ours {:.2f} events/s [{:.2f}, {:.2f}]", model_.name,
               model_.events, threads_, threads_ == 1 ? "" : "s", precision_, ours.median,
               ours.lowest, ours.highest);
    if (!peer_.ready()) {
      fmt::print(", PyTorch {}\n", peer_.version());
      print_detail("ours", ours_, ours, our_work);
      return;
    }
    const Spread peer = peer_.rate(model_.events);
    const double peer_work = peer_.processor_seconds(model_.events);
    fmt::print(", PyTorch {:.2f} [{:.2f}, {:.2f}], ratio {:.2f}\n", peer.median, peer.lowest,
               peer.highest, ours.median / peer.median);
    print_detail("ours", ours_, ours, our_work);
    print_detail("PyTorch", peer_, peer, peer_work);
    fmt::print("  ratio of processor times {:.2f}\n", peer_work / our_work);
    if (!ways_.empty())
      fmt::print("  PyTorch's ways, layout x parts, the first taken: {}\n", ways_);
  }

 private:
  std::vector<std::string> arguments(std::vector<std::string> program) const {
    program.insert(program.end(), {model_.name, std::to_string(threads_),
                                   std::to_string(model_.events), precision_});
    return program;
  }

  bool start() const {
    if (!ours_.ready()) fmt::print(stderr, "Troupe: {}\n", ours_.version());
    if (!peer_.ready() && !peer_.missing()) fmt::print(stderr, "PyTorch: {}\n", peer_.version());
    return ours_.ready() && (peer_.ready() || peer_.missing());
  }

  bool check(std::string& hash) {
    const std::string request = fmt::format("check {}", kCheckedEvents);
    const auto losses = ours_.ask(request);
    const auto first = ours_.ask("hash"), second = ours_.ask("hash");
    if (!losses || !first || !second) return false;
    if (hash.empty()) hash = *first;
    if (*first != *second || *first != hash) {
      fmt::print(stderr, "two runs of {} ended in different states\n", model_.name);
      return false;
    }
    if (!peer_.ready()) return true;
    const auto judge = peer_.ask(request);
    return judge && same_losses(*losses, *judge, std::strcmp(precision_, "bf16") == 0);
  }

  // PyTorch goes on in a new process that knows only its fastest way, for the sake of peak memory.
  bool choose() {
    const auto answer = peer_.ask("choose");
    if (!answer) return false;
    ways_ = *answer;
    std::string layout, parts;
    std::istringstream(ways_) >> layout >> parts;
    auto again = arguments({TROUPE_PYTHON, TROUPE_TRAINING_PEER});
    again.insert(again.end(), {layout, parts});
    peer_ = Side("PyTorch", again);
    return peer_.ready() && peer_.ask("time 1");
  }

  void print_detail(const char* name, Side& side, const Spread& rate, double work) {
    fmt::print("  {:<7} ", name);
    if (model_.gflop_per_event > 0) {
      fmt::print("{:5.1f} GFLOP/s, ", rate.median * model_.gflop_per_event);
    }
    fmt::print("{:.6f} s of processor an event, peak memory {} MiB; {}\n", work,
               side.peak_mebibytes(), side.version());
    std::fflush(stdout);
  }

  const Model& model_;
  const int threads_;
  const char* const precision_;
  Side ours_, peer_;
  std::string ways_;
};

// Hashes by precision, of earlier numbers of threads.
using Hashes = std::map<std::string, std::string>;

// One model on one number of threads, in both precisions; false when a result was wrong.
bool compare(const Model& model, int threads, const Extent& extent, Hashes& hashes) {
  Pair fp32(model, threads, "fp32"), bf16(model, threads, "bf16");
  if (!fp32.prepare(extent.choose, hashes["fp32"])) return false;
  if (!bf16.prepare(extent.choose, hashes["bf16"])) return false;
  for (int i = 0; i < extent.rounds; ++i) {
    if (!fp32.time_iteration() || !bf16.time_iteration()) return false;
  }
  fp32.print();
  bf16.print();
  fmt::print("  ours, bf16 to fp32: {:.2f}\n", bf16.rate().median / fp32.rate().median);
  return true;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

void print_machine(const Extent& extent) {
  double load = 0.0;
  getloadavg(&load, 1);
  fmt::print("{}, {} cores; medians of {} iterations in turns [lowest, highest]\n",
             processor_name(), std::thread::hardware_concurrency(), extent.rounds);
  if (load > 0.5) {
    fmt::print(
        "The load average is {:.1f}: with other work on the machine only the ratio of "
        "processor times on 1 thread means much\n",
        load);
  }
}

// `events` for each optimiser step, or 0: the model's own number.
int run(Extent extent, const std::string& wanted, std::uint32_t events) {
  if (events > 0) extent.rounds = std::min(extent.rounds, 3);  // which takes long
  print_machine(extent);
  for (Model model : extent.models) {
    if (!wanted.empty() && wanted != model.name) continue;
    if (events > 0) model.events = events;
    fmt::print("{}, {} events per optimiser step\n", model.name, model.events);
    Hashes hashes;
    for (const int threads : extent.threads) {
      if (!compare(model, threads, extent, hashes)) return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

// bench_training [--small] [--threads N] [MODEL [EVENTS]]: by default on one thread and on two, and
// with a number of events for each optimiser step on two only. With --worker MODEL THREADS EVENTS
// PRECISION it is our side of a comparison.
int main(int argc, char** argv) {
  using namespace troupe::bench;
  const auto number = [](const char* text) {
    return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  };
  if (argc == 6 && std::strcmp(argv[1], "--worker") == 0) {
    using troupe::model::Precision;
    return answer_training_requests(
        argv[2], std::stoi(argv[3]), number(argv[4]),
        std::strcmp(argv[5], "bf16") == 0 ? Precision::kBf16 : Precision::kFp32);
  }
  bool small = false;
  std::string model;
  std::uint32_t events = 0;
  int threads = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      small = true;
    } else if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
      threads = std::max(std::atoi(argv[++i]), 1);
    } else if (model.empty()) {
      model = argv[i];
    } else if (events = number(argv[i]); events == 0) {
      fmt::print(stderr, "a number of events, not {}\n", argv[i]);
      return 2;
    }
  }
  Extent extent = small ? kSmall : kFull;
  if (events > 0) extent.threads = {2};
  if (threads > 0) extent.threads = {threads};
  return run(extent, model, events);
}
