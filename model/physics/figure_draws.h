#pragma once

// The draws that uncertainties and floors of figures are found from (figures.h).

#include <algorithm>
#include <optional>
#include <utility>

#include "model/physics/figures.h"
#include "model/physics/replicas.h"
#include "model/physics/sample_drawer.h"

namespace troupe::model {

// The slots of the streams of numbers: which sample is drawn, and what for.
enum DrawUse : std::uint8_t { kOfData, kOfGenerated, kFirstOfFloor, kSecondOfFloor, kTurns };

// Figures of draws of both samples, of two draws of the data, and of showers that changed sides.
struct FigureDraws {
  Replicas drawn, floors, turned;
  double widening;
};

// `across` compares the samples, `within` the data with itself, each as a SampleComparer with so
// many figures. Nothing: options.going_on has ended it.
template <class Comparer>
std::optional<FigureDraws> draw_figures(std::size_t figures, const ShowerSample& data,
                                        const ShowerSample& generated, const Comparer& across,
                                        const Comparer& within, const FigureOptions& options,
                                        runtime::ThreadTeam& team) {
  const std::size_t of_data = data.showers().size(), of_generated = generated.showers().size();
  const bool equal = have_equal_energies(data, generated);
  const SampleDrawer draw_data(data, equal ? kStratum : of_data);
  const SampleDrawer draw_generated(generated, equal ? kStratum : of_generated);
  const SampleTurner turner(data, generated, equal);
  const auto position = [&](std::uint32_t draw, DrawUse use) {
    return runtime::RandomPosition{options.seed, draw, 0, use, 0};
  };
  const Replicas none(figures, static_cast<std::size_t>(options.replicas));
  FigureDraws draws{none, none, none, widening_of(equal ? std::min(kStratum, of_data) : of_data)};
  const bool finished = draws.drawn.run(team, options.going_on, 0.0, [&](std::uint32_t draw) {
    return across.values(draw_data.draw(of_data, position(draw, kOfData)),
                         draw_generated.draw(of_generated, position(draw, kOfGenerated)));
  }) && draws.floors.run(team, options.going_on, 0.5, [&](std::uint32_t draw) {
    return within.values(draw_data.draw(of_data, position(draw, kFirstOfFloor)),
                         draw_data.draw(of_generated, position(draw, kSecondOfFloor)));
  }) && draws.turned.run(team, {}, 1.0, [&](std::uint32_t draw) {
    const SampleTurner::Sides sides = turner.turn(position(draw, kTurns));
    return across.separations_of_turned(sides.data, sides.generated);
  });
  return finished ? std::optional(std::move(draws)) : std::nullopt;
}

}  // namespace troupe::model
