#include <chrono>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "launch/run/member_run.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "runtime/transport/packets.h"

namespace troupe {
namespace {

// No folder: the data is the head's.
constexpr const char* kRemote = "remote";
// A head that this process's own supervisor has started may take its time to make data.
constexpr auto kSupervisedWait = std::chrono::hours(24);

int join(const launch::MemberRequest& request, runtime::LogLevel level) {
  auto log = open_log(level);
  if (!log.ok()) return report(log.error());
  const auto ended = launch::run_member(request, *log);
  return ended.ok() ? 0 : report(ended.error(), *log);
}

std::chrono::seconds seconds(const CommandLine& line, const char* name) {
  return std::chrono::seconds(line.get<std::uint32_t>(name));
}

int join_run(const CommandLine& line) {
  launch::MemberRequest request;
  line.take("address", request.enrol.address);
  if (const auto code = take_credentials(line, request.credentials)) return *code;
  line.take("node", request.enrol.request.node);
  if (line.has("node") && !runtime::is_node_name(request.enrol.request.node)) {
    return line.usage_error(fmt::format(
        "--node: a name, such as member.2, has 1 to {} bytes without control characters",
        runtime::kMostNodeName));
  }
  line.take("listen", request.listen);
  line.take("data", request.data_folder);
  request.remote_data = request.data_folder == kRemote;
  line.take("device", request.device);
  line.take("trace", request.trace);
  request.enrol.within = seconds(line, "within");
  request.enrol.for_a_slot = seconds(line, "wait");
  line.take("preemption-file", request.preemption.file);
  line.take("preemption-command", request.preemption.command);
  request.preemption.every = seconds(line, "preemption-every");
  request.supervised = line.get<bool>("supervised");
  if (request.supervised) request.enrol.within = request.enrol.for_a_slot = kSupervisedWait;
  return join(request, log_level(line));
}

std::vector<Option> join_options() {
  std::vector<Option> options = credential_options();
  const std::vector<Option> own{
      {.name = "node",
       .value = "NAME",
       .about = "which member to be (default: any that is awaited)",
       .takes = Takes::kText},
      {.name = "listen",
       .value = "HOST:PORT",
       .about =
           "where other members find this one; it takes the next port too (default: any ports of "
           "the address from which it reaches the head). none: nobody can dial it, and it "
           "dials the others, as from behind a firewall",
       .takes = Takes::kText},
      {.name = "data",
       .value = "DIR",
       .about = "folder for synthetic showers and indices (default: the head's, else runs/data); "
                "'remote': none, the head sends what is to be computed (a folder of that name is "
                "'./remote')",
       .takes = Takes::kFolder},
      device_option("the topology's"),
      {.name = "trace",
       .value = "FILE",
       .about = "file for what its actors did lately, written at its end",
       .takes = Takes::kFile},
      seconds_option("within", "in which the head must answer for the first time", "60"),
      seconds_option(
          "wait", "to wait while every member slot is promised to other processes; 0: not at all",
          "600", 0),
      {.name = "preemption-file",
       .value = "FILE",
       .about = "leaves the run when this file is there: this machine is about to be taken away",
       .takes = Takes::kFile},
      {.name = "preemption-command",
       .value = "COMMAND",
       .about = "or when this shell command ends with exit code 0, within 10 s",
       .takes = Takes::kText},
      seconds_option("preemption-every", "from one look for either to the next", "5"),
      log_level_option(),
      {.name = "supervised", .hidden = true}};
  options.insert(options.end(), own.begin(), own.end());
  return options;
}

}  // namespace

Command join_verb() {
  return {
      .name = "join",
      .summary = "make this process a member of a run that goes on elsewhere",
      .about =
          "Makes this process a member of the run whose head listens at ADDRESS, which ends in "
          "#KEY when that head has keys: it gets the topology from there, opens the data itself "
          "or, with --data remote, is sent what it is to compute by the head, and ends with the "
          "run.",
      .example = "troupe join '10.0.0.5:8500#KEY' --key keys",
      .places = {{.name = "address", .asked = "which address?"}},
      .options = join_options(),
      .carry_out = join_run};
}

}  // namespace troupe
