// Nodes as Jobs of Kubernetes, each of one pod, by kubectl. A pod that is taken away ends its node:
// Kubernetes would start another one, and the run asks for one itself.

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "launch/pools/kubernetes_objects.h"
#include "launch/pools/kubernetes_state.h"
#include "launch/pools/launchers.h"
#include "launch/processes/command.h"
#include "runtime/base/clock.h"

namespace troupe::launch {
namespace {

using actors::ListedNode;
using actors::NodeOrder;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using Words = std::vector<std::string>;

// A pod and its Job take some 20 KiB.
constexpr std::size_t kMostAnswer = std::size_t{64} << 20;
// The reason of each Job that fails may take one.
constexpr std::size_t kErrorLines = 12;

// The fields that the pool lays over its pods; null: none.
Result<nlohmann::json> pod_part_of(const config::PoolSection& pool) {
  if (!pool.pod) return nlohmann::json();
  auto part = read_pod_part(*pool.pod);
  if (!part.ok()) return Error{ErrorKind::kUsage, part.error().message};
  return part;
}

class KubernetesLauncher final : public actors::Launcher {
 public:
  KubernetesLauncher(config::PoolSection pool, JoinPlan plan)
      : pool_(std::move(pool)), plan_(std::move(plan)) {}

  // The pod waits for its Secret, which can be made when its owner is known.
  Result<std::string> start(const NodeOrder& order) override {
    ASSIGN_OR_RETURN(const nlohmann::json part, pod_part_of(pool_));
    const bool has_token = !order.token.empty();
    ASSIGN_OR_RETURN(const std::string uid,
                     create(kubernetes_job(plan_, pool_, order.name, has_token, part)));
    std::string name = kubernetes_name(plan_.run, order.name);
    if (!has_token) return name;
    const auto secret = create(kubernetes_secret(plan_, pool_, order.name, order.token, uid));
    if (secret.ok()) return name;
    // The Job is there, and would wait for its Secret.
    return Error{ErrorKind::kLostPeers, secret.error().message};
  }

  // The head that started a node without an id may not have come to its Secret.
  void adopt(const std::string& name, const std::string& id) override {
    if (id.empty()) unfinished_.insert(name);
  }

  // Jobs that have ended, or whose pod has, are deleted: nobody else would.
  Result<std::vector<ListedNode>> list() override {
    CommandRequest request =
        kubectl({"get", "jobs,pods", "--selector=" + kubernetes_selector(plan_.run, pool_.name),
                 "--output=json"});
    request.most_output = kMostAnswer;
    ASSIGN_OR_RETURN(const std::string answer, answer_of(request));
    ASSIGN_OR_RETURN(auto nodes, read_kubernetes_nodes(answer, leaving_, runtime::steady_now()));
    for (const auto& [name, node] : nodes) {
      if (!removed_.contains(name)) last_words_[name] = node.last_words;
    }
    const bool is_reaped = reap(nodes);
    const std::string refusal = refusal_of_pods(nodes);
    std::vector<ListedNode> listed;
    for (auto& [name, node] : nodes) {
      if (!node.is_there && (!node.has_job || is_reaped)) continue;
      if (node.lacks_pod && !refusal.empty()) node.row.where = refusal;
      node.row.id = kubernetes_name(plan_.run, name);
      listed.push_back(std::move(node.row));
    }
    return listed;
  }

  std::string last_words(const std::string& name) override {
    const auto found = last_words_.find(name);
    return found == last_words_.end() ? "" : found->second;
  }

  Result<void> stop(const std::string& name, const std::string&) override { return remove({name}); }

  // One call for all, which share its result.
  std::vector<Result<void>> stop_all(const std::vector<ListedNode>& nodes) override {
    Words names;
    for (const ListedNode& node : nodes) names.push_back(node.name);
    return std::vector<Result<void>>(nodes.size(), remove(names));
  }

 private:
  // kubectl ignores the pod's service account when --request-timeout is given.
  CommandRequest kubectl(const Words& more) const {
    CommandRequest request{.words = {"kubectl"}};
    Words& words = request.words;
    words.insert(words.end(), pool_.options.begin(), pool_.options.end());
    if (!pool_.namespace_there.empty()) words.push_back("--namespace=" + pool_.namespace_there);
    words.insert(words.end(), more.begin(), more.end());
    request.error_lines = kErrorLines;
    return request;
  }
  static Result<std::string> answer_of(const CommandRequest& request) {
    auto answer = output_of(request);
    if (!answer.ok()) return advised(answer.error());
    return answer;
  }
  // Returns its uid. The object stands on no command line.
  Result<std::string> create(const nlohmann::json& object) const {
    CommandRequest request =
        kubectl({"create", "--filename=-", "--output=jsonpath={.metadata.uid}"});
    request.input = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    ASSIGN_OR_RETURN(std::string uid, answer_of(request));
    uid.resize(uid.find_last_not_of("\r\n") + 1);
    if (!uid.empty()) return uid;
    return Error{ErrorKind::kLostPeers, "kubectl did not tell the uid of what it has created"};
  }
  // Pods have their time to end, and Secrets go with their Jobs.
  Result<void> remove(const Words& nodes) {
    CommandRequest request = kubectl({"delete", "jobs", "--ignore-not-found", "--wait=false"});
    for (const std::string& node : nodes) {
      request.words.push_back(kubernetes_name(plan_.run, node));
      removed_.insert(node);
    }
    const auto answer = answer_of(request);
    if (!answer.ok()) return answer.error();
    return {};
  }
  // Deletes the Jobs of nodes that are over, have another pod in the place of their first, or may
  // wait for a Secret that nobody makes.
  bool reap(const std::map<std::string, KubernetesNode>& nodes) {
    Words spent;
    for (const auto& [name, node] : nodes) {
      std::string& pod = pods_[name];
      if (pod.empty()) pod = node.pod;
      const bool is_other = !node.pod.empty() && pod != node.pod;
      if (node.runs) unfinished_.erase(name);
      const bool is_spent = node.is_over || is_other || unfinished_.contains(name);
      if (node.has_job && is_spent) spent.push_back(name);
    }
    return spent.empty() || remove(spent).ok();
  }
  // Why Kubernetes makes no pods for Jobs, such as a quota. "": it tells no reason, or no Job has
  // lacked its pod since the last list. It is asked about one Job, since all have the same reason.
  std::string refusal_of_pods(const std::map<std::string, KubernetesNode>& nodes) {
    std::set<std::string> lacking;
    std::string long_lacking;
    for (const auto& [name, node] : nodes) {
      if (!node.lacks_pod) continue;
      lacking.insert(name);
      if (lacked_pods_.contains(name)) long_lacking = name;
    }
    lacked_pods_ = std::move(lacking);
    if (long_lacking.empty()) return "";
    const std::string job = kubernetes_name(plan_.run, long_lacking);
    const auto answer = output_of(kubectl(
        {"get", "events", "--output=json",
         "--field-selector=reason=FailedCreate,involvedObject.kind=Job,involvedObject.name=" +
             job}));
    return answer.ok() ? newest_event(*answer) : "";
  }

  const config::PoolSection pool_;
  const JoinPlan plan_;
  LeavingPods leaving_;
  std::map<std::string, std::string> pods_;        // the first pod of a node
  std::map<std::string, std::string> last_words_;  // by node
  std::set<std::string> unfinished_;               // nodes that may lack their Secret
  std::set<std::string> removed_;                  // nodes whose words are their last
  std::set<std::string> lacked_pods_;              // nodes, when they were listed last
};

}  // namespace

Result<std::shared_ptr<actors::Launcher>> make_kubernetes_launcher(const config::PoolSection& pool,
                                                                   const JoinPlan& plan) {
  // It is read anew for each node.
  if (const auto part = pod_part_of(pool); !part.ok()) return part.error();
  return std::shared_ptr<actors::Launcher>(std::make_shared<KubernetesLauncher>(pool, plan));
}

}  // namespace troupe::launch
