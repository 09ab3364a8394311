#include "model/backend/reference/dropout.h"

#include <algorithm>

#include "model/backend/reference/instantiate.h"

namespace troupe::model::reference {

template <class T>
void drop(const T* from, T* to, std::int64_t first, std::int64_t elements, double rate,
          const runtime::RandomPosition& position) {
  const T scale = static_cast<T>(1.0 / (1.0 - rate));
  for (std::int64_t i = first; i < elements; i += 4) {
    const auto words = runtime::random_block(position, static_cast<std::uint32_t>(i / 4));
    const std::int64_t count = std::min<std::int64_t>(4, elements - i);
    for (std::int64_t j = 0; j < count; ++j) {
      const bool kept = runtime::uniform(words[static_cast<std::size_t>(j)]) >= rate;
      to[i + j] = kept ? from[i + j] * scale : T{0};
    }
  }
}

template <class T>
void run(const DropoutForward& dropout, const KernelCall& call) {
  runtime::RandomPosition position = call.random;
  position.stream = dropout.stream;
  drop(call.operand<const T>(0), call.operand<T>(1), 0, dropout.elements, dropout.rate, position);
}

template <class T>
void run(const DropoutBackward& dropout, const KernelCall& call) {
  run<T>(DropoutForward{dropout.elements, dropout.rate, dropout.stream}, call);
}

TROUPE_INSTANTIATE_RUN(DropoutForward);
TROUPE_INSTANTIATE_RUN(DropoutBackward);
template void drop(const float*, float*, std::int64_t, std::int64_t, double,
                   const runtime::RandomPosition&);
template void drop(const double*, double*, std::int64_t, std::int64_t, double,
                   const runtime::RandomPosition&);

}  // namespace troupe::model::reference
