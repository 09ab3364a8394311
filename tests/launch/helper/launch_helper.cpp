// A parent for the tests of processes, which can be killed as the test program cannot.
//
//   launch_helper children SCRIPT...
//       starts a shell for each, prints "started PID", and stays
//   launch_helper group ASK_MS GRACE_MS MOMENT_MS HEAD MEMBER...
//       a ProcessGroup of shell scripts; prints "started NAME PID", "NAME | line" (the last member
//       shares our output, its lines have no name), "NAME TEXT lost=0 killed=0" at each end, and at
//       last "end CODE MESSAGE". A script "missing" is a program that does not exist.

#include <string>
#include <vector>

#include <fmt/format.h>

#include "launch/processes/child_process.h"
#include "launch/processes/process_group.h"

namespace troupe::launch {
namespace {

using Arguments = std::vector<std::string>;

void say(const std::string& line) { prefixed_lines("helper", 1)(line); }

int keep_children(const Arguments& scripts) {
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (const std::string& script : scripts) {
    auto started = ChildProcess::start({{"/bin/sh", "-c", script}, {}, {}});
    if (!started.ok()) return 1;
    children.push_back(std::move(started).value());
    say(fmt::format("started {}", children.back()->pid()));
  }
  while (true) wait_for_children(children, -1, std::chrono::hours(1));
}

GroupProcess process_of(const std::string& name, const std::string& script, bool shares) {
  GroupProcess process{name, {{"/bin/sh", "-c", script}, {}, {}}};
  if (script == "missing") process.program.words = {"/nowhere/program"};
  if (!shares) process.program.out = process.program.err = prefixed_lines(name, 1);
  return process;
}

int run_group(const Arguments& arguments) {
  ProcessGroupOptions options;
  options.ask_after = std::chrono::milliseconds(std::stoi(arguments.at(0)));
  options.member_grace = std::chrono::milliseconds(std::stoi(arguments.at(1)));
  options.moment = std::chrono::milliseconds(std::stoi(arguments.at(2)));
  options.head = process_of("head", arguments.at(3), false);
  for (std::size_t i = 4; i < arguments.size(); ++i) {
    options.members.push_back(
        process_of(fmt::format("member.{}", i - 4), arguments[i], i + 1 == arguments.size()));
  }
  options.changed = [](const ProcessChange& change) {
    if (!change.end) return say(fmt::format("started {} {}", change.name, change.pid));
    say(fmt::format("{} {} lost={:d} killed={:d}", change.name, change.end->text(), change.lost,
                    change.killed));
  };
  auto log = runtime::Log::open({});
  if (!log.ok()) return 1;
  const runtime::SteadyClock clock;
  ProcessGroup group(std::move(options), clock, *log);
  const auto end = group.run();
  if (!end.ok()) {
    say("end " + end.error().message);
    return 1;
  }
  say(fmt::format("end {} {}", end->exit_code, end->error ? end->error->message : ""));
  return end->exit_code;
}

}  // namespace
}  // namespace troupe::launch

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  const std::string verb = arguments.empty() ? "" : arguments.front();
  const std::vector<std::string> rest(arguments.begin() + (verb.empty() ? 0 : 1), arguments.end());
  if (verb == "children") return troupe::launch::keep_children(rest);
  if (verb == "group") return troupe::launch::run_group(rest);
  return 2;
}
