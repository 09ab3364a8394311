#include "launch/pools/kubernetes_state.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "launch/pools/kubernetes_objects.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/utc_time.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Like;
using runtime::Result;

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
  Pause waiting, terminated;
};
template <class Archive>
void fields(Archive& archive, Like<Container> auto& container) {
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
};
template <class Archive>
void fields(Archive& archive, Like<Object> auto& object) {
  archive.text("kind", object.kind, kMostText);
  archive.group("metadata", [&](auto& metadata) {
    metadata.text("name", object.name, kMostText);
    metadata.text("uid", object.uid, kMostText);
    metadata.text("creationTimestamp", object.created, kMostText);
    metadata.text("deletionTimestamp", object.deleted, kMostText);
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
std::string line_of(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  text.resize(std::min(text.size(), text.find_last_not_of(' ') + 1));
  if (text.size() > kMostShown) text = text.substr(0, kMostShown - 3) + "...";
  return text;
}

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

bool is_lost(const Object& pod, WallTime now) {
  const auto should_end = runtime::read_utc(pod.deleted);
  return should_end && now - *should_end > kLateBy;
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

std::string end_of(const Object& pod, WallTime now) {
  if (!pod.reason.empty()) return with_message(pod.reason, pod.message);
  for (const Container& container : pod.containers) {
    const Pause& end = container.terminated;
    if (end.reason.empty() && end.exit_code == 0) continue;
    const std::string log = last_line(end.message);
    return fmt::format("its pod ended with exit code {} ({}){}{}", end.exit_code, end.reason,
                       log.empty() ? "" : ", and its log with: ", log);
  }
  if (is_lost(pod, now)) return fmt::format("the machine {} does not answer", pod.machine);
  return pod.deleted.empty() ? "" : fmt::format("its pod on {} was taken away", pod.machine);
}

void take_job(KubernetesNode& node, const Object& job) {
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

void take_pod(KubernetesNode& node, const Object& pod, WallTime now) {
  const bool lives = !has_ended(pod) && !is_lost(pod, now);
  if (!lives || !pod.deleted.empty()) {
    node.is_over = true;
    if (std::string end = end_of(pod, now); !end.empty()) node.last_words = std::move(end);
  }
  node.pod = pod.uid;
  if (!lives) return;
  node.is_there = true;
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

// The API server has not done what it has refused. It may have done anything else.
bool is_refusal(const Error& failure) {
  if (failure.kind != ErrorKind::kUsage) return false;
  constexpr std::array kRefusals{"(Forbidden)",     "(NotFound)",         "(Invalid)",
                                 "(BadRequest)",    "(MethodNotAllowed)", "(Unauthorized)",
                                 "code 1: error: ", "there is no program"};
  return std::ranges::any_of(kRefusals,
                             [&](const char* word) { return has(failure.message, word); });
}

const char* advice_on(const Error& failure) {
  struct Advice {
    std::string_view mark;
    const char* text;
  };
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
      Advice{
          "(Forbidden)",
          "kubectl's user may not do it: config/launch/kubernetes/rights.yaml has what it needs"},
      Advice{
          "Unauthorized",
          "kubectl's user is not let in: renew what it logs in with, as `kubectl get pods` shows"},
      Advice{"namespaces \"", "make the namespace, or give another one as the pool's `namespace`"},
      Advice{"error validating", "mend the pool's `pod` file"},
      Advice{"(Invalid)", "mend the pool's `pod` file or its `image`"},
      Advice{"context \"",
             "`kubectl config get-contexts` lists what the pool's `options` may name"},
      Advice{"nable to connect", "see whether `kubectl get pods` works where the run's head is"},
      Advice{"was refused", "see whether `kubectl get pods` works where the run's head is"},
      Advice{"it has not ended within",
             "see whether `kubectl get pods` works where the run's head is"}};
  for (const Advice& advice : kAdvice) {
    if (has(failure.message, advice.mark)) return advice.text;
  }
  return nullptr;
}

}  // namespace

Result<std::map<std::string, KubernetesNode>> read_kubernetes_nodes(std::string_view answer,
                                                                    WallTime now) {
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
  for (const Object& object : list.items) {
    if (object.node.empty()) continue;
    KubernetesNode& node = nodes[object.node];
    node.row.name = object.node;
    if (object.kind == "Pod") take_pod(node, object, now);
    if (object.kind == "Job") take_job(node, object);
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
  const char* const advice = advice_on(failure);
  return {is_refusal(failure) ? ErrorKind::kUsage : ErrorKind::kLostPeers,
          advice == nullptr ? failure.message : fmt::format("{}; {}", failure.message, advice)};
}

}  // namespace troupe::launch
