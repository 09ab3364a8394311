#include "config/plan_links.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "pipeline/steps/buckets.h"
#include "runtime/message.h"

namespace troupe::config {
namespace {

using runtime::Lane;
using runtime::LinkPlan;
using runtime::MeshPlan;
using runtime::Plan;

// Actors that a topology has no word for.
constexpr std::string_view kMemberKind = "member";

// The kind of an actor of the plan: its name up to the dot.
std::string_view kind_of(std::string_view actor) { return actor.substr(0, actor.find('.')); }

// "replica -> reducer" and so on.
using KindPair = std::pair<std::string, std::string>;

// The kinds of every link that some run has, in one process or several, between actors that a
// topology can name.
std::vector<KindPair> kinds_of_links() {
  std::vector<KindPair> pairs;
  for (const std::uint32_t members : {0U, 2U}) {
    const auto plan = make_plan({}, {}, members, {});
    for (const LinkPlan& link : runtime::links_of(*plan)) {
      KindPair pair{kind_of(link.from), kind_of(link.to)};
      const bool known = std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
      if (!known && pair.first != kMemberKind) pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

// Sets what the topology says about links, and collects what is wrong with it.
class Changes {
 public:
  Changes(const Origins& origins, Plan& plan) : origins_(origins), plan_(plan) {}

  void apply(std::size_t index, const LinkOverride& change) {
    path_ = fmt::format("links.{}", index);
    bool found = false;
    const auto set = [&](auto& link) {
      found = true;
      link.message_credits = change.credits.value_or(link.message_credits);
      link.byte_credits = change.bytes.value_or(link.byte_credits);
      link.tokens = change.tokens.value_or(link.tokens);
    };
    for (LinkPlan& link : plan_.links) {
      if (kind_of(link.from) != change.from || kind_of(link.to) != change.to) continue;
      check(link, change);
      set(link);
    }
    for (MeshPlan& mesh : plan_.meshes) {
      const LinkPlan first = mesh.link(0, 1);
      if (kind_of(first.from) != change.from || kind_of(first.to) != change.to) continue;
      check(first, change);
      set(mesh);
    }
    if (!found) check_kinds(change);
  }
  const Problems& problems() const { return problems_; }

 private:
  // A link that this run lacks may be one of the same topology on other machines.
  void check_kinds(const LinkOverride& change) {
    const std::vector<KindPair> pairs = kinds_of_links();
    const KindPair asked{change.from, change.to};
    if (std::find(pairs.begin(), pairs.end(), asked) != pairs.end()) return;
    std::vector<std::string> names;
    for (const auto& [from, to] : pairs) names.push_back(fmt::format("{} -> {}", from, to));
    complain("", fmt::format("there is no link from {} to {}; there are {}", change.from, change.to,
                             fmt::join(names, ", ")));
  }

  void check(const LinkPlan& link, const LinkOverride& change) {
    if (link.to_port == "ring") check_ring(link, change);
    if (link.to_port == "reduced" && change.tokens == 0) {
      complain("tokens", fmt::format("{} and {} wait for each other from the start without a token "
                                     "of this link; give 1 or more",
                                     change.from, change.to));
    }
  }

  // A bucket that comes before its turn waits at the other end, and the one that is waited for
  // comes behind it.
  void check_ring(const LinkPlan& link, const LinkOverride& change) {
    const char* why =
        "all that crosses an edge of the ring in two steps, and the sums of another, have to have "
        "room";
    if (change.credits.value_or(link.message_credits) < link.message_credits) {
      complain("credits", fmt::format("{}; give {} or more", why, link.message_credits));
    }
    if (change.bytes.value_or(link.byte_credits) < link.byte_credits) {
      complain("bytes", fmt::format("{}; give {} or more", why, link.byte_credits));
    }
    if (change.tokens == 0) {
      complain("tokens",
               "reducers wait for each other from the start without a token; give 1 or more");
    }
  }

  void complain(std::string_view field, const std::string& message) {
    const std::string path = field.empty() ? path_ : fmt::format("{}.{}", path_, field);
    Problem problem = problem_of(origins_, path, message);
    problems_.add(std::move(problem.place), std::move(problem.message));
  }

  const Origins& origins_;
  Plan& plan_;
  std::string path_;
  Problems problems_;
};

}  // namespace

Credit step_credit(const LinkSizes& sizes, std::int64_t times) {
  const std::int64_t elements = sizes.networks.contribution_elements;
  const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(std::int64_t));
  // Gradients may be cut apart from what follows them, for every member a piece more.
  const std::int64_t buckets =
      pipeline::count_buckets(elements, sizes.topology.reducer.segment_bytes, sizes.ring) +
      sizes.ring;
  const std::int64_t messages = times * (buckets + 1);
  constexpr std::int64_t kHeaders = std::int64_t{1} << 16;
  return {messages, times * bytes + messages * runtime::Message::kOverheadBytes + kHeaders};
}

void add_ring_links(const LinkSizes& sizes, const std::vector<std::string>& reducers, Plan& plan) {
  if (reducers.size() < 2) return;
  // Two steps, of which every bucket crosses an edge twice, and a step that is summed.
  const Credit credit = step_credit(sizes, 5);
  plan.meshes.push_back({reducers, "ring", Lane::kData, credit.messages, credit.bytes, 1});
}

runtime::Result<void> apply_link_overrides(const Topology& topology, const Origins& origins,
                                           Plan& plan) {
  Changes changes(origins, plan);
  for (std::size_t i = 0; i < topology.links.size(); ++i) changes.apply(i, topology.links[i]);
  if (!changes.problems().empty()) return changes.problems().error();
  return {};
}

}  // namespace troupe::config
