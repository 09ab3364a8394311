#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>

#include <fmt/format.h>

#include "launch/nodes_file.h"
#include "main/command_line.h"
#include "main/commands.h"
#include "main/credentials.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/transport/drain.h"
#include "runtime/transport/node_name.h"

namespace troupe {
namespace {

namespace po = boost::program_options;

constexpr std::uint32_t kLongestWaitSeconds = 24 * 3600;

runtime::Result<void> drain(const runtime::DrainOptions& options,
                            const launch::NodeCredentials& credentials) {
  ASSIGN_OR_RETURN(runtime::Log log, runtime::Log::open({}));
  const runtime::SteadyClock clock;
  RETURN_IF_ERROR(launch::check_credentials(options.address, credentials));
  ASSIGN_OR_RETURN(const auto wire, launch::open_wire("", credentials, clock, log));
  return runtime::drain(*wire, options, clock);
}

}  // namespace

int drain_command(const Arguments& arguments) {
  CommandLine line(
      "drain ADDRESS NODE [--key DIR] [--within SECONDS]",
      "Lets the member NODE leave the run whose head listens at ADDRESS, as SIGTERM to\n"
      "that member would: it ends with exit code 0, and the others go on with the same\n"
      "bits. Returns when it has left. Whoever may join may do so.",
      "troupe drain 10.0.0.5:8500 member.2 --key keys");
  line.positional("address");
  line.positional("node");
  add_credential_options(line);
  line.add()("within", po::value<std::uint32_t>()->default_value(60),
             "seconds in which the head must answer, and then the member leave");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("address")) return line.usage_error("which address?");
  if (!line.has("node")) return line.usage_error("which member, such as member.2?");
  const auto node = line.get<std::string>("node");
  if (!runtime::is_node_name(node)) {
    return line.usage_error(fmt::format(
        "which member? A name, such as member.2, has 1 to {} bytes without control characters",
        runtime::kMostNodeName));
  }
  launch::NodeCredentials credentials;
  if (const auto code = take_credentials(line, credentials)) return *code;
  const auto within_s = line.get<std::uint32_t>("within");
  if (within_s < 1 || within_s > kLongestWaitSeconds) {
    return line.usage_error(fmt::format("--within: 1 to {} seconds", kLongestWaitSeconds));
  }
  runtime::DrainOptions options;
  options.address = line.get<std::string>("address");
  options.request.node = node;
  options.request.host = launch::host_name();
  options.request.pid = static_cast<std::uint64_t>(::getpid());
  options.within = options.left_within = std::chrono::seconds(within_s);
  const auto drained = drain(options, credentials);
  if (!drained.ok()) return report(drained.error());
  std::cout << options.request.node << " has left the run\n";
  return 0;
}

}  // namespace troupe
