// The `actors` section: who does the work.

#include <array>

#include <fmt/format.h>

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"
#include "model/physics/class_figures.h"
#include "model/physics/figures.h"
#include "pipeline/data/remote_source.h"

namespace troupe::config {
namespace {

constexpr std::size_t kMostBins = 100;  // of the validator, of a kind

// The loader's threads are the dataset's.
RecordOf<Topology> loader_record() {
  auto record = std::make_shared<Record<Topology>>("the loader");
  record
      ->field(
          "threads",
          within(&Topology::data, &DataSection::dataset, &pipeline::DatasetOptions::threads),
          integer(0, 256), Scope::kFree,
          "Threads that decompress and preprocess; 0: as many as reading needs to stay ahead of "
          "the replicas, which is measured.")
      .field("credits", within(&Topology::loader, &LoaderSection::credits),
             integer<std::int64_t>(0, 1024), Scope::kFixed,
             "Micro-batches read ahead for each replica; 0: from 4 up to as many as bridge the "
             "pauses of reading, which is measured, in 32 MiB.");
  return record;
}

// cpu, gpu, and as many devices as a machine may have.
std::vector<Word<std::string>> devices() {
  std::vector<Word<std::string>> words{{kProcessor, kProcessor}, {kGpu, kGpu}};
  for (const char* kind : {kGpu, "cuda", "opencl"}) {
    for (int i = 0; i < kMostDevices; ++i) {
      const std::string name = fmt::format("{}:{}", kind, i);
      words.push_back({name, name});
    }
  }
  return words;
}

RecordOf<ReplicaSection> replica_record() {
  auto record = std::make_shared<Record<ReplicaSection>>("replicas");
  record
      ->field("count", &ReplicaSection::count, integer<std::uint32_t>(1, 1024), Scope::kFree,
              "Compute streams of a node; they share its reducer.")
      .field("device", &ReplicaSection::device,
             word<std::string>(devices(), {"tpu"}, "no backend for it is built in"), Scope::kFree,
             "The device that computes; `troupe devices` lists those of this machine. `gpu` is the "
             "card with the most free memory, and workers of one host take turns; `gpu:1` is the "
             "second card, counted round. With `kernels: portable` it changes no bit.")
      .field("threads", &ReplicaSection::threads, integer<std::uint32_t>(1, 1024), Scope::kFree,
             "Micro-batches that each replica computes at a time, one thread for each. A single "
             "micro-batch gets all threads.")
      .field("overlap", &ReplicaSection::overlap, boolean(), Scope::kFree,
             "Whether they compute while a step is being reduced; `false` shows what that saves.");
  return record;
}

// The format of the sums is the training's.
RecordOf<Topology> reducer_record() {
  using Format = pipeline::ReductionFormat;
  auto record = std::make_shared<Record<Topology>>("the reducer");
  record
      ->field("reduction",
              within(&Topology::train, &TrainSection::options, &pipeline::TrainingOptions::lossy),
              word<std::optional<Format>>({{"exact", std::nullopt},
                                           {"fp32", Format::kFp32},
                                           {"bf16", Format::kBf16},
                                           {"int8", Format::kInt8}}),
              Scope::kState,
              "How gradients are summed over members: `exact` takes 8 bytes each and does not "
              "depend on the workers; `fp32`, `bf16` and `int8` take 4, 2 and 1, and do.")
      .field("segment", within(&Topology::reducer, &ReducerSection::segment_bytes),
             byte_size<std::int64_t>(4096), Scope::kFixed,
             "The most that one message of a ring between nodes carries.");
  return record;
}

RecordOf<CheckpointerSection> checkpointer_record() {
  auto record = std::make_shared<Record<CheckpointerSection>>("the checkpointer");
  record
      ->field("every", &CheckpointerSection::every, every(), Scope::kFixed,
              "How often a checkpoint is written; one is written at the end in any case.")
      .field("keep", &CheckpointerSection::keep, integer<std::uint32_t>(1, 1'000'000),
             Scope::kFixed,
             "How many of the newest are kept. The best by validation is kept as well.")
      .field(
          "copies", &CheckpointerSection::copies,
          optional(
              text("an address such as s3://BUCKET/runs/a", R"((https?|s3|roots?)://[^\s?#]+)")),
          Scope::kFree,
          "Place on a server, by https, s3 or root, to which the topology and each checkpoint are "
          "copied when they are written, and the run's other files at its end.")
      .check([](const YamlValue& value, const CheckpointerSection& section, Reader& reader) {
        if (!section.copies) return;
        const auto usable = pipeline::check_address(*section.copies + "/a");
        if (usable.ok()) return;
        const YamlValue* const place = value.find("copies");
        reader.problem(place == nullptr ? value.place : place->place, usable.error().message);
      });
  return record;
}

// Begin and end of a bin, in order.
CodecOf<std::array<double, 2>> bin(double most) {
  const auto ends = array<2>(number(0.0, most));
  return codec_of<std::array<double, 2>>(
      ends->describe(),
      [ends](const YamlValue& value, std::array<double, 2>& into, Reader& reader) {
        ends->read(value, into, reader);
        if (reader.has_problem_below(reader.path()) || into[0] < into[1]) return;
        reader.problem(value.place, fmt::format("a bin ends above its beginning; this one goes "
                                                "from {} to {}",
                                                into[0], into[1]));
      },
      [ends](const std::array<double, 2>& value, Selection selection) {
        return ends->write(value, selection);
      });
}

// A figure of a supervised task names one of its outputs.
CodecOf<std::string> figure() {
  std::vector<Word<std::string>> words;
  for (const std::string& each : model::figure_words()) words.push_back({each, each});
  for (const std::string& each : model::class_figure_words()) words.push_back({each, each});
  words.push_back({"loss", "loss"});
  const std::string what =
      "merit, sampling_fraction or another figure of `troupe validate`, or loss, accuracy or area "
      "of an output, such as kind/accuracy";
  const CodecOf<std::string> known = word<std::string>(std::move(words), {}, {}, what);
  const CodecOf<std::string> of_output = text(what, ".+/(loss|accuracy|area)");
  TypeDescription type = TypeDescription::of(TypeDescription::Kind::kOneOf, what);
  type.parts = {known->describe(), of_output->describe()};
  return codec_of<std::string>(
      type,
      [known, of_output](const YamlValue& value, std::string& into, Reader& reader) {
        const bool names_output = value.scalar.find('/') != std::string::npos;
        (names_output ? of_output : known)->read(value, into, reader);
      },
      [](const std::string& figure, Selection) { return YamlValue::plain(figure); });
}

RecordOf<ValidatorSection> validator_record() {
  auto record = std::make_shared<Record<ValidatorSection>>("the validator");
  record
      ->field("every", &ValidatorSection::every, every(), Scope::kFixed,
              "How often generated showers are compared with those kept for testing.")
      .field("events", &ValidatorSection::events, integer<std::uint64_t>(1, 10'000'000),
             Scope::kFixed, "Events of each side of a comparison.")
      .field("energy_bins", &ValidatorSection::energy_bins, list(bin(1e6), 1, kMostBins),
             Scope::kFixed,
             "Bins of the primary's energy, GeV, over which the figure of merit and the response "
             "take their means; they may overlap and leave gaps.")
      .field("angle_bins", &ValidatorSection::angle_bins, list(bin(3.15), 0, kMostBins),
             Scope::kFixed,
             "Bins of the angle, rad, in which profiles are compared apart; for models that are "
             "told angles.")
      .field("hit_threshold", &ValidatorSection::hit_threshold_gev, positive(), Scope::kFixed,
             "Cells above this energy, GeV, are hits.")
      .field("best", &ValidatorSection::best, figure(), Scope::kFixed,
             "The figure by which the best state is chosen, that whose figure is nearest to what "
             "equal samples have; docs/physics.md lists them. A supervised task has loss, "
             "OUTPUT/loss, OUTPUT/accuracy and OUTPUT/area.")
      .field(
          "judge", &ValidatorSection::judge,
          newer(optional(path("a checkpoint of a supervised run")), std::optional<std::string>()),
          Scope::kFixed,
          "Checkpoint of a classifier, for images that are no showers: they are compared by "
          "what it says of generated ones and of those kept for testing. `best` is then one of "
          "the figures that begin with judge_, judge_frechet unless it is given.")
      .field("test_losses", &ValidatorSection::test_losses, boolean(), Scope::kFree,
             "Whether losses of the test events are told, too. The discriminator of a GAN judges "
             "them and as many showers for that.");
  return record;
}

RecordOf<MonitorSection> monitor_record() {
  auto record = std::make_shared<Record<MonitorSection>>("the monitor");
  record
      ->field("listen", &MonitorSection::listen, host_and_port(true), Scope::kFree,
              "Where the page is served, or `none`. If the port is taken, the next free one of a "
              "hundred. Beyond this machine a browser needs the token.")
      .field("token", &MonitorSection::token, optional(path("a file")), Scope::kFree,
             "File with the token; by default the run makes one where it needs one, page.token in "
             "its folder.")
      .field(
          "control", &MonitorSection::control, optional(path("a file")), Scope::kFree,
          "File with another token: whoever gives it to the page may change how many nodes pools "
          "have, as `troupe burst` does. By default nobody may.")
      .field("publish", &MonitorSection::publish,
             text("none, or an address such as tcp://127.0.0.1:8500 or ipc:///tmp/run",
                  fmt::format(R"(none|tcp://[^/ ]{{1,253}}:(\*|{})|ipc://[^ ]{{1,100}})",
                              kPortPattern)),
             Scope::kFree,
             "Where ZeroMQ publishes every line of metrics to whoever subscribes, or `none`.")
      .field("tensorboard", &MonitorSection::tensorboard, boolean(), Scope::kFree,
             "Whether event files for TensorBoard are written into the run's folder.")
      .field("price_per_node_hour", &MonitorSection::price_per_node_hour,
             number(NumberRange{0.0, 1e6, false}), Scope::kFree,
             "Price of a node for an hour, in any currency, from which the cost so far is told; 0: "
             "none is told.");
  return record;
}

}  // namespace

std::shared_ptr<Record<Topology>> actors_record() {
  auto record = std::make_shared<Record<Topology>>("the actors");
  record->section("loader", within(), loader_record(), "Reads events ahead of the replicas.")
      .section("replica", &Topology::replica, replica_record(), "Computes gradients.")
      .section("reducer", within(), reducer_record(), "Sums gradients.")
      .section("checkpointer", &Topology::checkpointer, checkpointer_record(),
               "Writes the state beside training.")
      .section("validator", &Topology::validator, validator_record(),
               "Compares generated showers with real ones.")
      .section("monitor", &Topology::monitor, monitor_record(),
               "Where people watch the run; watching neither changes nor slows training.");
  return record;
}

}  // namespace troupe::config
