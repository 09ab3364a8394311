#include "config/bandwidth_fields.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "config/list_codecs.h"
#include "config/record.h"
#include "config/scalar_codecs.h"
#include "config/suggestion.h"

namespace troupe::config {
namespace {

using Names = std::vector<std::string>;

// A host or a list of them.
class SideCodec final : public Codec<Names> {
 public:
  void read(const YamlValue& value, Names& into, Reader& reader) const override {
    reader.remember(value.place);
    if (value.is_list()) {
      list_->read(value, into, reader);
    } else if (value.is_scalar()) {
      into.resize(1);
      name_->read(value, into.front(), reader);
    } else {
      reader.expected(value, kWhat);
    }
  }
  YamlValue write(const Names& names, Selection selection) const override {
    return names.size() == 1 ? name_->write(names.front(), selection)
                             : list_->write(names, selection);
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kOneOf, kWhat);
    type.parts = {name_->describe(), list_->describe()};
    return type;
  }

 private:
  static constexpr const char* kWhat = "a host or a list of hosts";

  CodecOf<std::string> name_ = text("an address of cluster.hosts");
  CodecOf<Names> list_ = list(name_, 1, kMostMembers);
};

// At the n-th name of a side, wherever that was given.
void problem_at_name(std::string side, std::size_t n, const std::string& message, Reader& reader) {
  const std::string item = fmt::format("{}.{}", side, n);
  if (!reader.origin(fmt::format("{}.{}", reader.path(), item)).is_default()) side = item;
  const Reader::Step step(reader, side);
  reader.problem(reader.origin(reader.path()), message);
}

}  // namespace

CodecOf<std::vector<BandwidthSection>> bandwidth_list() {
  auto record = std::make_shared<Record<BandwidthSection>>(
      "a bandwidth such as {between: [node-a, node-b], rate: 100Mbit}");
  const CodecOf<Names> side = std::make_shared<SideCodec>();
  record
      ->required("between", &BandwidthSection::between, array<2>(side), Scope::kFree,
                 "Two sides: each host of one reaches each of the other so. Addresses as in "
                 "cluster.hosts.")
      .required("rate", &BandwidthSection::bits_per_second, rate(1000), Scope::kFree,
                "Bits per second that one host gets through to one other, in the slower of the "
                "directions.");
  return list<BandwidthSection>(CodecOf<BandwidthSection>(record), 0, 1000);
}

void check_bandwidth(const ClusterSection& cluster, Reader& reader) {
  Names known;
  for (const HostSection& host : cluster.hosts) known.push_back(host.address);
  const auto contains = [](const Names& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (std::size_t i = 0; i < cluster.bandwidth.size(); ++i) {
    const auto& between = cluster.bandwidth[i].between;
    for (std::size_t s = 0; s < between.size(); ++s) {
      const std::string side = fmt::format("bandwidth.{}.between.{}", i, s);
      for (std::size_t n = 0; n < between[s].size(); ++n) {
        const std::string& name = between[s][n];
        if (!contains(known, name)) {
          problem_at_name(
              side, n,
              fmt::format("cluster.hosts has no \"{}\"{}", shown(name), suggestion(name, known)),
              reader);
        } else if (s == 1 && contains(between[0], name)) {
          problem_at_name(side, n, fmt::format("\"{}\" stands on both sides", shown(name)), reader);
        }
      }
    }
  }
}

}  // namespace troupe::config
