// The verbs that ask the head of a run for something.

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

runtime::Result<std::string> ask(const runtime::AskOptions& options,
                                 const runtime::HeadRequest& request,
                                 const launch::NodeCredentials& credentials,
                                 runtime::LogLevel level) {
  ASSIGN_OR_RETURN(runtime::Log log, open_log(level));
  const runtime::SteadyClock clock;
  RETURN_IF_ERROR(launch::check_credentials(options.address, credentials));
  ASSIGN_OR_RETURN(const auto wire, launch::open_wire("", credentials, clock, log));
  return runtime::request(*wire, options, request, clock);
}

int ask_head(const CommandLine& line, runtime::HeadRequest request, runtime::AskOptions options) {
  launch::NodeCredentials credentials;
  if (const auto code = take_credentials(line, credentials)) return *code;
  options.address = line.get<std::string>("address");
  options.within = options.answer_within = std::chrono::seconds(line.get<std::uint32_t>("within"));
  request.host = runtime::host_name();
  request.pid = static_cast<std::uint64_t>(::getpid());
  const auto done = ask(options, request, credentials, log_level(line));
  if (!done.ok()) return report(done.error());
  std::cout << *done << "\n";
  return 0;
}

// The options of such a verb.
std::vector<Option> head_options(const std::string& about_within) {
  std::vector<Option> options = credential_options();
  options.push_back(seconds_option("within", about_within, "60"));
  options.push_back(log_level_option());
  return options;
}

int drain_member(const CommandLine& line) {
  const auto node = line.get<std::string>("node");
  if (!runtime::is_node_name(node)) {
    return line.usage_error(fmt::format(
        "which member? A name, such as member.2, has 1 to {} bytes without control characters",
        runtime::kMostNodeName));
  }
  runtime::AskOptions options;
  options.failure = fmt::format("cannot drain {} at", node);
  options.no_answer = fmt::format("the head was told, and {} has not left", node);
  return ask_head(line, {runtime::HeadRequest::Kind::kDrain, node}, options);
}

int burst_pool(const CommandLine& line) {
  const auto pool = line.get<std::string>("pool");
  const auto nodes = line.get<std::string>("nodes");
  if (!runtime::is_node_name(pool) || !runtime::is_node_name(nodes)) {
    return line.usage_error("which pool, and how many nodes: 8, +4 or -2?");
  }
  runtime::AskOptions options;
  options.failure = fmt::format("cannot change pool {} at", pool);
  options.no_answer = "the head was told, and has not answered";
  return ask_head(line, {.kind = runtime::HeadRequest::Kind::kBurst, .name = pool, .change = nodes},
                  options);
}

}  // namespace

Command drain_verb() {
  return {.name = "drain",
          .summary = "let a member leave a run that goes on without it",
          .about =
              "Lets the member NODE leave the run whose head listens at ADDRESS, as SIGTERM to "
              "that member would: it ends with exit code 0, and the others go on with the same "
              "bits. Returns when it has left. Everybody who may join may do so.",
          .example = "troupe drain '10.0.0.5:8500#KEY' member.2 --key keys",
          .places = {{.name = "address", .asked = "which address?"},
                     {.name = "node", .asked = "which member, such as member.2?"}},
          .options = head_options("in which the head must answer, and then the member leave"),
          .carry_out = drain_member};
}

Command burst_verb() {
  return {
      .name = "burst",
      .summary = "give a run that goes on more nodes of a pool, or fewer",
      .about =
          "Changes how many nodes of POOL the run shall have whose head listens at ADDRESS: to "
          "8, by +4, or by -2. More are asked for at once; of fewer, those that have not joined "
          "are given back first, and members of the others leave before. Everybody who may "
          "join may do so.",
      .example = "troupe burst '10.0.0.5:8500#KEY' hpc +4 --key keys",
      .places = {{.name = "address", .asked = "which address?"},
                 {.name = "pool", .asked = "which pool of the topology?"},
                 {.name = "nodes", .asked = "how many nodes: 8, +4 or -2?"}},
      .options = head_options("in which the head must answer"),
      .carry_out = burst_pool};
}

}  // namespace troupe
