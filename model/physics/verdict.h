#pragma once

// The faults of a generator that its figures show, in plain words.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/physics/figure.h"
#include "model/physics/shower_sample.h"
#include "runtime/base/fields.h"

namespace troupe::model {

struct Fault {
  std::string kind;  // of one word, for machines: "layers"
  std::string text;  // for people: "the layers are out of order: ..."
};

template <class Archive>
void fields(Archive& archive, runtime::Like<Fault> auto& fault) {
  archive.text("kind", fault.kind, 100);
  archive.text("text", fault.text, 500);
}

// The faults that are both larger than what two samples of the data show (one and a half times
// Figure::floor_95) and larger than a bound of each kind. Those that explain others come first:
// showers that are none, other energies of primaries, wrong power, layers out of order, copies,
// showers alike; then response, profiles, hits, cells, correlations, what varies too little or too
// much, and that a classifier tells the two apart. Only showers that are none are told where no
// generated shower has energy, or fewer than 5 of the data have.
// Figures are those of compute_figures() for the two. `left_out`: unusable showers that came with
// `generated` and are not in it.
std::vector<Fault> find_faults(const ShowerSample& data, const ShowerSample& generated,
                               std::span<const Figure> figures, std::uint64_t left_out = 0);

// Remarks on the data that the generator has no part in: showers that cannot be used, showers
// without energy, and too few with energy to judge by. `left_out` as above.
std::vector<Fault> find_remarks(const ShowerSample& data, std::uint64_t left_out = 0);

// One line for the top of a report: that nothing was found, or how much.
std::string verdict_line(std::span<const Fault> faults);

}  // namespace troupe::model
