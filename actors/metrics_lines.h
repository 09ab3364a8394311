#pragma once

// The lines of metrics.jsonl, as docs/watching.md lists them. `time`: seconds since 1970.

#include <cstdint>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "model/gan.h"
#include "telemetry/record.h"

namespace troupe::actors {

// `node` is the one that writes it.
std::string run_line(const telemetry::RunFacts& facts, const telemetry::NodeFacts& node,
                     double time, std::uint64_t step);
// The slot is one of the schedule's, and there are as many losses as terms.
std::string step_line(const StepMetrics& step, double time,
                      const std::vector<model::LossTerm>& losses,
                      const std::vector<model::SlotKind>& schedule);
std::string event_line(const EventMetrics& event, double time);
std::string node_line(const NodeChange& change, double time, std::uint64_t step);
// `file`: its name in RUN/showers.
std::string showers_line(const std::string& file, double time, std::uint64_t step);
// `values`: of a SampleBoard.
std::string samples_line(const std::string& values, double time, std::uint64_t step);

}  // namespace troupe::actors
