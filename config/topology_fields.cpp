#include "config/topology_fields.h"

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_check.h"

namespace troupe::config {
namespace {

CodecOf<std::string> actor_kind() {
  std::vector<Word<std::string>> words;
  for (const char* kind :
       {"coordinator", "loader", "replica", "reducer", "checkpointer", "validator", "monitor"}) {
    words.push_back({kind, kind});
  }
  return word(std::move(words));
}

CodecOf<std::vector<LinkOverride>> links() {
  auto record = std::make_shared<Record<LinkOverride>>(
      "a link such as {from: replica, to: checkpointer, "
      "credits: 1}");
  record->required("from", &LinkOverride::from, actor_kind(), Scope::kFixed, "Kind of the sender.")
      .required("to", &LinkOverride::to, actor_kind(), Scope::kFixed, "Kind of the receiver.")
      .field("credits", &LinkOverride::credits, optional(integer<std::int64_t>(1, 1 << 20)),
             Scope::kFixed, "Messages that may be sent and not yet given back.")
      .field("bytes", &LinkOverride::bytes, optional(byte_size<std::int64_t>(1)), Scope::kFixed,
             "Bytes of such messages; one larger message may pass alone.")
      .field("tokens", &LinkOverride::tokens, optional(integer<std::int32_t>(0, 1 << 20)),
             Scope::kFixed, "Messages the receiver may count on before the first is sent.")
      .check([](const YamlValue& section, const LinkOverride& link, Reader& reader) {
        if (!link.credits && !link.bytes && !link.tokens) {
          reader.problem(section.place, "says nothing: give credits, bytes or tokens");
        }
      });
  return list<LinkOverride>(CodecOf<LinkOverride>(record), 0, 1000);
}

// Sections that read into the whole topology have fields that are stored elsewhere, as `train` has
// some in the model. The check is called even if a section could not be read.
std::shared_ptr<Record<Topology>> make_topology_record() {
  auto record = std::make_shared<Record<Topology>>("a topology");
  record
      ->field("name", &Topology::name,
              text("a name of at most 100 letters, digits, '-', '_' and '.', of which '-' and '.' "
                   "are not "
                   "its first",
                   "[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"),
              Scope::kFixed, "Names the run's folder.")
      .section("model", within(), RecordOf<Topology>(model_record()),
               "What is trained: a model of the zoo, networks described here, or the first changed "
               "by the second.")
      .must_be_given()
      .section("data", within(), RecordOf<Topology>(data_record()), "What it is trained on.")
      .must_be_given()
      .section("train", within(), RecordOf<Topology>(train_record()), "How it is trained.")
      .section("actors", within(), RecordOf<Topology>(actors_record()),
               "Who does the work, per node.")
      .field("links", &Topology::links, links(), Scope::kFixed,
             "Bounds of links between actors where they differ from the plan's.")
      .section("cluster", &Topology::cluster, RecordOf<ClusterSection>(cluster_record()),
               "Where it runs and what counts as a failure: all that differs between venues.")
      .check(check_topology);
  return record;
}

}  // namespace

const Record<Topology>& topology_record() {
  static const std::shared_ptr<const Record<Topology>> kRecord = make_topology_record();
  return *kRecord;
}

}  // namespace troupe::config
