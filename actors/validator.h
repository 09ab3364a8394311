#pragma once

// Compares showers of a snapshot's generator with test events of the same conditions.
//
// Its result is a pure function of the snapshot, the test data and the seed. Where a mean of the
// generator's weights is kept (train.mean), that is what makes the showers. The untrained
// generator, made again from the seed, gives the row that everything else is compared with. Each
// validation that metrics are told of comes with a report for people
// (model/physics/shower_report.h). Among other things it shows some single events of the test data,
// chosen by their energies, beside generated ones of the same conditions. Metrics are also told the
// losses of these events and of the generated ones.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/state_judge.h"
#include "model/physics/figure.h"
#include "model/physics/shower_report.h"
#include "model/physics/table.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/measured_showers.h"
#include "pipeline/data/test_losses.h"
#include "runtime/actor.h"

namespace troupe::actors {

class Validator final : public StateJudge {
 public:
  // `data` is the Validator's alone while it lives.
  Validator(ValidatorOptions options, TrainingContext training, pipeline::Dataset& data);

  void start(Context& context) override;

 private:
  runtime::Result<void> measure_data();
  void make_reference_rows(Context& context);
  // Generates showers and measures them; of those to show the brightest cells stay in made_.
  std::optional<model::ShowerSample> measure(Context& context, const pipeline::NetworkState& maker,
                                             const pipeline::MeasuringOptions& options);
  // Begins the losses of a state with those of the data. False: they could not be read, which the
  // log says.
  bool begin_losses(Context& context, const pipeline::NetworkState& discriminator);
  void tell_losses(Context& context, std::uint64_t step);
  void tell_showers(Context& context, std::uint64_t step, const model::ReportedSample& generated);
  void judge(Context& context, const StatePointer& state, std::uint64_t step) override;
  // Whether a figure that is computed with each validation is one of these.
  bool needs(const std::function<bool(const std::string&)>& is_one) const;
  model::Figure compute(const std::string& figure, const model::ShowerSample& generated);

  pipeline::Dataset& data_;
  // The figures by which the best state is chosen, and by which train.stop ends training; "": none.
  const std::string chosen_, stopping_;
  std::unique_ptr<runtime::ThreadTeam> team_;
  std::unique_ptr<pipeline::ShowerMaker> maker_;
  std::unique_ptr<model::Backend> classifier_;        // null: no classifier is trained
  std::unique_ptr<pipeline::TestLosses> losses_;      // null: none are told
  std::vector<pipeline::TestConditions> conditions_;  // of the data's events
  pipeline::MeasuringOptions measuring_;
  std::optional<pipeline::MeasuredData> measured_data_;
  std::optional<model::ShowerStatistics> data_statistics_;
  std::map<std::size_t, model::BrightCells> shown_;  // data events that the report shows
  std::map<std::size_t, model::BrightCells> made_;   // the generated ones of the same conditions
  std::vector<model::TableRow> reference_rows_;      // data, untrained
};

}  // namespace troupe::actors
