#include "runtime/plan_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace troupe::runtime {
namespace {

// "replica.12": "replica", 12.
struct Name {
  std::string family;
  std::optional<std::uint64_t> number;

  explicit Name(std::string_view text) : family(text) {
    const std::size_t dot = text.rfind('.');
    if (dot == std::string_view::npos) return;
    std::uint64_t read = 0;
    const auto [rest, error] =
        std::from_chars(text.data() + dot + 1, text.data() + text.size(), read);
    if (error != std::errc() || rest != text.data() + text.size()) return;
    family = text.substr(0, dot);
    number = read;
  }
  // "node" and "node.3" are two families: one has no number.
  std::pair<std::string, bool> key() const { return {family, number.has_value()}; }
};

// Names of one family.
class Names {
 public:
  void add(std::string_view text) {
    const Name name(text);
    family_ = name.family;
    if (name.number) numbers_.insert(*name.number);
  }
  // "replica.3", "replica.0..63", "replica.0..126 (64 of them)".
  std::string text() const {
    if (numbers_.empty()) return family_;
    const std::uint64_t first = *numbers_.begin(), last = *numbers_.rbegin();
    if (numbers_.size() == 1) return fmt::format("{}.{}", family_, first);
    const bool all = last - first + 1 == numbers_.size();
    return fmt::format("{}.{}..{}{}", family_, first, last,
                       all ? "" : fmt::format(" ({} of them)", numbers_.size()));
  }

 private:
  std::string family_;
  std::set<std::uint64_t> numbers_;
};

// Elements in groups, each where its first element stands.
template <class Element, class Key>
std::vector<std::vector<const Element*>> grouped(const std::vector<const Element*>& elements,
                                                 const Key& key) {
  std::vector<std::pair<decltype(key(*elements.front())), std::vector<const Element*>>> groups;
  for (const Element* element : elements) {
    auto of_element = key(*element);
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == of_element; });
    auto& group = known == groups.end()
                      ? groups.emplace_back(std::move(of_element), std::vector<const Element*>{})
                      : *known;
    group.second.push_back(element);
  }
  std::vector<std::vector<const Element*>> all;
  for (auto& group : groups) all.push_back(std::move(group.second));
  return all;
}

using Actors = std::vector<const ActorPlan*>;

// The actors that `owners` own; an empty name owns the roots.
void print_owned(const Actors& actors, const std::set<std::string>& owners, int depth,
                 std::string& text) {
  Actors owned;
  std::copy_if(actors.begin(), actors.end(), std::back_inserter(owned),
               [&](const ActorPlan* actor) { return owners.contains(actor->owner); });
  for (const Actors& group : grouped(owned, [](const ActorPlan& actor) {
         return std::make_tuple(Name(actor.name).key(), actor.kind, actor.own_thread);
       })) {
    Names names;
    std::set<std::string> all;
    for (const ActorPlan* actor : group) {
      names.add(actor->name);
      all.insert(actor->name);
    }
    text += fmt::format("{:{}}{} ({}{})\n", "", depth * 2, names.text(), group.front()->kind,
                        group.front()->own_thread ? ", own thread" : "");
    print_owned(actors, all, depth + 1, text);
  }
}

void print_actors(const Plan& plan, std::string& text) {
  Actors actors;
  for (const ActorPlan& actor : plan.actors) actors.push_back(&actor);
  text += "actors, each below its owner:\n";
  for (const Actors& group :
       grouped(actors, [](const ActorPlan& actor) { return Name(actor.node).key(); })) {
    Names nodes;
    for (const ActorPlan* actor : group) nodes.add(actor->node);
    const bool has_name = !group.front()->node.empty();
    if (has_name) text += fmt::format("  node {}\n", nodes.text());
    print_owned(group, {""}, has_name ? 2 : 1, text);
  }
}

std::string size_text(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  return bytes < 1'000'000 ? fmt::format("{:.3g} kB", size / 1e3)
                           : fmt::format("{:.1f} MB", size / 1e6);
}

std::string counted(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// The key of a group holds all that its line says, but for the numbers in names. Whether a link
// leaves its node is part of it.
void print_links(const Plan& plan, std::string& text) {
  auto node_of = actor_nodes(plan);
  std::vector<const LinkPlan*> links;
  for (const LinkPlan& link : plan.links) links.push_back(&link);
  const auto leaves = [&](const LinkPlan& link) { return node_of[link.from] != node_of[link.to]; };
  text += "links, each with what may be under way on it:\n";
  for (const auto& group : grouped(links, [&](const LinkPlan& link) {
         return std::make_tuple(Name(link.from).key(), Name(link.from_port).family,
                                Name(link.to).key(), link.lane, link.message_credits,
                                link.byte_credits, link.tokens, leaves(link));
       })) {
    Names from, to;
    for (const LinkPlan* link : group) {
      from.add(link->from);
      to.add(link->to);
    }
    const LinkPlan& each = *group.front();
    const std::string count = group.size() == 1 ? "" : fmt::format(", {} links", group.size());
    text += fmt::format("  {} -> {}: {}{}, {}, {}{}{}\n", from.text(), to.text(),
                        Name(each.from_port).family, count,
                        counted(each.message_credits, "message"), size_text(each.byte_credits),
                        each.tokens > 0 ? ", " + counted(each.tokens, "token") : "",
                        leaves(each) ? ", between nodes" : "");
  }
  for (const MeshPlan& mesh : plan.meshes) {
    Names names;
    for (const std::string& actor : mesh.actors) names.add(actor);
    text += fmt::format("  {0} -> {0}: {1}, {2} links, {3}, {4}{5}, each to each other\n",
                        names.text(), mesh.port, mesh.size(),
                        counted(mesh.message_credits, "message"), size_text(mesh.byte_credits),
                        mesh.tokens > 0 ? ", " + counted(mesh.tokens, "token") : "");
  }
}

}  // namespace

std::string print_groups(const Plan& plan) {
  std::string text;
  print_actors(plan, text);
  print_links(plan, text);
  return text;
}

}  // namespace troupe::runtime
