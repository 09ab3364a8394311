#include <iostream>

#include <fmt/format.h>

#include "launch/member_run.h"
#include "main/command_line.h"
#include "main/commands.h"

namespace troupe {
namespace {

namespace po = boost::program_options;

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
  return result->signal == 0 ? 0 : 128 + result->signal;
}

}  // namespace

int join_command(const Arguments& arguments) {
  CommandLine line("join ADDRESS [--key DIR] [--node NAME] [--data DIR]",
                   "Makes this process a member of the run whose head listens at ADDRESS: it gets\n"
                   "the topology from there, opens the data itself, and ends with the run.",
                   "troupe join 10.0.0.5:8500 --key keys");
  line.positional("address");
  line.add()("key", po::value<std::string>(),
             "folder of keys, as troupe keygen makes it; needed between machines")(
      "node", po::value<std::string>(), "which member to be (default: any that is awaited)")(
      "data", po::value<std::string>(),
      "folder for synthetic showers and indices (default: the head's, else runs/data)");
  line.hidden_flag("patient");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("address")) return line.usage_error("which address?");
  launch::MemberRequest request;
  request.address = line.get<std::string>("address");
  if (line.has("key")) request.key_folder = line.get<std::string>("key");
  if (line.has("node")) request.node = line.get<std::string>("node");
  if (line.has("data")) request.data_folder = line.get<std::string>("data");
  if (line.get<bool>("patient")) request.within = kPatience;
  return join(request);
}

}  // namespace troupe
