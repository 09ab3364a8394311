#pragma once

// A node of a pool as Kubernetes takes it: a Job of one pod, and the Secret that the pod's token is
// in. The Job owns the Secret, so that both go together.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "config/topology.h"
#include "launch/pools/launchers.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// Labels of all that is made for a node: the run, the pool, and the node's name.
inline constexpr const char* kRunLabel = "troupe/run";
inline constexpr const char* kPoolLabel = "troupe/pool";
inline constexpr const char* kNodeLabel = "troupe/node";
// The container of a pod that the member runs in.
inline constexpr const char* kMemberContainer = "troupe";

// Names of both objects, and what selects those of a pool's nodes.
std::string kubernetes_name(const std::string& run, std::string node);
std::string kubernetes_selector(const std::string& run, const std::string& pool);

// Its pod runs `troupe join` as a user without rights, and reads the token, if the run has keys,
// from a file. `part`: what is laid over the pod's template. Maps are merged, and so are lists of
// things with a name or a mountPath; items of other lists are added.
nlohmann::json kubernetes_job(const JoinPlan& plan, const config::PoolSection& pool,
                              const std::string& node, bool has_token, const nlohmann::json& part);
// The Secret of a node's token, for the Job of this uid.
nlohmann::json kubernetes_secret(const JoinPlan& plan, const config::PoolSection& pool,
                                 const std::string& node, const std::string& token,
                                 std::string_view job_uid);

// A file with a part of a pod's template, in YAML. kUsage: it is none.
runtime::Result<nlohmann::json> read_pod_part(const std::string& path);

}  // namespace troupe::launch
