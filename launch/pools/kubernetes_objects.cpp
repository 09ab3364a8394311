#include "launch/pools/kubernetes_objects.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/yaml_value.h"
#include "runtime/base/disk.h"

namespace troupe::launch {
namespace {

using config::YamlValue;
using nlohmann::json;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// As the image of ./dev package has them.
constexpr const char* kProgram = "troupe";
constexpr const char* kHome = "/home/troupe";
constexpr int kUser = 1000;
// Members leave in order before they are killed.
constexpr int kGraceSeconds = 60;
// A pod on a machine that does not answer is given up, whose members have been replaced by then.
constexpr int kUnreachableSeconds = 30;
// Jobs that a dead run has left, and that have ended, go after this.
constexpr int kKeepsEndedSeconds = 3600;
constexpr const char* kTokenFolder = "/run/troupe";
constexpr const char* kTokenFile = "token";

// A plain word of YAML as JSON has it, and as kubectl reads it.
json scalar_of(const YamlValue& value) {
  const std::string& text = value.scalar;
  if (value.quoted) return text;
  const auto is_any_of = [&](const auto&... words) { return ((text == words) || ...); };
  if (is_any_of("true", "True", "TRUE")) return true;
  if (is_any_of("false", "False", "FALSE")) return false;
  if (is_any_of("null", "Null", "NULL", "~", "")) return nullptr;
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  // 0400 is octal, and 08 is not.
  const bool is_octal = text[0] == '0' && text.find_first_not_of("01234567") == std::string::npos;
  if (const auto read = std::from_chars(text.data(), end, whole, is_octal ? 8 : 10);
      read.ec == std::errc() && read.ptr == end) {
    return whole;
  }
  double number = 0.0;
  const bool is_digit = text[0] == '-' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
  if (const auto read = std::from_chars(text.data(), end, number);
      is_digit && read.ec == std::errc() && read.ptr == end) {
    return number;
  }
  return text;
}

json json_of(const YamlValue& value) {
  if (value.is_list()) {
    json list = json::array();
    for (const YamlValue& item : value.items) list.push_back(json_of(item));
    return list;
  }
  if (value.is_map()) {
    json map = json::object();
    for (const auto& member : value.members) map[member.key] = json_of(member.value);
    return map;
  }
  return value.is_null() ? json() : scalar_of(value);
}

// The key that identifies a list item; nullptr: it has none.
const char* key_of(const json& item) {
  if (!item.is_object()) return nullptr;
  for (const char* key : {"mountPath", "name"}) {
    if (item.contains(key)) return key;
  }
  return nullptr;
}

void lay_over(json& base, const json& part);

void lay_item_over(json& list, const json& item) {
  if (const char* const key = key_of(item)) {
    for (json& each : list) {
      const bool is_same = each.is_object() && each.contains(key) && each[key] == item[key];
      if (is_same) return lay_over(each, item);
    }
  }
  list.push_back(item);
}

void lay_over(json& base, const json& part) {
  if (base.is_object() && part.is_object()) {
    for (const auto& [key, value] : part.items()) lay_over(base[key], value);
  } else if (base.is_array() && part.is_array()) {
    for (const json& item : part) lay_item_over(base, item);
  } else {
    base = part;
  }
}

json labels_of(const JoinPlan& plan, const config::PoolSection& pool, const std::string& node) {
  return {{kRunLabel, plan.run}, {kPoolLabel, pool.name}, {kNodeLabel, node}};
}

json metadata_of(const JoinPlan& plan, const config::PoolSection& pool, const std::string& node) {
  return {{"name", kubernetes_name(plan.run, node)}, {"labels", labels_of(plan, pool, node)}};
}

// Kubernetes takes $(NAME) in a command for a variable, and $$ for a dollar.
std::vector<std::string> without_variables(std::vector<std::string> words) {
  for (std::string& word : words) {
    for (std::size_t at = 0; (at = word.find('$', at)) != std::string::npos; at += 2) {
      word.insert(at, 1, '$');
    }
  }
  return words;
}

json container_of(const JoinPlan& plan, config::PoolSection pool, const std::string& node,
                  bool has_token) {
  if (pool.program.empty()) pool.program = kProgram;
  const std::string token_file =
      has_token ? fmt::format("{}/{}", kTokenFolder, kTokenFile) : std::string();
  json mounts = json::array(
      {{{"name", "home"}, {"mountPath", kHome}}, {{"name", "tmp"}, {"mountPath", "/tmp"}}});
  if (has_token) {
    mounts.push_back({{"name", "token"}, {"mountPath", kTokenFolder}, {"readOnly", true}});
  }
  return {{"name", kMemberContainer},
          {"image", pool.image},
          {"command", without_variables(join_words(plan, pool, node, token_file))},
          {"workingDir", kHome},
          // The last lines of a member that fails are in the pod's state.
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"securityContext",
           {{"allowPrivilegeEscalation", false},
            {"readOnlyRootFilesystem", true},
            {"capabilities", {{"drop", {"ALL"}}}}}},
          {"volumeMounts", std::move(mounts)}};
}

json pod_spec(const JoinPlan& plan, const config::PoolSection& pool, const std::string& node,
              bool has_token) {
  json volumes = json::array({{{"name", "home"}, {"emptyDir", json::object()}},
                              {{"name", "tmp"}, {"emptyDir", json::object()}}});
  if (has_token) {
    volumes.push_back(
        {{"name", "token"},
         {"secret", {{"secretName", kubernetes_name(plan.run, node)}, {"defaultMode", 0440}}}});
  }
  json tolerations = json::array();
  for (const char* fault : {"not-ready", "unreachable"}) {
    tolerations.push_back({{"key", fmt::format("node.kubernetes.io/{}", fault)},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", kUnreachableSeconds}});
  }
  return {{"restartPolicy", "Never"},
          {"automountServiceAccountToken", false},
          {"enableServiceLinks", false},
          {"terminationGracePeriodSeconds", kGraceSeconds},
          {"securityContext",
           {{"runAsNonRoot", true},
            {"runAsUser", kUser},
            {"runAsGroup", kUser},
            {"fsGroup", kUser},
            {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
          {"tolerations", std::move(tolerations)},
          {"containers", json::array({container_of(plan, pool, node, has_token)})},
          {"volumes", std::move(volumes)}};
}

}  // namespace

std::string kubernetes_name(const std::string& run, std::string node) {
  std::ranges::replace(node, '.', '-');
  return fmt::format("troupe-{}-{}", run, node);
}

std::string kubernetes_selector(const std::string& run, const std::string& pool) {
  return fmt::format("{}={},{}={}", kRunLabel, run, kPoolLabel, pool);
}

json kubernetes_job(const JoinPlan& plan, const config::PoolSection& pool, const std::string& node,
                    bool has_token, const json& part) {
  json pod{{"metadata", {{"labels", labels_of(plan, pool, node)}}},
           {"spec", pod_spec(plan, pool, node, has_token)}};
  if (part.is_object()) lay_over(pod, part);
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", metadata_of(plan, pool, node)},
          {"spec",
           {{"backoffLimit", 0},
            {"ttlSecondsAfterFinished", kKeepsEndedSeconds},
            {"template", std::move(pod)}}}};
}

json kubernetes_secret(const JoinPlan& plan, const config::PoolSection& pool,
                       const std::string& node, const std::string& token,
                       std::string_view job_uid) {
  json metadata = metadata_of(plan, pool, node);
  metadata["ownerReferences"] = json::array({{{"apiVersion", "batch/v1"},
                                              {"kind", "Job"},
                                              {"name", kubernetes_name(plan.run, node)},
                                              {"uid", job_uid}}});
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", std::move(metadata)},
          {"stringData", {{kTokenFile, token + "\n"}}}};
}

Result<json> read_pod_part(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, runtime::read_file(path, config::kMostYamlBytes));
  config::Problems problems;
  const YamlValue value = config::parse_yaml(text, path, problems);
  if (!problems.empty()) return problems.error();
  const bool is_template =
      value.is_map() && std::ranges::all_of(value.members, [](const auto& member) {
        const bool is_known = member.key == "metadata" || member.key == "spec";
        return is_known && member.value.is_map();
      });
  if (!is_template) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{}: a part of a pod's template has `spec`, `metadata` or both, which "
                             "are maps, and nothing else",
                             path)};
  }
  return json_of(value);
}

}  // namespace troupe::launch
