// The section `train.strategy`.

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"
#include "pipeline/steps/view.h"

namespace troupe::config {
namespace {

RecordOf<pipeline::OuterOptions> outer_record() {
  using Options = pipeline::OuterOptions;
  auto record = std::make_shared<Record<Options>>("an outer optimiser");
  record->short_form("kind")
      .field("kind", &Options::kind,
             word<pipeline::OuterKind>({{"nesterov", pipeline::OuterKind::kNesterov}}),
             Scope::kState,
             "v = momentum v + d; w -= rate (d + momentum v), with d the mean change.")
      .field("rate", &Options::rate, positive(), Scope::kState,
             "With 1, and momentum 0, the new weights are the mean of the workers'.")
      .field("momentum", &Options::momentum, number(NumberRange{0.0, 0.999999, false}),
             Scope::kState, "Share of v that stays.");
  return record;
}

auto strategy_kind() {
  using Kind = pipeline::StrategyKind;
  return newer(word<Kind>({{"synchronous", Kind::kSynchronous},
                           {"local", Kind::kLocal},
                           {"tree", Kind::kTree},
                           {"downpour", Kind::kDownpour},
                           {"easgd", Kind::kEasgd},
                           {"gem", Kind::kGem},
                           {"quorum", Kind::kQuorum}}),
               Kind::kSynchronous);
}

auto is(pipeline::StrategyKind kind) {
  return [kind](const pipeline::StrategyOptions& options) { return options.kind == kind; };
}

// The fields of workers that take turns.
void add_turns(Record<pipeline::StrategyOptions>& record) {
  using Options = pipeline::StrategyOptions;
  using Kind = pipeline::StrategyKind;
  record
      .field("rate", &Options::rate, positive(), Scope::kState,
             "Part of a worker's change that is applied in its turn, or with quorum of the mean "
             "change of Q.")
      .used_if("kind: downpour or quorum",
               [](const Options& options) {
                 return options.kind == Kind::kDownpour || options.kind == Kind::kQuorum;
               })
      .field("of", &Options::of,
             integer<std::uint32_t>(1, static_cast<std::uint32_t>(pipeline::kMostWorkersInTurns)),
             Scope::kState,
             "Q: how many of the workers a step takes, those that are ready first. An iteration's "
             "last step takes those that are left.")
      .used_if("kind: quorum", is(Kind::kQuorum))
      .field("rho", &Options::rho, number(NumberRange{0.0, 1.0, true}), Scope::kState,
             "Part of the distance between a worker and the centre by which each goes to the other "
             "in a turn. W times rho is best not above 1.")
      .used_if("kind: easgd", is(Kind::kEasgd))
      .field("momentum", &Options::momentum, number(NumberRange{0.0, 0.999999, false}),
             Scope::kState, "Share of the momentum of a worker's changes that stays.")
      .used_if("kind: gem", is(Kind::kGem))
      .field("kappa", &Options::kappa, positive(), Scope::kState,
             "How many times that momentum the centre is to move.")
      .used_if("kind: gem", is(Kind::kGem));
}

}  // namespace

RecordOf<pipeline::StrategyOptions> strategy_record() {
  using Options = pipeline::StrategyOptions;
  using Kind = pipeline::StrategyKind;
  using Precision = pipeline::ChangePrecision;
  const auto has_outer = [](const Options& options) { return options.has_outer(); };
  const auto has_workers = [](const Options& options) { return options.has_workers(); };
  const auto names_workers = [](const Options& options) {
    return options.has_workers() && !options.has_sites();
  };
  const auto names_sites = [](const Options& options) {
    return options.has_sites() && (options.kind == Kind::kTree || options.takes_turns());
  };
  constexpr const char* kWithWorkers = "kind: local, tree, downpour, easgd, gem or quorum";
  auto record = std::make_shared<Record<Options>>("a strategy");
  record->short_form("kind")
      .before([](const YamlValue& section, Options& options) {
        if (section.find("workers") != nullptr) options.sites = false;
        if (section.find("sites") != nullptr) options.sites = true;
      })
      .field(
          "kind", &Options::kind, strategy_kind(), Scope::kState,
          "`synchronous`: every step is summed over all micro-batches; `local`: logical workers "
          "make iterations alone, and then the mean of their changes is applied; `tree`: the same, "
          "with the iterations of a worker made by all processes of a site; `downpour`, `easgd`, "
          "`gem`: workers make iterations alone too, and take turns in which the change of one is "
          "applied, as those papers have it; `quorum`: the same with the changes of the first few.")
      .field("workers", &Options::workers,
             integer<std::uint32_t>(1, static_cast<std::uint32_t>(pipeline::kMostMicroBatches)),
             Scope::kState,
             "W: how many, whatever the processes that compute for them. Each takes "
             "micro_batches / W of an iteration's micro-batches.")
      .used_if("kind: local, downpour, easgd, gem or quorum, and without sites", names_workers)
      .field("sites", &Options::workers,
             integer<std::uint32_t>(1, static_cast<std::uint32_t>(pipeline::kMostMicroBatches)),
             Scope::kState,
             "W, in place of `workers`: how many workers, each with micro_batches / W of an "
             "iteration's micro-batches. All processes that have some of these make its iterations "
             "together.")
      .used_if("kind: tree, downpour, easgd, gem or quorum", names_sites)
      .field("steps", &Options::steps, integer<std::uint32_t>(1, 100'000), Scope::kState,
             "H: iterations that each makes alone. Everything else that counts iterations, but for "
             "learning rates, counts these H of all workers as one.")
      .used_if(kWithWorkers, has_workers);
  add_turns(*record);
  record
      ->field("precision", &Options::precision,
              newer(word<Precision>({{"exact", Precision::kExact}, {"int8", Precision::kInt8}}),
                    Precision::kExact),
              Scope::kState,
              "How changes of weights are summed: `exact` takes 8 bytes each on the way, `int8` 2, "
              "with each worker's rounded at random to 7 bits and a sign, for up to 256 workers.")
      .used_if("kind: local or tree", has_outer)
      .section("outer", &Options::outer, outer_record(), "How the mean change is applied.")
      .used_if("kind: local or tree", has_outer);
  return record;
}

}  // namespace troupe::config
