#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/config/config_support.h"
#include "tests/support/fails_with.h"

namespace troupe::config {
namespace {

using runtime::ErrorKind;
using testing::HasSubstr;
using testing::Not;

// Wrong in as many ways as a file can be.
constexpr const char* kAllWrong = R"(name: "bad name"
model:
  zoo: gan3d_2
  kernals: fastest
  precision: fp16
data: {train: synthetic, schema: lcd-fixd, cache: disc}
train:
  epochs: 0
  epochs: 3
  micro_batch: "16"
  micro_batches: 4.5
  lerning_rate: {g: 1e-3}
  learning_rate: {g: -1, d: {rate: 1e-3, factor: 0.1}}
  schedule: [d_real, d_fak, g, g]
  scaling: week
actors:
  loader: {credits: -1}
  replica: {device: tpu, count: 0}
  reducer: {reduction: int4, segment: 1MB}
  checkpointer: {every: 1 week}
  monitor: {listen: "127.0.0.1"}
  validator: []
links: [{from: loder, to: replica}]
cluster:
  hosts: [{address: node-a, workers: 0}]
  failure: {heartbeat: 3s, drain_grace: 20s}
)";

// A part of each line that is said of it, in their order.
constexpr const char* kAllProblems[] = {
    "t.yaml:1:7: name: expected a name of at most 100 letters, digits, '-', '_' and '.', of which "
    "'-' and '.' are not its first, found text",
    "t.yaml:3:8: model.zoo: expected one of calo_unet_12, calo_unet_25, dcgan_mnist, digits, "
    "gan3d_12, gan3d_12_dense, gan3d_25, gan3d_51, particle_12, toy, found text \"gan3d_2\"; did "
    "you mean",
    "t.yaml:4:3: model: unknown key \"kernals\"; did you mean \"kernels\"?",
    "t.yaml:5:14: model.precision: only fp32, bf16 are available in this version, not fp16",
    "t.yaml:6:34: data.schema: expected one of lcd-fixed, lcd-angle, custom, nnlo, calochallenge, "
    "idx, tfrecord, found text "
    "\"lcd-fixd\"; did you mean \"lcd-fixed\"?",
    "t.yaml:6:51: data.cache: expected one of memory, disk, shard, none, found text \"disc\"; did "
    "you mean \"disk\"?",
    "t.yaml:8:11: train.epochs: expected a whole number from 1 to 1000000, found the number 0",
    "t.yaml:9:3: \"epochs\" is given twice in one section (first at line 8)",
    "t.yaml:10:16: train.micro_batch: expected a whole number from 1 to 65536 without quotes, "
    "found text \"16\"",
    "t.yaml:11:18: train.micro_batches: expected a whole number from 1 to 65536, found the "
    "number "
    "4.5",
    "t.yaml:12:3: train: unknown key \"lerning_rate\"; did you mean \"learning_rate\"?",
    "t.yaml:13:22: train.learning_rate.g.rate: expected a number above 0, found the number -1",
    "t.yaml:13:42: train.learning_rate.d: factor acts only with policy: plateau",
    "t.yaml:14:22: train.schedule.1: expected one of d_real, d_fake, g, d_both, fit, denoise, "
    "found text "
    "\"d_fak\"; "
    "did "
    "you mean \"d_fake\"?",
    "t.yaml:15:12: train.scaling: expected one of strong, weak, found text \"week\"; did you mean "
    "\"weak\"?",
    "t.yaml:17:21: actors.loader.credits: expected a whole number from 0 to 1024, found the "
    "number -1",
    "t.yaml:18:21: actors.replica.device: only cpu, gpu, gpu:0, gpu:1, gpu:2, gpu:3, gpu:4, "
    "gpu:5, gpu:6, gpu:7, cuda:0, cuda:1, cuda:2, cuda:3, cuda:4, cuda:5, cuda:6, cuda:7, "
    "opencl:0, opencl:1, opencl:2, opencl:3, opencl:4, opencl:5, opencl:6, "
    "opencl:7 are available here, not tpu: no backend for it is built in",
    "t.yaml:18:33: actors.replica.count: expected a whole number from 1",
    "t.yaml:19:24: actors.reducer.reduction: expected one of exact, fp32, bf16, int8, found text "
    "\"int4\"",
    "t.yaml:19:39: actors.reducer.segment: expected a size such as 64KiB, 1MiB or 4096",
    "t.yaml:20:25: actors.checkpointer.every: expected \"1 epoch\", \"50 iterations\" or none",
    "t.yaml:21:21: actors.monitor.listen: expected HOST:PORT such as 127.0.0.1:0 with a port of "
    "at most 65535, or none",
    "t.yaml:22:14: actors.validator: expected a section (every, events, energy_bins, angle_bins, "
    "hit_threshold, best, judge, test_losses), found a list",
    "t.yaml:23:16: links.0.from: expected one of coordinator, loader",
    "t.yaml:25:38: cluster.hosts.0.workers: expected a whole number from 1 to 1024",
    "t.yaml:26:28: cluster.failure: unknown key \"drain_grace\"; known here: heartbeat, "
    "dead_after, stuck_after, check_every, orphan_after, min_members, restart",
};

TEST(TopologyErrors, EveryProblemOfAFileIsReportedAtOnceWithItsPlace) {
  const auto result = parse(kAllWrong);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kTopology);
  std::string rest = result.error().message + "\n";
  for (const char* line : kAllProblems) {
    EXPECT_THAT(rest.substr(0, rest.find('\n')), HasSubstr(line));
    rest.erase(0, rest.find('\n') + 1);
  }
  EXPECT_EQ(rest, "");
}

struct Mistake {
  std::string text;
  std::string message;  // a part of the only line
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.text; }

class SingleMistake : public testing::TestWithParam<Mistake> {};

TEST_P(SingleMistake, IsReportedOnce) {
  const auto result = parse(GetParam().text);
  ASSERT_THAT(result, FailsWith(ErrorKind::kTopology, GetParam().message));
  EXPECT_THAT(result.error().message, Not(HasSubstr("\n")));
}

const std::string kModel = "model: {zoo: gan3d_25}\n";
const std::string kData = "data: {train: synthetic}\n";
// The mistake stands in the line below.
const std::string kHosts = kModel + kData +
                           "cluster:\n  hosts: [{address: node-a}, {address: node-b}]\n"
                           "  bandwidth:\n    - ";

INSTANTIATE_TEST_SUITE_P(
    Topology, SingleMistake,
    testing::Values(
        Mistake{kData, "\"model\" is missing"}, Mistake{kModel, "\"data\" is missing"},
        Mistake{kModel + "data:\n", "t.yaml:2:1: data: \"train\" is missing"},
        Mistake{"model:\n" + kData, "t.yaml:1:1: model: give zoo: NAME (calo_unet_12, "},
        Mistake{"model: {kernels: portable}\n" + kData, "model: give zoo: NAME"},
        Mistake{"[1, 2]\n",
                "t.yaml:1:1: expected a section (name, model, data, train, actors, links, "
                "cluster), found a list"},
        Mistake{"just words\n", "cluster), found text \"just words\""},
        Mistake{"", "t.yaml: is empty"}, Mistake{"# only a comment\n", "t.yaml: is empty"},
        Mistake{kModel + "data: {train: synthetic, schema: lcd-angle}\n",
                "data.train: no detector of the shower generator has schema lcd-angle and 25x25x25 "
                "cells"},
        Mistake{"model: {zoo: toy}\ndata: {train: synthetic, schema: lcd-angle}\n",
                "lcd-angle and 4x4x4 cells; give files, or one of: lcd-fixed and 25x25x25 cells"},
        Mistake{kModel + "data: {train: synthetic, schema: custom}\n",
                "data.schema: generated showers have schema lcd-fixed or lcd-angle"},
        Mistake{kModel + "data: {train: a.h5, schema: custom}\n",
                "data.schema: custom needs data.names"},
        Mistake{kModel + "data: {train: []}\n", "data.train: expected a list of at least 1"},
        Mistake{kModel + "data: {train: {a: b}}\n", "data.train: expected synthetic, a path"},
        Mistake{kModel + "data: {train: synthetic, synthetic: {min_angle: 1.2}}\n",
                "t.yaml:2:49: data.synthetic.min_angle: shower angles from 1.2 to 1.571 rad"},
        Mistake{
            kModel + "data: {train: synthetic, synthetic: {min_energy: 300, max_energy: 200}}\n",
            "t.yaml:2:50: data.synthetic.min_energy: min_energy (300) is above max_energy (200)"},
        Mistake{kModel + "data: {train: synthetic, synthetic: {events: 40}}\n",
                "40 generated events with test_one_in 10 leave 36 for training, but an iteration "
                "takes micro_batch x "
                "micro_batches = 64"},
        Mistake{kModel + "data: {train: a.h5, test_one_in: 0}\n", "actors.validator"},
        Mistake{kModel + kData + "actors: {validator: {energy_bins: [[10, 50], [70, 60]]}}\n",
                "t.yaml:3:46: actors.validator.energy_bins.1: a bin ends above its beginning; this "
                "one goes from 70 to 60"},
        Mistake{kModel + kData + "actors: {validator: {energy_bins: []}}\n",
                "actors.validator.energy_bins: expected a list of at least 1"},
        Mistake{kModel + kData + "actors: {validator: {angle_bins: [[1, 2]]}}\n",
                "t.yaml:3:34: actors.validator.angle_bins: this model is told no angle"},
        Mistake{kModel + kData + "actors: {validator: {best: angle.wasserstein}}\n",
                "t.yaml:3:28: actors.validator.best: this model is told no angle"},
        Mistake{kModel + kData + "actors: {validator: {best: longitudinal_angle}}\n",
                "t.yaml:3:28: actors.validator.best: this model is told no angle"},
        Mistake{"model: {zoo: gan3d_51}\ndata: {train: synthetic, schema: lcd-angle}\n"
                "actors: {validator: {best: longitudinal_angle}}\n",
                "actors.validator.best: longitudinal_angle needs actors.validator.angle_bins"},
        Mistake{kModel + kData + "actors: {validator: {best: judge_classes}}\n",
                "t.yaml:3:28: actors.validator.best: a classifier finds it; give one as "
                "actors.validator.judge"},
        Mistake{kModel + kData + "actors: {validator: {best: hits, judge: a.h5}}\n",
                "t.yaml:3:28: actors.validator.best: a classifier judges, and finds no hits; take "
                "one of judge_frechet, judge_confidence, judge_classes"},
        Mistake{kModel + kData +
                    "actors: {validator: {judge: a.h5}}\n"
                    "train: {stop: {metric: validator/merit, patience: 1}}\n",
                "train.stop.metric: a classifier judges, and finds no merit"},
        Mistake{
            kModel + kData + "actors: {validator: {best: longitudnal}}\n",
            "such as kind/accuracy, found text \"longitudnal\"; did you mean \"longitudinal\"?"},
        Mistake{kModel + "data: {train: synthetic, test_one_in: 5000}\n",
                "t.yaml:2:39: data.test_one_in: one in 5000 of 4000 generated events leaves none"},
        Mistake{kModel + kData + "train: {learning_rate: 1e-3}\n",
                "train.learning_rate: expected a section (g, d, network), found the number 1e-3"},
        Mistake{kModel + kData + "train: {learning_rate: {g: {policy: warmup}}}\n",
                "policy warmup needs warmup_iterations"},
        Mistake{kModel + kData + "train: {learning_rate: {g: {parts: [{policy: cosine}]}}}\n",
                "train.learning_rate.g.parts.0.policy: a warm-up and a cosine need `for`"},
        Mistake{kModel + kData +
                    "train: {learning_rate: {g: {parts: [{policy: steps, for: 2 epochs}]}}}\n",
                "steps need `at`"},
        Mistake{kModel + kData +
                    "train: {learning_rate: {g: {parts: [{policy: steps, for: 2 epochs, at: [1 "
                    "epoch, 3 epochs]}]}}}\n",
                "parts.0.at.1: is beyond `for`"},
        Mistake{kModel + kData +
                    "train: {learning_rate: {g: {parts: [{policy: steps, at: [9 iterations, 9 "
                    "iterations]}]}}}\n",
                "parts.0.at.1: is given twice"},
        Mistake{kModel + kData +
                    "train: {learning_rate: {g: {parts: [{policy: warmup, for: 4000000001 "
                    "iterations}]}}}\n",
                "expected at most 4000000000"},
        Mistake{
            kModel + kData +
                "train: {learning_rate: {g: {parts: [{policy: constant}, {policy: plateau}]}}}\n",
            "train.learning_rate.g.parts.0: a part that others follow needs `for`"},
        Mistake{kModel + kData +
                    "train: {learning_rate: {g: {policy: plateau, parts: [{policy: constant}]}}}\n",
                "give either a policy or parts"},
        Mistake{kModel + kData +
                    "train: {learning_rate: {g: {parts: [{policy: warmup, for: none}]}}}\n",
                "expected \"5 epochs\" or \"500 iterations\""},
        Mistake{kModel + kData + "train: {learning_rate: {g: {scaled: linear}}}\n",
                "a rate that is scaled needs per_events"},
        Mistake{kModel + kData + "train: {stop: {metric: g}}\n", "nothing ends training"},
        Mistake{"model: {zoo: gan3d_25, losses: {generation: {gradient_penalty: 10}}}\n" + kData,
                "gradient_penalty: is of single events, which batch_norm of the discriminator"},
        Mistake{"model: {zoo: dcgan_mnist, losses: {generation: {gradient_penalty: 10}}}\n"
                "data: {train: a.gz, schema: idx}\nactors: {validator: {every: none}}\n"
                "train: {schedule: [d_real, g]}\n",
                "acts in d_fake and d_both, of which there is none"},
        Mistake{"model: {zoo: dcgan_mnist, precision: bf16, losses: {generation: "
                "{gradient_penalty: 10}}}\ndata: {train: a.gz, schema: idx}\nactors: {validator: "
                "{every: none}}\n",
                "is lost in what bf16 rounds off"},
        Mistake{"model: {zoo: dcgan_mnist, kernels: fastest, losses: {generation: "
                "{gradient_penalty: 10}}}\ndata: {train: a.gz, schema: idx}\nactors: {validator: "
                "{every: none}, replica: {device: gpu}}\n",
                "is lost in what tensor cores round off"},
        Mistake{"model: {zoo: dcgan_mnist, losses: {generation: {gradient_penalty: 10}}}\n"
                "data: {train: a.gz, schema: idx}\nactors: {validator: {every: none}}\n"
                "train: {stop: {metric: g/generation_penalty, patience: 2}}\n",
                "the schedule has no step of the generator that has this loss"},
        Mistake{"model: {zoo: gan3d_25, losses: {ecal: {gradient_penalty: 10}}}\n" + kData,
                "gradient_penalty acts only with target: label"},
        Mistake{kModel + kData + "train: {stop: {metric: x, patience: 2}}\n",
                "expected g, d or network, a term of one such as d/generation, or validator/"},
        Mistake{kModel + kData + "train: {stop: {metric: d/energy, patience: 2}}\n",
                "train.stop.metric: model.losses has no term \"energy\""},
        Mistake{kModel + kData + "train: {schedule: [d_real, d_fake], stop: {patience: 2}}\n",
                "the schedule has no step of the generator"},
        Mistake{kModel + kData + "train: {learning_rate: {g: .inf}}\n",
                "expected a number above 0, found text \".inf\""},
        Mistake{kModel + kData + "train: {learning_rate: {g: nan}}\n", "expected a number above 0"},
        Mistake{kModel + kData + "train: {learning_rate: {g: 1e999}}\n",
                "expected a number above 0"},
        Mistake{kModel + kData + "train: {learning_rate: {g: 1e-50}}\n",
                "train.learning_rate.g.rate: 1e-50 is too small: single precision computes with "
                "1e-30 to 1e+30"},
        Mistake{kModel + kData + "train: {learning_rate: {g: 1e300}}\n", "1e300 is too large"},
        Mistake{kModel + kData + "train: {optimiser: {g: {epsilon: 1e-60}}}\n",
                "train.optimiser.g.epsilon: 1e-60 is too small"},
        Mistake{kModel + "data: {train: a.h5, preprocessing: {scale: 1e-60}}\n",
                "data.preprocessing.scale: 1e-60 is too small"},
        Mistake{kModel + kData + "train: {optimiser: {g: adm}}\n", "did you mean \"adam\"?"},
        Mistake{kModel + kData + "train: {optimiser: {g: {kind: adam, rho: 0.9}}}\n",
                "rho acts only with kind: rmsprop or adadelta"},
        Mistake{kModel + kData + "train: {fake_energy: [0.1, 5]}\n",
                "fake_energy acts only with fake_conditions: uniform"},
        Mistake{kModel + kData + "train: {fake_conditions: uniform, fake_energy: [0.1]}\n",
                "expected a list of 2"},
        Mistake{kModel + kData + "train: {schedule: []}\n", "expected a list of at least 1"},
        Mistake{kModel + kData + "train: {seed: 99999999999999999999}\n", "train.seed: expected"},
        Mistake{kModel + kData + "train: {seed: -1}\n", "train.seed: expected"},
        Mistake{kModel + kData + "train: {flip_probability: 0.6}\n",
                "expected a number from 0 to 0.5"},
        Mistake{kModel + kData + "name: ../escape\n", "name: expected a name of at most"},
        Mistake{kModel + kData + "name: [a]\n", "name: expected a name of at most"},
        Mistake{kModel + kData + "links: [{from: loader, to: replica}]\n",
                "links.0: says nothing: give credits, bytes or tokens"},
        Mistake{kModel + kData + "links: [{from: loader, to: replica, credits: 0}]\n",
                "links.0.credits: expected a whole number from 1"},
        Mistake{kModel + kData + "links: [{from: loader, to: replica, bytes: 0B}]\n",
                "links.0.bytes: must be at least 1B, found 0B"},
        Mistake{kModel + kData + "cluster: {failure: {restart: 2000}}\n",
                "cluster.failure.restart: expected a whole number from 0 to 1024"},
        Mistake{kModel + kData + "cluster: {burst: {budget: 40}}\n",
                "cluster.burst: there are no pools to take nodes from"},
        Mistake{kModel + kData +
                    "cluster: {pools: [{name: a, launcher: slurm}], burst: {decide_every: 1min}}\n",
                "cluster.burst: give `finish_within`, `budget` or both"},
        Mistake{kModel + kData + "cluster: {pools: [{name: a, launcher: kubernetes}]}\n",
                "cluster.pools.0.image: a pool of kubernetes needs the image that its nodes run"},
        Mistake{kModel + kData +
                    "cluster: {pools: [{name: A_b, launcher: kubernetes, image: troupe}]}\n",
                "cluster.pools.0.name: Kubernetes takes names of small letters"},
        Mistake{kModel + kData + "cluster: {joiners: -1}\n",
                "cluster.joiners: expected a whole number from 0 to 1024"},
        Mistake{kModel + kData + "actors: {replica: {threads: true}}\n",
                "expected a whole number from 1 to 1024, found text \"true\""},
        Mistake{kModel + kData + "cluster: {failure: {heartbeat: 3s}}\n",
                "t.yaml:3:32: cluster.failure.heartbeat: dead_after (2s) must be more than twice "
                "the heartbeat (3s)"},
        Mistake{kModel + kData + "cluster: {failure: {heartbeat: 1s, dead_after: 2s}}\n",
                "t.yaml:3:48: cluster.failure.dead_after: dead_after (2s) must be more than"},
        Mistake{kModel + kData + "cluster: {failure: {heartbeat: 0s}}\n",
                "cluster.failure.heartbeat: must be at least 1ms"},
        Mistake{kModel + kData + "cluster: {assign: fast}\n",
                "cluster.assign: expected auto, or a list of shares such as [1, 3], found text"},
        Mistake{kModel + kData + "cluster: {assign: []}\n", "cluster.assign: expected a list of "},
        Mistake{kModel + kData + "cluster: {assign: [1, -3]}\n",
                "cluster.assign.1: expected a whole number from 0"},
        Mistake{kModel + kData + "cluster: {assign: [0, 0]}\n",
                "t.yaml:3:19: cluster.assign: shares of 0 leave every micro-batch to nobody"},
        Mistake{kModel + kData + "cluster: {hosts: [{workers: 2}]}\n",
                "cluster.hosts.0: \"address\" is missing"},
        Mistake{kModel + kData + "cluster: {hosts: [{address: a/b}]}\n",
                "cluster.hosts.0.address: expected a host's name or number"},
        Mistake{kHosts + "{between: [node-a, nod-b], rate: 1Gbit}\n",
                "t.yaml:6:26: cluster.bandwidth.0.between.1: cluster.hosts has no \"nod-b\"; did "
                "you mean \"node-b\"?"},
        Mistake{kHosts + "{between: [node-a, [node-b, elsewhere]], rate: 1Gbit}\n",
                "t.yaml:6:35: cluster.bandwidth.0.between.1.1: cluster.hosts has no \"elsewhere\"; "
                "known here: node-a, node-b"},
        Mistake{kHosts + "{between: [[node-a, node-b], node-b], rate: 1Gbit}\n",
                "t.yaml:6:36: cluster.bandwidth.0.between.1: \"node-b\" stands on both sides"},
        Mistake{kModel + kData +
                    "cluster: {bandwidth: [{between: [a, [c]], rate: 1Mbit}], "
                    "hosts: [{address: c}]}\n",
                "cluster.bandwidth.0.between.0: cluster.hosts has no \"a\""},
        Mistake{kHosts + "{between: node-a, rate: 1Gbit}\n",
                "t.yaml:6:17: cluster.bandwidth.0.between: expected a list of 2, each a host or a "
                "list of hosts; found text"},
        Mistake{kHosts + "{between: [node-a, []], rate: 1Gbit}\n",
                "cluster.bandwidth.0.between.1: expected a list of at least 1, each an address"},
        Mistake{kHosts + "{between: [node-a, {node-b: 1}], rate: 1Gbit}\n",
                "cluster.bandwidth.0.between.1: expected a host or a list of hosts, found a "},
        Mistake{kHosts + "{between: [node-a, node-b], rate: 100MB}\n",
                "t.yaml:6:41: cluster.bandwidth.0.rate: expected bits per second such as 100Mbit "
                "or 10Gbit, found text \"100MB\""},
        Mistake{kHosts + "{between: [node-a, node-b], rate: 999bit}\n",
                "cluster.bandwidth.0.rate: must be at least 1kbit, found 999bit"},
        Mistake{kHosts + "{between: [node-a, node-b]}\n",
                "cluster.bandwidth.0: \"rate\" is missing: Bits per second"},
        Mistake{kHosts + "{between: [node-a, node-b], rate: 1Gbit, delay: 11s}\n",
                "cluster.bandwidth.0.delay: must be at most 10s, found 11s"},
        Mistake{kModel + kData + "cluster: {listen: node-a}\n",
                "cluster.listen: expected HOST:PORT such as 127.0.0.1:0"},
        Mistake{kModel + kData + "cluster: {listen: \"localhost:65535\"}\n",
                "t.yaml:3:19: cluster.listen: port 65535 and the next one are none"},
        Mistake{kModel + kData + "cluster: {listen: \"localhost:65536\"}\n",
                "t.yaml:3:19: cluster.listen: expected HOST:PORT such as 127.0.0.1:0 with a port "},
        Mistake{kModel + kData + "actors: {monitor: {listen: \"127.0.0.1:99999\"}}\n",
                "actors.monitor.listen: expected HOST:PORT such as 127.0.0.1:0 with a port "},
        Mistake{kModel + kData + "actors: {monitor: {publish: \"tcp://127.0.0.1:70000\"}}\n",
                "actors.monitor.publish: expected none, or an address"},
        Mistake{kModel + kData + "cluster: {listen: \"0.0.0.0:9000\"}\n",
                "t.yaml:3:19: cluster.listen: 0.0.0.0:9000 is reached from other machines, which "
                "needs keys"},
        Mistake{kModel + kData + "cluster: {listen: \"*:9000\"}\n", "which needs keys"},
        Mistake{kModel + kData + "cluster: {listen: \"[fe80::1%eth0]:9000\"}\n",
                "which needs keys"},
        Mistake{kModel + kData + "cluster: {failure: {stuck_after: 60}}\n",
                "expected a duration such as 500ms"}));

TEST(TopologyErrors, DeviceThatThisVersionLacksIsNoMistypedOne) {
  EXPECT_THAT(message_of(parse(kLeast, {"actors.replica.device=tpu"})),
              HasSubstr("are available here, not tpu: no backend for it is built in"));
  EXPECT_THAT(message_of(parse(kLeast, {"actors.replica.device=cuda"})),
              HasSubstr("did you mean \"cuda:"));
}

TEST(TopologyErrors, AddressOfRemoteStorageIsNoPath) {
  const auto read = parse(kLeast, {"data.train=[b.h5, https://host/a.h5, s3://bucket/a.h5]"});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->topology.data.dataset.paths[2], "s3://bucket/a.h5");
  for (const char* address : {"gs://b/*.h5", "dav://h/a"}) {
    EXPECT_EQ(message_of(parse(kLeast, {fmt::format("data.train=[b.h5, \"{}\"]", address)})),
              fmt::format("--set data.train=[b.h5, \"{0}\"]: data.train.1: {0}: remote storage is "
                          "not read; mount it or copy what is there to this machine, and give that "
                          "path",
                          address));
  }
  EXPECT_THAT(message_of(parse(kLeast + "cluster: {keys: \"s3://bucket/keys\"}\n")),
              HasSubstr("t.yaml:3:17: cluster.keys: s3://bucket/keys: remote storage"));
}

TEST(TopologyErrors, SpelledCharacterThatDoesNotShowIsRefused) {
  EXPECT_EQ(message_of(parse("model: {zoo: toy}\ndata: {train: \"a\\u202Eb.h5\"}\n")),
            "t.yaml:2:15: data.train: U+202E (it turns the direction of writing) is taken in no "
            "text");
  EXPECT_THAT(message_of(parse(kLeast, {"name=\"\\e[31m\""})),
              HasSubstr("name: the control character U+001B is taken in no text"));
}

// Each with its line, all at once, before anything is compiled.
TEST(TopologyErrors, LossesAndConditionsThatCannotBeComparedStandAtTheirPlaces) {
  const std::string message = message_of(parse(R"(model:
  zoo: toy
  generator: {latent: {conditions: [energy, angle]}}
  losses:
    auxiliary: {target: bins}
data: {train: a.h5}
train: {fake_conditions: uniform}
)"));
  EXPECT_EQ(message,
            "t.yaml:5:25: model.losses.auxiliary.target: target bins is 8 per event, but output "
            "\"auxiliary\" is 1\n"
            "t.yaml:7:26: train.fake_conditions: uniform draws energies only, but the model is "
            "asked for angles; use batch\n"
            "t.yaml:7:26: train.fake_conditions: uniform draws energies only, but loss "
            "\"auxiliary\" compares fakes with bins of the real batch; use batch");
  EXPECT_THAT(
      message_of(parse(kLeast, {"model.generator.latent.conditions=[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,"
                                "p,q]"})),
      HasSubstr("model.generator.latent.conditions: expected a list of at most 16"));
}

TEST(TopologyErrors, ImagesHaveTwoOrThreeAxesAndOneChannelWhereTheyAreValidated) {
  EXPECT_THAT(message_of(parse(kLeast, {"model.discriminator.input=[64]"})),
              HasSubstr("model.discriminator.input: 64 is no image: [x, y, z, channels], [x, y, "
                        "channels] or [x, channels]"));
  std::vector<std::string> two{"model.generator.layers.5.convolution.filters=2",
                               "model.discriminator.input=[4, 4, 4, 2]"};
  EXPECT_THAT(message_of(parse(kLeast, two)),
              HasSubstr("showers have one channel, and the images here 2; give a classifier as "
                        "actors.validator.judge, or set actors.validator.every to none"));
  auto judged = two;
  judged.emplace_back("actors.validator.judge=a.h5");
  EXPECT_TRUE(parse(kLeast, judged).ok());
  two.emplace_back("actors.validator.every=none");
  const auto parsed = parse(kLeast, two);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->topology.data.dataset.expected_shape, (pipeline::ImageShape{{4, 4, 4}, 2}));
}

TEST(TopologyErrors, BinningActsOnCaloChallengeOnly) {
  const std::string calo = "model: {zoo: toy}\ndata: {train: a.h5, schema: calochallenge}\n";
  const auto parsed = parse(calo, {"data.binning=b.xml"});
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_TRUE(parsed->topology.data.dataset.binning.ends_with("/b.xml"));
  EXPECT_THAT(message_of(parse(calo, {"data.binning=b.xml", "data.schema=nnlo"})),
              HasSubstr("data.binning: acts only with schema calochallenge; the schema is nnlo"));
}

TEST(TopologyErrors, PowerOfTheDataAndOfTheHeadsThatUndoItMustAgree) {
  const std::string angles = "model: {zoo: gan3d_51}\ndata: {train: a.h5, schema: lcd-angle}\n";
  EXPECT_TRUE(parse(angles).ok());
  const std::string wrong = message_of(parse(angles, {"data.preprocessing.power=0.5"}));
  for (const char* head : {"angle", "ecal"}) {
    EXPECT_THAT(wrong, HasSubstr(fmt::format(
                           "--set data.preprocessing.power=0.5: data.preprocessing.power: is 0.5, "
                           "but the output \"{}\" reads cells to the power 1.1764705882352942 "
                           "for a target taken before any power; set it to 0.85, or let",
                           head)));
  }
  // A default stands where the schema was said.
  EXPECT_THAT(message_of(parse("model: {zoo: toy}\ndata: {train: a.h5, schema: lcd-angle}\n")),
              HasSubstr("t.yaml:2:7: data.preprocessing.power: is 0.85, but"));
  // Another target, or a head that learns: no rule.
  EXPECT_TRUE(
      parse(kLeast, {"data.preprocessing.power=0.5", "model.losses.ecal.target=energy"}).ok());
  EXPECT_TRUE(parse(kLeast, {"data.preprocessing.power=0.5", "model.losses.ecal.target=energy",
                             "model.losses.auxiliary.target=ecal"})
                  .ok());
}

TEST(TopologyErrors, AFileThatCannotBeReadSaysWhy) {
  const auto missing = load_topology("/nowhere/t.yaml");
  EXPECT_EQ(missing.error().kind, ErrorKind::kTopology);
  EXPECT_THAT(missing.error().message, HasSubstr("/nowhere/t.yaml: cannot be opened: No such"));
  const auto folder = load_topology(testing::TempDir());
  EXPECT_EQ(folder.error().kind, ErrorKind::kTopology);
  EXPECT_THAT(folder.error().message, HasSubstr("is a folder"));
  EXPECT_THAT(load_topology("/dev/null").error().message, HasSubstr("/dev/null: is empty"));
  EXPECT_THAT(load_topology("/dev/zero").error().message, HasSubstr("larger than 1048576 bytes"));
  EXPECT_THAT(load_topology("").error().message, HasSubstr("cannot be opened"));
}

TEST(TopologyErrors, ManyProblemsAreCounted) {
  std::string text = kModel + kData;
  for (int i = 0; i < 500; ++i) text += fmt::format("x{}: 1\n", i);
  EXPECT_THAT(message_of(parse(text)), HasSubstr("\nand 400 more"));
}

TEST(TopologyErrors, AnAngryMegabyteIsAnswered) {
  std::string keys = kModel + kData, duplicates = keys, layers = keys;
  for (int i = 0; keys.size() < kMostYamlBytes - 20; ++i) keys += fmt::format("k{}: 1\n", i);
  while (duplicates.size() < kMostYamlBytes - 20) duplicates += "a: 1\n";
  while (layers.size() < kMostYamlBytes - 20) layers += "links: [{from: x, to: y}]\n";
  for (const std::string* text : {&keys, &duplicates, &layers}) {
    EXPECT_EQ(parse(*text).error().kind, ErrorKind::kTopology);
  }
}

}  // namespace
}  // namespace troupe::config
