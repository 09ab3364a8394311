#pragma once

// Normalisation of single cells over their channels: a GroupNorm of samples of one row, in one
// group. Several cells at a time through Highway (plane_vectors.h), each sum in double and in the
// order of the channels; the same values as the reference's bit by bit.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

template <class Norm>
bool is_of_cells(const Norm& norm) {
  return norm.rows == 1 && norm.groups == 1;
}

// Both CHECK that it is of cells. For hosts on which plane_vectors_supported().
std::unique_ptr<Kernel> make_cell_kernel(const GroupNormForward& norm);
std::unique_ptr<Kernel> make_cell_kernel(const GroupNormBackward& norm);

}  // namespace troupe::model::cpu
