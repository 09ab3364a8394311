// The `cluster` section: where a run is carried out, and what counts as a failure.

#include <algorithm>
#include <charconv>
#include <string_view>

#include "config/bandwidth_fields.h"
#include "config/field_to_mend.h"
#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"

namespace troupe::config {
namespace {

using std::chrono::milliseconds;

// At the place of a field of the section that is being read.
void problem_at(Reader& reader, std::string_view field, const std::string& message) {
  const Reader::Step step(reader, field);
  reader.problem(reader.origin(reader.path()), message);
}

// The word `auto` or the shares.
class ShareCodec final : public Codec<std::vector<std::uint64_t>> {
 public:
  void read(const YamlValue& value, std::vector<std::uint64_t>& into,
            Reader& reader) const override {
    if (value.is_list()) {
      list_->read(value, into, reader);
    } else if (value.is_scalar() && value.scalar == kAuto) {
      into.clear();
    } else {
      reader.expected(value, kWhat);
    }
  }
  YamlValue write(const std::vector<std::uint64_t>& shares, Selection selection) const override {
    return shares.empty() ? YamlValue::plain(kAuto) : list_->write(shares, selection);
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kOneOf, kWhat);
    TypeDescription word = TypeDescription::of(TypeDescription::Kind::kWord, kAuto);
    word.words = {kAuto};
    type.parts = {word, list_->describe()};
    return type;
  }

 private:
  static constexpr const char* kAuto = "auto";
  static constexpr const char* kWhat = "auto, or a list of shares such as [1, 3]";

  CodecOf<std::vector<std::uint64_t>> list_ =
      list(integer<std::uint64_t>(0, 1'000'000), 1, kMostMembers);
};

CodecOf<std::vector<std::uint64_t>> shares() { return std::make_shared<ShareCodec>(); }

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

RecordOf<FailureSection> failure_record() {
  auto record = std::make_shared<Record<FailureSection>>("what counts as a failure");
  constexpr const char* kNotYet = "leave it out";
  record
      ->field("heartbeat", &FailureSection::heartbeat, duration(milliseconds(1)), Scope::kFree,
              "How often nodes tell each other that they live.")
      .field("dead_after", &FailureSection::dead_after, duration(milliseconds(1)), Scope::kFree,
             "Least silence after which a node is given up; more than twice the heartbeat. On busy "
             "hosts, and for processes of the same machine, it is up to ten times as long.")
      .field("stuck_after", &FailureSection::stuck_after, duration(milliseconds(100)), Scope::kFree,
             "How long no actor of any node may have moved before the run ends and names the "
             "culprit. While a handler runs it is only named in a warning; of several nodes, until "
             "it has run eight times as long.")
      .field("check_every", &FailureSection::check_every, integer<std::uint64_t>(0, 1'000'000'000),
             Scope::kFree,
             "Steps of which one has a micro-batch computed twice, on two members, and compared, "
             "to notice bad memory; 0: none.")
      .later("drain_grace", kNotYet)
      .field(
          "orphan_after", &FailureSection::orphan_after, duration(milliseconds(0)), Scope::kFree,
          "How long members go on without a head, which may be restarted, before they save their "
          "states and end.")
      .field("min_members", &FailureSection::min_members, integer<std::uint32_t>(1, kMostMembers),
             Scope::kFree,
             "With fewer members left the run waits for others to join. A run in one process does "
             "not look at it.")
      .field(
          "restart", &FailureSection::restart, integer<std::uint32_t>(0, kMostMembers),
          Scope::kFree,
          "Members of the machine of `troupe run` that are replaced when their process dies while "
          "the run goes on; and how often its head is restarted.")
      .check([](const YamlValue&, const FailureSection& failure, Reader& reader) {
        if (failure.dead_after > 2 * failure.heartbeat) return;
        report_rule(
            {reader.path() + ".dead_after", reader.path() + ".heartbeat"},
            fmt::format("dead_after ({}) must be more than twice the heartbeat ({}), or one "
                        "late message counts as a death",
                        print_duration(failure.dead_after), print_duration(failure.heartbeat)),
            reader);
      });
  return record;
}

void check_shares(const ClusterSection& cluster, Reader& reader) {
  const std::vector<std::uint64_t>& shares = cluster.shares;
  if (!shares.empty() && std::all_of(shares.begin(), shares.end(), [](auto s) { return s == 0; })) {
    problem_at(reader, "assign", "shares of 0 leave every micro-batch to nobody");
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
    problem_at(reader, "listen",
               fmt::format("port {} and the next one are none; give 1 to 65534, or 0 for any that "
                           "are free",
                           number));
  }
  // Where a name leads is known to the transport only, which refuses the same.
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  const bool is_loopback = host == "[::1]" || (is_number && host.starts_with("127."));
  const bool is_open = host == "*" || host.starts_with('[') || is_number;
  if (is_open && !is_loopback && !cluster.keys) {
    problem_at(reader, "listen",
               fmt::format("{} is reached from other machines, which needs keys: make them "
                           "with `troupe keygen DIR` and give cluster.keys: DIR",
                           cluster.listen));
  }
}

}  // namespace

std::shared_ptr<Record<ClusterSection>> cluster_record() {
  auto record = std::make_shared<Record<ClusterSection>>("the cluster");
  record
      ->field("hosts", &ClusterSection::hosts, hosts(), Scope::kFree,
              "Where members run, each {address, workers}; empty: everything in one process.")
      .field(
          "bandwidth", &ClusterSection::bandwidth, bandwidth_list(), Scope::kFree,
          "How fast hosts reach each other, each {between, rate}, for the order of the ring. Pairs "
          "that no item names count as faster than all others; later items win.")
      .field("assign", &ClusterSection::shares, shares(), Scope::kFree,
             "Which member computes how many micro-batches: `auto`, all the same, or in proportion "
             "to the share of each.")
      .field("rebalance", &ClusterSection::rebalance, boolean(), Scope::kFree,
             "Whether micro-batches are shared out anew, by how fast each worker turned out to be, "
             "when an epoch has ended. Not where `assign` tells the shares.")
      .field(
          "listen", &ClusterSection::listen, host_and_port(), Scope::kFree,
          "Where the head waits for members, those that join later too. Beyond this machine only "
          "with keys. Port 0 of the loopback: nobody joins from elsewhere, and the members use "
          "the file system's sockets; as they do, with a warning, where `--workers` starts them "
          "on a machine that has no such address.")
      .field("keys", &ClusterSection::keys, optional(path("a folder")), Scope::kFree,
             "Folder of the node keys (`troupe keygen`); by default none.")
      .field(
          "joiners", &ClusterSection::joiners, integer<std::uint32_t>(0, kMostMembers),
          Scope::kFree,
          "Members that may join by `troupe join` while the run goes on, those that replace dead "
          "ones not counted.")
      .field("replay", &ClusterSection::replay_bytes, byte_size<std::int64_t>(1), Scope::kFree,
             "What may wait for a newcomer, of sums of steps that are made while it learns; with "
             "more it is too slow and has to go.")
      .section("failure", &ClusterSection::failure, failure_record(), "Limits and patience.")
      .check([](const YamlValue&, const ClusterSection& cluster, Reader& reader) {
        check_shares(cluster, reader);
        check_bandwidth(cluster, reader);
        check_listen(cluster, reader);
      });
  return record;
}

}  // namespace troupe::config
