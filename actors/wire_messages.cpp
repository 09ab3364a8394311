#include "actors/wire_messages.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/wire_report.h"
#include "actors/wire_state.h"
#include "actors/wire_view.h"
#include "model/exact_sum.h"
#include "runtime/transport/wire_error.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::WireReader;
using runtime::WireWriter;

constexpr std::size_t kMostReason = 4096;
// Iterations under way when a View begins.
constexpr std::size_t kMostIncomplete = 4;
// Of floats; integers are 0 on the wire.
constexpr std::uint64_t kFormats = 3;

// A scale made from any other would be none.
bool is_exponent(std::int16_t exponent) {
  return exponent == model::kNoExponent ||
         (exponent >= model::kLeastExponent && exponent <= model::kLargestExponent);
}

bool is_sample_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
           c == '/';
  };
  return !name.empty() && std::ranges::all_of(name, fits);
}

void pack_state_pointer(WireWriter& out, const StatePointer& state) {
  CHECK(state != nullptr, "a message without its state");
  pack_state(out, *state);
}

StatePointer unpack_state_pointer(WireReader& in) {
  auto state = std::make_shared<pipeline::TrainingState>();
  unpack_state(in, *state);
  return state;
}

}  // namespace

void pack(WireWriter& out, const BeginTraining& body) { pack_state_pointer(out, body.state); }

void unpack(WireReader& in, BeginTraining& body) { body.state = unpack_state_pointer(in); }

void pack(WireWriter& out, const Halt& body) { pack_id(out, body.change); }

void unpack(WireReader& in, Halt& body) { body.change = unpack_id(in); }

void pack(WireWriter& out, const Teach& body) {
  out.list(2);
  out.number(body.member);
  out.flag(body.begins);
}

void unpack(WireReader& in, Teach& body) {
  in.list(2);
  body.member = in.number32();
  body.begins = in.flag();
}

void pack(WireWriter& out, const Lesson& body) {
  out.list(1);
  out.number(body.next_step);
}

void unpack(WireReader& in, Lesson& body) {
  in.list(1);
  body.next_step = in.number();
}

void pack(WireWriter& out, const TellSteps& body) {
  out.list(1);
  out.number(body.from);
}

void unpack(WireReader& in, TellSteps& body) {
  in.list(1);
  body.from = in.number();
}

void pack(WireWriter& out, const Learned& body) {
  out.list(3);
  out.number(body.replica);
  out.number(body.steps);
  out.flag(body.complete);
}

void unpack(WireReader& in, Learned& body) {
  in.list(3);
  body.replica = in.number32();
  body.steps = in.number();
  body.complete = in.flag();
}

void pack(WireWriter& out, const TooSlow& body) {
  out.list(1);
  out.number(body.member);
}

void unpack(WireReader& in, TooSlow& body) {
  in.list(1);
  body.member = in.number32();
}

void pack(WireWriter& out, const Pace& body) {
  out.list(4);
  out.number(body.replica);
  out.number(body.iteration);
  out.number(body.micro_batches);
  out.real(body.seconds);
}

void unpack(WireReader& in, Pace& body) {
  in.list(4);
  body.replica = in.number32();
  body.iteration = in.number();
  body.micro_batches = in.number();
  body.seconds = in.real();
}

void pack(WireWriter& out, const Halted& body) {
  out.list(body.view == nullptr ? 3 : 4);
  pack_id(out, body.change);
  out.number(body.next_step);
  out.number(body.kept_bytes);
  if (body.view != nullptr) pack_view(out, *body.view);
}

void unpack(WireReader& in, Halted& body) {
  const std::size_t fields = in.list_up_to(4);
  if (fields < 3) return in.fail("a member that does not tell what it has reached");
  body.change = unpack_id(in);
  body.next_step = in.number();
  body.kept_bytes = in.number();
  if (fields == 4) body.view = unpack_view(in);
}

void pack(WireWriter& out, const ViewMessage& body) {
  CHECK(body.view != nullptr, "a message without its View");
  pack_view(out, *body.view);
}

void unpack(WireReader& in, ViewMessage& body) { body.view = unpack_view(in); }

void pack(WireWriter& out, const Feed& body) {
  CHECK(body.view != nullptr, "a message without its View");
  out.list(5);
  out.number(body.replica);
  out.number(body.number);
  pack_view(out, *body.view);
  out.list(body.missing.size());
  for (const Feed::Missing& missing : body.missing) {
    out.list(2);
    out.number(missing.iteration);
    pack_numbers(out, missing.micro_batches);
  }
  out.number(body.iteration);
}

void unpack(WireReader& in, Feed& body) {
  in.list(5);
  body.replica = in.number32();
  body.number = in.number32();
  body.view = unpack_view(in);
  for (std::size_t left = in.list_up_to(kMostIncomplete); left > 0 && in.ok(); --left) {
    in.list(2);
    const std::uint64_t iteration = in.number();
    body.missing.push_back({iteration, unpack_numbers32(in, kMostMicroBatches)});
  }
  body.iteration = in.number();
}

void pack(WireWriter& out, const BatchMessage& body) {
  out.list(5);
  out.number(body.iteration);
  out.number(body.micro_batch);
  out.number(body.events);
  out.number(body.feed);
  out.number(body.replica);
}

void unpack(WireReader& in, BatchMessage& body, std::span<const Buffer> payloads) {
  in.list(5);
  body.iteration = in.number();
  body.micro_batch = in.number32();
  body.events = in.number32();
  body.feed = in.number32();
  body.replica = in.number32();
  const std::size_t events = body.events;
  const auto is_aligned = [](const Buffer& payload) {
    return reinterpret_cast<std::uintptr_t>(payload.data()) % alignof(std::uint64_t) == 0;
  };
  if (payloads.size() != 3 || payloads[0].size() % sizeof(float) != 0 ||
      payloads[1].size() != events * 3 * sizeof(float) ||
      payloads[2].size() != events * sizeof(std::uint64_t) ||
      !std::ranges::all_of(payloads, is_aligned)) {
    in.fail("a micro-batch without the events it says it has");
  }
}

void pack(WireWriter& out, const EndOfData& body) {
  out.list(1);
  out.number(body.iterations);
}

void unpack(WireReader& in, EndOfData& body) {
  in.list(1);
  body.iterations = in.number();
}

void pack(WireWriter& out, const RingBucket& body) {
  const BucketMessage& bucket = body.bucket;
  out.list(8);
  pack_id(out, bucket.view);
  out.number(bucket.step);
  out.number(bucket.attempt);
  out.number(bucket.bucket);
  out.integer(bucket.begin);
  out.integer(bucket.end);
  out.flag(body.summed);
  out.number(body.format ? 1 + static_cast<std::uint64_t>(*body.format) : 0);
}

void unpack(WireReader& in, RingBucket& body, std::span<const Buffer> payloads) {
  BucketMessage& bucket = body.bucket;
  in.list(8);
  bucket.view = unpack_id(in);
  bucket.step = in.number();
  bucket.attempt = in.number32();
  bucket.bucket = static_cast<std::uint32_t>(in.number(kMostBuckets - 1));
  bucket.begin = in.integer(0, kMostElements);
  bucket.end = in.integer(0, kMostElements);
  body.summed = in.flag();
  const std::uint64_t format = in.number(kFormats);
  if (format > 0) body.format = static_cast<pipeline::ReductionFormat>(format - 1);
  bucket.floats = body.format.has_value();
  if (bucket.begin >= bucket.end) return in.fail("a bucket that ends before it begins");
  const auto elements = static_cast<std::size_t>(bucket.end - bucket.begin);
  const std::size_t bytes = body.format ? pipeline::encoded_bytes(*body.format, elements)
                                        : elements * sizeof(std::int64_t);
  if (payloads.size() != 1 || payloads[0].size() != bytes) {
    return in.fail("a bucket without the elements it says it has");
  }
  if (reinterpret_cast<std::uintptr_t>(payloads[0].data()) % alignof(std::int64_t) != 0) {
    in.fail("a bucket whose elements are not aligned");
  }
}

void pack(WireWriter& out, const RingHeader& body) {
  const pipeline::StepHeader& header = body.header;
  out.list(17);
  pack_id(out, body.view);
  out.number(header.step);
  out.number(header.attempt);
  out.list(header.exponents.size());
  for (const std::int16_t exponent : header.exponents) out.integer(exponent);
  out.flag(header.flagged);
  out.number(header.non_finite.micro_batch);
  out.number(header.non_finite.tensor);
  out.number(header.micro_batches);
  out.number(header.events);
  out.number(header.event_sum);
  out.hash(header.state_minimum);
  out.hash(header.state_maximum);
  out.hash(header.check_minimum);
  out.hash(header.check_maximum);
  out.flag(header.stop_requested);
  out.flag(header.checkpoint_requested);
  out.flag(body.combined);
}

void unpack(WireReader& in, RingHeader& body) {
  pipeline::StepHeader& header = body.header;
  in.list(17);
  body.view = unpack_id(in);
  header.step = in.number();
  header.attempt = static_cast<std::uint32_t>(in.number(1));
  header.exponents = unpack_exponents(in);
  if (!std::ranges::all_of(header.exponents, is_exponent)) in.fail("an exponent that no float has");
  header.flagged = in.flag();
  header.non_finite.micro_batch = in.number32();
  header.non_finite.tensor = in.number32();
  if (header.non_finite.found() && header.non_finite.tensor >= header.exponents.size()) {
    in.fail("a tensor beyond the last");
  }
  header.micro_batches = in.number32();
  header.events = in.number();
  header.event_sum = in.number();
  header.state_minimum = in.hash();
  header.state_maximum = in.hash();
  header.check_minimum = in.hash();
  header.check_maximum = in.hash();
  header.stop_requested = in.flag();
  header.checkpoint_requested = in.flag();
  body.combined = in.flag();
}

void pack(WireWriter& out, const Snapshot& body) { pack_state_pointer(out, body.state); }

void unpack(WireReader& in, Snapshot& body) { body.state = unpack_state_pointer(in); }

void pack(WireWriter& out, const StepMetrics& body) {
  out.list(14);
  out.number(body.step);
  out.number(body.epoch);
  out.number(body.iteration);
  out.number(body.slot);
  out.number(body.attempts);
  out.number(body.events);
  out.number(body.event_sum);
  out.list(body.losses.size());
  for (const double loss : body.losses) out.real(loss);
  out.real(body.load_seconds);
  out.real(body.compute_seconds);
  out.real(body.reduce_seconds);
  out.real(body.apply_seconds);
  out.hash(body.state_hash);
  out.flag(body.again);
}

void unpack(WireReader& in, StepMetrics& body) {
  in.list(14);
  body.step = in.number();
  body.epoch = in.number();
  body.iteration = in.number();
  body.slot = in.number32();
  body.attempts = in.number32();
  body.events = in.number();
  body.event_sum = in.number();
  body.losses.resize(in.list_up_to(kMostLosses));
  for (double& loss : body.losses) loss = in.real();
  body.load_seconds = in.real();
  body.compute_seconds = in.real();
  body.reduce_seconds = in.real();
  body.apply_seconds = in.real();
  body.state_hash = in.hash();
  body.again = in.flag();
}

void pack(WireWriter& out, const SampleMetrics& body) {
  CHECK(body.samples.size() <= kMostSamples, "more samples than one message may have");
  out.list(1);
  out.list(body.samples.size());
  for (const Sample& sample : body.samples) {
    out.list(2);
    out.text(sample.name);
    out.real(sample.value);
  }
}

void unpack(WireReader& in, SampleMetrics& body) {
  in.list(1);
  body.samples.resize(in.list_up_to(kMostSamples));
  for (Sample& sample : body.samples) {
    in.list(2);
    sample.name = in.text(kMostSampleName);
    sample.value = in.real();
    if (!is_sample_name(sample.name)) return in.fail("a sample whose name is none");
  }
}

void pack(WireWriter& out, const ReplicaEnd& body) {
  out.list(7);
  out.number(body.replica);
  if (body.state != nullptr) {
    pack_state(out, *body.state);
  } else {
    out.none();
  }
  if (body.error) {
    runtime::write_error(out, *body.error);
  } else {
    out.none();
  }
  out.real(body.seconds);
  out.number(body.timed_events);
  if (body.last_step) {
    pack(out, *body.last_step);
  } else {
    out.none();
  }
  out.number(body.validations);
}

void unpack(WireReader& in, ReplicaEnd& body) {
  in.list(7);
  body.replica = in.number32();
  if (in.present()) body.state = unpack_state_pointer(in);
  if (in.present()) body.error = runtime::read_error(in);
  body.seconds = in.real();
  body.timed_events = in.number();
  if (in.present()) unpack(in, body.last_step.emplace());
  body.validations = in.number();
}

void pack(WireWriter& out, const StopTraining&) { out.list(0); }

void unpack(WireReader& in, StopTraining&) { in.list(0); }

void pack(WireWriter& out, const FellowLost& body) {
  out.list(2);
  out.text(body.node);
  runtime::write_error(out, body.error);
}

void unpack(WireReader& in, FellowLost& body) {
  in.list(2);
  body.node = in.text(kMostActorName);
  body.error = runtime::read_error(in);
}

void pack(WireWriter& out, const Leaving&) { out.list(0); }

void unpack(WireReader& in, Leaving&) { in.list(0); }

void pack(WireWriter& out, const Expelled& body) { runtime::write_error(out, body.error); }

void unpack(WireReader& in, Expelled& body) { body.error = runtime::read_error(in); }

void pack(WireWriter& out, const MemberFailed& body) {
  out.list(2);
  out.text(body.actor);
  runtime::write_error(out, body.error);
}

void unpack(WireReader& in, MemberFailed& body) {
  in.list(2);
  body.actor = in.text(kMostActorName);
  body.error = runtime::read_error(in);
}

void pack(WireWriter& out, const Release& body) {
  out.list(1);
  out.text(body.why.substr(0, kMostReason));
}

void unpack(WireReader& in, Release& body) {
  in.list(1);
  body.why = in.text(kMostReason);
}

void pack(WireWriter& out, const CheckpointRequest&) { out.list(0); }

void unpack(WireReader& in, CheckpointRequest&) { in.list(0); }

void add_wire_messages(runtime::WireTypes& types, const StateCheck& check_state) {
  const auto fault = [check_state](const auto& body) -> std::string {
    if (!check_state || body.state == nullptr) return "";
    const runtime::Result<void> checked = check_state(*body.state);
    return checked.ok() ? "" : checked.error().message;
  };
  types.add<BeginTraining>(fault);
  types.add<Halt>();
  types.add<Halted>();
  types.add<TellSteps>();
  types.add<Teach>();
  types.add<Lesson>();
  types.add<Learned>();
  types.add<TooSlow>();
  types.add<Pace>();
  types.add<ViewMessage>();
  types.add<Feed>();
  types.add<BatchMessage>();
  types.add<EndOfData>();
  types.add<RingBucket>();
  types.add<RingHeader>();
  types.add<Snapshot>(fault);
  types.add<StepMetrics>();
  types.add<SampleMetrics>();
  types.add<ReplicaEnd>(fault);
  types.add<StopTraining>();
  types.add<FellowLost>();
  types.add<Leaving>();
  types.add<Expelled>();
  types.add<MemberFailed>();
  types.add<Release>();
  types.add<CheckpointRequest>();
  types.add<Probe>();
  types.add<NodeReport>();
}

}  // namespace troupe::actors
