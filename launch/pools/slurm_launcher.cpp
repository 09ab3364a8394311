// Nodes as batch jobs of Slurm, each a job of its own, known by its name.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/pools/launchers.h"
#include "launch/processes/command.h"
#include "launch/processes/shell_word.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"

namespace troupe::launch {
namespace {

using actors::ListedNode;
using actors::NodeOrder;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// A notice before the time limit or a preemption, so that members leave in order.
constexpr const char* kNotice = "--signal=B:TERM@60";
constexpr std::streamoff kMostOfLog = 300;  // bytes that people are told

// A file that nobody else can read.
Result<void> write_secret(const std::string& path, const std::string& text) {
  const runtime::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.is_open() &&
      ::write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    return {};
  }
  return Error{ErrorKind::kData, "cannot write " + path};
}

// The last line with text in it; "": there is none.
std::string last_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - 4 * kMostOfLog));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line.substr(0, kMostOfLog);
  }
  for (char& c : last) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return last;
}

class SlurmLauncher final : public actors::Launcher {
 public:
  SlurmLauncher(config::PoolSection pool, JoinPlan plan)
      : pool_(std::move(pool)), plan_(std::move(plan)) {}

  Result<std::string> start(const NodeOrder& order) override {
    RETURN_IF_ERROR(disk_.make_folder(plan_.folder));
    std::string token_file;
    if (!order.token.empty()) {
      token_file = fmt::format("{}/{}.token", plan_.folder, order.name);
      RETURN_IF_ERROR(write_secret(token_file, order.token + "\n"));
    }
    const std::string command = command_line(join_words(plan_, pool_, order.name, token_file));
    CommandRequest sbatch;
    sbatch.words = {"sbatch",
                    "--parsable",
                    "--job-name=" + job_name(order.name),
                    "--output=" + log_of(order.name),
                    "--open-mode=append",
                    kNotice};
    sbatch.words.insert(sbatch.words.end(), pool_.options.begin(), pool_.options.end());
    sbatch.input = fmt::format("#!/bin/sh\nexec {}\n", command);
    const auto answer = output_of(sbatch);
    // A controller that does not answer in time may have taken the job.
    if (!answer.ok()) return Error{ErrorKind::kLostPeers, answer.error().message};
    const std::string& output = *answer;
    // "17", or "17;cluster".
    const std::string id = output.substr(0, output.find_first_of(";\n"));
    if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos) {
      return Error{ErrorKind::kLostPeers,
                   fmt::format("sbatch answered '{}', which is no job's number", id)};
    }
    return id;
  }

  // A job that Slurm ends stays listed until its processes are gone.
  Result<std::vector<ListedNode>> list() override {
    ASSIGN_OR_RETURN(
        const std::string output,
        output_of({.words = {"squeue", "--noheader", "--me", "--format=%i|%T|%R|%j"}}));
    std::vector<ListedNode> nodes;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::array<std::string, 4> parts;
      for (std::string& part : parts) std::getline(words, part, '|');
      const auto& [id, state, where, name] = parts;
      const std::string prefix = job_name("");
      const std::string node = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
      if (!node.starts_with(fmt::format("{}.", pool_.name))) continue;
      const bool queued = state == "PENDING" || state == "REQUEUED" || state == "REQUEUE_HOLD" ||
                          state == "SPECIAL_EXIT";
      // Slurm gives up a machine that does not boot in its ResumeTimeout.
      nodes.push_back({node, id, queued, where, state == "CONFIGURING"});
    }
    return nodes;
  }

  std::string last_words(const std::string& name) override {
    const std::string log = log_of(name), line = last_line(log);
    return line.empty() ? "" : fmt::format("{} ends with: {}", log, line);
  }

  Result<void> stop(const std::string& name, const std::string& id) override {
    const std::string job = id.empty() ? "--name=" + job_name(name) : id;
    // The script has become the first process of the job, which takes the signal for its members.
    const auto stopped = output_of({.words = {"scancel", "--quiet", "--full", job}});
    if (!stopped.ok()) return stopped.error();
    return {};
  }

 private:
  std::string log_of(const std::string& node) const {
    return fmt::format("{}/{}.log", plan_.folder, node);
  }
  std::string job_name(const std::string& node) const {
    return fmt::format("troupe-{}-{}", plan_.run, node);
  }

  const config::PoolSection pool_;
  const JoinPlan plan_;
  runtime::FileDisk disk_;
};

}  // namespace

std::shared_ptr<actors::Launcher> make_slurm_launcher(const config::PoolSection& pool,
                                                      const JoinPlan& plan) {
  return std::make_shared<SlurmLauncher>(pool, plan);
}

}  // namespace troupe::launch
