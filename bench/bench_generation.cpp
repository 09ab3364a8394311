// Showers per second that one core makes with the generators of gan3d_25 and gan3d_51, next to ONNX
// Runtime with the exported model and PyTorch, with the same weights. All first make the same
// showers from the same latents; then they take turns, each in the fastest of its ways. Time is
// processor time, so that other work on the machine counts little. Ours includes drawing the noise.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/answering.h"
#include "bench/measure.h"
#include "model/latent.h"
#include "model/streams.h"
#include "pipeline/data/generation.h"
#include "pipeline/leaving/onnx_model.h"
#include "runtime/base/buffer.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/alone.h"

namespace troupe::bench {
namespace {

// One of our ways to compute; a row of the table for each.
struct Way {
  const char* name;
  std::unique_ptr<model::Backend> (*backend)();
  double tolerance;  // of a cell, in units of the hottest cell of its shower
};

std::unique_ptr<model::Backend> portable() {
  auto made = model::make_portable_backend();
  CHECK(made.ok(), made.error().message);
  return std::move(made).value();
}

constexpr double kRounding = 2e-5;
constexpr Way kWays[] = {{"portable", portable, kRounding},
                         {"fastest", model::make_cpu_backend, kRounding}};

struct Asked {
  const char* model;
  std::size_t events;  // each time
};

struct Extent {
  std::vector<Asked> all;
  int rounds;
  bool peers;
};

const Extent kFull{{{"gan3d_25", 128}, {"gan3d_51", 32}}, 5, true};
const Extent kSmall{{{"gan3d_25", 32}}, 1, false};

// A generator with weights as training begins with, and biases and moving statistics that change
// what is made; the showers that are asked of everybody.
class Task {
 public:
  Task(const char* name, std::size_t events)
      : topology_(training_test::zoo_topology(name)),
        state_(training_test::Alone(topology_, portable()).initial_state()) {
    const auto layout = layout_of(gan().generator);
    for (const model::ParameterTensor& tensor : layout.weights) {
      if (tensor.role != model::ParameterRole::kBias) continue;
      std::fill_n(state_.generator.weights.begin() + tensor.offset, tensor.size, 0.01f);
    }
    for (const model::ParameterTensor& tensor : layout.moving) {
      const bool mean = tensor.role == model::ParameterRole::kMovingMean;
      std::fill_n(state_.generator.moving.begin() + tensor.offset, tensor.size,
                  mean ? 0.02f : 1.3f);
    }
    for (std::size_t i = 0; i < events; ++i) {
      energies_.push_back(0.1f + 4.9f * static_cast<float>(i) / static_cast<float>(events));
      if (model::uses_angle(gan().latent)) angles_.push_back(1.1f + 0.005f * static_cast<float>(i));
    }
  }

  const model::GanDescription& gan() const { return topology_.model.gan; }
  const pipeline::NetworkState& generator() const { return state_.generator; }
  std::size_t events() const { return energies_.size(); }
  pipeline::GenerationRequest request() const {
    pipeline::GenerationRequest request;
    request.energies = energies_;
    request.angles = angles_;
    return request;
  }

  // As the peers read it: generator.onnx, and float32 in weights.f32, moving.f32 and latents.f32.
  runtime::Result<void> write(const TemporaryFolder& folder) const {
    const pipeline::TrainedModel trained{gan(), state_, {}};
    ASSIGN_OR_RETURN(const std::string onnx,
                     pipeline::onnx_model(trained, pipeline::OnnxFlavour::k3dgan, "bench"));
    write_text(folder / "generator.onnx", onnx);
    write_floats(folder / "weights.f32", generator().weights);
    write_floats(folder / "moving.f32", generator().moving);
    std::vector<float> latents;
    const auto size = static_cast<std::size_t>(gan().latent.size);
    for (std::size_t i = 0; i < events(); ++i) {
      latents.resize(latents.size() + size);
      const float* const values[] = {&energies_[i], angles_.empty() ? nullptr : &angles_[i]};
      model::make_latent(gan().latent, std::span(values).first(angles_.empty() ? 1 : 2), 1,
                         pipeline::event_position(request().seed, i, model::kValidationStream),
                         latents.data() + i * size);
    }
    write_floats(folder / "latents.f32", latents);
    return {};
  }

 private:
  static model::ParameterLayout layout_of(const model::NetworkDescription& network) {
    return model::layout_parameters(network, model::infer_shapes(network));
  }
  static void write_floats(const std::string& path, const std::vector<float>& values) {
    write_text(path, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  config::Topology topology_;
  pipeline::TrainingState state_;
  std::vector<float> energies_, angles_;
};

// The largest difference of a cell, in units of the hottest cell of its shower.
double worst(const std::vector<float>& found, const std::vector<float>& wanted,
             std::size_t events) {
  if (found.size() != wanted.size()) return INFINITY;
  const std::size_t cells = wanted.size() / events;
  double most = 0;
  for (std::size_t event = 0; event < events; ++event) {
    const auto first = wanted.begin() + static_cast<std::ptrdiff_t>(event * cells);
    const double hottest = *std::max_element(first, first + static_cast<std::ptrdiff_t>(cells));
    if (!(hottest > 0)) return INFINITY;  // empty showers compare nothing
    for (std::size_t i = event * cells; i < (event + 1) * cells; ++i) {
      const double difference = std::fabs(static_cast<double>(found[i]) - wanted[i]);
      most = difference <= most * hottest ? most : difference / hottest;
    }
  }
  return most;
}

class Ours {
 public:
  Ours(const Task& task, const Way& way)
      : task_(task),
        backend_(way.backend()),
        team_(1, [this] { backend_->prepare_thread(); }),
        maker_(maker()) {
    backend_->prepare_thread();
    images_.resize(task.events() * static_cast<std::size_t>(maker_->cells()));
  }

  const std::vector<float>& make() {
    maker_->make(task_.generator().weights, task_.generator().moving, task_.request(), images_);
    return images_;
  }
  void time() {
    const double start = core_seconds();
    make();
    seconds_.push_back(core_seconds() - start);
  }
  Spread rate() const { return rates_of(static_cast<double>(task_.events()), seconds_); }

 private:
  std::unique_ptr<pipeline::ShowerMaker> maker() {
    auto made = pipeline::ShowerMaker::create(task_.gan(), *backend_, team_);
    CHECK(made.ok(), made.error().message);
    return std::move(made).value();
  }

  const Task& task_;
  std::unique_ptr<model::Backend> backend_;
  runtime::ThreadTeam team_;
  std::unique_ptr<pipeline::ShowerMaker> maker_;
  std::vector<float> images_;
  std::vector<double> seconds_;
};

// A program that reads what Task::write() has left. It answers "make" by writing showers.f32,
// "choose" by its ways to compute, the one first that it takes from now on, and "time" by the
// seconds of processor that all latents took.
class Peer {
 public:
  Peer(std::string name, const std::vector<std::string>& words)
      : name_(std::move(name)), program_(words) {
    const auto first = program_.answer();
    version_ = first.ok() ? *first : first.error().message;
    ready_ = first.ok();
    missing_ = !ready_ && (version_.starts_with("missing") || program_.is_missing());
  }

  bool ready() const { return ready_; }
  // Not installed; otherwise a peer that is not ready is a defect.
  bool missing() const { return missing_; }
  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  const std::string& ways() const { return ways_; }

  bool choose() {
    const auto answer = ask("choose");
    if (answer) ways_ = *answer;
    return answer.has_value();
  }
  bool make() { return ask("make").has_value(); }
  bool time() {
    const auto answer = ask("time");
    if (answer) seconds_.push_back(std::stod(*answer));
    return answer.has_value();
  }
  Spread rate(std::size_t events) const { return rates_of(static_cast<double>(events), seconds_); }

 private:
  std::optional<std::string> ask(const std::string& request) {
    auto answer = program_.ask(request);
    if (answer.ok()) return std::move(answer).value();
    fmt::print(stderr, "{}, asked to {}: {}\n", name_, request, answer.error().message);
    return std::nullopt;
  }

  std::string name_;
  Answering program_;
  std::string version_, ways_;
  bool ready_ = false, missing_ = false;
  std::vector<double> seconds_;
};

class Comparison {
 public:
  Comparison(const Asked& asked, bool with_peers)
      : model_(asked.model), with_peers_(with_peers), task_(asked.model, asked.events) {
    for (const Way& way : kWays) ours_.push_back(std::make_unique<Ours>(task_, way));
  }

  // False when showers differ.
  bool prepare() {
    const std::vector<float> wanted = ours_.front()->make();
    for (std::size_t i = 1; i < ours_.size(); ++i) {
      if (!same(kWays[i].name, ours_[i]->make(), wanted, kWays[i].tolerance)) return false;
    }
    if (!with_peers_) return true;
    const auto written = task_.write(folder_);
    CHECK(written.ok(), written.error().message);
    add_peer("ONNX Runtime", {"node", TROUPE_ONNX_PEER, TROUPE_ONNX_MODULES, folder_.path()});
    add_peer("PyTorch", {TROUPE_PYTHON, TROUPE_TORCH_PEER, model_, folder_.path()});
    return std::all_of(peers_.begin(), peers_.end(),
                       [&](const auto& peer) { return prepare(*peer, wanted); });
  }

  bool time() {
    for (const auto& ours : ours_) ours->time();
    return std::all_of(peers_.begin(), peers_.end(),
                       [](const auto& peer) { return !peer->ready() || peer->time(); });
  }

  void print() const {
    fmt::print("{}, {} showers a time\n", model_, task_.events());
    double fastest = 0;
    for (const auto& peer : peers_) {
      if (!peer->ready()) {
        fmt::print("  {:<12} {}\n", peer->name(), peer->version());
        continue;
      }
      const Spread rate = peer->rate(task_.events());
      fastest = std::max(fastest, rate.median);
      print_rate(peer->name(), rate);
      fmt::print("; {}; its ways, the first taken: {}\n", peer->version(), peer->ways());
    }
    const double first = ours_.front()->rate().median;
    for (std::size_t i = 0; i < ours_.size(); ++i) {
      const Spread rate = ours_[i]->rate();
      print_rate(fmt::format("ours, {}", kWays[i].name), rate);
      fmt::print(", {:.2f} x portable", rate.median / first);
      if (fastest > 0) fmt::print(", {:.2f} x the faster peer", rate.median / fastest);
      fmt::print("\n");
    }
    std::fflush(stdout);
  }

 private:
  static void print_rate(const std::string& name, const Spread& rate) {
    fmt::print("  {:<16} {:7.1f} showers/s [{:.1f}, {:.1f}]", name, rate.median, rate.lowest,
               rate.highest);
  }

  bool same(const std::string& name, const std::vector<float>& found,
            const std::vector<float>& wanted, double tolerance) const {
    const double difference = worst(found, wanted, task_.events());
    if (difference <= tolerance) return true;
    fmt::print(stderr, "{}: the showers of {} are up to {:.2g} of the hottest cell off\n", model_,
               name, difference);
    return false;
  }

  void add_peer(const char* name, const std::vector<std::string>& words) {
    peers_.push_back(std::make_unique<Peer>(name, words));
  }

  bool prepare(Peer& peer, const std::vector<float>& wanted) {
    if (peer.missing()) return true;
    if (!peer.ready()) {
      fmt::print(stderr, "{}: {}\n", peer.name(), peer.version());
      return false;
    }
    if (!peer.choose() || !peer.make()) return false;
    const std::string bytes = read_text(folder_ / "showers.f32");
    std::vector<float> found(bytes.size() / sizeof(float));
    std::memcpy(found.data(), bytes.data(), found.size() * sizeof(float));
    std::filesystem::remove(folder_ / "showers.f32");
    return same(peer.name(), found, wanted, kRounding);
  }

  const char* model_;
  const bool with_peers_;
  Task task_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<Ours>> ours_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

int run(const Extent& extent, const std::string& wanted) {
  fmt::print("one core; medians of {} rounds in turns [lowest, highest]\n", extent.rounds);
  for (const Asked& asked : extent.all) {
    if (!wanted.empty() && wanted != asked.model) continue;
    Comparison comparison(asked, extent.peers);
    if (!comparison.prepare()) return 1;
    for (int i = 0; i < extent.rounds; ++i) {
      if (!comparison.time()) return 1;
    }
    comparison.print();
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

// bench_generation [--small] [MODEL]. --small compares our own ways alone.
int main(int argc, char** argv) {
  troupe::runtime::keep_freed_memory();  // as every verb does
  bool small = false;
  std::string model;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      small = true;
    } else {
      model = argv[i];
    }
  }
  return troupe::bench::run(small ? troupe::bench::kSmall : troupe::bench::kFull, model);
}
