#include "runtime/transport/whereabouts.h"

#include <fmt/format.h>

#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

// The host that somebody came from: "" for the first node's own machine, none if it is unknown.
std::optional<std::string> machine_of(const Whereabouts& node) {
  if (node.beside_the_first) return std::string();
  const auto address = parse_address(node.from);
  if (!address.ok() || is_name(node.from)) return std::nullopt;
  const auto resolved = resolve(*address);
  if (!resolved.ok()) return std::nullopt;
  return resolved->loopback ? std::string() : resolved->host;
}

Error refused(const Whereabouts& node, std::string_view why) {
  return {ErrorKind::kUsage,
          fmt::format("other members cannot reach {} at '{}': {}; name another place with --listen",
                      node.node, without_key(node.address), why)};
}

// Why another node cannot dial this one.
std::string no_way_to(const Whereabouts& node) {
  if (node.address.empty() || relay_client(node.address)) {
    return fmt::format("{} does not listen", node.node);
  }
  return fmt::format("only its own machine gets to {} at '{}'", node.node,
                     without_key(node.address));
}

}  // namespace

std::optional<Error> objection_to(const Whereabouts& node) {
  if (node.address.empty() || relay_client(node.address)) return std::nullopt;
  const auto address = parse_address(node.address);
  if (!address.ok()) return refused(node, "that is no address");
  if (!address->key.empty()) return refused(node, "a key stands behind it");
  if (address->kind == Address::Kind::kIpc) {
    const auto machine = machine_of(node);
    if (!machine || machine->empty()) return std::nullopt;
    return refused(node, fmt::format("it is a socket of the file system of {}", *machine));
  }
  if (is_name(node.address)) return refused(node, "that is a name and not a number");
  if (address->port == 0) return refused(node, "it has no port");
  const auto resolved = resolve(*address);
  if (!resolved.ok()) return refused(node, "that is no address");
  if (resolved->any) return refused(node, "it stands for all addresses of a machine");
  return std::nullopt;
}

Reach reach_of(const Whereabouts& node, const Whereabouts& neighbour) {
  if (node.address.empty()) return Reach::kNone;
  if (relay_client(node.address)) {
    return relay_client(neighbour.address) ? Reach::kRelayed : Reach::kNone;
  }
  const auto address = parse_address(node.address);
  if (!address.ok() || is_name(node.address)) return Reach::kGood;
  const auto resolved = resolve(*address);
  const auto own = machine_of(node), other = machine_of(neighbour);
  if (!resolved.ok() || !own || !other || *own == *other) return Reach::kGood;
  if (resolved->loopback) return Reach::kNone;
  // A node that comes from another number than it names is likely behind something that translates
  // addresses.
  const bool is_translated = !own->empty() && *own != resolved->host;
  return is_translated ? Reach::kDoubtful : Reach::kGood;
}

std::optional<Error> objection_to(const Whereabouts& newcomer, const Whereabouts& neighbour) {
  if (reach_of(newcomer, neighbour) != Reach::kNone) return std::nullopt;
  if (reach_of(neighbour, newcomer) != Reach::kNone) return std::nullopt;
  return Error{
      ErrorKind::kUsage,
      fmt::format("{0} and {1} cannot have a connection, as neither can dial the other: "
                  "{2}, and {3}; start {0} with --listen HOST:PORT, at an address where "
                  "{1} reaches it",
                  newcomer.node, neighbour.node, no_way_to(newcomer), no_way_to(neighbour))};
}

}  // namespace troupe::runtime
