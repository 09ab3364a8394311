// Nodes that a run gets from Kubernetes: a real API server with its controllers and its scheduler,
// and pods that are processes of this machine. The head has the rights of
// config/launch/kubernetes/rights.yaml, and no others.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/main/kubernetes_pool.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(KubernetesPool, BurstsWhileItTrainsAndSurvivesAPodThatIsKilled) {
  Process all(command(endless(kubernetes_pool(2))));
  ASSERT_TRUE(wait_until(all, "cloud", 2, "running")) << log();
  want("4");
  ASSERT_TRUE(wait_until(all, "cloud", 4, "running")) << log();
  const pid_t member = process_with("--launched cloud.1@");
  ASSERT_NE(member, 0);
  ::kill(member, SIGKILL);
  ASSERT_TRUE(wait_until_said(all, "cloud.4 is asked for")) << log();
  EXPECT_THAT(log(), HasSubstr("its pod ended with exit code 137 (Error)"));
  ASSERT_TRUE(wait_until(all, "cloud", 4, "running")) << log();
  want("1");
  ASSERT_TRUE(wait_until(all, "cloud", 3, "ended")) << log();
  end(all);
}

TEST_F(KubernetesPool, PodThatIsTakenAwayLeavesInOrderAndAnotherNodeComes) {
  Process all(command(endless(kubernetes_pool(2))));
  ASSERT_TRUE(wait_until(all, "cloud", 2, "running")) << log();
  kubectl({"delete", "pod", "--wait=false", pod_of("cloud.0")});
  ASSERT_TRUE(wait_until_said(all, "cloud.2 is asked for")) << log();
  ASSERT_TRUE(wait_until(all, "cloud", 2, "running")) << log();
  EXPECT_THAT(log(), HasSubstr(" has left the run"));
  EXPECT_THAT(log(), Not(HasSubstr("is lost:")));
  end_without_nodes(all);
}

// Kubernetes cannot know whether its pods still run. The run gives them up.
TEST_F(KubernetesPool, NodesOfAMachineThatVanishesAreReplaced) {
  Process all(command(endless(kubernetes_pool(3))));
  ASSERT_TRUE(wait_until(all, "cloud", 3, "running")) << log();
  const std::string machine =
      kubectl({"get", "pod", pod_of("cloud.0"), "--output=jsonpath={.spec.nodeName}"});
  std::filesystem::create_directories(path("kubernetes/lost"));
  std::ofstream(path("kubernetes/lost/" + machine)) << "";
  ASSERT_TRUE(wait_until_said(all, "cloud.3 is asked for")) << log();
  ASSERT_TRUE(wait_until(all, "cloud", 3, "running")) << log();
  ASSERT_TRUE(all.wait_until([&] { return nodes()["cloud.0"].state == "dead"; })) << log();
  end_without_nodes(all);
  // So do clouds, and Kubernetes forgets its pods.
  kubectl({"delete", "node", machine});
}

TEST_F(KubernetesPool, NodesBeyondAQuotaAreQueuedOrRefusedAndSayWhy) {
  kubectl({"create", "quota", "small", "--hard=pods=2,count/jobs.batch=3"});
  // It holds when it has been counted.
  ASSERT_TRUE(wait_for([&] {
    return kubectl({"get", "quota", "small", "--output=jsonpath={.status.hard.pods}"}) == "2";
  }));
  Process all(command(endless(kubernetes_pool(3))));
  ASSERT_TRUE(wait_until(all, "cloud", 2, "running")) << log();
  ASSERT_TRUE(wait_until(all, "cloud", 1, "queued")) << log();
  ASSERT_TRUE(wait_until_pools_say("exceeded quota: small")) << pools();
  want("4");
  ASSERT_TRUE(wait_until_said(all, "could not be started: ")) << log();
  EXPECT_THAT(log(), HasSubstr("ask for a larger one, or lower the pool's `most`"));
  wait_until_training(all, steps() + 40);
  kubectl({"delete", "quota", "small"});
  ASSERT_TRUE(wait_until(all, "cloud", 4, "running")) << log();
  end_without_nodes(all);
}

TEST_F(KubernetesPool, NodesThatNoMachineFitsAreQueuedAndSayWhy) {
  write_text(path("pod.yaml"),
             "spec: {terminationGracePeriodSeconds: 10, nodeSelector: {kind: large}}\n");
  Process all(command(endless(kubernetes_pool(1))));
  ASSERT_TRUE(wait_until(all, "cloud", 1, "queued")) << log();
  ASSERT_TRUE(wait_until_pools_say("Unschedulable: ")) << pools();
  kubectl({"label", "node", "node2", "kind=large"});
  ASSERT_TRUE(wait_until(all, "cloud", 1, "running")) << log();
  end_without_nodes(all);
}

TEST_F(KubernetesPool, ImageThatIsMissingIsTold) {
  Process all(command(endless(kubernetes_pool(1, ", starts_in: 8s", "troupe:nowhere"))));
  ASSERT_TRUE(wait_until_pools_say("ErrImagePull: ")) << log();
  ASSERT_TRUE(wait_until_said(all, "cloud.1 is asked for")) << log();
  EXPECT_THAT(log(), HasSubstr("it has not joined within 8 s; ErrImagePull: there is no image"));
  wait_until_training(all, steps() + 40);
  end_without_nodes(all);
}

// Kubernetes refuses it, and the next node has what stands in the file then.
TEST_F(KubernetesPool, PodFileThatIsWrongIsNamed) {
  const std::string sound = read_text(path("pod.yaml"));
  write_text(path("pod.yaml"),
             "spec: {restartPolicy: Sometimes, volumes: [{name: a, emptyDir: {}}, {name: tmp, "
             "secret: {secretName: a}}]}\n");
  Process all(command(endless(kubernetes_pool(1))));
  ASSERT_TRUE(wait_until_said(all, "cloud.0 could not be started: ")) << log();
  EXPECT_THAT(log(), HasSubstr("is invalid: "));
  EXPECT_THAT(log(), HasSubstr("Unsupported value: \"Sometimes\""));
  EXPECT_THAT(log(), HasSubstr("mend the pool's `pod` file"));
  write_text(path("pod.yaml"), sound);
  ASSERT_TRUE(wait_until(all, "cloud", 1, "running")) << log();
  EXPECT_THAT(log(), Not(HasSubstr("cloud.0 is gone"))) << "it was never there";
  end_without_nodes(all);
  write_text(path("pod.yaml"), "spec: 7\n");
  const ProcessEnd refused = call(run_words("b", kubernetes_pool(1)));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("pod.yaml: a part of a pod's template has"));
}

TEST_F(KubernetesPool, RightsThatAreMissingAreNamed) {
  Process all(command(endless(kubernetes_pool(1))));
  ASSERT_TRUE(wait_until(all, "cloud", 1, "running")) << log();
  kubectl({"delete", "rolebinding", "troupe-head"});
  want("2");
  ASSERT_TRUE(wait_until_said(all, "cloud.1 could not be started: ")) << log();
  EXPECT_THAT(log(), HasSubstr("config/launch/kubernetes/rights.yaml"));
  wait_until_training(all, steps() + 40);
  kubectl({"create", "rolebinding", "troupe-head", "--role=troupe-head",
           "--serviceaccount=troupe:troupe-head"});
  ASSERT_TRUE(wait_until(all, "cloud", 2, "running")) << log();
  end_without_nodes(all);
}

TEST_F(KubernetesPool, ApiServerThatIsAwayForAWhileCostsNothing) {
  Process all(command(endless(kubernetes_pool(2))));
  ASSERT_TRUE(wait_until(all, "cloud", 2, "running")) << log();
  ::kill(std::stoi(read_text(path("kubernetes/api.pid"))), SIGKILL);
  want("3");
  ASSERT_TRUE(wait_until_said(all, "cloud.2 could not be started: ")) << log();
  EXPECT_THAT(log(), HasSubstr("see whether `kubectl get pods` works"));
  wait_until_training(all, steps() + 40);
  EXPECT_EQ(cluster("api").exit_code, 0);
  ASSERT_TRUE(wait_until(all, "cloud", 3, "running")) << log();
  end_without_nodes(all);
}

// The machines have room for six pods.
TEST_F(KubernetesPool, NodesOfADeadRunAreTakenOverByTheNextAndEndedByHandIfThereIsNone) {
  Process all(command(endless(kubernetes_pool(2))));
  ASSERT_TRUE(wait_until(all, "cloud", 2, "running")) << log();
  kill_whole(all);
  Process again(command({"run", "--resume", path("a")}));
  ASSERT_TRUE(wait_until_said(again, "cloud.3 is asked for")) << log();
  ASSERT_TRUE(wait_until(again, "cloud", 2, "running")) << log();
  kill_whole(again);
  EXPECT_NE(objects(), "");
  std::filesystem::remove(path("pod.yaml"));
  EXPECT_THAT(pools({"--stop"}), Not(HasSubstr("running")));
  EXPECT_EQ(kubectl({"get", "jobs,pods", "--selector=troupe/run", "--output=name"}), "");
  expect_goes_on({"--set", "cluster.pools=[]"});
}

}  // namespace
}  // namespace troupe
