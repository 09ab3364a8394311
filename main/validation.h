#pragma once

// The work of `troupe validate`: showers of a file, or of checkpoints, compared with data;
// or images of checkpoints, by a classifier.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/topology.h"
#include "launch/run/trained.h"
#include "main/command_line.h"
#include "model/backend.h"
#include "model/physics/column_figures.h"
#include "model/physics/figures_text.h"
#include "model/physics/shower_sample.h"
#include "model/physics/validation_plots.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/image_judge.h"
#include "pipeline/data/measured_showers.h"
#include "pipeline/data/progress.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe {

struct Validated {
  // Showers that are right, or images of which a classifier said what they show: one of the two.
  std::optional<pipeline::MeasuredData> data = {};
  std::optional<pipeline::JudgedData> images = {};
  std::vector<model::Fault> remarks = {};           // on the data
  std::vector<model::RankedSample> generated = {};  // one, or those that are ranked, best first
  std::string by = {};                              // the figure that ranks
  // The showers of the best, and what its discriminator says, where that is asked for.
  std::optional<model::ShowerSample> best = {};
  std::vector<model::DiscriminatorOutput> outputs = {};

  std::size_t events() const {
    return images ? images->images.count() : data->sample.showers().size();
  }
};

// One call of the verb.
class Validation {
 public:
  // The line has the options of `troupe validate`, and outlives this.
  explicit Validation(const CommandLine& line);

  // Errors: kUsage, options that mean nothing for what is judged; kData, what cannot be read; those
  // of opening a checkpoint.
  runtime::Result<Validated> run();

 private:
  bool ranks() const;
  runtime::Result<void> check_ranking() const;
  runtime::Result<pipeline::Dataset> open(pipeline::DatasetOptions options) const;
  runtime::Result<pipeline::Dataset> open_data(const config::Topology& topology) const;
  std::string by(const config::ValidatorSection& section) const;
  void set_bins(const config::ValidatorSection& section, model::ShowerSample& data) const;
  model::StatisticsOptions statistics(const config::ValidatorSection& section,
                                      const model::Extent& space, bool angle) const;

  // Showers of a file, as it has them.
  struct OfFile {
    pipeline::MeasuredData measured;
    std::uint64_t left_out = 0;
  };
  runtime::Result<OfFile> measure(const std::string& path,
                                  const std::optional<model::StatisticsOptions>& like);
  runtime::Result<Validated> judge_file(const std::string& path);
  runtime::Result<Validated> judge_checkpoints(const std::vector<std::string>& paths);
  runtime::Result<Validated> open_sides(const launch::Trained& trained, const model::Extent& space);
  runtime::Result<void> judge_checkpoint(const std::string& path, const launch::Trained& trained,
                                         std::optional<Validated>& sides);
  // The same by the classifier of --judge, or of the topology.
  runtime::Result<void> judge_images(const std::string& path, const launch::Trained& trained,
                                     const std::string& classifier,
                                     std::optional<Validated>& sides);
  std::string classifier_for(const config::Topology& topology) const;
  runtime::Result<void> ask_discriminator(const launch::Trained& trained, Validated& sides);
  // Tells people, now and then, how many of the draws are done.
  static std::function<bool(double)> tell_draws();
  // `columns`: those that the generator made with the showers.
  void judge(const std::string& name, const model::ShowerSample& generated, std::uint64_t left_out,
             Validated& sides, const std::vector<model::SampledColumn>& columns = {});

  const CommandLine& line_;
  runtime::ThreadTeam team_;
  std::unique_ptr<pipeline::ImageJudge> judge_;  // null: none judged yet
  std::unique_ptr<model::Backend> backend_;      // of classifiers; null: this machine has none
  pipeline::Progress tell_;
};

}  // namespace troupe
