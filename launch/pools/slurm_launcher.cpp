// Nodes as batch jobs of Slurm, each a job of its own, known by its name.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
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
// The run asks for another node itself. A job that Slurm puts back may be held for good.
constexpr const char* kOnce = "--no-requeue";
constexpr std::size_t kMostOfLog = 300;  // bytes that people are told

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

// The clusters of a federation that sbatch is told of; "": it asks the one of this host.
std::string clusters_of(const std::vector<std::string>& options) {
  std::string clusters;
  if (const char* const all = std::getenv("SBATCH_CLUSTERS")) clusters = all;
  for (auto word = options.begin(); word != options.end(); ++word) {
    const bool has_next = word + 1 != options.end();
    if ((*word == "--clusters" || *word == "-M") && has_next) {
      clusters = *(word + 1);
    } else if (word->starts_with("--clusters=")) {
      clusters = word->substr(word->find('=') + 1);
    } else if (word->starts_with("-M")) {
      clusters = word->substr(2);
    }
  }
  return clusters;
}

// The last line with text in it; "": there is none.
std::string last_line_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - std::streamoff{4 * kMostOfLog}));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return shown_line(last, kMostOfLog);
}

class SlurmLauncher final : public actors::Launcher {
 public:
  SlurmLauncher(config::PoolSection pool, JoinPlan plan)
      : pool_(std::move(pool)), plan_(std::move(plan)), clusters_(clusters_of(pool_.options)) {}

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
                    kOnce,
                    kNotice};
    sbatch.words.insert(sbatch.words.end(), pool_.options.begin(), pool_.options.end());
    sbatch.input = fmt::format("#!/bin/sh\nexec {}\n", command);
    const auto answer = output_of(sbatch);
    // A controller that does not answer in time may have taken the job.
    if (!answer.ok()) return Error{ErrorKind::kLostPeers, answer.error().message};
    // "17", or "17;cluster" where clusters were named.
    std::string id = answer->substr(0, answer->find('\n'));
    const std::string number = number_of(id);
    const bool is_number = number.find_first_not_of("0123456789") == std::string::npos;
    if (number.empty() || !is_number || !is_tool_id(id)) {
      return Error{ErrorKind::kLostPeers,
                   fmt::format("sbatch answered '{}', which is no job's number", shown_line(id))};
    }
    return id;
  }

  // A job that Slurm ends stays listed until its processes are gone.
  Result<std::vector<ListedNode>> list() override {
    std::vector<std::string> words{"squeue", "--noheader", "--me", "--format=%i|%T|%R|%j"};
    if (!clusters_.empty()) words.push_back("--clusters=" + clusters_);
    ASSIGN_OR_RETURN(const std::string output, output_of({.words = words}));
    std::string cluster;  // the jobs of each stand below its name
    std::vector<ListedNode> nodes;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(kClusterLine)) {
        cluster = fmt::format(";{}", line.substr(kClusterLine.size()));
      }
      std::istringstream row(line);
      std::array<std::string, 4> parts;
      for (std::string& part : parts) std::getline(row, part, '|');
      const auto& [id, state, where, name] = parts;
      const std::string prefix = job_name("");
      const std::string node = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
      if (!node.starts_with(fmt::format("{}.", pool_.name))) continue;
      const bool queued = state == "PENDING" || state == "REQUEUED" || state == "REQUEUE_HOLD" ||
                          state == "SPECIAL_EXIT";
      // Slurm gives up a machine that does not boot in its ResumeTimeout.
      nodes.push_back({node, id + cluster, queued, where, state == "CONFIGURING"});
    }
    return nodes;
  }

  std::string last_words(const std::string& name) override {
    const std::string log = log_of(name), line = last_line_of(log);
    return line.empty() ? "" : fmt::format("{} ends with: {}", log, line);
  }

  Result<void> stop(const std::string& name, const std::string& id) override {
    if (!id.empty()) return cancel({number_of(id)}, cluster_of(id));
    std::istringstream clusters(clusters_.empty() ? "," : clusters_);
    for (std::string cluster; std::getline(clusters, cluster, ',');) {
      RETURN_IF_ERROR(cancel({"--name=" + job_name(name)}, cluster));
    }
    return {};
  }

  // One call for all jobs of a cluster, which share its result.
  std::vector<Result<void>> stop_all(const std::vector<ListedNode>& nodes) override {
    std::map<std::string, std::vector<std::string>> numbers;  // by cluster
    for (const ListedNode& node : nodes) {
      if (!node.id.empty()) numbers[cluster_of(node.id)].push_back(number_of(node.id));
    }
    std::map<std::string, Result<void>> cancelled;
    for (const auto& [cluster, jobs] : numbers) {
      cancelled.emplace(cluster, cancel(jobs, cluster));
    }
    std::vector<Result<void>> results;
    for (const ListedNode& node : nodes) {
      results.push_back(node.id.empty() ? stop(node.name, node.id)
                                        : cancelled.at(cluster_of(node.id)));
    }
    return results;
  }

 private:
  static constexpr std::string_view kClusterLine = "CLUSTER: ";

  // The script has become the first process of the job, which takes the signal for its members.
  static Result<void> cancel(const std::vector<std::string>& jobs, const std::string& cluster) {
    std::vector<std::string> words{"scancel", "--quiet", "--full"};
    words.insert(words.end(), jobs.begin(), jobs.end());
    if (!cluster.empty()) words.push_back("--clusters=" + cluster);
    return carry_out({.words = std::move(words)});
  }
  // Parts of an id.
  static std::string number_of(const std::string& id) { return id.substr(0, id.find(';')); }
  std::string cluster_of(const std::string& id) const {
    const auto part = id.find(';');
    return part == std::string::npos ? clusters_ : id.substr(part + 1);
  }
  std::string log_of(const std::string& node) const {
    return fmt::format("{}/{}.log", plan_.folder, node);
  }
  std::string job_name(const std::string& node) const {
    return fmt::format("troupe-{}-{}", plan_.run, node);
  }

  const config::PoolSection pool_;
  const JoinPlan plan_;
  const std::string clusters_;
  runtime::FileDisk disk_;
};

}  // namespace

std::shared_ptr<actors::Launcher> make_slurm_launcher(const config::PoolSection& pool,
                                                      const JoinPlan& plan) {
  return std::make_shared<SlurmLauncher>(pool, plan);
}

}  // namespace troupe::launch
