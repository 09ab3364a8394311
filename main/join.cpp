#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "config/plan.h"
#include "launch/run/member_group.h"
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

// The words behind the program's name, without those that each of several members gets anew.
std::vector<std::string> words_of_group() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  std::string word;
  std::getline(file, word, '\0');
  while (std::getline(file, word, '\0')) {
    const std::string name = word.substr(0, word.find('='));
    if (name != "--workers" && name != "--token" && name != "--token-file" && name != "--trace") {
      words.push_back(word);
    } else if (word == name) {
      std::getline(file, word, '\0');
    }
  }
  return words;
}

// Members in processes of their own, which take turns at the cards of this host.
int join_with_several(const CommandLine& line, const launch::MemberRequest& request,
                      std::uint32_t workers) {
  for (const char* name : {"node", "trace"}) {
    if (line.has(name)) {
      return line.usage_error(fmt::format("--{} is of one member, not of several", name));
    }
  }
  if (!request.listen.empty() && request.listen != "none") {
    return line.usage_error("--listen is of one member; of several it can be none");
  }
  launch::MemberGroupRequest group;
  group.words = words_of_group();
  const auto& token = request.credentials.token;
  if (token) {
    group.token = token->text + "\n";
    group.words.insert(group.words.end(), {"--token-file", "-"});
  }
  for (std::uint32_t i = 0; i < workers; ++i) {
    auto& own = group.own_words.emplace_back();
    if (request.device != config::kGpu) continue;
    own = {"--device", fmt::format("{}:{}", config::kGpu, i % config::kMostDevices)};
  }
  const auto ended = launch::run_member_group(group);
  return ended.ok() ? *ended : report(ended.error());
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
  line.take("launched", request.enrol.request.launched);
  if (const auto workers = line.get<std::uint32_t>("workers"); workers > 1) {
    return join_with_several(line, request, workers);
  }
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
      {.name = "workers",
       .value = "N",
       .about = "members on this machine, each a process of its own",
       .takes = Takes::kWhole,
       .preset = "1",
       .least = 1,
       .most = config::kMostMembers},
      {.name = "launched", .value = "MARK", .takes = Takes::kText, .hidden = true},
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
