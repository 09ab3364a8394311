// make_fuzz_seeds FOLDER: writes the first inputs of every fuzz target into FOLDER/TARGET. The same
// files each time, from nothing but this program.

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/message_fields.h"
#include "config/topology.h"
#include "fuzz/contributor.h"
#include "fuzz/data_seeds.h"
#include "fuzz/frames.h"
#include "fuzz/seed_folder.h"
#include "fuzz/talk.h"
#include "fuzz/watching_seeds.h"
#include "fuzz/wire_script.h"
#include "launch/meeting/invitation.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/steps/reduction_format.h"
#include "runtime/base/error.h"
#include "runtime/transport/packets.h"
#include "tests/pipeline/state_example.h"

namespace {

using namespace troupe;
using fuzz::Folder;
using runtime::Buffer;
using runtime::Message;

runtime::Hello hello() {
  runtime::Hello hello;
  hello.node = "node-1";
  hello.incarnation = 7;
  hello.peer_incarnation = 9;
  hello.host = "host";
  hello.pid = 4242;
  hello.machine = "machine";
  hello.terms = {{"topology", "0123456789abcdef"}, {"numerics", "portable"}};
  hello.received = {1, 200, 70000};
  return hello;
}

void add_introductions(const Folder& folder) {
  folder.add("hello", pack(hello()));
  runtime::Welcome welcome;
  static_cast<runtime::Introduction&>(welcome) = hello();
  folder.add("welcome", pack(welcome));
  folder.add("refusal", pack(runtime::Refusal{{runtime::ErrorKind::kTopology, "another one"}}));
  folder.add("enrolment", pack(runtime::Enrolment{"", "host", 4242, "hpc.3@1a2b"}));
  using Kind = runtime::HeadRequest::Kind;
  folder.add("drain", pack(runtime::HeadRequest{Kind::kDrain, "member.2", "", "host", 4242}));
  folder.add("burst", pack(runtime::HeadRequest{Kind::kBurst, "hpc", "+4", "host", 4242}));
  folder.add("granted", pack(runtime::Granted{"member.2 has left the run"}));
  folder.add("not-now", pack(runtime::NotNow{"every member slot is promised"}));
  const std::string contents = "contents";
  folder.add("invitation", pack(runtime::Invitation{
                               "node-1", Buffer::copy_of(std::as_bytes(std::span(contents)))}));
}

void add_node_packets(const Folder& folder) {
  folder.add("account", pack(runtime::Account{{1, 2, 3}, {{0, 5, 600}, {3, 1, 70000}}}));
  folder.add("heartbeat", pack(runtime::Heartbeat{12345, 350, 16000}));
  folder.add("unheard", pack(runtime::Unheard{"node-2", 2000}));
  folder.add("bye", pack(runtime::Bye{}));
  folder.add("graph-request", pack(runtime::GraphRequest{}));
  const runtime::DirectoryEntry known{"member.1", "tcp://10.0.0.5:40001", std::string(40, 'k'), 7,
                                      true};
  const runtime::Directory directory{2, {known, {"member.2", "", "", 0, false}}};
  folder.add("directory", pack(directory));
  folder.add("directory-heard", pack(runtime::DirectoryHeard{2}));
  folder.add("wanted", pack(runtime::Wanted{{"member.1", "member.2"}}));
  runtime::GraphAnswer answer;
  runtime::ActorWait actor;
  actor.name = "loader.0";
  actor.words = "credit";
  answer.graph.actors = {actor, actor};
  runtime::LinkWait link;
  link.to = 1;
  link.from_port = "out";
  link.to_port = "in";
  link.messages_out = 3;
  answer.graph.links = {link};
  folder.add("graph-answer", pack(answer));
}

template <class Body>
void add_envelope(const Folder& folder, const runtime::WireTypes& types, Body body,
                  std::vector<Buffer> payloads = {}) {
  runtime::Envelope envelope;
  envelope.sequence = 3;
  envelope.link = 1;
  envelope.message = Message::of(std::move(body), std::move(payloads));
  folder.add("envelope-" + std::string(Body::kName), pack(envelope, types));
}

// For three micro-batches, dealt out to the members' only replicas.
actors::ViewMessage view_of(pipeline::ViewId id, std::vector<std::uint32_t> ring,
                            std::vector<std::uint64_t> reached) {
  pipeline::View view;
  view.id = id;
  view.first_step = *std::max_element(reached.begin(), reached.end());
  for (std::size_t i = 0; i < 3; ++i) view.owners.push_back(ring[i % ring.size()]);
  view.ring = std::move(ring);
  view.reached = std::move(reached);
  return {std::make_shared<const pipeline::View>(std::move(view))};
}

actors::NodeReport node_report() {
  actors::NodeReport report;
  report.request = 9;
  report.wants = actors::Probe::Wants::kTrace;
  report.sample.node = "node-1";
  report.sample.cpu_seconds = 1.5;
  report.sample.actors = {{"replica.0", "waiting", 7}};
  report.sample.links.resize(1);
  return report;
}

void add_envelopes(const Folder& folder) {
  runtime::WireTypes types;
  actors::add_wire_messages(types);
  const pipeline::StateExample example = pipeline::state_example();
  add_envelope(folder, types, actors::RingBucket{{5, 0, 1, 8, 12, {}, {1, 2}}, true, std::nullopt},
               {Buffer::zeroed(32)});
  actors::RingHeader header;
  header.header.exponents = {-3, 4, 128};
  header.header.non_finite = {1, 2};
  add_envelope(folder, types, header);
  // The example has a number of its own in every field, a slot beyond its schedule included.
  pipeline::TrainingState sound = pipeline::filled_state(example);
  sound.slot = 1;
  const auto pointer = std::make_shared<const pipeline::TrainingState>(std::move(sound));
  add_envelope(folder, types, actors::Snapshot{pointer});
  actors::StepMetrics metrics;
  metrics.step = 77;
  metrics.losses = {0.5, 2.0};
  add_envelope(folder, types, metrics);
  add_envelope(folder, types, actors::SampleMetrics{{{"compute_seconds", 0.25}, {"a/b", -1.0}}});
  actors::ReplicaEnd end;
  end.state = pointer;
  end.error = runtime::Error{runtime::ErrorKind::kDiverged, "why"};
  end.last_step = metrics;
  add_envelope(folder, types, end);
  add_envelope(folder, types, actors::StopTraining{});
  add_envelope(folder, types, actors::CheckpointRequest{});
  add_envelope(folder, types, actors::FigureAsked{44});
  add_envelope(folder, types, actors::FigureFound{44, 0.5});
  add_envelope(folder, types, actors::Halt{{1, 2}});
  add_envelope(folder, types, actors::Halted{{1, 2}, 5});
  add_envelope(folder, types, actors::Learned{2, actors::kProvenSteps});
  add_envelope(folder, types, actors::TooSlow{3});
  add_envelope(folder, types, actors::Pace{2, 9, 80, 0.5});
  const actors::ViewMessage view = view_of({1, 2}, {4, 2, 6}, {5, 4, 5});
  add_envelope(folder, types, view);
  add_envelope(folder, types, actors::Feed{2, 3, view.view, {{1, {0, 2}}, {2, {1}}}, 3});
  add_envelope(folder, types, actors::BatchMessage{3, 1, 2, 3, 2},
               {Buffer::zeroed(64), Buffer::zeroed(24), Buffer::zeroed(16)});
  add_envelope(folder, types, actors::EndOfData{9});
  add_envelope(folder, types, actors::NeighbourLost{"member.1", *end.error});
  add_envelope(folder, types, actors::Leaving{});
  add_envelope(folder, types, actors::Expelled{*end.error});
  add_envelope(folder, types, actors::Release{"somebody has asked for it"});
  add_envelope(folder, types,
               actors::Probe{9, runtime::TimePoint(1000), actors::Probe::Wants::kTrace});
  add_envelope(folder, types, node_report(), {Buffer::zeroed(16)});
  runtime::Envelope back;
  back.sequence = 4;
  back.sender = "replica.0";
  back.target = "coordinator";
  back.cause = runtime::Error{runtime::ErrorKind::kLostPeers, "its node is gone"};
  back.message = Message::of(actors::StopTraining{});
  folder.add("envelope-back", pack(back, types));
}

// Says the messages of one node: their numbers in their lanes, one after another.
class Speaker {
 public:
  Speaker(std::vector<std::byte>& talk, unsigned number, const runtime::WireTypes& types)
      : talk_(talk), number_(number), types_(types) {}

  // Says more in another talk that begins as this one.
  Speaker in(std::vector<std::byte>& talk) const {
    Speaker other(talk, number_, types_);
    other.said_ = said_;
    return other;
  }

  Speaker& connect() {
    fuzz::act(talk_, fuzz::Deed::kConnect, number_);
    return *this;
  }
  Speaker& say(const runtime::Packet& packet) {
    fuzz::say(talk_, 0, packet, number_);
    return *this;
  }
  // Over the link of that position in the plan.
  Speaker& send(std::uint32_t link, unsigned lane, Message message) {
    runtime::Envelope envelope;
    envelope.link = link;
    return send(std::move(envelope), lane, std::move(message));
  }
  Speaker& send(const std::string& sender, const std::string& target, Message message) {
    runtime::Envelope envelope;
    envelope.sender = sender;
    envelope.target = target;
    return send(std::move(envelope), 0, std::move(message));
  }

 private:
  Speaker& send(runtime::Envelope envelope, unsigned lane, Message message) {
    envelope.sequence = ++said_[lane];
    envelope.message = std::move(message);
    fuzz::say(talk_, lane, pack(envelope, types_), number_);
    return *this;
  }

  std::vector<std::byte>& talk_;
  const unsigned number_;
  const runtime::WireTypes& types_;
  std::array<std::uint64_t, runtime::kLanes> said_{};
};

using Contributor = fuzz::Contributor;

// A bucket of the first step, as fuzz/contributor.h cuts it.
Message ring_bucket(std::uint32_t number, bool summed,
                    std::optional<pipeline::ReductionFormat> format = std::nullopt,
                    pipeline::ViewId view = {1, 1}) {
  const std::int64_t begin = number * Contributor::kElements;
  actors::RingBucket body{{0, 0, number, begin, begin + Contributor::kElements}, summed, format};
  if (format) body.bucket.kind = pipeline::SumKind::kFloat32;
  body.bucket.view = view;
  constexpr std::size_t kCount = Contributor::kElements;
  const std::size_t bytes =
      format ? pipeline::encoded_bytes(*format, kCount) : kCount * sizeof(std::int64_t);
  return Message::of(std::move(body), {Buffer::zeroed(bytes)});
}

Message ring_header(std::uint32_t micro_batches, bool combined, pipeline::ViewId view = {1, 1}) {
  actors::RingHeader header;
  header.header.exponents.resize(Contributor::kTensors);
  header.header.micro_batches = micro_batches;
  header.combined = combined;
  header.view = view;
  return Message::of(std::move(header));
}

runtime::Hello introduction_of(const std::string& node, std::uint64_t incarnation) {
  runtime::Hello known = hello();
  known.node = node;
  known.incarnation = incarnation;
  known.peer_incarnation = 0;
  known.terms = {{"topology", "0123456789abcdef"}};
  known.received = {};
  return known;
}

runtime::Welcome welcome_of(const std::string& node, std::uint64_t incarnation) {
  runtime::Welcome welcome;
  static_cast<runtime::Introduction&>(welcome) = introduction_of(node, incarnation);
  return welcome;
}

// The other member of the ring of fuzz_handshake's head: it makes a step with it, and ends.
std::vector<std::byte> training_talk(const runtime::WireTypes& types) {
  const pipeline::StateExample example = pipeline::state_example();
  std::vector<std::byte> talk;
  Speaker member(talk, 0, types);
  member.connect().say(pack(introduction_of("node-1", 7))).say(pack(runtime::Heartbeat{1}));
  // Home of bucket 0 and of the header is the head, that of bucket 1 the member.
  member.send(0, 1, ring_bucket(0, false)).send(0, 1, ring_bucket(1, true));
  member.send(0, 1, ring_header(example.options.micro_batches - 1, false));
  actors::StepMetrics metrics;
  metrics.losses.resize(example.layout.loss_weights.size());
  member.send(3, 2, Message::of(actors::StepMetrics(metrics)));
  member.send(3, 2, Message::of(actors::SampleMetrics{{{"compute_seconds", 0.25}}}));
  member.send(6, 2, Message::of(node_report()));
  const auto state = std::make_shared<const pipeline::TrainingState>(
      pipeline::initial_state(example.layout, example.options, "", {}));
  member.send(2, 1, Message::of(actors::Snapshot{state}));
  actors::ReplicaEnd end;
  end.replica = 1;
  end.state = state;
  end.last_step = metrics;
  member.send("replica.1", "coordinator", Message::of(std::move(end)));
  return talk;
}

// With the head of fuzz_handshake, whose peer is node-1 and whose topology is this one.
void add_talks(const Folder& folder) {
  const runtime::Hello known = introduction_of("node-1", 7);
  runtime::WireTypes types;
  actors::add_wire_messages(types);
  std::vector<std::byte> talk;
  Speaker member(talk, 0, types);
  member.connect().say(pack(known));
  folder.add("hello", talk);
  member.say(pack(runtime::Heartbeat{1})).send(0, 1, ring_bucket(0, false));
  fuzz::act(talk, fuzz::Deed::kWait);
  member.say(pack(runtime::GraphRequest{}));
  member.say(pack(runtime::Account{{0, 0, 0}, {{1, 0, 0}}}));
  folder.add("envelope", talk);
  folder.add("training", training_talk(types));
  // The head goes on alone.
  std::vector<std::byte> leaving = talk;
  member.in(leaving).send("node-1", "coordinator", Message::of(actors::Leaving{}));
  folder.add("leaving", leaving);
  std::vector<std::byte> back = talk;
  Speaker again(back, 0, types);
  runtime::Hello knowing = known;
  knowing.peer_incarnation = 1;
  again.connect().say(pack(knowing)).send(0, 1, ring_bucket(0, false));
  folder.add("back-again", back);
  fuzz::say(talk, 0, pack(runtime::Bye{}));
  folder.add("bye", talk);
  std::vector<std::byte> refused;
  Speaker(refused, 0, types).connect().say(pack(hello()));
  folder.add("another-topology", refused);
  std::vector<std::byte> enrolled;
  Speaker(enrolled, 0, types)
      .connect()
      .say(pack(runtime::Enrolment{"", "host", 4242, "hpc.3@1a2b"}));
  folder.add("enrolment", enrolled);
  const runtime::HeadRequest drain{runtime::HeadRequest::Kind::kDrain, "node-1", "", "host", 4242};
  std::vector<std::byte> nobody;
  Speaker(nobody, 0, types).connect().say(pack(drain));
  fuzz::act(nobody, fuzz::Deed::kWait);
  folder.add("drain-too-early", nobody);
  // The only speaker asks over another connection, and the member's own breaks meanwhile.
  std::vector<std::byte> drained = talk;
  Speaker(drained, 0, types).connect().say(pack(drain)).say(pack(drain));
  fuzz::act(drained, fuzz::Deed::kWait);
  folder.add("drain", drained);
}

// With the member of fuzz_neighbours: speaker 0 is its head, 1 the neighbour that it dials, 2 the
// one that dials it.
void add_neighbour_talks(const Folder& folder) {
  runtime::WireTypes types;
  actors::add_wire_messages(types);
  runtime::Directory directory;
  directory.edition = 1;
  directory.entries = {{"member.0", "tcp://127.0.0.1:40001", "", 20, true},
                       {"member.2", "tcp://127.0.0.1:40002", "", 30, false}};
  std::vector<std::byte> talk;
  Speaker head(talk, 0, types), before(talk, 1, types), behind(talk, 2, types);
  // Meanwhile the member dials its head.
  fuzz::act(talk, fuzz::Deed::kWait);
  head.connect().say(pack(welcome_of("head", 10))).say(pack(directory));
  folder.add("directory", talk);
  std::vector<std::byte> ended = talk;
  runtime::Directory over = directory;
  over.edition = 2;
  over.entries[0] = {"member.0", "", "", 0, false};
  fuzz::say(ended, 0, pack(over));
  folder.add("neighbour-ended", ended);
  before.connect().say(pack(welcome_of("member.0", 20)));
  behind.connect().say(pack(introduction_of("member.2", 30))).say(pack(runtime::Heartbeat{1}));
  folder.add("neighbours", talk);
  std::vector<std::byte> released = talk;
  Speaker(released, 0, types).send("coordinator", "member.1", Message::of(actors::Release{}));
  folder.add("release", released);
  std::vector<std::byte> parted = talk;
  Speaker(parted, 1, types).say(pack(runtime::Bye{}));
  fuzz::act(parted, fuzz::Deed::kClose, 2);
  Speaker(parted, 2, types).connect().say(pack(introduction_of("member.2", 31)));
  folder.add("parted", parted);
  // The member begins bucket 0 and is home of bucket 1; the header goes with bucket 0.
  const auto format = pipeline::ReductionFormat::kInt8;
  head.send("coordinator", "reducer.1", Message::of(view_of({1, 1}, {0, 1, 2}, {0, 0, 0})));
  // The sums of the first step are here but for one when the other neighbour goes on with it.
  std::vector<std::byte> changed = talk;
  Speaker told = head.in(changed), gives = behind.in(changed);
  before.in(changed).send(0, 1, ring_bucket(1, false)).send(0, 1, ring_bucket(0, true, format));
  constexpr pipeline::ViewId kLater{1, 2};
  told.send("coordinator", "reducer.1", Message::of(actors::Halt{kLater}));
  told.send("coordinator", "reducer.1", Message::of(view_of(kLater, {1, 2}, {0, 1})));
  gives.send(6, 1, ring_bucket(0, true, format, kLater));
  gives.send(6, 1, ring_bucket(1, true, std::nullopt, kLater));
  gives.send(6, 1, ring_header(3, true, kLater));
  folder.add("view-changed", changed);
  before.send(0, 1, ring_bucket(1, false)).send(0, 1, ring_bucket(0, true, format));
  before.send(0, 1, ring_header(3, true));
  head.send("coordinator", "replica.1", Message::of(actors::StopTraining{}));
  folder.add("training", talk);
}

// What the sockets of a connection bring.
void add_wire_scripts(const Folder& folder) {
  const runtime::Route route{{17, 18}, runtime::SocketId::kData};
  const std::string text = route.text();
  fuzz::WireScriptWriter handshake;
  handshake.frames(0, {runtime::write_attach({route, {4242, 7, 4096, {1, 2}}})})
      .frames(0, {runtime::write_welcome({true, {4243, 8, 8192, {3, 4}}})})
      .frames(0, {runtime::write_ready({true})})
      .frames(0, {write_bare(runtime::FrameKind::kBye)})
      .frames(0, {runtime::write_refuse("no")})
      .frames(0, {Buffer::copy_of(std::as_bytes(std::span(text)))});
  folder.add("handshake", handshake.script());
  fuzz::WireScriptWriter packets;
  const runtime::PayloadEntry entry{5, runtime::PayloadEntry::How::kFrame, {}};
  packets
      .frames(0,
              {runtime::write_packet(runtime::Lane::kControl, {&entry, 1}, {}), Buffer::zeroed(5)})
      .packet(1, {3, 100})
      .packet(2, {});
  folder.add("packets", packets.script());
  fuzz::WireScriptWriter chunks;  // a payload of two full ones and a byte, and its neighbours
  chunks.packet(1, {7}).packet(1, {129, 3}).chunk(1, true).packet(0, {128}).chunk(1, true);
  chunks.chunk(0, true).chunk(1, false).chunk(0, false).packet(1, {});
  folder.add("chunks", chunks.script());
  fuzz::WireScriptWriter early;
  early.packet(1, {129}).chunk(1, true).packet(1, {});
  folder.add("early-packet", early.script());
}

void add_checkpoints(const Folder& folder) {
  const pipeline::StateExample example = pipeline::state_example();
  pipeline::Checkpoint checkpoint;
  checkpoint.state = pipeline::filled_state(example);
  checkpoint.state.seed = example.options.seed;
  checkpoint.state.slot = 1;
  checkpoint.state.micro_batch = example.options.micro_batch;
  checkpoint.state.micro_batches = example.options.micro_batches;
  checkpoint.topology = "name: example\n";
  checkpoint.model = "example";
  const Buffer file =
      pipeline::encode_checkpoint(checkpoint, example.layout, example.options).value();
  CHECK(pipeline::decode_checkpoint(file, "seed", example.layout, example.options).ok());
  std::vector<std::byte> whole{std::byte{0}};
  whole.insert(whole.end(), file.bytes().begin(), file.bytes().end());
  folder.add("whole", whole);
  // One edit each (hostile_hdf5.h), of the objects in the middle.
  for (char kind = 0; kind < 9; ++kind) {
    folder.add_text("edit-" + std::to_string(kind), std::string{1, kind, 9, 40, 2, kind, 40, 3, 3});
  }
}

void add_keras_files(const Folder& folder) {
  for (char kind = 0; kind < 9; ++kind) {
    folder.add_text("edit-" + std::to_string(kind), std::string{0, kind, 9, 40, 2, kind, 40, 3, 3});
    folder.add_text("head-" + std::to_string(kind), std::string{2, kind, 1, 40, 3, kind, 40, 3, 3});
  }
  // The names of layers, then those of each layer's weights.
  folder.add_text("names",
                  "\x01layers\n\ndense_1/kernel:0\ndense_1/bias:0\nconv3d_1/kernel:0\n"
                  "conv3d_1/bias:0\nnorm_1/gamma:0\nnorm_1/beta:0\nnorm_1/moving_mean:0\n"
                  "norm_1/moving_variance:0\n");
  folder.add_text("spread", "\x05layers\n\ndense_1/kernel:0\ndense_1/bias:0\n");
  folder.add_text("strange-names",
                  "\x01layers\n.\n/\n../layers\n\ndense_1\n/layers/dense_1/kernel:0\nkernel\n"
                  "dense_1/../dense_1/bias:0\n");
}

void add_invitations(const Folder& folder) {
  constexpr std::uint32_t kMost = config::kMostMembers;
  const auto add = [&](const char* name, const launch::MemberInvitation& invitation) {
    folder.add(name, launch::pack_invitation(invitation).bytes());
  };
  constexpr launch::DataIdentity kData{{7, 9}, 11, 3};
  add("sound", {"name: a\nmodel: {zoo: toy}\n", 2, 4, "/data", "node-a", kData});
  add("most-members", {"", kMost, kMost, "", "", kData});
  // What only another version would write.
  add("no-members", {"", 0, 1, "", "", kData});
  add("too-many-members", {"", kMost + 1, kMost + 1, "", "", kData});
  add("fewer-places", {"", 2, 1, "", "", kData});
  add("long-path", {"", 1, 1, std::string(4097, 'a'), "node-a", kData});
  add("no-iterations", {"", 1, 1, "", "", {}});
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: make_fuzz_seeds FOLDER\n";
    return 2;
  }
  const std::filesystem::path root = arguments[1];
  const Folder packets(root / "fuzz_wire_header");
  add_introductions(packets);
  add_node_packets(packets);
  add_envelopes(packets);
  add_talks(Folder(root / "fuzz_handshake"));
  add_neighbour_talks(Folder(root / "fuzz_neighbours"));
  add_wire_scripts(Folder(root / "fuzz_wire_frames"));
  add_checkpoints(Folder(root / "fuzz_checkpoint"));
  add_keras_files(Folder(root / "fuzz_keras"));
  add_invitations(Folder(root / "fuzz_invitation"));
  fuzz::add_watching_seeds(root);
  fuzz::add_data_seeds(root);
  return 0;
}
