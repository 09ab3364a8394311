#include "launch/pools/kubernetes_state.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "launch/pools/kubernetes_objects.h"
#include "launch/processes/command.h"
#include "runtime/base/json_reader.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Like;
using runtime::Result;
using runtime::TimePoint;

constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostItems = 100'000;
constexpr std::size_t kMostShown = 300;  // bytes that people are told
// From the moment at which a pod should have ended until it counts as lost.
constexpr auto kLateBy = std::chrono::seconds(30);

struct Condition {
  std::string type, status, reason, message;
};
template <class Archive>
void fields(Archive& archive, Like<Condition> auto& condition) {
  archive.text("type", condition.type, kMostText);
  archive.text("status", condition.status, kMostText);
  archive.text("reason", condition.reason, kMostText);
  archive.text("message", condition.message, kMostText);
}

// Why a container waits, or how it has ended.
struct Pause {
  std::string reason, message;
  std::int32_t exit_code = 0;
};
template <class Archive>
void fields(Archive& archive, Like<Pause> auto& pause) {
  archive.text("reason", pause.reason, kMostText);
  archive.text("message", pause.message, kMostText);
  archive.integer("exitCode", pause.exit_code);
}

struct Container {
  std::string name;
  Pause waiting, terminated;
};
template <class Archive>
void fields(Archive& archive, Like<Container> auto& container) {
  archive.text("name", container.name, kMostText);
  archive.group("state", [&](auto& state) {
    state.object("waiting", container.waiting);
    state.object("terminated", container.terminated);
  });
}

// A Job or a pod.
struct Object {
  std::string kind, name, uid, created, deleted, node, machine, phase, reason, message;
  std::vector<Condition> conditions;
  std::vector<Container> containers, init_containers;
  std::int32_t grace = 0;  // seconds that a deleted pod has to end
  bool is_lost = false;    // it should have ended a while ago
};
template <class Archive>
void fields(Archive& archive, Like<Object> auto& object) {
  archive.text("kind", object.kind, kMostText);
  archive.group("metadata", [&](auto& metadata) {
    metadata.text("name", object.name, kMostText);
    metadata.text("uid", object.uid, kMostText);
    metadata.text("creationTimestamp", object.created, kMostText);
    metadata.text("deletionTimestamp", object.deleted, kMostText);
    metadata.integer("deletionGracePeriodSeconds", object.grace, 0);
    metadata.group("labels",
                   [&](auto& labels) { labels.text(kNodeLabel, object.node, kMostText); });
  });
  archive.group("spec", [&](auto& spec) { spec.text("nodeName", object.machine, kMostText); });
  archive.group("status", [&](auto& status) {
    status.text("phase", object.phase, kMostText);
    status.text("reason", object.reason, kMostText);
    status.text("message", object.message, kMostText);
    status.list("conditions", object.conditions, kMostItems);
    status.list("initContainerStatuses", object.init_containers, kMostItems);
    status.list("containerStatuses", object.containers, kMostItems);
  });
}

// An event, of which one of the times is given.
struct Event {
  std::string message, last, made;
};
template <class Archive>
void fields(Archive& archive, Like<Event> auto& event) {
  archive.text("message", event.message, kMostText);
  archive.text("lastTimestamp", event.last, kMostText);
  archive.group("metadata",
                [&](auto& metadata) { metadata.text("creationTimestamp", event.made, kMostText); });
}

template <class Item>
struct Items {
  std::string kind;
  std::vector<Item> items;
};
template <class Archive, class Item>
void list_fields(Archive& archive, Items<Item>& list) {
  archive.text("kind", list.kind, kMostText);
  archive.list("items", list.items, kMostItems);
}
template <class Archive>
void fields(Archive& archive, Like<Items<Object>> auto& list) {
  list_fields(archive, list);
}
template <class Archive>
void fields(Archive& archive, Like<Items<Event>> auto& list) {
  list_fields(archive, list);
}

// One line that is not too long.
std::string line_of(std::string_view text) { return shown_line(text, kMostShown); }

std::string last_line(std::string text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  text.resize(end + 1);
  return line_of(text.substr(text.rfind('\n') + 1));
}

std::string with_message(const std::string& reason, const std::string& message) {
  return line_of(message.empty() ? reason : fmt::format("{}: {}", reason, message));
}

// The condition of this type with this status.
const Condition* condition_of(const Object& object, std::string_view type,
                              std::string_view status) {
  const auto found = std::ranges::find_if(object.conditions, [&](const Condition& each) {
    return each.type == type && each.status == status;
  });
  return found == object.conditions.end() ? nullptr : &*found;
}

bool has_ended(const Object& pod) { return pod.phase == "Succeeded" || pod.phase == "Failed"; }

bool is_late(const Object& pod, LeavingPods& leaving, TimePoint now) {
  if (pod.deleted.empty()) return false;
  const TimePoint since = leaving.try_emplace(pod.uid, now).first->second;
  return now - since > std::chrono::seconds(pod.grace) + kLateBy;
}

// Why a container of a pod does not run yet.
std::string waits_for(const Object& pod) {
  for (const auto* containers : {&pod.init_containers, &pod.containers}) {
    for (const Container& container : *containers) {
      const Pause& waiting = container.waiting;
      const bool is_usual = waiting.reason.empty() || waiting.reason == "ContainerCreating" ||
                            waiting.reason == "PodInitializing";
      if (!is_usual) return with_message(waiting.reason, waiting.message);
    }
  }
  return "";
}

// How the member's container has ended, or else the first that has failed; null: none has.
const Pause* end_of_containers(const Object& pod) {
  const Pause* first = nullptr;
  for (const auto* containers : {&pod.init_containers, &pod.containers}) {
    for (const Container& container : *containers) {
      const Pause& end = container.terminated;
      const bool has_ended = !end.reason.empty() || end.exit_code != 0;
      if (has_ended && container.name == kMemberContainer) return &end;
      if (first == nullptr && end.exit_code != 0) first = &end;
    }
  }
  return first;
}

std::string end_of(const Object& pod) {
  if (!pod.reason.empty()) return with_message(pod.reason, pod.message);
  if (const Pause* const end = end_of_containers(pod)) {
    const std::string log = last_line(end->message);
    return fmt::format("its pod ended with exit code {} ({}){}{}", end->exit_code, end->reason,
                       log.empty() ? "" : ", and its log with: ", log);
  }
  if (pod.is_lost) return fmt::format("the machine {} does not answer", pod.machine);
  return pod.deleted.empty() ? "" : fmt::format("its pod on {} was taken away", pod.machine);
}

void add_job(KubernetesNode& node, const Object& job) {
  const Condition* end = condition_of(job, "Failed", "True");
  // The pod tells more than that it has failed.
  if (end != nullptr && end->reason != "BackoffLimitExceeded" && node.last_words.empty()) {
    node.last_words = with_message(end->reason, end->message);
  }
  if (end == nullptr) end = condition_of(job, "Complete", "True");
  node.has_job = job.deleted.empty();
  node.is_over = node.is_over || end != nullptr;
  node.lacks_pod = node.has_job && end == nullptr && node.pod.empty();
  node.is_there = node.is_there || node.lacks_pod;
  if (!node.lacks_pod) return;
  node.row.queued = true;
  node.row.where = "Kubernetes has made no pod yet";
}

void add_pod(KubernetesNode& node, const Object& pod) {
  const bool lives = !has_ended(pod) && !pod.is_lost;
  if (!lives || !pod.deleted.empty()) {
    node.is_over = true;
    if (std::string end = end_of(pod); !end.empty()) node.last_words = std::move(end);
  }
  node.pod = pod.uid;
  if (!lives) return;
  node.is_there = true;
  node.runs = pod.phase == "Running";
  const Condition* const unscheduled = condition_of(pod, "PodScheduled", "False");
  const std::string waiting = pod.phase == "Pending" ? waits_for(pod) : "";
  node.row.queued = pod.phase == "Pending" && pod.machine.empty();
  if (node.row.queued) {
    node.row.where = unscheduled == nullptr
                         ? "no machine has been chosen yet"
                         : with_message(unscheduled->reason, unscheduled->message);
  } else {
    node.row.where = waiting.empty() ? pod.machine : fmt::format("{}: {}", pod.machine, waiting);
    if (!waiting.empty()) node.last_words = waiting;
  }
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// The failure on one line, with kubectl's last complaint and not what it has said before.
std::string complaint_of(std::string message) {
  constexpr std::string_view kEnd = "exit code 1: ";
  if (const std::size_t end = message.find(kEnd); end != std::string::npos) {
    std::size_t begin = end + kEnd.size();
    for (const char* word : {"error: ", "Error", "The ", "Unable "}) {
      const std::size_t line = message.rfind(fmt::format("\n{}", word));
      if (line != std::string::npos) begin = std::max(begin, line + 1);
    }
    message.erase(end + kEnd.size(), begin - end - kEnd.size());
  }
  std::ranges::replace(message, '\n', ' ');
  return message;
}

// Neither kubectl nor the API server has done what it has refused. It may have been done after any
// other failure: kubectl begins with "error: " what it knows nothing about, too.
bool is_refusal(const Error& failure) {
  if (failure.kind != ErrorKind::kUsage) return false;
  constexpr std::array kRefusals{"(Forbidden)",
                                 "(NotFound)",
                                 "(Invalid)",
                                 "\" is invalid",
                                 "(BadRequest)",
                                 "(MethodNotAllowed)",
                                 "(Unauthorized)",
                                 "must be logged in",
                                 "denied the request",
                                 "error: context \"",
                                 "error: error validating",
                                 "error: error loading config file",
                                 "error: error reading input",
                                 "error: stat ",
                                 "unknown flag: ",
                                 "there is no program"};
  return std::ranges::any_of(kRefusals,
                             [&](const char* word) { return has(failure.message, word); });
}

const char* advice_on(const Error& failure) {
  struct Advice {
    std::string_view mark;
    const char* text;
  };
  static constexpr const char* kMendPod = "mend the pool's `pod` file or its `image`";
  static constexpr const char* kLogIn =
      "kubectl's user is not let in: renew what it logs in with, as `kubectl get pods` shows";
  static constexpr const char* kSeePods =
      "see whether `kubectl get pods` works where the run's head is";
  // The first that fits.
  static constexpr std::array kAdvice{
      Advice{"there is no program 'kubectl'",
             "install it where the run's head is (Debian's package: kubernetes-client)"},
      Advice{"localhost:8080 was refused",
             "kubectl knows no cluster: set KUBECONFIG, or --kubeconfig or --context in the "
             "pool's `options`"},
      Advice{"exceeded quota",
             "the namespace has no more than its quota: ask for a larger one, or lower the pool's "
             "`most`"},
      Advice{"denied the request", "the pool's `pod` file may have what that rule asks for"},
      Advice{"(BadRequest)", kMendPod},
      Advice{
          "\" cannot ",
          "kubectl's user may not do it: config/launch/kubernetes/rights.yaml has what it needs"},
      Advice{"Unauthorized", kLogIn},
      Advice{"must be logged in", kLogIn},
      Advice{"error reading input", kLogIn},
      Advice{"namespaces \"", "make the namespace, or give another one as the pool's `namespace`"},
      Advice{"dial tcp", kSeePods},
      Advice{"error validating", kMendPod},
      Advice{"\" is invalid", kMendPod},
      Advice{"(Invalid)", kMendPod},
      Advice{"context \"",
             "`kubectl config get-contexts` lists what the pool's `options` may name"},
      Advice{"unknown flag: ", "mend the pool's `options`"},
      Advice{"nable to connect", kSeePods},
      Advice{"was refused", kSeePods},
      Advice{"it has not ended within", kSeePods}};
  for (const Advice& advice : kAdvice) {
    if (has(failure.message, advice.mark)) return advice.text;
  }
  return nullptr;
}

}  // namespace

Result<std::map<std::string, KubernetesNode>> read_kubernetes_nodes(std::string_view answer,
                                                                    LeavingPods& leaving,
                                                                    TimePoint now) {
  Items<Object> list;
  if (!runtime::read_json(answer, list) || list.kind != "List") {
    return Error{ErrorKind::kLostPeers,
                 "kubectl's answer is no list of objects in JSON, or a too long one"};
  }
  std::map<std::string, KubernetesNode> nodes;
  // Pods before their Jobs, and the newest last.
  std::ranges::sort(list.items, [](const Object& a, const Object& b) {
    return std::pair(a.kind != "Pod", a.created) < std::pair(b.kind != "Pod", b.created);
  });
  for (Object& object : list.items) {
    if (object.node.empty()) continue;
    object.is_lost = object.kind == "Pod" && is_late(object, leaving, now);
    KubernetesNode& node = nodes[object.node];
    node.row.name = object.node;
    if (object.kind == "Pod") add_pod(node, object);
    if (object.kind == "Job") add_job(node, object);
  }
  return nodes;
}

std::string newest_event(std::string_view answer) {
  Items<Event> list;
  if (!runtime::read_json(answer, list) || list.items.empty()) return "";
  const auto time_of = [](const Event& event) {
    return event.last.empty() ? event.made : event.last;
  };
  const auto newest = std::ranges::max_element(list.items, {}, time_of);
  constexpr std::string_view kPrefix = "Error creating: ";
  std::string message = newest->message;
  if (message.starts_with(kPrefix)) message.erase(0, kPrefix.size());
  return line_of(std::move(message));
}

Error advised(const Error& failure) {
  const Error told{failure.kind, complaint_of(failure.message)};
  const char* const advice = advice_on(told);
  return {is_refusal(told) ? ErrorKind::kUsage : ErrorKind::kLostPeers,
          advice == nullptr ? told.message : fmt::format("{}; {}", told.message, advice)};
}

}  // namespace troupe::launch
