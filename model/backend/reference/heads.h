#pragma once

// The parameter-free outputs of the discriminators: energy sum, incidence angle, bin counts. All
// three compute in double for every T; cells are visited in memory order.

#include <cstddef>

#include "model/backend/kernel_call.h"
#include "model/operation.h"

namespace troupe::model::reference {

template <class T>
void run(const SumForward& sum, const KernelCall& call);
template <class T>
void run(const SumBackward& sum, const KernelCall& call);

// A layer counts as empty when its sum is exactly 0, an event likewise.
template <class T>
void run(const AngleForward& angle, const KernelCall& call);
// The sign of m and the clip of zproj are constants for the gradient; the mask too.
template <class T>
void run(const AngleBackward& angle, const KernelCall& call);

// Edges are compared as numbers of type T. Negative cells and NaN are counted nowhere.
template <class T>
void run(const BinsForward& bins, const KernelCall& call);

// Sums and derivatives per layer z.
template <class T>
std::size_t scratch_bytes(const AngleForward& angle);
template <class T>
std::size_t scratch_bytes(const AngleBackward& angle);

}  // namespace troupe::model::reference
