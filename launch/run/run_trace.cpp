#include "launch/run/run_trace.h"

#include <filesystem>
#include <span>

#include "telemetry/trace/trace_json.h"

namespace troupe::launch {

runtime::Result<void> write_trace(const std::string& path, runtime::Disk& disk,
                                  const std::vector<runtime::ActorTrace>& traces) {
  const std::filesystem::path file(path);
  const std::string folder = file.parent_path().string();
  if (!folder.empty()) RETURN_IF_ERROR(disk.make_folder(folder));
  telemetry::Trace trace;
  trace.nodes.push_back({file.stem().string(), {}, {}, traces});
  const std::string text = telemetry::trace_json(trace);
  return disk.replace(path, std::as_bytes(std::span{text}));
}

}  // namespace troupe::launch
