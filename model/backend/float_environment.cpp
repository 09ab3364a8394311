#include "model/backend/float_environment.h"

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace troupe::model {

void set_float_environment() {
  std::fesetround(FE_TONEAREST);
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 1u << 15;
  constexpr unsigned kDenormalsAreZero = 1u << 6;
  _mm_setcsr(_mm_getcsr() & ~(kFlushToZero | kDenormalsAreZero));
#elif defined(__aarch64__)
  constexpr std::uint64_t kFlushToZero = std::uint64_t{1} << 24;
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control & ~kFlushToZero));
#endif
}

}  // namespace troupe::model
