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

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan) {}

  std::vector<Error> run() {
    check_actors();
    check_owners();
    check_links();
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
    }
  }

  void check_owners() {
    std::vector<std::string> roots;
    for (const ActorPlan& actor : plan_.actors) {
      if (actor.owner.empty()) {
        roots.push_back(actor.name);
      } else if (!owners_.contains(actor.owner)) {
        complain("actor '{}' is owned by '{}', which does not exist", actor.name, actor.owner);
      } else if (owns_itself(actor.name)) {
        complain("actor '{}' is among its own owners", actor.name);
      }
    }
    if (roots.size() > 1)
      complain("one actor may have no owner, but {} have none", fmt::join(roots, ", "));
    if (roots.empty() && !plan_.actors.empty())
      complain("every actor has an owner; one must have none");
  }

  // Whether going up from the actor comes back to it.
  bool owns_itself(const std::string& name) const {
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
    std::set<std::pair<std::string, std::string>> out_ports;
    for (const LinkPlan& link : plan_.links) {
      const std::string name = name_of(link);
      for (const std::string& end : {link.from, link.to}) {
        if (!owners_.contains(end)) complain("link {} names '{}', which does not exist", name, end);
      }
      if (link.from_port.empty() || link.to_port.empty())
        complain("link {} lacks a port name", name);
      if (!out_ports.emplace(link.from, link.from_port).second) {
        complain("link {} leaves a port that another link leaves too", name);
      }
      if (link.message_credits < 1) {
        complain("link {} has {} message credits; at least 1 is needed for anything to pass", name,
                 link.message_credits);
      }
      if (link.byte_credits < 1) {
        complain("link {} has {} byte credits; at least 1 is needed for anything to pass", name,
                 link.byte_credits);
      }
      if (link.tokens < 0) complain("link {} has {} tokens", name, link.tokens);
    }
  }

  // Circles of data links without a token, each actor in at most one complaint.
  void check_circles() {
    std::map<std::string, std::vector<std::string>> next;
    for (const LinkPlan& link : plan_.links) {
      if (link.lane == Lane::kData && link.tokens <= 0) next[link.from].push_back(link.to);
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
  std::map<std::string, std::string> owners_;
  std::vector<Error> errors_;
};

}  // namespace

std::vector<Error> check(const Plan& plan) { return Checker(plan).run(); }

std::string print(const Plan& plan) {
  std::string text;
  const std::function<void(const std::string&, int)> print_owned = [&](const std::string& owner,
                                                                       int depth) {
    for (const ActorPlan& actor : plan.actors) {
      if (actor.owner != owner || actor.name.empty()) continue;
      text += fmt::format("{:{}}{} ({}{})\n", "", depth * 2, actor.name, actor.kind,
                          actor.own_thread ? ", own thread" : "");
      print_owned(actor.name, depth + 1);
    }
  };
  text += "actors, each below its owner:\n";
  print_owned("", 1);
  text += "links:\n";
  for (const LinkPlan& link : plan.links) {
    text += fmt::format("  {}  {}, {} messages, {} bytes", name_of(link), word(link.lane),
                        link.message_credits, link.byte_credits);
    if (link.tokens > 0) text += fmt::format(", {} tokens", link.tokens);
    text += '\n';
  }
  return text;
}

}  // namespace troupe::runtime
