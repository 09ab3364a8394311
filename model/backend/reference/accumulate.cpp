#include "model/backend/reference/accumulate.h"

#include "model/backend/reference/instantiate.h"

namespace troupe::model::reference {

template <class T>
void run(const Accumulate& accumulate, const KernelCall& call) {
  const T* __restrict from = call.operand<const T>(0);
  T* __restrict into = call.operand<T>(1);
  for (std::int64_t i = 0; i < accumulate.elements; ++i) into[i] += from[i];
}

TROUPE_INSTANTIATE_RUN(Accumulate);

}  // namespace troupe::model::reference
