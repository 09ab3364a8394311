#include "pipeline/data/int8_generation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/int8.h"
#include "pipeline/data/generation.h"

namespace troupe::pipeline {
namespace {

using runtime::Result;

constexpr std::size_t kEvents = 64, kTried = 16;  // whole batches
constexpr double kMostChange = 0.05;

// What a generator makes of some events, one behind the other.
struct Made {
  std::vector<float> images, columns;
  bool begins(const Made& other) const {
    return std::equal(images.begin(), images.end(), other.images.begin()) &&
           std::equal(columns.begin(), columns.end(), other.columns.begin());
  }
};

class Calibration {
 public:
  Calibration(const model::GanDescription& model, std::span<const float> weights,
              std::span<const float> moving, runtime::ThreadTeam& team)
      : model_(model), weights_(weights), moving_(moving), team_(team) {
    constexpr std::array kEnergies{0.05f, 0.1f, 0.2f, 0.5f, 1.0f, 2.0f, 3.5f, 5.0f};
    constexpr std::array kDegrees{60.0f, 75.0f, 90.0f, 105.0f, 120.0f};
    for (std::size_t i = 0; i < kEvents; ++i) {
      energies_.push_back(kEnergies[i % kEnergies.size()]);
      if (!model::uses_angle(model.latent)) continue;
      angles_.push_back(kDegrees[i % kDegrees.size()] * std::numbers::pi_v<float> / 180.0f);
    }
  }

  Result<Made> first(std::size_t events, const model::Backend& backend) const {
    ASSIGN_OR_RETURN(const auto maker, ShowerMaker::create(model_, backend, team_));
    Made made;
    made.images.resize(events * static_cast<std::size_t>(maker->cells()));
    made.columns.resize(events * maker->columns());
    GenerationRequest request;
    request.energies = std::span(energies_).first(events);
    request.angles = std::span(angles_).first(std::min(events, angles_.size()));
    request.seed = 0;
    request.made = made.columns;
    maker->make(weights_, moving_, request, made.images);
    return made;
  }

 private:
  const model::GanDescription& model_;
  std::span<const float> weights_, moving_;
  runtime::ThreadTeam& team_;
  std::vector<float> energies_, angles_;
};

// Compares every `stride`-th number from this one on, as far as `other` goes.
bool is_close(const std::vector<float>& exact, const std::vector<float>& other,
              std::size_t first = 0, std::size_t stride = 1) {
  double change = 0.0, sum = 0.0;
  for (std::size_t i = first; i < other.size(); i += stride) {
    change += std::abs(static_cast<double>(other[i]) - static_cast<double>(exact[i]));
    sum += std::abs(static_cast<double>(exact[i]));
  }
  return change <= kMostChange * sum;
}

bool is_close(const Made& exact, const Made& other, std::size_t columns) {
  for (std::size_t k = 0; k < columns; ++k) {
    if (!is_close(exact.columns, other.columns, k, columns)) return false;
  }
  return is_close(exact.images, other.images);
}

}  // namespace

Result<Int8Generation> prepare_int8(const model::GanDescription& model,
                                    std::span<const float> weights, std::span<const float> moving,
                                    runtime::ThreadTeam& team) {
  if (model.task != model::Task::kGan) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          "int8: is for generators, and not for a diffusion task's network, which "
                          "computes a shower in many steps; leave int8 out"};
  }
  if (const auto columns = model::columns_of(model.latent); !columns.empty()) {
    return runtime::Error{
        runtime::ErrorKind::kUsage,
        fmt::format("int8: ranges are measured on usual energies and angles, and this model is "
                    "asked for {} besides; leave int8 out",
                    columns.front())};
  }
  const Calibration calibration(model, weights, moving, team);
  model::ChannelRanges measured;
  ASSIGN_OR_RETURN(const auto measuring, model::make_measuring_backend(measured));
  ASSIGN_OR_RETURN(const Made exact, calibration.first(kEvents, *measuring));
  Int8Generation prepared;
  prepared.convolutions = measured.size();
  model::ChannelRanges chosen(measured.size());
  for (std::size_t i = 0; i < measured.size(); ++i) {
    model::ChannelRanges alone(measured.size());
    alone[i] = measured[i];
    ASSIGN_OR_RETURN(const auto trial, model::make_int8_backend(alone));
    ASSIGN_OR_RETURN(const Made changed, calibration.first(kTried, *trial));
    // One that has no kernel in int8 changes nothing.
    if (changed.begins(exact)) continue;
    if (!is_close(exact, changed, model.discriminator.columns.size())) continue;
    chosen[i] = std::move(measured[i]);
    ++prepared.in_int8;
  }
  ASSIGN_OR_RETURN(prepared.backend, model::make_int8_backend(std::move(chosen)));
  return prepared;
}

}  // namespace troupe::pipeline
