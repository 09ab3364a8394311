#include "runtime/wait_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace troupe::runtime {
namespace {

using Activity = ActorWait::Activity;
using Edges = std::vector<std::vector<std::size_t>>;

bool lacks_credit(const WaitGraph& graph, std::size_t actor) {
  return std::any_of(graph.links.begin(), graph.links.end(),
                     [&](const LinkWait& link) { return link.from == actor && link.sender_waits; });
}

// True if the receiver may be waiting for a message of `link`. Messages that it keeps do not count:
// they do not help it.
bool starves(const WaitGraph& graph, const LinkWait& link) {
  return link.lane == Lane::kData && link.queued == 0 &&
         graph.actors[link.from].activity != Activity::kEnded &&
         graph.actors[link.to].activity == Activity::kIdle && !lacks_credit(graph, link.to);
}

// An edge leads from an actor to one that it waits for: to the receiver of a link without credit,
// and with `with_messages` also to the silent sender of a link.
Edges edges_of(const WaitGraph& graph, bool with_messages) {
  Edges edges(graph.actors.size());
  for (const LinkWait& link : graph.links) {
    if (graph.actors[link.from].activity == Activity::kEnded) continue;
    if (graph.actors[link.to].activity == Activity::kEnded) continue;
    if (link.sender_waits) edges[link.from].push_back(link.to);
    if (with_messages && starves(graph, link)) edges[link.to].push_back(link.from);
  }
  return edges;
}

// The first circle found in depth-first order, its first actor repeated at the end; empty if none.
std::vector<std::size_t> find_circle(const Edges& edges) {
  enum class Mark { kNew, kOpen, kDone };
  std::vector<Mark> marks(edges.size(), Mark::kNew);
  std::vector<std::size_t> path;
  const std::function<bool(std::size_t)> visit = [&](std::size_t node) {
    path.push_back(node);
    marks[node] = Mark::kOpen;
    for (const std::size_t next : edges[node]) {
      if (marks[next] == Mark::kOpen) {
        path.erase(path.begin(), std::find(path.begin(), path.end(), next));
        path.push_back(next);
        return true;
      }
      if (marks[next] == Mark::kNew && visit(next)) return true;
    }
    marks[node] = Mark::kDone;
    path.pop_back();
    return false;
  };
  for (std::size_t node = 0; node < edges.size(); ++node) {
    if (marks[node] == Mark::kNew && visit(node)) return path;
  }
  return {};
}

// An in port may join many links, so the actors that send nothing to it are told together, after
// all that is told of single links.
std::string describe(const WaitGraph& graph, std::size_t index) {
  const ActorWait& actor = graph.actors[index];
  std::vector<std::string> parts;
  std::map<std::string, std::vector<std::string>> silent;  // senders, by port
  if (actor.stopping) parts.emplace_back("stopping");
  if (actor.activity == Activity::kRunning) {
    parts.push_back(
        fmt::format("a handler has been running for {:.1f} s", seconds(actor.running_for)));
  }
  if (actor.activity == Activity::kQueued) parts.emplace_back("about to run");
  if (!actor.words.empty()) parts.push_back("waits for " + actor.words);
  for (const LinkWait& link : graph.links) {
    if (link.from == index && link.sender_waits) {
      parts.push_back(
          fmt::format("no credit on {} -> {}.{} ({} of {} messages and {} of {} bytes out)",
                      link.from_port, graph.actors[link.to].name, link.to_port, link.messages_out,
                      link.message_credits, link.bytes_out, link.byte_credits));
    }
    if (link.to == index && link.messages_out > link.queued) {
      parts.push_back(fmt::format("keeps {} of {} messages of {}", link.messages_out - link.queued,
                                  link.message_credits, graph.actors[link.from].name));
    }
    if (link.to == index && starves(graph, link)) {
      silent[link.to_port].push_back(graph.actors[link.from].name);
    }
  }
  for (const auto& [port, senders] : silent) {
    parts.push_back(fmt::format("no message on {} from {}", port, fmt::join(senders, ", ")));
  }
  if (actor.activity == Activity::kElsewhere) parts.emplace_back("on another node");
  if (parts.empty()) parts.emplace_back("idle");
  return fmt::format("{}: {}", actor.name, fmt::join(parts, "; "));
}

// Makes one description of a link of those by its two ends: the figures are the receiver's, and the
// sender waits if either says so.
void join(const LinkWait& other, bool from_receiver, LinkWait& link) {
  const bool waits = link.sender_waits || other.sender_waits;
  const LinkWait first = link;
  link = from_receiver ? other : first;
  link.sender_waits = waits;
}

}  // namespace

LinkWait wait_of(const LinkStats& stats, std::size_t from, std::size_t to, bool sender_waits) {
  return {.from = from,
          .to = to,
          .from_port = stats.plan.from_port,
          .to_port = stats.plan.to_port,
          .lane = stats.plan.lane,
          .sender_waits = sender_waits,
          .messages_out = stats.in_use_messages,
          .message_credits = stats.plan.message_credits,
          .bytes_out = stats.in_use_bytes,
          .byte_credits = stats.plan.byte_credits,
          .queued = stats.queued};
}

// The graphs come in any order. A link is known by its sender and out port, which carries no other,
// and each node of its two ends may tell of it.
WaitGraph merge(const std::vector<WaitGraph>& graphs) {
  WaitGraph merged;
  std::map<std::string, std::size_t> actors;
  std::map<std::pair<std::size_t, std::string>, std::size_t> links;
  for (const WaitGraph& graph : graphs) {
    for (const ActorWait& actor : graph.actors) {
      const auto [found, added] = actors.emplace(actor.name, merged.actors.size());
      if (added) {
        merged.actors.push_back(actor);
      } else if (actor.activity != Activity::kElsewhere) {
        merged.actors[found->second] = actor;
      }
    }
    for (LinkWait link : graph.links) {
      const bool from_receiver = graph.actors[link.from].activity == Activity::kElsewhere;
      link.from = actors.at(graph.actors[link.from].name);
      link.to = actors.at(graph.actors[link.to].name);
      const auto [found, added] =
          links.emplace(std::pair(link.from, link.from_port), merged.links.size());
      if (added) {
        merged.links.push_back(std::move(link));
      } else {
        join(link, from_receiver, merged.links[found->second]);
      }
    }
  }
  return merged;
}

namespace {

// An actor that others wait for and that waits for nobody, its name; "" if there is none.
std::string idler(const WaitGraph& graph, bool about_to_run) {
  const Edges edges = edges_of(graph, true);
  for (const auto& waited_for : edges) {
    for (const std::size_t target : waited_for) {
      const bool queued = graph.actors[target].activity == Activity::kQueued;
      if (edges[target].empty() && (queued || !about_to_run)) return graph.actors[target].name;
    }
  }
  return {};
}

std::string blame(const std::string& idler) {
  return fmt::format("{}, which others wait for and which waits for nobody", idler);
}

}  // namespace

std::string culprit(const WaitGraph& graph) {
  const ActorWait* longest = nullptr;
  for (const ActorWait& actor : graph.actors) {
    if (actor.activity != Activity::kRunning) continue;
    if (longest == nullptr || actor.running_for > longest->running_for) longest = &actor;
  }
  if (longest != nullptr) {
    return fmt::format("{}, whose handler has been running for {:.1f} s", longest->name,
                       seconds(longest->running_for));
  }
  if (const std::string name = idler(graph, true); !name.empty()) return blame(name);
  // Circles of actors without credit come first. A circle over messages may be harmless, as an
  // actor need not wait for every input.
  for (const bool with_messages : {false, true}) {
    std::vector<std::string> names;
    for (const std::size_t actor : find_circle(edges_of(graph, with_messages))) {
      names.push_back(graph.actors[actor].name);
    }
    if (!names.empty()) return fmt::format("a circle, {}", fmt::join(names, " -> "));
  }
  if (const std::string name = idler(graph, false); !name.empty()) return blame(name);
  return "none: no actor waits for another; one of them should have finished";
}

std::string print(const WaitGraph& graph) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < graph.actors.size(); ++i) {
    if (graph.actors[i].activity != Activity::kEnded) lines.push_back("  " + describe(graph, i));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string print_with_culprit(const WaitGraph& graph) {
  return fmt::format("{}\n  culprit: {}", print(graph), culprit(graph));
}

}  // namespace troupe::runtime
