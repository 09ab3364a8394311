#pragma once

// How well the outputs of a supervised network tell the numbers of a dataset's events.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/backend.h"
#include "model/gan.h"
#include "model/program.h"
#include "pipeline/data/dataset.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// One loss term on all events.
struct TermQuality {
  std::string output;
  double loss = 0.0;  // mean over the events, without its weight
  // The share of events whose class is the likeliest one. Nothing for outputs that tell no classes.
  std::optional<double> accuracy;
  // The share of the other events, to the last bit: a tenth is 0.1.
  std::optional<double> error;
  // The area under the receiver operating characteristic, where there are two classes and events of
  // both.
  std::optional<double> area;
};

struct OutputQuality {
  std::uint64_t events = 0;
  double loss = 0.0;  // the weighted sum of all terms
  std::vector<TermQuality> terms;
};

// The figures by which the best state is chosen and training ends (actors.validator.best,
// train.stop.metric): "loss", and of each term "OUTPUT/loss" and what its TermQuality has besides,
// "OUTPUT/accuracy" and "OUTPUT/area". The model has task kSupervised.
std::vector<std::string> quality_words(const model::GanDescription& model);
// The figure that a word means: "merit", which stands where nobody says one, is "loss" here.
std::string quality_meant(std::string_view word);
// One of quality_words() of the quality; nothing where the quality does not have it.
std::optional<double> quality_of(const OutputQuality& quality, std::string_view figure);
// How far that is from its ideal, which is 1 of an accuracy and of an area, and 0 of a loss.
// Infinite where there is none, and where the loss is not finite: outputs are no numbers then.
double quality_distance(const OutputQuality& quality, std::string_view figure);

// A line of headings, one line per term and one for their sum, each ending in a newline.
std::string quality_text(const OutputQuality& quality);
// One JSON object of the form of a validation's table (model/physics/table.h): one row "test",
// whose comparison has "loss" and for each term "OUTPUT/loss", "OUTPUT/accuracy" and "OUTPUT/area",
// as far as there are such; chosen is the figure, one of quality_words().
std::string quality_json(const OutputQuality& quality, std::string_view chosen);

// One thread.
class OutputMeter {
 public:
  // The model has task kSupervised. Model and backend, which computes on the host, outlive it.
  // Errors: those of compiling the network.
  static runtime::Result<std::unique_ptr<OutputMeter>> create(const model::GanDescription& model,
                                                              const model::Backend& backend);

  // `events` events (all, if there are fewer), which lie evenly in the order of the files, as a
  // file may have a class of its own. By the network's weights and moving statistics. `going_on`,
  // if set, is asked now and then; nothing if it says false. Errors: those of reading.
  runtime::Result<std::optional<OutputQuality>> measure(std::span<const float> weights,
                                                        std::span<const float> moving,
                                                        Dataset& dataset, std::uint64_t events,
                                                        const std::function<bool()>& going_on = {});

 private:
  struct Term {
    const model::LossTerm* loss = nullptr;
    int output = 0;             // of the program
    std::size_t size = 0;       // values of an event
    std::vector<float> values;  // model::values_of()
    std::optional<std::size_t> column;
    std::unique_ptr<model::Kernel> kernel;  // of one event
  };
  // What was found of a term so far.
  struct Sums {
    double loss = 0.0;
    std::uint64_t right = 0;
    std::vector<float> low, high;  // scores of events of the first and of the second class
  };

  OutputMeter() = default;
  static float target_of(const Term& term, const Batch& batch, std::size_t event);
  static void judge(const Term& term, std::span<const float> outputs, float target, Sums& sums);
  // What the network reads of the events.
  void write_inputs(const Batch& batch, model::Workspace& workspace) const;
  void add(const Batch& batch, model::Workspace& workspace, std::vector<Sums>& sums) const;

  std::vector<std::string> columns_;  // model::columns_of()
  std::unique_ptr<const model::Program> program_;
  std::vector<Term> terms_;
};

}  // namespace troupe::pipeline
