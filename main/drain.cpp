#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>

#include <fmt/format.h>

#include "launch/meeting/node_uplink.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "runtime/base/clock.h"
#include "runtime/base/host_name.h"
#include "runtime/base/log.h"
#include "runtime/transport/ask.h"
#include "runtime/transport/packets.h"

namespace troupe {
namespace {

runtime::Result<void> drain(const runtime::AskOptions& options,
                            const runtime::DrainRequest& request,
                            const launch::NodeCredentials& credentials, runtime::LogLevel level) {
  ASSIGN_OR_RETURN(runtime::Log log, open_log(level));
  const runtime::SteadyClock clock;
  RETURN_IF_ERROR(launch::check_credentials(options.address, credentials));
  ASSIGN_OR_RETURN(const auto wire, launch::open_wire("", credentials, clock, log));
  return runtime::drain(*wire, options, request, clock);
}

int drain_member(const CommandLine& line) {
  const auto node = line.get<std::string>("node");
  if (!runtime::is_node_name(node)) {
    return line.usage_error(fmt::format(
        "which member? A name, such as member.2, has 1 to {} bytes without control characters",
        runtime::kMostNodeName));
  }
  launch::NodeCredentials credentials;
  if (const auto code = take_credentials(line, credentials)) return *code;
  const auto within_s = line.get<std::uint32_t>("within");
  runtime::AskOptions options;
  options.address = line.get<std::string>("address");
  options.within = options.answer_within = std::chrono::seconds(within_s);
  const runtime::DrainRequest request{node, runtime::host_name(),
                                      static_cast<std::uint64_t>(::getpid())};
  const auto drained = drain(options, request, credentials, log_level(line));
  if (!drained.ok()) return report(drained.error());
  std::cout << node << " has left the run\n";
  return 0;
}

}  // namespace

Command drain_verb() {
  Command verb{
      .name = "drain",
      .summary = "let a member leave a run that goes on without it",
      .about =
          "Lets the member NODE leave the run whose head listens at ADDRESS, as SIGTERM to "
          "that member would: it ends with exit code 0, and the others go on with the same "
          "bits. Returns when it has left. Everybody who may join may do so.",
      .example = "troupe drain '10.0.0.5:8500#KEY' member.2 --key keys",
      .places = {{.name = "address", .asked = "which address?"},
                 {.name = "node", .asked = "which member, such as member.2?"}},
      .options = credential_options(),
      .carry_out = drain_member};
  verb.options.push_back(
      seconds_option("within", "in which the head must answer, and then the member leave", "60"));
  verb.options.push_back(log_level_option());
  return verb;
}

}  // namespace troupe
