#pragma once

namespace troupe::runtime {

// Gives each alternative of a variant to its own function: std::visit(Overloaded{...}, variant).
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
// clang++ 14 does not deduce aggregates.
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace troupe::runtime
