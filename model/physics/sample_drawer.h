#pragma once

// Samples that are drawn from a sample (bootstrap), so that energies stay what they are, and such
// as change places with another (permutation).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/physics/shower_sample.h"
#include "runtime/base/random.h"

namespace troupe::model {

// The numbers of the showers, those of lower energy first.
std::vector<std::uint32_t> by_energy(const ShowerSample& sample);

// The factor by which deviations and distances of draws are too small, because each shower is drawn
// from so many.
double widening_of(std::size_t stratum);

class SampleDrawer {
 public:
  // stratum: neighbours in energy that stand for each other, at least 1; the last stratum may have
  // up to twice as many.
  SampleDrawer(const ShowerSample& sample, std::size_t stratum);

  // How often each shower counts in a draw of `size` showers, with replacement: as many from each
  // stratum as it has, if size is that of the sample. Pure; any thread.
  std::vector<std::uint32_t> draw(std::size_t size, const runtime::RandomPosition& position) const;

 private:
  std::vector<std::uint32_t> order_;
  std::size_t stratum_;
};

// Which showers of two samples change sides, so that as many are in each as before: of equal ranks
// in energy either both or none, if `pairs`, else any.
class SampleTurner {
 public:
  SampleTurner(const ShowerSample& data, const ShowerSample& generated, bool pairs);

  // Not 0 for each shower that does.
  struct Sides {
    std::vector<std::uint8_t> data, generated;
  };
  // Pure; any thread.
  Sides turn(const runtime::RandomPosition& position) const;

 private:
  std::vector<std::uint32_t> data_, generated_;  // in the order of their energies
  bool pairs_;
};

}  // namespace troupe::model
