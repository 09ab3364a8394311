#include "actors/metrics_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/json_text.h"

namespace troupe::actors {
namespace {

using runtime::json_number;
using runtime::json_string;

// The beginning of every line.
std::string head(std::string_view kind, double time, std::uint64_t step) {
  return fmt::format(R"({{"kind":"{}","step":{},"time":{:.3f})", kind, step, time);
}

}  // namespace

std::string run_line(const telemetry::RunFacts& facts, const telemetry::NodeFacts& node,
                     double time, std::uint64_t step) {
  std::vector<std::string> schedule, losses;
  for (const std::string& slot : facts.schedule) schedule.push_back(json_string(slot));
  for (const auto& [name, weight] : facts.losses) {
    losses.push_back(fmt::format("[{},{}]", json_string(name), json_number(weight)));
  }
  return head("run", time, step) +
         fmt::format(R"(,"name":{},"model":{},"version":{},"schedule":[{}],"losses":[{}],)",
                     json_string(facts.name), json_string(facts.model), json_string(facts.version),
                     fmt::join(schedule, ","), fmt::join(losses, ",")) +
         fmt::format(R"("iterations":{},"iterations_per_epoch":{},"micro_batches":{},)"
                     R"("micro_batch":{},"price_per_node_hour":{},"node":{},"host":{},"role":{},)"
                     R"("pid":{}}})",
                     facts.iterations, facts.iterations_per_epoch, facts.micro_batches,
                     facts.micro_batch, json_number(facts.price_per_node_hour),
                     json_string(node.name), json_string(node.host), json_string(node.role),
                     node.pid);
}

std::string step_line(const StepMetrics& step, double time,
                      const std::vector<model::LossTerm>& losses,
                      const std::vector<model::SlotKind>& schedule) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < step.losses.size(); ++i) {
    values.push_back(fmt::format(R"("{}":{})", losses[i].output, json_number(step.losses[i])));
  }
  return head("step", time, step.step) +
         fmt::format(R"(,"epoch":{},"iteration":{},"slot":"{}","attempts":{},"events":{},)"
                     R"("event_sum":"{:016x}","losses":{{{}}},)",
                     step.epoch, step.iteration, model::slot_name(schedule[step.slot]),
                     step.attempts, step.events, step.event_sum, fmt::join(values, ",")) +
         fmt::format(R"("seconds":{{"load":{},"compute":{},"reduce":{},"apply":{}}},)"
                     R"("state_hash":"{}"}})",
                     json_number(step.load_seconds), json_number(step.compute_seconds),
                     json_number(step.reduce_seconds), json_number(step.apply_seconds),
                     step.state_hash.text());
}

std::string event_line(const EventMetrics& event, double time) {
  return head(event.kind, time, event.step) + fmt::format(R"(,"fields":{}}})", event.json);
}

std::string node_line(const NodeChange& change, double time, std::uint64_t step) {
  return head("node", time, step) +
         fmt::format(R"(,"node":{},"state":"{}","host":{},"pid":{},"address":{},"cause":{}}})",
                     json_string(change.node), change.state, json_string(change.host), change.pid,
                     json_string(change.address), json_string(change.cause));
}

std::string showers_line(const std::string& file, double time, std::uint64_t step) {
  return head("showers", time, step) + fmt::format(R"(,"file":"showers/{}"}})", file);
}

std::string samples_line(const std::string& values, double time, std::uint64_t step) {
  return head("samples", time, step) + fmt::format(R"(,"values":{}}})", values);
}

}  // namespace troupe::actors
