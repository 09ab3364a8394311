#pragma once

// A run that gets nodes from Kubernetes; see kubernetes_cluster.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "tests/main/pool_run.h"

namespace troupe {

// Kubernetes with three machines, all played on this one, of two pods each. Members need tokens.
class KubernetesPool : public PoolRun {
 protected:
  void SetUp() override {
    if (!is_thorough()) GTEST_SKIP() << "it takes long: TROUPE_THOROUGH";
    for (const char* part :
         {TROUPE_KUBERNETES_PROGRAMS "/kube-apiserver", TROUPE_KUBERNETES_PROGRAMS "/kubectl",
          "/usr/bin/etcd", "/usr/bin/openssl"}) {
      if (!std::filesystem::exists(part)) {
        const std::string why = fmt::format("{} is not installed: ./dev setup --kubernetes", part);
        if (std::getenv("TROUPE_NEEDS_KUBERNETES") != nullptr) FAIL() << why;
        GTEST_SKIP() << why;
      }
    }
    path_before_ = std::getenv("PATH");
    ::setenv("PATH", fmt::format(TROUPE_KUBERNETES_PROGRAMS ":{}", path_before_).c_str(), 1);
    std::filesystem::create_directories(path("kubernetes/programs"));
    std::filesystem::create_symlink(TROUPE_BINARY, path("kubernetes/programs/troupe"));
    // Processes of pods can be told by the mark, and those of the cluster cannot.
    ::setenv("POD_ENVIRONMENT", fmt::format("{}={}", kMark, path("")).c_str(), 1);
    const ProcessEnd up = cluster("up");
    ASSERT_EQ(up.exit_code, 0) << up.err;
    make_keys("keys");
    write_text(path("pod.yaml"), "spec: {terminationGracePeriodSeconds: 10}\n");
  }
  void TearDown() override {
    if (!path_before_.empty()) {
      EXPECT_TRUE(wait_for([&] { return objects().empty(); })) << "left: " << objects();
      cluster("down");
      ::setenv("PATH", path_before_.c_str(), 1);
    }
    PoolRun::TearDown();
  }

  ProcessEnd cluster(const std::string& verb) const {
    return Process({"/usr/bin/env", "-u", kMark, TROUPE_KUBERNETES_CLUSTER, verb,
                    path("kubernetes"), TROUPE_KUBERNETES_PROGRAMS})
        .wait();
  }
  // Its output, as one who may do everything.
  std::string kubectl(const Words& words, int code = 0) const {
    const ProcessEnd end =
        Process(Words{TROUPE_KUBERNETES_PROGRAMS "/kubectl", "--namespace=troupe",
                      "--cache-dir=" + path("kubernetes/cache"),
                      "--kubeconfig=" + path("kubernetes/admin.conf")} +
                words)
            .wait();
    EXPECT_EQ(end.exit_code, code) << end.err;
    return end.out;
  }
  // Jobs, pods and secrets of the run, one per line.
  std::string objects() const {
    return kubectl({"get", "jobs,pods,secrets", "--selector=troupe/run", "--output=name"});
  }
  std::string pod_of(const std::string& node) const {
    return kubectl({"get", "pods", "--selector=troupe/node=" + node,
                    "--output=jsonpath={.items[0].metadata.name}"});
  }
  // The run's folder may not be there yet.
  bool wait_until_pools_say(const std::string& words) const {
    return wait_for([&] {
      return call({"pools", path("a")}).out.find(words) != std::string::npos;
    });
  }
  void want(const std::string& nodes) const {
    const std::string head = fmt::format("tcp://{}#{}", address(), public_key(path("keys")));
    const ProcessEnd end = call({"burst", head, "cloud", nodes, "--key", path("keys")});
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }
  // Stops the run, whose bits are those of an undisturbed one.
  void end_without_nodes(Process& process) const {
    stop(process);
    expect_goes_on({"--set", "cluster.pools=[]"});
  }
  Words kubernetes_pool(int nodes, const std::string& more = "",
                        const std::string& image = "troupe:here") const {
    const std::string pool = fmt::format(
        "{{name: cloud, launcher: kubernetes, namespace: troupe, image: '{}', nodes: {}, most: 6, "
        "options: ['--kubeconfig={}', '--cache-dir={}'], join: [--data, remote], pod: {}{}}}",
        image, nodes, path("kubernetes/head.conf"), path("kubernetes/head_cache"), path("pod.yaml"),
        more);
    return listening() + Words{"--set", "cluster.keys=" + path("keys"), "--set",
                               fmt::format("cluster.pools=[{}]", pool)};
  }

  std::string path_before_;
};

}  // namespace troupe
