#include "actors/message_fields.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "model/exact_sum.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;

bool is_aligned(const Buffer& payload) {
  return reinterpret_cast<std::uintptr_t>(payload.data()) % alignof(std::uint64_t) == 0;
}

// A scale made from any other would be none.
bool is_exponent(std::int16_t exponent) {
  return exponent == model::kNoExponent ||
         (exponent >= model::kLeastExponent && exponent <= model::kLargestExponent);
}

bool is_of_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
         c == '/';
}

}  // namespace

const char* fault_of(const BatchMessage& body, std::span<const Buffer> payloads) {
  const std::size_t events = body.events;
  const bool sound = payloads.size() == 3 && payloads[0].size() % sizeof(float) == 0 &&
                     payloads[1].size() == events * 3 * sizeof(float) &&
                     payloads[2].size() == events * sizeof(std::uint64_t) &&
                     std::ranges::all_of(payloads, is_aligned);
  return sound ? nullptr : "a micro-batch without the events it says it has";
}

const char* fault_of(const RingBucket& body, std::span<const Buffer> payloads) {
  const BucketMessage& bucket = body.bucket;
  if (bucket.begin >= bucket.end) return "a bucket that ends before it begins";
  if (body.format.has_value() != (bucket.kind == pipeline::SumKind::kFloat32)) {
    return "a bucket whose format is of another kind";
  }
  const auto elements = static_cast<std::size_t>(bucket.end - bucket.begin);
  const std::size_t bytes = body.format ? pipeline::encoded_bytes(*body.format, elements)
                                        : elements * pipeline::bytes_of(bucket.kind);
  if (payloads.size() != 1 || payloads[0].size() != bytes) {
    return "a bucket without the elements it says it has";
  }
  return is_aligned(payloads[0]) ? nullptr : "a bucket whose elements are not aligned";
}

const char* fault_of(const RingHeader& body) {
  const pipeline::StepHeader& header = body.header;
  if (!std::ranges::all_of(header.exponents, is_exponent)) return "an exponent that no float has";
  if (header.non_finite.found() && header.non_finite.tensor >= header.exponents.size()) {
    return "a tensor beyond the last";
  }
  if (std::isnan(header.distance)) return "a distance that is no number";
  return nullptr;
}

const char* fault_of(const FigureFound& body) {
  return std::isnan(body.distance) ? "a distance that is no number" : nullptr;
}

const char* fault_of(const Sample& sample) {
  const bool sound = !sample.name.empty() && std::ranges::all_of(sample.name, is_of_a_name);
  return sound ? nullptr : "a sample whose name is none";
}

const char* fault_of(const NodeReport&, std::span<const Buffer> payloads) {
  const bool sound =
      payloads.size() <= 1 && (payloads.empty() || payloads[0].size() <= NodeReport::kMostContents);
  return sound ? nullptr : "a report with more than was wanted";
}

std::int64_t NodeReport::bytes() const {
  return static_cast<std::int64_t>(sample.actors.size() * sizeof(telemetry::ActorSample) +
                                   sample.links.size() * sizeof(telemetry::LinkSample));
}

void add_wire_messages(runtime::WireTypes& types, const StateCheck& check_state) {
  const auto fault = [check_state](const auto& body) -> std::string {
    if (!check_state || body.state == nullptr) return "";
    const runtime::Result<void> checked = check_state(*body.state);
    return checked.ok() ? "" : checked.error().message;
  };
  types.add<BeginTraining>(fault);
  types.add<Snapshot>(fault);
  types.add<ReplicaEnd>(fault);
  types.add_all<Halt, Halted, TellSteps, Teach, Lesson, Learned, TooSlow, Pace, ViewMessage,
                Entered, Feed, BatchMessage, EndOfData, RingBucket, RingHeader, StepMetrics,
                SampleMetrics, StopTraining, NeighbourLost, Leaving, Expelled, MemberFailed,
                Release, CheckpointRequest, FigureAsked, FigureFound, Probe, NodeReport>();
}

}  // namespace troupe::actors
