#include "runtime/node/introducer.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

bool same_process(const DirectoryEntry& one, const DirectoryEntry& other) {
  return one.address == other.address && one.key == other.key &&
         one.incarnation == other.incarnation;
}

}  // namespace

Neighbours::Neighbours(const Plan& plan) {
  const std::vector<std::string> nodes = nodes_of(plan);
  CHECK(!nodes.empty(), "a plan has actors");
  first_ = nodes.front();
  for (const std::string& node : nodes) ranks_.emplace(node, ranks_.size());
  std::map<std::string, const std::string*> places;
  for (const ActorPlan& actor : plan.actors) places[actor.name] = &actor.node;
  for (const LinkPlan& link : plan.links) {
    const std::string& from = *places.at(link.from);
    const std::string& to = *places.at(link.to);
    if (from == to || from == first_ || to == first_) continue;
    neighbours_[from].insert(to);
    neighbours_[to].insert(from);
  }
  for (const MeshPlan& mesh : plan.meshes) {
    std::set<std::string> meshed;
    for (const std::string& actor : mesh.actors) meshed.insert(*places.at(actor));
    meshed.erase(first_);
    if (meshed.size() > 1) meshes_.push_back(std::move(meshed));
  }
}

bool Neighbours::dials(const std::string& node, const std::string& other) const {
  const auto one = ranks_.find(node), two = ranks_.find(other);
  CHECK(one != ranks_.end() && two != ranks_.end(), "both nodes are of the plan");
  return one->second > two->second;
}

std::set<std::string> Neighbours::neighbours_of(const std::string& node) const {
  std::set<std::string> all;
  if (const auto found = neighbours_.find(node); found != neighbours_.end()) all = found->second;
  for (const std::set<std::string>& mesh : meshes_) {
    if (mesh.contains(node)) all.insert(mesh.begin(), mesh.end());
  }
  all.erase(node);
  return all;
}

bool Neighbours::are_neighbours(const std::string& one, const std::string& other) const {
  if (one == other) return false;
  const auto found = neighbours_.find(one);
  return (found != neighbours_.end() && found->second.contains(other)) ||
         std::ranges::any_of(
             meshes_, [&](const auto& mesh) { return mesh.contains(one) && mesh.contains(other); });
}

bool Neighbours::has_neighbours(const std::string& node) const {
  return neighbours_.contains(node) ||
         std::ranges::any_of(meshes_, [&](const auto& mesh) { return mesh.contains(node); });
}

void Introducer::add_peer(const std::string& node) {
  positions_.emplace(node, known_.size());
  Known& known = known_.emplace_back();
  known.node = known.place = node;
  known.shares_links = node != head() && neighbours_.has_neighbours(node);
}

// A wire without hosts and ports, such as a simulated one, has addresses of its own, to which there
// is nothing to object.
std::optional<Error> Introducer::objection(std::size_t peer, const ConnectionInfo& info,
                                           const std::string& address,
                                           const std::string& own_address) const {
  if (!is_head()) return std::nullopt;
  const std::string& node = known_[peer].node;
  const Whereabouts there = whereabouts(node, address, info.address);
  if (parse_address(own_address).ok()) {
    if (auto error = runtime::objection_to(there)) return error;
  }
  for (const std::string& place : neighbours_.neighbours_of(known_[peer].place)) {
    const Known& neighbour = known_[positions_.at(place)];
    if (neighbour.over || !neighbour.here) continue;
    if (auto error = runtime::objection_to(there, neighbour.whereabouts)) return error;
  }
  return std::nullopt;
}

Whereabouts Introducer::whereabouts(const std::string& node, const std::string& address,
                                    const std::string& from) const {
  const auto source = parse_address(from);
  const bool is_here =
      source.ok() && source->kind == Address::Kind::kTcp && keeper_.is_this_machine(source->host);
  return {node, address, from, is_here};
}

void Introducer::came(std::size_t peer, const ConnectionInfo& info, const std::string& address) {
  if (!is_head()) return;
  Known& known = known_[peer];
  known.entry = {known.node, address, info.key, 0, false, false};
  known.whereabouts = whereabouts(known.node, address, info.address);
  known.here = true;
  make_due(peer);
}

// Either of the two may have come or ended before.
std::string Introducer::introduce(std::size_t peer, const Wanted& wanted) {
  if (std::string fault = fault_of_asking(peer, wanted.nodes); !fault.empty()) return fault;
  Known& known = known_[peer];
  for (const std::string& name : wanted.nodes) {
    const std::size_t other = *find(name);
    if (name != known_[other].node) {
      known.renamed.insert(other);
      due_.insert(peer);
    }
    if (!known.meets.insert(other).second) continue;
    known_[other].meets.insert(peer);
    due_.insert({peer, other});
  }
  return {};
}

std::string Introducer::fault_of_asking(std::size_t peer,
                                        const std::vector<std::string>& nodes) const {
  if (!is_head()) return fmt::format("it asked about other nodes, of which only {} tells", head());
  for (const std::string& name : nodes) {
    const auto other = find(name);
    if (!other || !neighbours_.are_neighbours(known_[peer].place, known_[*other].place)) {
      return fmt::format("it asked about '{}', with which it shares no link", name);
    }
  }
  return {};
}

void Introducer::ended(std::size_t peer) {
  known_[peer].over = true;
  if (is_head()) make_due(peer);
}

std::optional<std::size_t> Introducer::find(std::string_view name) const {
  auto found = positions_.find(name);
  if (found == positions_.end()) found = positions_.find(before_number(name));
  if (found == positions_.end()) return std::nullopt;
  return found->second;
}

void Introducer::renew(std::size_t peer, const std::string& name) {
  Known& known = known_[peer];
  for (const std::size_t other : known.meets) {
    known_[other].meets.erase(peer);
    known_[other].renamed.insert(peer);
  }
  for (std::size_t other = 0; other < known_.size(); ++other) {
    if (known_[other].renamed.contains(peer)) due_.insert(other);
  }
  std::erase_if(pairs_, [&](const auto& pair) {
    return pair.first.first == known.node || pair.first.second == known.node;
  });
  Known next;
  next.node = name;
  next.place = known.place;
  next.shares_links = known.shares_links;
  known = std::move(next);
}

std::vector<Introducer::Renamed> Introducer::renamed_in(const Directory& directory) const {
  std::vector<Renamed> renamed;
  for (const DirectoryEntry& entry : directory.entries) {
    const std::size_t peer = *find(entry.node);
    if (known_[peer].node == entry.node) continue;
    renamed.push_back({peer, entry.node, entry.incarnation != 0});
  }
  return renamed;
}

void Introducer::make_due(std::size_t peer) {
  due_.insert(known_[peer].meets.begin(), known_[peer].meets.end());
}

// A peer is told to dial a neighbour only when that one has heard of it, and so lets it in.
std::optional<Directory> Introducer::directory_for(std::size_t peer) {
  Known& known = known_[peer];
  Directory directory;
  for (const std::size_t other : known.meets) {
    const Known& neighbour = known_[other];
    if (neighbour.over) {
      directory.entries.push_back({neighbour.node, "", "", 0, false, true});
    } else if (neighbour.here) {
      const Pair& pair = pair_of(known, neighbour);
      const bool lets_in = neighbour.edition_heard >= pair.edition;
      directory.entries.push_back(neighbour.entry);
      directory.entries.back().incarnation = pair.incarnation;
      directory.entries.back().dial = lets_in && pair.dialer == known.node;
    }
  }
  for (const std::size_t other : known.renamed) {
    const Known& neighbour = known_[other];
    const bool is_told = known.meets.contains(other) && (neighbour.over || neighbour.here);
    if (!is_told) directory.entries.push_back({neighbour.node, "", "", 0, false, false});
  }
  if (directory.entries.empty()) return std::nullopt;
  directory.edition = known.edition_told = edition_;
  return directory;
}

const Introducer::Pair& Introducer::pair_of(const Known& one, const Known& other) {
  const auto [found, fresh] = pairs_.try_emplace(std::minmax(one.node, other.node));
  if (fresh) {
    found->second.incarnation = keeper_.number_between(found->first.first, found->first.second);
    CHECK(found->second.incarnation != 0, "0 stands for a node that has ended");
    found->second.dialer = dialer_of(one, other);
    found->second.edition = ++edition_;
  }
  return found->second;
}

// The one that is harder to reach dials the other; between equals the plan decides.
std::string Introducer::dialer_of(const Known& one, const Known& other) const {
  const Reach of_one = reach_of(one.whereabouts, other.whereabouts);
  const Reach of_other = reach_of(other.whereabouts, one.whereabouts);
  const bool one_dials =
      of_one == of_other ? neighbours_.dials(one.place, other.place) : of_one < of_other;
  return one_dials ? one.node : other.node;
}

bool Introducer::heard(std::size_t peer, std::uint64_t edition) {
  Known& known = known_[peer];
  if (edition > known.edition_told) return false;
  const std::uint64_t before = known.edition_heard;
  if (edition <= before) return true;
  known.edition_heard = edition;
  // Those that dial it, and of which it has heard now, may do so.
  for (const std::size_t other : known.meets) {
    Known& neighbour = known_[other];
    if (neighbour.over || !neighbour.here) continue;
    const Pair& pair = pair_of(known, neighbour);
    const bool is_new = before < pair.edition && pair.edition <= edition;
    if (is_new && pair.dialer == neighbour.node) due_.insert(other);
  }
  return true;
}

bool Introducer::want(std::size_t peer) {
  return is_neighbour(peer) && !std::exchange(known_[peer].wanted, true);
}

Wanted Introducer::wanted() const {
  Wanted wanted;
  for (const Known& known : known_) {
    if (known.wanted) wanted.nodes.push_back(known.node);
  }
  return wanted;
}

std::string Introducer::fault_of(std::size_t sender, const Directory& directory) const {
  if (known_[sender].node != head()) {
    return fmt::format("it told of other nodes, which only {} may", head());
  }
  std::set<std::size_t> told;
  for (const DirectoryEntry& entry : directory.entries) {
    const auto peer = find(entry.node);
    if (!peer || !is_neighbour(*peer)) {
      return fmt::format("it told of '{}', which shares no link with {}", entry.node, node_);
    }
    if (!told.insert(*peer).second) return fmt::format("it told of {} twice", entry.node);
    const Known& known = known_[*peer];
    const bool is_told_anew = entry.incarnation != 0 && known.entry.incarnation != 0;
    if (entry.node == known.node && is_told_anew && !same_process(entry, known.entry)) {
      return fmt::format("it told of another process in the place of {}", entry.node);
    }
  }
  return {};
}

Introducer::Learned Introducer::learn(const Directory& directory) {
  Learned learned;
  for (const DirectoryEntry& entry : directory.entries) {
    const std::size_t neighbour = *find(entry.node);
    if (entry.ended) learned.ended.push_back(neighbour);
    if (entry.incarnation == 0) continue;
    known_[neighbour].entry = entry;
    if (entry.dial) learned.to_dial.push_back(neighbour);
  }
  return learned;
}

std::vector<DirectoryEntry> Introducer::neighbours() const {
  std::vector<DirectoryEntry> all;
  for (const Known& known : known_) {
    if (known.shares_links && known.entry.incarnation != 0 && !known.over) {
      all.push_back(known.entry);
    }
  }
  return all;
}

std::string Introducer::address_of(std::size_t peer) const {
  const DirectoryEntry& entry = known_[peer].entry;
  if (entry.address.empty() || entry.key.empty()) return entry.address;
  return entry.address + "#" + entry.key;
}

std::optional<Error> Introducer::objection_to(std::size_t peer, const Introduction& other,
                                              const std::string& key) const {
  if (!is_neighbour(peer)) return std::nullopt;
  const Known& known = known_[peer];
  if (known.entry.incarnation == 0) {
    return Error{ErrorKind::kLostPeers,
                 fmt::format("{} has not been told of {} yet", node_, known.node)};
  }
  if (other.incarnation == known.entry.incarnation && key == known.entry.key) return std::nullopt;
  return Error{ErrorKind::kLostPeers,
               fmt::format("{} is another process than {} has told of", known.node, head())};
}

}  // namespace troupe::runtime
