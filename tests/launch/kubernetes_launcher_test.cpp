// Nodes as Jobs of Kubernetes: what they are made of, and how kubectl's answers are read. A made
// kubectl stands in for the real one.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "launch/pools/kubernetes_objects.h"
#include "launch/pools/kubernetes_state.h"
#include "tests/launch/made_tools.h"

namespace troupe::launch {
namespace {

using nlohmann::json;
using runtime::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class Kubernetes : public MadeTools {
 protected:
  Kubernetes() {
    pool_.name = "cloud";
    pool_.launcher = config::LauncherKind::kKubernetes;
    pool_.image = "troupe:0.1.0";
    pool_.namespace_there = "sim";
    pool_.options = {"--context=far"};
  }

  // A kubectl that notes its words and its input, and then does what `script` says.
  void kubectl(const std::string& script) const { tool("kubectl", script); }
  // One that answers with these objects when it is asked for any.
  void lists(const std::string& objects, const std::string& events = "") const {
    write_text(folder_ / "objects", fmt::format(R"({{"kind":"List","items":[{}]}})", objects));
    write_text(folder_ / "events", fmt::format(R"({{"kind":"List","items":[{}]}})", events));
    kubectl(
        fmt::format("case \"$*\" in *events*) cat {0}/events ;; *jobs,pods*) cat {0}/objects ;; "
                    "esac",
                    folder_.path()));
  }
  std::shared_ptr<actors::Launcher> launcher() const { return *make_launcher(pool_, plan_); }
  void forget_calls() const { std::filesystem::remove(calls_); }
  void fails_to_start(const std::string& pod) const {
    write_text(*pool_.pod, pod);
    const auto refused = make_launcher(pool_, plan_);
    ASSERT_FALSE(refused.ok()) << pod;
    EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("pod.yaml"));
  }
  // "NAME queued|there WHERE" of each that is listed.
  static std::vector<std::string> rows(actors::Launcher& launcher) {
    const auto nodes = launcher.list();
    EXPECT_TRUE(nodes.ok()) << nodes.error().message;
    std::vector<std::string> rows;
    for (const auto& node : *nodes) {
      rows.push_back(
          fmt::format("{} {} {}", node.name, node.queued ? "queued" : "there", node.where));
    }
    return rows;
  }
  static std::string job(const std::string& node, const std::string& status = "",
                         const std::string& more = "") {
    return fmt::format(
        R"({{"kind":"Job","metadata":{{"name":"j","labels":{{"troupe/node":"{}"}}{}}},)"
        R"("status":{{{}}}}})",
        node, more, status);
  }
  static std::string pod(const std::string& node, const std::string& status,
                         const std::string& machine = "", const std::string& more = "") {
    return fmt::format(
        R"({{"kind":"Pod","metadata":{{"name":"p","uid":"uid-1","labels":{{"troupe/node":"{}"}}{}}},)"
        R"("spec":{{"nodeName":"{}"}},"status":{{{}}}}})",
        node, more, machine, status);
  }
  static std::string waiting(const std::string& reason, const std::string& message) {
    return fmt::format(
        R"("phase":"Pending","containerStatuses":[{{"state":{{"waiting":{{"reason":"{}",)"
        R"("message":"{}"}}}}}}])",
        reason, message);
  }
  static std::string container(const std::string& name, int code, const std::string& reason) {
    return fmt::format(
        R"({{"name":"{}","state":{{"terminated":{{"exitCode":{},"reason":"{}"}}}}}})", name, code,
        reason);
  }
  static std::string ended(int code, const std::string& reason, const std::string& log) {
    return fmt::format(
        R"("phase":"Failed","containerStatuses":[{{"state":{{"terminated":{{"exitCode":{},)"
        R"("reason":"{}","message":"{}"}}}}}}])",
        code, reason, log);
  }

  config::PoolSection pool_;
};

constexpr const char* kRunning = R"("phase":"Running")";
constexpr const char* kFailed =
    R"("conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}])";

TEST_F(Kubernetes, JobRunsOnePodOnceWithoutRights) {
  pool_.workers = 2;
  pool_.join = {"--data", "$(HOME)"};
  const json job = kubernetes_job(plan_, pool_, "cloud.3", true, {});
  EXPECT_EQ(job["metadata"]["name"], "troupe-1a2b3c4d-cloud-3");
  const json labels{
      {"troupe/run", "1a2b3c4d"}, {"troupe/pool", "cloud"}, {"troupe/node", "cloud.3"}};
  EXPECT_EQ(job["metadata"]["labels"], labels);
  EXPECT_EQ(job["spec"]["template"]["metadata"]["labels"], labels);
  EXPECT_EQ(job["spec"]["backoffLimit"], 0);
  const json& pod = job["spec"]["template"]["spec"];
  EXPECT_EQ(pod["restartPolicy"], "Never");
  EXPECT_EQ(pod["automountServiceAccountToken"], false);
  EXPECT_EQ(pod["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
  EXPECT_EQ(pod["containers"].size(), 1U);
  const json& container = pod["containers"][0];
  EXPECT_EQ(container["image"], "troupe:0.1.0");
  EXPECT_EQ(container["command"],
            json({"troupe", "join", "tcp://10.0.0.5:8500#KEY", "--launched", "cloud.3@1a2b3c4d",
                  "--workers", "2", "--token-file", "/run/troupe/token", "--data", "$$(HOME)"}));
  EXPECT_EQ(container["securityContext"]["readOnlyRootFilesystem"], true);
  EXPECT_EQ(container["securityContext"]["capabilities"]["drop"], json({"ALL"}));
  EXPECT_EQ(container["volumeMounts"].size(), 3U);
  EXPECT_EQ(pod["volumes"][2]["secret"]["secretName"], "troupe-1a2b3c4d-cloud-3");
  pool_.program = "/opt/other/troupe";
  const json open = kubernetes_job(plan_, pool_, "cloud.3", false, {});
  const json& words = open["spec"]["template"]["spec"]["containers"][0]["command"];
  EXPECT_EQ(words[0], "/opt/other/troupe");
  EXPECT_THAT(words.dump(), Not(HasSubstr("token")));
  EXPECT_EQ(open["spec"]["template"]["spec"]["volumes"].size(), 2U);
}

TEST_F(Kubernetes, PartOfAPodIsLaidOverIt) {
  const std::string file = (folder_ / "pod.yaml");
  write_text(file, R"(metadata: {annotations: {team: "7"}}
spec:
  nodeSelector: {pool: gpu}
  tolerations: [{key: gpu, operator: Exists}]
  terminationGracePeriodSeconds: 90
  containers:
  - name: troupe
    resources: {limits: {cpu: 8, memory: 16Gi, share: 0.5}}
    volumeMounts: [{name: data, mountPath: /data, readOnly: true}, {name: data, mountPath: /tmp}]
  - {name: beside, image: other}
  volumes: [{name: data, persistentVolumeClaim: {claimName: showers}}]
)");
  const auto part = read_pod_part(file);
  ASSERT_TRUE(part.ok()) << part.error().message;
  const json pod = kubernetes_job(plan_, pool_, "cloud.3", true, *part)["spec"]["template"];
  EXPECT_EQ(pod["metadata"]["annotations"]["team"], "7");
  EXPECT_EQ(pod["metadata"]["labels"]["troupe/pool"], "cloud");
  const json& spec = pod["spec"];
  EXPECT_EQ(spec["nodeSelector"]["pool"], "gpu");
  EXPECT_EQ(spec["tolerations"].size(), 3U);
  EXPECT_EQ(spec["terminationGracePeriodSeconds"], 90);
  EXPECT_EQ(spec["containers"].size(), 2U);
  EXPECT_EQ(spec["containers"][0]["resources"]["limits"],
            json({{"cpu", 8}, {"memory", "16Gi"}, {"share", 0.5}}));
  EXPECT_EQ(spec["containers"][0]["image"], "troupe:0.1.0");
  const json& mounts = spec["containers"][0]["volumeMounts"];
  ASSERT_EQ(mounts.size(), 4U);
  EXPECT_EQ(mounts[1], json({{"name", "data"}, {"mountPath", "/tmp"}}));
  EXPECT_EQ(mounts[3]["readOnly"], true);
  EXPECT_EQ(spec["volumes"].size(), 4U);
}

// As kubectl reads YAML.
TEST_F(Kubernetes, WordsOfAPodAreReadAsKubectlReadsThem) {
  const std::string file = (folder_ / "pod.yaml");
  write_text(file, "spec: {a: 0400, b: 08, c: 0, d: True, e: FALSE, f: Null, g: '0400', h: -3}\n");
  const auto part = read_pod_part(file);
  ASSERT_TRUE(part.ok()) << part.error().message;
  EXPECT_EQ((*part)["spec"], json({{"a", 256},
                                   {"b", 8},
                                   {"c", 0},
                                   {"d", true},
                                   {"e", false},
                                   {"f", nullptr},
                                   {"g", "0400"},
                                   {"h", -3}}));
}

TEST_F(Kubernetes, FileThatIsNoPartOfAPodStartsNothing) {
  pool_.pod = folder_ / "pod.yaml";
  kubectl("");
  EXPECT_EQ(make_launcher(pool_, plan_).error().kind, ErrorKind::kUsage) << "it is missing";
  fails_to_start("containers: []\n");
  fails_to_start("spec: [\n");
  fails_to_start("spec: 7\n");
  fails_to_start("spec:\n");
  fails_to_start("spec: {}\nmetadata: [a]\n");
  write_text(*pool_.pod, "spec: {}\n");
  const auto asked = launcher();
  write_text(*pool_.pod, "spec: 7\n");
  const auto started = asked->start({"cloud.0", 1, ""});
  EXPECT_EQ(started.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(started.error().message, HasSubstr("has `spec`, `metadata` or both"));
  EXPECT_EQ(calls(), "");
}

TEST_F(Kubernetes, TokenIsInASecretThatItsJobOwns) {
  kubectl("printf uid-7");
  const auto id = launcher()->start({"cloud.0", 1, "SECRET"});
  ASSERT_TRUE(id.ok()) << id.error().message;
  EXPECT_EQ(*id, "troupe-1a2b3c4d-cloud-0");
  EXPECT_THAT(calls(), Not(HasSubstr("SECRET")));
  EXPECT_THAT(calls(), StartsWith("[--context=far][--namespace=sim][create]"
                                  "[--filename=-]"));
  const std::string input = read_text(input_);
  const std::size_t second = input.find("}{") + 1;
  EXPECT_THAT(input.substr(0, second), Not(HasSubstr("SECRET")));
  const json secret = json::parse(input.substr(second));
  EXPECT_EQ(secret["kind"], "Secret");
  EXPECT_EQ(secret["stringData"]["token"], "SECRET\n");
  EXPECT_EQ(secret["metadata"]["ownerReferences"][0]["uid"], "uid-7");
  EXPECT_EQ(secret["metadata"]["name"], *id);
}

// The book ends it, and waits until it is gone.
TEST_F(Kubernetes, JobWithoutItsSecretMayBeThere) {
  kubectl(fmt::format(
      "case $(tail -n 1 {}) in *create*) grep -q Secret {} || {{ printf uid-7; exit 0; }}; "
      "echo 'Error from server (Forbidden): User \"u\" cannot create resource \"secrets\"' >&2; "
      "exit 1 ;; esac",
      calls_, input_));
  const auto started = launcher()->start({"cloud.0", 1, "SECRET"});
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().kind, ErrorKind::kLostPeers);
  EXPECT_THAT(started.error().message, HasSubstr("rights.yaml"));
  EXPECT_THAT(calls(), Not(HasSubstr("[delete]")));
}

// Nobody makes it any more, and the pod would wait for it. One that runs has it.
TEST_F(Kubernetes, NodesWhoseHeadDiedBeforeTheirSecretAreDeleted) {
  const std::string waits = waiting("ContainerCreating", "");
  lists(job("cloud.0") + "," + pod("cloud.0", waits, "node-a") + "," + job("cloud.1") + "," +
        pod("cloud.1", waits, "node-a") + "," + job("cloud.2") + "," +
        pod("cloud.2", kRunning, "node-a") + "," + job("cloud.3"));
  const auto asked = launcher();
  asked->adopt("cloud.0", "");
  asked->adopt("cloud.1", "troupe-1a2b3c4d-cloud-1");
  asked->adopt("cloud.2", "");
  asked->adopt("cloud.3", "");
  EXPECT_EQ(rows(*asked).size(), 4U);
  EXPECT_THAT(calls(), testing::EndsWith("[--wait=false][troupe-1a2b3c4d-cloud-0]"
                                         "[troupe-1a2b3c4d-cloud-3]\n"));
}

TEST_F(Kubernetes, StatesAreReadFromJobsAndPods) {
  lists(job("cloud.0") + "," + pod("cloud.0", kRunning, "node-a") + "," + job("cloud.1") + "," +
        job("cloud.2") + "," +
        pod("cloud.2",
            R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",)"
            R"("reason":"Unschedulable","message":"0/3 nodes are available: 3 Too many pods."}])") +
        "," + job("cloud.3") + "," + pod("cloud.3", waiting("ContainerCreating", ""), "node-b") +
        "," + job("cloud.4") + "," +
        pod("cloud.4", waiting("ImagePullBackOff", "no such image"), "node-b") + "," +
        job("cloud.5") + "," + pod("cloud.5", R"("phase":"Pending")") + R"(,{"kind":"Pod"},7)");
  const auto asked = launcher();
  EXPECT_THAT(
      rows(*asked),
      ElementsAre("cloud.0 there node-a", "cloud.1 queued Kubernetes has made no pod yet",
                  "cloud.2 queued Unschedulable: 0/3 nodes are available: 3 Too many pods.",
                  "cloud.3 there node-b", "cloud.4 there node-b: ImagePullBackOff: no such image",
                  "cloud.5 queued no machine has been chosen yet"));
  EXPECT_EQ((*asked->list())[0].id, "troupe-1a2b3c4d-cloud-0");
  EXPECT_THAT(calls(),
              HasSubstr("[get][jobs,pods][--selector=troupe/run=1a2b3c4d,troupe/pool=cloud]"
                        "[--output=json]"));
  EXPECT_THAT(calls(), Not(HasSubstr("[delete]")));
  EXPECT_EQ(asked->last_words("cloud.4"), "ImagePullBackOff: no such image");
  EXPECT_EQ(asked->last_words("cloud.0"), "");
}

// A quota, or a rule of the cluster.
TEST_F(Kubernetes, EventsTellWhyAJobGetsNoPod) {
  lists(job("cloud.0") + "," + job("cloud.1"),
        R"({"message":"old","lastTimestamp":"2026-01-01T00:00:01Z"},)"
        R"({"message":"Error creating: pods \"x\" is forbidden: exceeded quota: small",)"
        R"("lastTimestamp":"2026-01-01T00:00:09Z"})");
  const auto asked = launcher();
  EXPECT_THAT(rows(*asked)[0], HasSubstr("no pod yet"));
  EXPECT_THAT(calls(), Not(HasSubstr("[events]")));
  EXPECT_THAT(rows(*asked),
              ElementsAre("cloud.0 queued pods \"x\" is forbidden: exceeded quota: small",
                          "cloud.1 queued pods \"x\" is forbidden: exceeded quota: small"));
  EXPECT_THAT(calls(), HasSubstr("involvedObject.name=troupe-1a2b3c4d-cloud-1]"));
}

TEST_F(Kubernetes, NodesThatAreOverTellWhyAndTheirJobsAreDeleted) {
  lists(job("cloud.0", kFailed) + "," +
        pod("cloud.0", ended(137, "OOMKilled", "step 3\\nno memory\\n"), "node-a") + "," +
        job("cloud.1", R"("conditions":[{"type":"Complete","status":"True"}])") + "," +
        job("cloud.2", kFailed) + "," +
        pod("cloud.2",
            R"("phase":"Failed","reason":"Evicted","message":"The node was low on memory")") +
        "," + job("cloud.3") + "," + pod("cloud.3", kRunning, "node-a"));
  const auto asked = launcher();
  EXPECT_THAT(rows(*asked), ElementsAre("cloud.3 there node-a"));
  EXPECT_THAT(calls(), HasSubstr("[--wait=false][troupe-1a2b3c4d-cloud-0][troupe-1a2b3c4d-cloud-1]"
                                 "[troupe-1a2b3c4d-cloud-2]\n"));
  EXPECT_EQ(asked->last_words("cloud.0"),
            "its pod ended with exit code 137 (OOMKilled), and its log with: no memory");
  EXPECT_EQ(asked->last_words("cloud.2"), "Evicted: The node was low on memory");
}

TEST_F(Kubernetes, LastWordsAreThoseOfTheLastList) {
  const auto asked = launcher();
  lists(job("cloud.0") + "," + pod("cloud.0", waiting("ErrImagePull", "no image"), "node-a"));
  rows(*asked);
  EXPECT_EQ(asked->last_words("cloud.0"), "ErrImagePull: no image");
  lists(job("cloud.0") + "," + pod("cloud.0", kRunning, "node-a"));
  rows(*asked);
  EXPECT_EQ(asked->last_words("cloud.0"), "");
  lists("");
  EXPECT_THAT(rows(*asked), IsEmpty());
  EXPECT_EQ(asked->last_words("cloud.0"), "");
}

// Others end in their own ways when it has ended.
TEST_F(Kubernetes, EndIsThatOfTheMembersContainer) {
  const std::string beside = container("beside", 143, "Error");
  const auto failed = [&](const std::string& first, const std::string& list,
                          const std::string& more) {
    lists(job("cloud.0") + "," +
          pod("cloud.0", fmt::format(R"("phase":"Failed","initContainerStatuses":[{}],)"
                                     R"("containerStatuses":[{}{}])",
                                     first, list, more)));
    const auto asked = launcher();
    rows(*asked);
    return asked->last_words("cloud.0");
  };
  const std::string fine = container("first", 0, "Completed");
  EXPECT_EQ(failed(fine, beside, "," + container("troupe", 3, "Error")),
            "its pod ended with exit code 3 (Error)");
  EXPECT_EQ(failed(fine, beside, "," + container("troupe", 0, "Completed")),
            "its pod ended with exit code 0 (Completed)");
  EXPECT_EQ(failed(fine, beside, R"(,{"name":"troupe","state":{}})"),
            "its pod ended with exit code 143 (Error)");
  EXPECT_EQ(failed(container("first", 5, "Error"), R"({"name":"troupe","state":{}})", ""),
            "its pod ended with exit code 5 (Error)");
}

TEST_F(Kubernetes, JobThatCannotBeDeletedIsStillThere) {
  write_text(folder_ / "objects", R"({"kind":"List","items":[)" + job("cloud.0", kFailed) + "]}");
  kubectl(fmt::format("case \"$*\" in *jobs,pods*) cat {}/objects ;; *) exit 1 ;; esac",
                      folder_.path()));
  EXPECT_THAT(rows(*launcher()), ElementsAre("cloud.0 there "));
}

// A Job makes another pod in its place. The node is there until both have ended.
TEST_F(Kubernetes, PodThatIsTakenAwayEndsItsNode) {
  const std::string leaving = R"(,"deletionTimestamp":"2099-01-01T00:00:00Z")";
  const std::string other = R"({"kind":"Pod","metadata":{"uid":"uid-2","creationTimestamp":)"
                            R"("2026-01-01T00:00:09Z","labels":{"troupe/node":"cloud.0"}},)"
                            R"("spec":{"nodeName":"node-b"},"status":{"phase":"Running"}})";
  lists(job("cloud.0") + "," + pod("cloud.0", kRunning, "node-a", leaving));
  const auto first = launcher();
  EXPECT_THAT(rows(*first), ElementsAre("cloud.0 there node-a"));
  EXPECT_THAT(calls(), HasSubstr("[delete]"));
  EXPECT_EQ(first->last_words("cloud.0"), "its pod on node-a was taken away");
  lists(pod("cloud.0", ended(143, "Error", ""), "node-a", leaving));
  EXPECT_THAT(rows(*first), IsEmpty());
  EXPECT_EQ(first->last_words("cloud.0"), "its pod on node-a was taken away");

  const auto second = launcher();
  lists(job("cloud.0") + "," + pod("cloud.0", kRunning, "node-a"));
  forget_calls();
  EXPECT_THAT(rows(*second), ElementsAre("cloud.0 there node-a"));
  EXPECT_THAT(calls(), Not(HasSubstr("[delete]")));
  lists(job("cloud.0") + "," + other);
  EXPECT_THAT(rows(*second), ElementsAre("cloud.0 there node-b"));
  EXPECT_THAT(calls(), HasSubstr("[delete]"));
}

TEST_F(Kubernetes, PodThatDoesNotEndInTimeIsLostWithItsMachine) {
  const std::string objects = fmt::format(
      R"({{"kind":"List","items":[{}]}})",
      job("cloud.0", "", R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")") + "," +
          pod("cloud.0", kRunning, "node-a",
              R"(,"deletionTimestamp":"2026-01-01T00:01:00Z","deletionGracePeriodSeconds":60)"));
  using std::chrono::seconds;
  LeavingPods leaving;
  EXPECT_TRUE((*read_kubernetes_nodes(objects, leaving, seconds(1000)))["cloud.0"].is_there);
  auto nodes = *read_kubernetes_nodes(objects, leaving, seconds(1090));
  EXPECT_TRUE(nodes["cloud.0"].is_there);
  EXPECT_FALSE(nodes["cloud.0"].has_job);
  nodes = *read_kubernetes_nodes(objects, leaving, seconds(1091));
  EXPECT_FALSE(nodes["cloud.0"].is_there);
  EXPECT_EQ(nodes["cloud.0"].last_words, "the machine node-a does not answer");
}

TEST_F(Kubernetes, OneCallStopsManyNodes) {
  kubectl("");
  for (const auto& stopped : launcher()->stop_all({{"cloud.0", ""}, {"cloud.1", "x"}})) {
    EXPECT_TRUE(stopped.ok());
  }
  EXPECT_THAT(calls(), testing::EndsWith("[delete][jobs][--ignore-not-found][--wait=false]"
                                         "[troupe-1a2b3c4d-cloud-0][troupe-1a2b3c4d-cloud-1]\n"));
}

TEST_F(Kubernetes, AnswersThatAreNoListAreRefused) {
  for (const char* answer :
       {"", "null", "[]", "{", R"({"kind":"Status"})", R"({"kind":7,"items":[]})"}) {
    LeavingPods leaving;
    EXPECT_FALSE(read_kubernetes_nodes(answer, leaving, {}).ok()) << answer;
    EXPECT_EQ(newest_event(answer), "");
  }
}

TEST_F(Kubernetes, MissingKubectlIsNamed) {
  ::setenv("PATH", (folder_ / "empty").c_str(), 1);
  const auto started = launcher()->start({"cloud.0", 1, ""});
  EXPECT_EQ(started.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(started.error().message, HasSubstr("kubernetes-client"));
}

}  // namespace
}  // namespace troupe::launch
