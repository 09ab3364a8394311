#include "tests/actors/wire_parts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "tests/actors/field_archives.h"

namespace troupe::actors {
namespace {

// The turns of a state before its slot: some workers in each, and in the last of an iteration those
// that are left. The first of them have had theirs.
void take_turns(pipeline::TurnState& turns, const pipeline::TrainingState& state, Draw& draw) {
  const std::size_t at_a_time = 1 + draw.up_to(2), slots = state.scales.size();
  const std::size_t count = slots * at_a_time - draw.up_to(at_a_time - 1);
  const std::size_t had = state.slot * at_a_time, left = count - had;
  turns.workers.resize(count, turns.workers.front());
  for (std::size_t i = 0; i < count; ++i) {
    turns.workers[i].turns = state.iteration + (i < had ? 1 : 0);
  }
  const std::size_t taken = std::min(at_a_time, left);
  const std::size_t first = had + draw.up_to(left - taken);
  turns.next = {};
  for (std::size_t i = 0; i < taken; ++i) {
    turns.next.add(static_cast<std::uint32_t>(first + i));
  }
}

}  // namespace

pipeline::ViewId draw_id(Draw& draw) { return {draw.number32(), draw.number32()}; }

pipeline::View make_sound(pipeline::View view, Draw& draw) {
  view.first_step = std::max<std::uint64_t>(view.first_step, 1);
  view.ring.clear();
  view.reached.clear();
  view.newcomers.clear();
  const std::size_t members = 1 + draw.up_to(9);
  for (std::uint32_t member = draw.number32() / 2; view.ring.size() < members; ++member) {
    view.ring.insert(view.ring.begin() + draw.index(view.ring.size()), member);
    view.reached.push_back(view.first_step - draw.up_to(1));
  }
  view.reached[draw.up_to(members - 1)] = view.first_step;
  view.rows.clear();
  if (members > 1 && draw.up_to(1) == 1) view.rows = {0, static_cast<std::uint32_t>(members) - 1};
  view.owners.push_back(draw.number32());
  return view;
}

pipeline::TrainingState make_sound(pipeline::TrainingState state, Draw& draw) {
  const auto make_whole = [&](auto& networks) {
    for (pipeline::NetworkState* network : {&networks.generator, &networks.discriminator}) {
      network->optimiser_arrays = draw.floats(network->weights.size() * draw.up_to(3));
    }
  };
  make_whole(state);
  if (state.turns) {
    auto& workers = state.turns->workers;
    if (workers.empty()) workers.emplace_back();
    for (pipeline::WorkerState& worker : workers) make_whole(worker);
  }
  if (state.scales.empty()) state.scales.emplace_back();
  state.slot = static_cast<std::uint32_t>(draw.up_to(state.scales.size() - 1));
  if (state.turns) take_turns(*state.turns, state, draw);
  return state;
}

FigureFound make_sound(FigureFound body, Draw&) {
  if (std::isnan(body.distance)) body.distance = 0.0;
  return body;
}

RingHeader make_sound(RingHeader body, Draw& draw) {
  pipeline::StepHeader& header = body.header;
  if (std::isnan(header.distance)) header.distance = 0.0;
  for (auto& exponent : header.exponents) exponent = draw.exponent();
  for (auto& offer : header.next) offer.worker %= pipeline::kMostWorkersInTurns;
  header.non_finite = {};
  if (!header.exponents.empty() && draw.flag()) {
    header.non_finite = {draw.number32(),
                         static_cast<std::uint32_t>(draw.up_to(header.exponents.size() - 1))};
  }
  return body;
}

Sample make_sound(Sample sample, Draw& draw) {
  constexpr std::string_view kLetters = "abcxyz0189_.-/";
  sample.name.resize(std::max<std::size_t>(sample.name.size(), 1));
  for (char& c : sample.name) c = kLetters[draw.up_to(kLetters.size() - 1)];
  return sample;
}

telemetry::NodeSample make_sound(telemetry::NodeSample sample, Draw& draw) {
  sample.cpu_seconds = 0.5 * draw.number32();
  for (telemetry::DeviceSample& device : sample.devices) {
    device.busy = 0.5 * draw.number32();
    device.watts = device.celsius = -1.0;
  }
  return sample;
}

runtime::WireTypes wire_types() {
  runtime::WireTypes types;
  add_wire_messages(types);
  return types;
}

std::string problem_of(const Parts& parts) {
  static const runtime::WireTypes kTypes = wire_types();
  runtime::WireReader in(parts.header, parts.attachments);
  const auto message = kTypes.unpack(parts.name, in, parts.payloads);
  in.finished();
  return in.problem();
}

}  // namespace troupe::actors
