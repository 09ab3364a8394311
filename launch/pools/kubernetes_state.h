#pragma once

// The nodes of a pool as Kubernetes tells of them, in answers of kubectl.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "actors/launcher.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// When each pod was first seen to be deleted, by uid.
using LeavingPods = std::map<std::string, runtime::TimePoint>;

// A node's Job, and the pod that it has started.
struct KubernetesNode {
  actors::ListedNode row;    // `where` tells what a queued or starting one waits for
  bool is_there = false;     // it has not ended
  bool has_job = false;      // which nobody has deleted
  bool lacks_pod = false;    // its Job has not started one yet
  bool runs = false;         // its pod has started, and thus has its Secret
  bool is_over = false;      // its Job or its pod has ended, or the pod is being taken away
  std::string pod{};         // the uid of its newest pod; "": there is none
  std::string last_words{};  // why it does not run, or why it has ended; "": nothing is known
};

// The answer to `kubectl get jobs,pods --output=json`, by name of node. A pod that should have
// ended a while ago has been lost with its machine: whether it should have is told by this clock,
// since the API server may have another time of day. kLostPeers: it is no such answer.
runtime::Result<std::map<std::string, KubernetesNode>> read_kubernetes_nodes(
    std::string_view answer, LeavingPods& leaving, runtime::TimePoint now);

// The answer to `kubectl get events --output=json`: the newest message, on one line; "": none.
std::string newest_event(std::string_view answer);

// A failure of kubectl with what to do about it. kUsage: nothing was done, and kLostPeers: nobody
// knows.
runtime::Error advised(const runtime::Error& failure);

}  // namespace troupe::launch
