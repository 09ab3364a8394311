// The manifests of config/launch/kubernetes, as people use them: a head in a pod, and members by
// hand.

#include <filesystem>
#include <string>

#include "tests/main/kubernetes_pool.h"

namespace troupe {
namespace {

class KubernetesManifests : public KubernetesPool {
 protected:
  // Applies the manifest with what people replace in it.
  void apply(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text =
        read_text(fmt::format("{}/config/launch/kubernetes/{}", TROUPE_SOURCE_DIR, name));
    for (const auto& [old, mine] : {std::pair<std::string, std::string>{from, to},
                                    {"localhost/troupe:0.1.0", "troupe:here"}}) {
      const std::size_t at = text.rfind(old);
      ASSERT_NE(at, std::string::npos) << old;
      text.replace(at, old.size(), mine);
    }
    write_text(path(name), text);
    kubectl({"apply", "--filename=" + path(name)});
  }
  // So many members of run "a" train.
  bool wait_until_members_run(std::size_t count) const {
    return wait_for([&] {
      std::size_t found = 0;
      for (const auto& [name, node] : nodes()) {
        found += name.starts_with("member.") && node.state == "running" ? 1 : 0;
      }
      return found == count;
    });
  }
};

TEST_F(KubernetesManifests, HeadInAPodTakesNodesAndGoesOnAfterItWasMoved) {
  // Its claim is a folder here.
  std::filesystem::create_directories(path("kubernetes/claims/troupe-runs"));
  std::filesystem::create_directory_symlink(path("kubernetes/claims/troupe-runs/runs/first"),
                                            path("a"));
  std::filesystem::create_symlink(TROUPE_KUBERNETES_PROGRAMS "/kubectl",
                                  path("kubernetes/programs/kubectl"));
  write_text(path("volume.yaml"), R"(apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 20Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /nowhere}}
)");
  kubectl({"create", "--filename=" + path("volume.yaml")});
  write_text(path("topology.yaml"), fmt::format(R"(name: toy
model: {{zoo: toy}}
data: {{train: {}}}
train: {{epochs: 1000000, micro_batch: 4, micro_batches: 4, seed: 1}}
actors:
  replica: {{count: 2}}
  checkpointer: {{every: 3 iterations, keep: 3}}
  validator: {{every: none}}
links: [{{from: replica, to: monitor, credits: 100000, bytes: 100 MiB}}]
cluster:
  rebalance: false
  pools:
    - {{name: cloud, launcher: kubernetes, namespace: troupe, image: "troupe:here", nodes: 2, join: [--data, remote]}}
)",
                                                path("toy.h5")));
  kubectl({"create", "configmap", "troupe-topology",
           "--from-file=topology.yaml=" + path("topology.yaml")});
  apply("head.yaml", "0.0.0.0:8500", fmt::format("0.0.0.0:{}", port_));
  ASSERT_TRUE(wait_until_members_run(2)) << log();
  kubectl({"delete", "pod", "--wait=false", "--selector=job-name=troupe-head"});
  ASSERT_TRUE(wait_for([&] { return log().find("cloud.2 is asked for") != std::string::npos; }))
      << log();
  ASSERT_TRUE(wait_until_members_run(2)) << log();
  kubectl({"delete", "job", "troupe-head"});
  ASSERT_TRUE(all_gone()) << "it ends its nodes too";
  expect_goes_on({"--set", "cluster.pools=[]"});
}

TEST_F(KubernetesManifests, MembersJoinAHeadThatAsksForNone) {
  const Words more{"--workers",         "1",     "--set",
                   "cluster.joiners=4", "--set", "cluster.keys=" + path("keys")};
  Process all(command(run_words("a", kEndlessRun + listening() + more)));
  wait_until_training(all);
  write_text(path("token"), call({"token", path("keys")}).out);
  kubectl({"create", "secret", "generic", "troupe-token", "--from-file=token=" + path("token")});
  apply("members.yaml", "tcp://HOST:PORT#KEY",
        fmt::format("tcp://{}#{}", address(), public_key(path("keys"))));
  ASSERT_TRUE(wait_until_members_run(5)) << log();
  stop(all);
  EXPECT_TRUE(wait_for([&] {
    return kubectl({"get", "job", "troupe-members", "--output=jsonpath={.status.succeeded}"}) ==
           "4";
  })) << kubectl({"get", "pods"});
  kubectl({"delete", "job", "troupe-members"});
  expect_goes_on();
}

}  // namespace
}  // namespace troupe
