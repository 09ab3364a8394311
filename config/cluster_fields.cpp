// The `cluster` section: where a run is carried out, and what counts as a failure.

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"
#include "runtime/base/network_range.h"

namespace troupe::config {
namespace {

using std::chrono::milliseconds;

using Shares = std::vector<std::uint64_t>;

// The word `auto` or the shares.
CodecOf<Shares> shares() {
  static constexpr const char* kAuto = "auto";
  const CodecOf<Shares> list = config::list(integer<std::uint64_t>(0, 1'000'000), 1, kMostMembers);
  TypeDescription type = TypeDescription::of(TypeDescription::Kind::kOneOf,
                                             "auto, or a list of shares such as [1, 3]");
  type.parts = {TypeDescription::of(TypeDescription::Kind::kWord, kAuto), list->describe()};
  type.parts.front().words = {kAuto};
  return codec_of<Shares>(
      type,
      [list, what = type.name](const YamlValue& value, Shares& into, Reader& reader) {
        if (value.is_list()) return list->read(value, into, reader);
        if (!value.is_scalar() || value.scalar != kAuto) return reader.expected(value, what);
        into.clear();
      },
      [list](const Shares& shares, Selection selection) {
        return shares.empty() ? YamlValue::plain(kAuto) : list->write(shares, selection);
      });
}

CodecOf<std::vector<HostSection>> hosts() {
  auto record =
      std::make_shared<Record<HostSection>>("a host such as {address: node-a, workers: 2}");
  record
      ->required("address", &HostSection::address,
                 text("a host's name or number", R"([A-Za-z0-9_.:%-]{1,253})"), Scope::kFree,
                 "Name or number of the host, without a port.")
      .field("workers", &HostSection::workers, integer<std::uint32_t>(1, kMostMembers),
             Scope::kFree, "Processes that compute there.");
  return list<HostSection>(CodecOf<HostSection>(record), 0, kMostMembers);
}

using Names = std::vector<std::string>;

// A host or a list of them.
CodecOf<Names> side() {
  const CodecOf<std::string> name = text("an address of cluster.hosts");
  const CodecOf<Names> list = config::list(name, 1, kMostMembers);
  TypeDescription type =
      TypeDescription::of(TypeDescription::Kind::kOneOf, "a host or a list of hosts");
  type.parts = {name->describe(), list->describe()};
  return codec_of<Names>(
      type,
      [name, list, what = type.name](const YamlValue& value, Names& into, Reader& reader) {
        reader.remember(value.place);
        if (value.is_list()) return list->read(value, into, reader);
        if (!value.is_scalar()) return reader.expected(value, what);
        into.resize(1);
        name->read(value, into.front(), reader);
      },
      [name, list](const Names& names, Selection selection) {
        return names.size() == 1 ? name->write(names.front(), selection)
                                 : list->write(names, selection);
      });
}

// At the n-th name of a side, wherever that was given.
void problem_at_name(const std::string& side, std::size_t n, const std::string& message,
                     Reader& reader) {
  const std::string item = fmt::format("{}.{}", side, n);
  reader.problem_at(reader.origin(item).is_default() ? side : item, message);
}

CodecOf<std::vector<BandwidthSection>> bandwidth_list() {
  auto record = std::make_shared<Record<BandwidthSection>>(
      "a bandwidth such as {between: [node-a, node-b], rate: 100Mbit}");
  record
      ->required("between", &BandwidthSection::between, array<2>(side()), Scope::kFree,
                 "Two sides: each host of one reaches each host of the other at this rate. "
                 "Addresses as in cluster.hosts.")
      .required(
          "rate", &BandwidthSection::bits_per_second, rate(1000), Scope::kFree,
          "Bits per second of one connection between two such hosts, in its slower direction.")
      .field("delay", &BandwidthSection::delay, duration(milliseconds(0)), Scope::kFree,
             "How long a message is under way from one such host to another, half of what `ping` "
             "tells, at most 10 s; 0 s: not known, and 0.1 ms counts.");
  return list<BandwidthSection>(CodecOf<BandwidthSection>(record), 0, 1000);
}

constexpr runtime::Duration kMostDelay = std::chrono::seconds(10);

// Reports names that are not of cluster.hosts, those that stand on both sides, and delays that are
// no line's.
void check_bandwidth(const ClusterSection& cluster, Reader& reader) {
  Names known;
  for (const HostSection& host : cluster.hosts) known.push_back(host.address);
  const auto contains = [](const Names& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (std::size_t i = 0; i < cluster.bandwidth.size(); ++i) {
    if (cluster.bandwidth[i].delay > kMostDelay) {
      reader.problem_at(fmt::format("{}.bandwidth.{}.delay", reader.path(), i),
                        fmt::format("must be at most {}, found {}", print_duration(kMostDelay),
                                    print_duration(cluster.bandwidth[i].delay)));
    }
    const auto& between = cluster.bandwidth[i].between;
    for (std::size_t s = 0; s < between.size(); ++s) {
      const std::string place = fmt::format("{}.bandwidth.{}.between.{}", reader.path(), i, s);
      for (std::size_t n = 0; n < between[s].size(); ++n) {
        const std::string& name = between[s][n];
        if (!contains(known, name)) {
          problem_at_name(
              place, n,
              fmt::format("cluster.hosts has no \"{}\"{}", shown(name), suggestion(name, known)),
              reader);
        } else if (s == 1 && contains(between[0], name)) {
          problem_at_name(place, n, fmt::format("\"{}\" stands on both sides", shown(name)),
                          reader);
        }
      }
    }
  }
}

RecordOf<FailureSection> failure_record() {
  auto record = std::make_shared<Record<FailureSection>>("what counts as a failure");
  record
      ->field(
          "heartbeat", &FailureSection::heartbeat, duration(milliseconds(1)), Scope::kFree,
          "How often nodes tell each other that they live. A head of more than 32 members and each "
          "of them do so less often, with 64 half as often.")
      .field("dead_after", &FailureSection::dead_after, duration(milliseconds(1)), Scope::kFree,
             "Silence after which a node counts as dead; more than twice the heartbeat. On busy "
             "hosts, and for processes of the same machine, it is up to ten times as long.")
      .field("stuck_after", &FailureSection::stuck_after, duration(milliseconds(100)), Scope::kFree,
             "How long no actor of any node may have moved before the run ends and names the "
             "culprit. A handler that is still running is only named in a warning; a run of "
             "several nodes ends when it has run eight times as long.")
      .field("check_every", &FailureSection::check_every, integer<std::uint64_t>(0, 1'000'000'000),
             Scope::kFree,
             "In one of so many steps a micro-batch is computed twice, on two members, and "
             "compared, to notice bad memory; 0: in none.")
      .field(
          "orphan_after", &FailureSection::orphan_after, duration(milliseconds(0)), Scope::kFree,
          "How long members go on without a head, which may be restarted, before they save their "
          "states and end.")
      .field("min_members", &FailureSection::min_members, integer<std::uint32_t>(1, kMostMembers),
             Scope::kFree,
             "With fewer members left the run waits for others to join. A run in one process "
             "ignores it.")
      .field("restart", &FailureSection::restart, integer<std::uint32_t>(0, kMostMembers),
             Scope::kFree,
             "How many members on the machine of `troupe run` are replaced when their process dies "
             "during the run, and how often its head is restarted.")
      .check([](const YamlValue&, const FailureSection& failure, Reader& reader) {
        if (failure.dead_after > 2 * failure.heartbeat) return;
        reader.broken_rule(
            {reader.path() + ".dead_after", reader.path() + ".heartbeat"},
            fmt::format("dead_after ({}) must be more than twice the heartbeat ({}), or one "
                        "late message counts as a death",
                        print_duration(failure.dead_after), print_duration(failure.heartbeat)));
      });
  return record;
}

void check_shares(const ClusterSection& cluster, Reader& reader) {
  const std::vector<std::uint64_t>& shares = cluster.shares;
  if (!shares.empty() && std::all_of(shares.begin(), shares.end(), [](auto s) { return s == 0; })) {
    reader.problem_at(reader.path() + ".assign", "shares of 0 leave every micro-batch to nobody");
  }
}

void check_listen(const ClusterSection& cluster, Reader& reader) {
  const std::size_t colon = cluster.listen.rfind(':');
  const std::string_view host = std::string_view(cluster.listen).substr(0, colon);
  const std::string_view port = std::string_view(cluster.listen).substr(colon + 1);
  int number = 0;
  std::from_chars(port.data(), port.data() + port.size(), number);
  // The head listens on the next port, too.
  if (number > 65534) {
    reader.problem_at(
        reader.path() + ".listen",
        fmt::format("port {} and the next one are none; give 1 to 65534, or 0 for any that "
                    "are free",
                    number));
  }
  // Where a name leads is known to the transport only, which refuses the same.
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  const bool is_loopback = host == "[::1]" || (is_number && host.starts_with("127."));
  const bool is_open = host == "*" || host.starts_with('[') || is_number;
  if (is_open && !is_loopback && !cluster.keys) {
    reader.problem_at(reader.path() + ".listen",
                      fmt::format("{} is reached from other machines, which needs keys: make them "
                                  "with `troupe keygen DIR` and give cluster.keys: DIR",
                                  cluster.listen));
  }
}

CodecOf<Fabric> fabric() { return word<Fabric>({{"zmq", Fabric::kZmq}, {"ucx", Fabric::kUcx}}); }

// A name may lead to this machine, which the transport finds out too late for a run of hours.
void check_fabric(const ClusterSection& cluster, Reader& reader) {
  if (cluster.fabric_network) {
    const auto network = runtime::NetworkRange::parse(*cluster.fabric_network);
    if (!network.ok()) {
      reader.problem_at(reader.path() + ".fabric_network", network.error().message);
    }
  }
  if (cluster.fabric != Fabric::kUcx || cluster.fabric_network) return;
  const std::string_view listen = cluster.listen;
  const bool is_here =
      listen.starts_with("127.") || listen.starts_with("[::1]") || listen.starts_with("localhost:");
  if (is_here) return;
  reader.problem_at(
      reader.path() + ".fabric",
      fmt::format("data over UCX are not encrypted, and {} is reached from other machines; if the "
                  "network between them can be trusted, name it, as in cluster.fabric_network: "
                  "10.1.0.0/16, or use fabric: zmq",
                  cluster.listen));
}

}  // namespace

std::shared_ptr<Record<ClusterSection>> cluster_record() {
  auto record = std::make_shared<Record<ClusterSection>>("the cluster");
  record
      ->field("hosts", &ClusterSection::hosts, hosts(), Scope::kFree,
              "Where members run, each {address, workers}; empty: everything in one process.")
      .field("bandwidth", &ClusterSection::bandwidth, bandwidth_list(), Scope::kFree,
             "How fast hosts reach each other, each {between, rate, delay}, for the order of the "
             "ring. "
             "Pairs that no item names count as faster than all others; a later item wins over an "
             "earlier one.")
      .field("assign", &ClusterSection::shares, shares(), Scope::kFree,
             "How many micro-batches each member computes: `auto`, as many as every other, or in "
             "proportion to its share.")
      .field("rebalance", &ClusterSection::rebalance, boolean(), Scope::kFree,
             "Whether micro-batches are shared out anew while a run goes on, by the measured speed "
             "of each worker. They are not where `assign` gives the shares.")
      .field("listen", &ClusterSection::listen, host_and_port(), Scope::kFree,
             "Where the head waits for members, also for those that join later. An address beyond "
             "this machine needs keys. With port 0 of the loopback nobody joins from elsewhere, "
             "and the members use sockets of the file system. They also use these, with a warning, "
             "where `--workers` starts them on a machine that has no such address.")
      .field("keys", &ClusterSection::keys, optional(path("a folder")), Scope::kFree,
             "Folder of the node keys (`troupe keygen`); by default none.")
      .field("fabric", &ClusterSection::fabric, fabric(), Scope::kFree,
             "What carries data between processes: ZeroMQ (`zmq`) or UCX (`ucx`), which knows "
             "InfiniBand and other networks than tcp, and does not encrypt. Control stays on "
             "ZeroMQ.")
      .field("fabric_network", &ClusterSection::fabric_network,
             optional(text("a network such as 10.1.0.0/16, or any", R"([0-9a-fA-F.:/]{3,49}|any)")),
             Scope::kFree,
             "A trusted network, which data of `fabric: ucx` may cross unencrypted: 10.1.0.0/16, "
             "fd00::/8, or `any`. By default none: they stay on this machine.")
      .used_if("fabric: ucx",
               [](const ClusterSection& cluster) { return cluster.fabric == Fabric::kUcx; })
      .field("joiners", &ClusterSection::joiners, integer<std::uint32_t>(0, kMostMembers),
             Scope::kFree,
             "Members that have joined by `troupe join` while the run goes on and may be there at "
             "the same time, besides those that replace dead ones. When one of them leaves or is "
             "lost, another may come.")
      .field("replay", &ClusterSection::replay_bytes, byte_size<std::int64_t>(1), Scope::kFree,
             "Sums of finished steps that may wait for a newcomer while it learns. One that needs "
             "more is too slow and has to leave.")
      .field("pools", &ClusterSection::pools, pools(), Scope::kFree,
             "Where nodes come from while the run goes on: docs/launching.md.")
      .field("burst", &ClusterSection::burst, burst(), Scope::kFree,
             "Limits by which the run itself decides how many nodes of its pools it takes; by "
             "default `nodes` are wanted until somebody asks for others.")
      .section("failure", &ClusterSection::failure, failure_record(), "Limits and patience.")
      .check([](const YamlValue&, const ClusterSection& cluster, Reader& reader) {
        check_shares(cluster, reader);
        check_bandwidth(cluster, reader);
        check_listen(cluster, reader);
        check_fabric(cluster, reader);
        check_pools(cluster, reader);
      });
  return record;
}

}  // namespace troupe::config
