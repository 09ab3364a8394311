// What the head of a run is sent as the trace of a node. What is read is written again as the same,
// and the trace of two nodes that sent it is JSON.

#include <cstdint>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "fuzz/memory_meter.h"
#include "runtime/base/error.h"
#include "telemetry/trace/trace_bytes.h"
#include "telemetry/trace/trace_json.h"

namespace {

using namespace troupe;

// Twelve times the bytes are promised; the meter takes four and a constant.
constexpr std::size_t kTimes = 3;
constexpr std::size_t kConstantBytes = std::size_t{64} << 10;

// As far off as ClockOffset takes a clock to be.
constexpr runtime::Duration kFarthest{(std::int64_t{1} << 60) - 1};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const fuzz::MemoryMeter meter;
  const auto actors = telemetry::unpack_actors(bytes);
  meter.check(size * kTimes, kConstantBytes);
  if (!actors.ok()) return 0;
  for (const runtime::ActorTrace& actor : *actors) {
    for (const runtime::TraceRecord& record : actor.trace.records) {
      CHECK(record.sent || record.name < actor.trace.names.size(), "a span without a name");
    }
  }
  const auto written = telemetry::pack_actors(*actors);
  const auto again = telemetry::unpack_actors(written);
  CHECK(again.ok(), "what was written is refused");
  CHECK(telemetry::pack_actors(*again) == written, "another trace");
  telemetry::Trace trace;
  trace.nodes = {{"member.0", runtime::Duration(-1000), runtime::Duration(10), *actors},
                 {"member.1", kFarthest, kFarthest, *again}};
  trace.most_records = 1000;
  CHECK(nlohmann::json::accept(telemetry::trace_json(trace)), "no JSON");
  return 0;
}
