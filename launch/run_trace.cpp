#include "launch/run_trace.h"

#include <chrono>
#include <span>

#include <fmt/format.h>

#include "runtime/base/json_text.h"

namespace troupe::launch {
namespace {

using runtime::json_string;
using Microseconds = std::chrono::duration<double, std::micro>;

}  // namespace

std::string trace_json(const std::vector<runtime::ActorTrace>& traces) {
  std::string events;
  for (std::size_t row = 0; row < traces.size(); ++row) {
    events +=
        fmt::format(R"({}{{"name":"thread_name","ph":"M","pid":1,"tid":{},"args":{{"name":{}}}}})",
                    row == 0 ? "\n" : ",\n", row, json_string(traces[row].name));
    const runtime::TraceSnapshot& trace = traces[row].trace;
    for (const runtime::TraceRecord& record : trace.records) {
      events += fmt::format(
          ",\n"
          R"({{"name":{},"ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},)"
          R"("args":{{"argument":{}}}}})",
          json_string(trace.names[record.name]), row, Microseconds(record.start).count(),
          Microseconds(record.end - record.start).count(), record.argument);
    }
  }
  return fmt::format("{{\"traceEvents\":[{}\n]}}\n", events);
}

runtime::Result<void> write_trace(const RunFolder& folder, runtime::Disk& disk,
                                  const std::vector<runtime::ActorTrace>& traces) {
  RETURN_IF_ERROR(disk.make_folder(folder.file("trace")));
  const std::string text = trace_json(traces);
  return disk.replace(folder.file("trace/local.json"), std::as_bytes(std::span{text}));
}

}  // namespace troupe::launch
