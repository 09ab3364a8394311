#include <chrono>
#include <cstdint>

#include <fmt/format.h>

#include "launch/member_run.h"
#include "main/command_line.h"
#include "main/commands.h"
#include "main/credentials.h"
#include "runtime/transport/node_name.h"

namespace troupe {
namespace {

namespace po = boost::program_options;

// No folder: the data is the head's.
constexpr const char* kRemote = "remote";
constexpr std::uint32_t kLongestWaitSeconds = 7 * 24 * 3600;
// A head that this process's own supervisor has started may take its time to make data.
constexpr auto kPatience = std::chrono::hours(24);

int join(const launch::MemberRequest& request) {
  auto log = runtime::Log::open({});
  if (!log.ok()) return report(log.error());
  const auto result = launch::run_member(request, *log);
  if (!result.ok()) {
    log->error(result.error().message);
    return runtime::exit_code(result.error().kind);
  }
  if (result->error) {
    log->error(fmt::format("{}: {}", result->node, result->error->message));
    return runtime::exit_code(result->error->kind);
  }
  return 0;
}

}  // namespace

int join_command(const Arguments& arguments) {
  CommandLine line(
      "join ADDRESS [--key DIR] [--node NAME] [--listen ADDRESS]\n"
      "            [--data DIR or remote]\n"
      "            [--trace FILE] [--within SECONDS] [--wait SECONDS]\n"
      "            [--preemption-file FILE]\n"
      "            [--preemption-command COMMAND] [--preemption-every SECONDS]",
      "Makes this process a member of the run whose head listens at ADDRESS: it gets\n"
      "the topology from there, opens the data itself or, with --data remote, is sent\n"
      "what it is to compute by the head, and ends with the run.",
      "troupe join 10.0.0.5:8500 --key keys");
  line.positional("address");
  add_credential_options(line);
  line.add()("node", po::value<std::string>(), "which member to be (default: any that is awaited)")(
      "listen", po::value<std::string>(),
      "HOST:PORT where other members find this one; it takes two more ports (default: any ports of "
      "the address from which it reaches the head). none: nobody can dial it, and it dials the "
      "others, as from behind a firewall")(
      "data", po::value<std::string>(),
      "folder for synthetic showers and indices (default: the head's, else runs/data); 'remote': "
      "none, the head sends what is to be computed (a folder of that name is './remote')")(
      "trace", po::value<std::string>(), "file for what its actors did lately, written at its end");
  line.add()("within", po::value<std::uint32_t>()->default_value(60),
             "seconds in which the head must answer for the first time")(
      "wait", po::value<std::uint32_t>()->default_value(600),
      "seconds to wait while every place is promised to other processes; 0: not at all");
  line.add()("preemption-file", po::value<std::string>(),
             "leaves the run when this file is there: this machine is about to be taken away")(
      "preemption-command", po::value<std::string>(),
      "or when this shell command ends with exit code 0, within 10 s")(
      "preemption-every", po::value<std::uint32_t>()->default_value(5),
      "seconds from one look for either to the next");
  line.hidden_flag("patient");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("address")) return line.usage_error("which address?");
  launch::MemberRequest request;
  request.address = line.get<std::string>("address");
  if (const auto code = take_credentials(line, request.credentials)) return *code;
  if (line.has("node")) {
    request.node = line.get<std::string>("node");
    if (!runtime::is_node_name(request.node)) {
      return line.usage_error(fmt::format(
          "--node: a name, such as member.2, has 1 to {} bytes without control characters",
          runtime::kMostNodeName));
    }
  }
  if (line.has("listen")) request.listen = line.get<std::string>("listen");
  if (line.has("data")) {
    request.data_folder = line.get<std::string>("data");
    request.remote_data = request.data_folder == kRemote;
  }
  if (line.has("trace")) request.trace = line.get<std::string>("trace");
  const auto within_s = line.get<std::uint32_t>("within");
  if (within_s < 1 || within_s > kLongestWaitSeconds) {
    return line.usage_error(fmt::format("--within: 1 to {} seconds", kLongestWaitSeconds));
  }
  request.within = std::chrono::seconds(within_s);
  const auto wait_s = line.get<std::uint32_t>("wait");
  if (wait_s > kLongestWaitSeconds) {
    return line.usage_error(fmt::format("--wait: 0 to {} seconds", kLongestWaitSeconds));
  }
  request.for_a_place = std::chrono::seconds(wait_s);
  if (line.has("preemption-file")) {
    request.preemption.file = line.get<std::string>("preemption-file");
  }
  if (line.has("preemption-command")) {
    request.preemption.command = line.get<std::string>("preemption-command");
  }
  const auto every_s = line.get<std::uint32_t>("preemption-every");
  if (every_s < 1 || every_s > kLongestWaitSeconds) {
    return line.usage_error(
        fmt::format("--preemption-every: 1 to {} seconds", kLongestWaitSeconds));
  }
  request.preemption.every = std::chrono::seconds(every_s);
  request.supervised = line.get<bool>("patient");
  if (request.supervised) request.within = kPatience;
  return join(request);
}

}  // namespace troupe
