#include "runtime/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

namespace troupe::runtime {
namespace {

std::string_view word(Lane lane) {
  switch (lane) {
    case Lane::kControl:
      return "control";
    case Lane::kData:
      return "data";
    case Lane::kMetrics:
      return "metrics";
  }
  return "?";
}

std::string name_of(const LinkPlan& link) {
  return fmt::format("{}.{} -> {}.{}", link.from, link.from_port, link.to, link.to_port);
}

// The bounds of what is under way on a link, or on each of a mesh.
std::string bounds_of(const auto& link) {
  std::string text = fmt::format("  {}, {} messages, {} bytes", word(link.lane),
                                 link.message_credits, link.byte_credits);
  if (link.tokens > 0) text += fmt::format(", {} tokens", link.tokens);
  return text;
}

void print_owned(const Plan& plan, const std::string& node, const std::string& owner, int depth,
                 std::string& text) {
  for (const ActorPlan& actor : plan.actors) {
    if (actor.node != node || actor.owner != owner || actor.name.empty()) continue;
    text += fmt::format("{:{}}{} ({}{})\n", "", depth * 2, actor.name, actor.kind,
                        actor.own_thread ? ", own thread" : "");
    print_owned(plan, node, actor.name, depth + 1, text);
  }
}

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan) {
    for (const ActorPlan& actor : plan.actors) has_named_node_ |= !actor.node.empty();
  }

  std::vector<Error> run() {
    check_actors();
    check_owners();
    check_roots();
    check_links();
    for (const MeshPlan& mesh : plan_.meshes) check_mesh(mesh);
    check_circles();
    return std::move(errors_);
  }

 private:
  template <class... Args>
  void complain(fmt::format_string<Args...> format, Args&&... args) {
    errors_.push_back({ErrorKind::kTopology, fmt::format(format, std::forward<Args>(args)...)});
  }

  void check_actors() {
    if (plan_.actors.empty()) complain("the plan has no actors");
    for (const ActorPlan& actor : plan_.actors) {
      if (actor.name.empty()) complain("an actor of kind '{}' has no name", actor.kind);
      if (!owners_.emplace(actor.name, actor.owner).second) {
        complain("two actors are named '{}'", actor.name);
      }
      nodes_.emplace(actor.name, actor.node);
      if (actor.node.empty() && has_named_node_) {
        complain("actor '{}' is on no node, although others are on nodes with a name", actor.name);
      }
    }
  }

  void check_owners() {
    for (const ActorPlan& actor : plan_.actors) {
      if (actor.owner.empty()) continue;
      if (!owners_.contains(actor.owner)) {
        complain("actor '{}' is owned by '{}', which does not exist", actor.name, actor.owner);
      } else if (owns_itself(actor.name)) {
        complain("actor '{}' is among its own owners", actor.name);
      } else if (nodes_.at(actor.owner) != actor.node) {
        complain(
            "actor '{}' on node '{}' is owned by '{}' on node '{}'; an owner must be on the "
            "same node",
            actor.name, actor.node, actor.owner, nodes_.at(actor.owner));
      }
    }
  }

  void check_roots() {
    for (const std::string& node : nodes_of(plan_)) {
      std::vector<std::string> roots;
      for (const ActorPlan& actor : plan_.actors) {
        if (actor.node == node && actor.owner.empty()) roots.push_back(actor.name);
      }
      const std::string where = node.empty() ? "" : fmt::format(" of node '{}'", node);
      if (roots.size() > 1) {
        complain("one actor{} may have no owner, but {} have none", where, fmt::join(roots, ", "));
      }
      if (roots.empty()) complain("every actor{} has an owner; one must have none", where);
    }
  }

  // True if the actor is its own owner, directly or through others.
  bool owns_itself(const std::string& name) const {
    // The steps are bounded, because the walk may end in a circle that the actor itself is not in.
    std::string above = owners_.at(name);
    for (std::size_t steps = 0; !above.empty() && steps < plan_.actors.size(); ++steps) {
      if (above == name) return true;
      const auto found = owners_.find(above);
      if (found == owners_.end()) return false;
      above = found->second;
    }
    return false;
  }

  void check_links() {
    for (const LinkPlan& link : plan_.links) {
      const std::string name = name_of(link);
      for (const std::string& end : {link.from, link.to}) {
        if (!owners_.contains(end)) complain("link {} names '{}', which does not exist", name, end);
      }
      if (link.from_port.empty() || link.to_port.empty())
        complain("link {} lacks a port name", name);
      // A sender names the port alone, so the port must stand for one link.
      if (!out_ports_.emplace(link.from, link.from_port).second) {
        complain("link {} leaves a port that another link leaves too", name);
      }
      check_bounds("link " + name, link);
    }
  }

  void check_bounds(const std::string& name, const auto& link) {
    if (link.message_credits < 1) {
      complain("{} has {} message credits; at least 1 is needed for anything to pass", name,
               link.message_credits);
    }
    if (link.byte_credits < 1) {
      complain("{} has {} byte credits; at least 1 is needed for anything to pass", name,
               link.byte_credits);
    }
    if (link.tokens < 0) complain("{} has {} tokens", name, link.tokens);
  }

  // Its out ports are not told one by one, for they are as many as its links.
  void check_mesh(const MeshPlan& mesh) {
    const std::string name = fmt::format("mesh '{}'", mesh.port);
    if (mesh.port.empty()) complain("a mesh lacks a port name");
    if (mesh.actors.size() < 2) complain("{} joins fewer than two actors", name);
    std::set<std::string_view> known;
    for (const std::string& actor : mesh.actors) {
      if (!known.insert(actor).second) complain("{} names '{}' twice", name, actor);
      if (!owners_.contains(actor)) complain("{} names '{}', which does not exist", name, actor);
      const std::string ports = mesh.port + ".";
      const auto taken = out_ports_.lower_bound({actor, ports});
      if (taken != out_ports_.end() && taken->first == actor && taken->second.starts_with(ports)) {
        complain("{} leaves ports of '{}' that other links leave too", name, actor);
      }
      out_ports_.emplace(actor, ports);
    }
    check_bounds(name, mesh);
  }

  // Circles of data links without a token, each actor in at most one complaint.
  void check_circles() {
    // A circle of data links needs a token, which is a message its receiver may count on at the
    // start. Without one each actor of the circle waits for another before it sends. The walk is
    // depth-first; a link back into the open path closes a circle.
    std::map<std::string, std::vector<std::string>> next;
    for (const LinkPlan& link : plan_.links) {
      if (link.lane == Lane::kData && link.tokens <= 0) next[link.from].push_back(link.to);
    }
    // A circle through all actors of a mesh is one of its circles.
    for (const MeshPlan& mesh : plan_.meshes) {
      for (std::size_t i = 0; i < mesh.actors.size() && mesh.actors.size() > 1; ++i) {
        if (mesh.lane != Lane::kData || mesh.tokens > 0) break;
        next[mesh.actors[i]].push_back(mesh.actors[(i + 1) % mesh.actors.size()]);
      }
    }
    std::set<std::string> done;
    std::vector<std::string> path;
    const std::function<void(const std::string&)> visit = [&](const std::string& actor) {
      const auto open = std::find(path.begin(), path.end(), actor);
      if (open != path.end()) {
        complain(
            "the actors {} -> {} wait for each other from the start; a link of the circle needs a "
            "token",
            fmt::join(open, path.end(), " -> "), actor);
        return;
      }
      if (!done.insert(actor).second) return;
      path.push_back(actor);
      for (const std::string& target : next[actor]) visit(target);
      path.pop_back();
    };
    for (const ActorPlan& actor : plan_.actors) visit(actor.name);
  }

  const Plan& plan_;
  bool has_named_node_ = false;
  std::map<std::string, std::string> owners_, nodes_;  // of actors, by name
  // Actors and their ports that links leave; of a mesh what its ports begin with.
  std::set<std::pair<std::string, std::string>> out_ports_;
  std::vector<Error> errors_;
};

}  // namespace

std::vector<Error> check(const Plan& plan) { return Checker(plan).run(); }

LinkPlan MeshPlan::link(std::size_t from, std::size_t to) const {
  return {actors[from], fmt::format("{}.{}", port, to),
          actors[to],   port,
          lane,         message_credits,
          byte_credits, tokens};
}

std::vector<LinkPlan> links_of(const Plan& plan) {
  std::vector<LinkPlan> links = plan.links;
  for (const MeshPlan& mesh : plan.meshes) {
    for (std::size_t from = 0; from < mesh.actors.size(); ++from) {
      for (std::size_t to = 0; to < mesh.actors.size(); ++to) {
        if (from != to) links.push_back(mesh.link(from, to));
      }
    }
  }
  return links;
}

std::size_t count_links(const Plan& plan) {
  std::size_t links = plan.links.size();
  for (const MeshPlan& mesh : plan.meshes) links += mesh.size();
  return links;
}

std::vector<std::string> nodes_of(const Plan& plan) {
  std::vector<std::string> nodes;
  for (const ActorPlan& actor : plan.actors) {
    if (std::find(nodes.begin(), nodes.end(), actor.node) == nodes.end()) {
      nodes.push_back(actor.node);
    }
  }
  return nodes;
}

std::string process_name(const std::string& node, std::uint32_t number) {
  return number == 1 ? node : fmt::format("{}.{}", node, number);
}

std::string_view before_number(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view digits = name.substr(dot + 1);
  const bool is_number = !digits.empty() && digits.front() != '0' && digits != "1" &&
                         digits.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? name.substr(0, dot) : std::string_view{};
}

bool carries_out(std::string_view process, std::string_view node) {
  return process == node || (!node.empty() && before_number(process) == node);
}

std::unordered_map<std::string_view, std::string_view> actor_nodes(const Plan& plan) {
  std::unordered_map<std::string_view, std::string_view> nodes;
  for (const ActorPlan& actor : plan.actors) nodes.emplace(actor.name, actor.node);
  return nodes;
}

std::string print(const Plan& plan) {
  std::string text = "actors, each below its owner:\n";
  for (const std::string& node : nodes_of(plan)) {
    if (!node.empty()) text += fmt::format("  node {}\n", node);
    print_owned(plan, node, "", node.empty() ? 1 : 2, text);
  }
  text += "links:\n";
  auto node_at = actor_nodes(plan);  // "" of an actor that the plan does not have
  for (const LinkPlan& link : plan.links) {
    text += fmt::format("  {}{}", name_of(link), bounds_of(link));
    const std::string_view from = node_at[link.from], to = node_at[link.to];
    if (from != to) text += fmt::format(", {} <- {}", to, from);
    text += '\n';
  }
  for (const MeshPlan& mesh : plan.meshes) {
    text += fmt::format("  each of {} to each other of them at {}{}\n",
                        fmt::join(mesh.actors, ", "), mesh.port, bounds_of(mesh));
  }
  return text;
}

}  // namespace troupe::runtime
