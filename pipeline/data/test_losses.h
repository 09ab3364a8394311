#pragma once

// The losses of events that a model was not trained on, to see beside those of training whether it
// learns its training events by heart. Networks are in inference mode: without dropout, and with
// moving statistics. Labels are not flipped, and a gradient penalty is left out. In a diffusion
// task the noise of an event, and its level, are the same for every state.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/backend.h"
#include "model/gan.h"
#include "model/program.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// What an event of the data is compared with, and a generated one of the same conditions too.
struct TestConditions {
  float energy = 0.0F;  // E / 100 GeV
  float angle = 0.0F;   // rad
  float ecal = 0.0F;    // sum of cells before any power
  std::array<float, 8> bins{};
  std::vector<float> columns = {};  // model::columns_of() the model, as stored
};

// The means over the test events, as a step of this kind has them: by term's name.
struct SlotLosses {
  model::SlotKind slot = model::SlotKind::kDReal;
  std::vector<std::pair<std::string, double>> losses;
};

// One thread. It computes on the host, by portable kernels.
class TestLosses {
 public:
  // `model` outlives it. Errors: those of making the backend and of compiling the network.
  static runtime::Result<std::unique_ptr<TestLosses>> create(const model::GanDescription& model);

  // The counts of an image of the data.
  std::array<float, 8> bins_of(std::span<const float> image) const;

  // Takes this discriminator, whose numbers are kept until end().
  void begin(std::span<const float> weights, std::span<const float> moving);
  // An image as the networks see it, of the data or generated. The sums are in the order of calls.
  // `made`: the discriminator's columns of a generated one. A diffusion task's network judges no
  // showers, so that generated ones are left out.
  void add(bool is_real, std::span<const float> image, const TestConditions& conditions,
           std::span<const float> made = {});
  // The losses of the steps of the task, as far as they have events; not those of d_both.
  std::vector<SlotLosses> end();

 private:
  struct Term {
    const model::LossTerm* term;
    int output;
    std::size_t column = 0;     // where the target is one: its place in model::columns_of()
    std::vector<float> values;  // model::values_of()
    // One event, in a step of the discriminator and of the generator.
    std::unique_ptr<model::Kernel> loss, of_generator;
  };
  // Events that wait until a batch is full.
  struct Side {
    std::vector<float> images;
    std::vector<float> velocities;  // that the images are to be told
    std::vector<TestConditions> conditions;
    std::uint64_t events = 0;                // that were computed
    std::vector<double> sums, of_generator;  // per term
  };
  explicit TestLosses(const model::GanDescription& model) : model_(model) {}
  // Where it stands in TestConditions::columns.
  std::size_t place_of(const std::string& column) const;
  // A row of these numbers for each of the side's events.
  void write_rows(const Side& side, const std::vector<std::string>& names,
                  std::span<float> rows) const;
  // The numbers of the side's events.
  std::vector<float> numbers_of(const Side& side, const std::string& condition) const;
  // What the network reads of the events that wait.
  void write_inputs(Side& side);
  // The numbers that the term compares an event with; not of a velocity.
  static std::vector<float> target_of(const Term& term, const TestConditions& conditions,
                                      double label);
  void compute(bool is_real);
  static double loss_of(const model::Kernel& kernel, std::span<const float> output,
                        std::vector<float> target);

  const model::GanDescription& model_;
  std::unique_ptr<model::Backend> backend_;
  std::unique_ptr<const model::Program> program_;
  std::unique_ptr<model::Workspace> workspace_;
  std::unique_ptr<model::Kernel> bins_;
  std::vector<Term> terms_;
  std::span<const float> weights_, moving_;
  std::array<Side, 2> sides_;  // generated, real
};

}  // namespace troupe::pipeline
