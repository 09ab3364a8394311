// Messages for failures of kubectl, whose texts are its own.

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "launch/pools/kubernetes_state.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using testing::HasSubstr;
using testing::StartsWith;

TEST(KubernetesFailures, FailuresSayWhatToDoAndWhetherAnythingWasDone) {
  struct Case {
    const char *said, *advice;
    ErrorKind kind;
  };
  for (const Case& each : {
           Case{"Error from server (Forbidden): error when creating \"STDIN\": jobs.batch is "
                "forbidden: User \"u\" cannot create resource \"jobs\" in API group \"batch\"",
                "rights.yaml", ErrorKind::kUsage},
           Case{"Error from server (Forbidden): jobs.batch \"j\" is forbidden: exceeded quota: q",
                "`most`", ErrorKind::kUsage},
           Case{"Error from server (Forbidden): error when creating \"STDIN\": admission webhook "
                "\"labels.example\" denied the request: no team",
                "`pod` file", ErrorKind::kUsage},
           Case{"Error from server (NotFound): namespaces \"sim\" not found", "make the namespace",
                ErrorKind::kUsage},
           Case{"error: You must be logged in to the server (Unauthorized)", "renew",
                ErrorKind::kUsage},
           Case{
               "error: You must be logged in to the server (the server has asked for the client to "
               "provide credentials)",
               "renew", ErrorKind::kUsage},
           Case{"error: context \"far\" does not exist", "get-contexts", ErrorKind::kUsage},
           Case{"error: stat /nowhere/x: no such file or directory", "", ErrorKind::kUsage},
           Case{"Error: unknown flag: --far\nSee 'kubectl --help' for usage.", "`options`",
                ErrorKind::kUsage},
           Case{"error: error validating \"STDIN\": error validating data: ValidationError("
                "Job.spec.template.spec): unknown field \"x\" in io.k8s.api.core.v1.PodSpec",
                "`pod` file", ErrorKind::kUsage},
           Case{"error: error validating \"STDIN\": error validating data: failed to download "
                "openapi: Get \"https://10.0.0.9:6443/openapi/v2\": dial tcp 10.0.0.9:6443: i/o",
                "kubectl get pods", ErrorKind::kUsage},
           Case{"The Job \"j\" is invalid: spec.template.spec.containers[0].image: Required value",
                "`image`", ErrorKind::kUsage},
           Case{
               "The Job \"j\" is invalid: \n* spec.template.spec.volumes[1].name: Duplicate value: "
               "\"a\"\n* spec.template.spec.restartPolicy: Unsupported value: \"Sometimes\"",
               "`pod` file", ErrorKind::kUsage},
           Case{"Error from server (BadRequest): error when creating \"STDIN\": Job in version "
                "\"v1\" cannot be handled as a Job: v1.Job.Spec: NodeSelector: ReadString: expects "
                "\" or n, but found 7, error found in #10 byte\n  |...",
                "`pod` file", ErrorKind::kUsage},
           Case{"Error from server (BadRequest): error when creating \"STDIN\": Job in version "
                "\"v1\" cannot be handled as a Job: strict decoding error: unknown field \"x\"",
                "`pod` file", ErrorKind::kUsage},
           Case{"error: error when creating \"STDIN\": Post \"https://10.0.0.9:6443/apis/batch/v1/"
                "namespaces/sim/jobs\": EOF",
                "", ErrorKind::kLostPeers},
           Case{"error: error when creating \"STDIN\": Post \"https://10.0.0.9:6443/apis/batch/v1/"
                "namespaces/sim/jobs\": read tcp 10.0.0.5:43370->10.0.0.9:6443: connection reset",
                "", ErrorKind::kLostPeers},
           Case{"The connection to the server localhost:8080 was refused - did you specify",
                "KUBECONFIG", ErrorKind::kLostPeers},
           Case{"The connection to the server 10.0.0.9:6443 was refused", "kubectl get pods",
                ErrorKind::kLostPeers},
           Case{"Unable to connect to the server: context deadline exceeded", "kubectl get pods",
                ErrorKind::kLostPeers},
           Case{"Error from server (AlreadyExists): jobs.batch \"j\" already exists", "",
                ErrorKind::kLostPeers},
       }) {
    const Error error =
        advised({ErrorKind::kUsage, fmt::format("kubectl ended with exit code 1: {}", each.said)});
    EXPECT_EQ(error.kind, each.kind) << each.said;
    std::string line = each.said;
    std::ranges::replace(line, '\n', ' ');
    EXPECT_THAT(error.message, HasSubstr(line));
    EXPECT_THAT(error.message, HasSubstr(each.advice));
  }
  const Error last = advised({ErrorKind::kUsage,
                              "kubectl ended with exit code 1: E1126 Get: EOF\nWarning: old\n"
                              "The Job \"j\" is invalid: \n* a\n* b"});
  EXPECT_THAT(last.message,
              StartsWith("kubectl ended with exit code 1: The Job \"j\" is invalid:  * a * b; "));
}

}  // namespace
}  // namespace troupe::launch
