#pragma once

// The opinion of a discriminator on showers, for people.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/backend.h"
#include "model/gan.h"
#include "model/physics/validation_plots.h"
#include "model/program.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

// The conditions of the showers it is asked about, one each. Angles may be empty, unless it is told
// them.
struct JudgedImages {
  std::span<const float> images;    // as the networks see them, one behind the other
  std::span<const float> energies;  // E / 100 GeV
  std::span<const float> angles;    // rad
  std::span<const float> ecals;     // sums of cells before any power
};

// One thread, which the team's others help; all that is handed in outlives it.
class DiscriminatorReader {
 public:
  // `model` outlives it. Errors: those of compiling the network.
  static runtime::Result<std::unique_ptr<DiscriminatorReader>> create(
      const model::GanDescription& model, const model::Backend& backend, runtime::ThreadTeam& team);

  // One for each loss term but counts of cells and columns of the data: the probability that a
  // shower is real, and how far an estimate is from the truth, relative to it. Without showers yet.
  // None of a discriminator that is told columns, or reads those that are made.
  std::vector<model::DiscriminatorOutput> outputs() const;
  // Appends to `data` or `generated` of each the values of these showers, from the discriminator's
  // weights and moving statistics.
  void read(std::span<const float> weights, std::span<const float> moving,
            const JudgedImages& showers, std::vector<float> model::DiscriminatorOutput::*side,
            std::vector<model::DiscriminatorOutput>& outputs);

 private:
  struct Term {
    const model::LossTerm* loss;
    int output;  // of the program
  };
  DiscriminatorReader(std::unique_ptr<const model::Program> program, std::vector<Term> terms,
                      runtime::ThreadTeam& team);

  void write_conditions(const JudgedImages& showers, std::size_t first, std::size_t count,
                        model::Workspace& workspace) const;

  std::unique_ptr<const model::Program> program_;
  std::vector<Term> terms_;
  runtime::ThreadTeam& team_;
  std::vector<model::Workspace> workspaces_;  // one per thread
};

}  // namespace troupe::pipeline
