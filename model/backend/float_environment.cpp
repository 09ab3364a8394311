#include "model/backend/float_environment.h"

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace troupe::model {

#if defined(__x86_64__)
namespace {

constexpr unsigned kFlushToZero = 1u << 15;
constexpr unsigned kDenormalsAreZero = 1u << 6;

}  // namespace
#endif

void set_float_environment() {
  std::fesetround(FE_TONEAREST);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() & ~(kFlushToZero | kDenormalsAreZero));
#elif defined(__aarch64__)
  constexpr std::uint64_t kFlushToZero = std::uint64_t{1} << 24;
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control & ~kFlushToZero));
#endif
}

#if defined(__x86_64__)
FlushedSubnormals::FlushedSubnormals() : before_(_mm_getcsr()) {
  _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero);
}
FlushedSubnormals::~FlushedSubnormals() { _mm_setcsr(before_); }
#else
FlushedSubnormals::FlushedSubnormals() = default;
FlushedSubnormals::~FlushedSubnormals() = default;
#endif

}  // namespace troupe::model
