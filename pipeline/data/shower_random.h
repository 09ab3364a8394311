#pragma once

// The random numbers of one shower: Philox words in order of use, and the distributions the
// parametrisation draws from. No libm, so the same numbers on every machine.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::pipeline {

// The uses of random words. Each has a counter range of its own, so that drawing more for one
// changes nothing for another.
enum class ShowerStream : std::uint32_t { kPrimary, kProfile, kSpots };

// log Gamma(x), x > 0: Stirling's series, after a shift to x >= 10. Relative error under 1e-13
// where the result is not near 0.
double log_gamma(double x);

// counter = (block, event low, event high, 0xFF << 24 | stream), key = seed: slot 255, which no
// schedule of a training has, keeps these words apart from a run's own (runtime/base/random.h).
class ShowerRandom {
 public:
  // Blocks of four words drawn from Philox at once.
  static constexpr std::size_t kBlocks = 32;

  ShowerRandom(std::uint64_t seed, std::uint64_t event, ShowerStream stream);

  std::uint32_t word() {
    if (next_ == words_.size()) refill();
    return words_[next_++];
  }
  // In (0, 1).
  double uniform() { return (static_cast<double>(word()) + 0.5) * 0x1p-32; }
  // Box-Muller; both numbers of a pair are used.
  double normal();
  // Exponential distribution of mean 1.
  double exponential();
  // Gamma distribution with this shape > 0 and scale 1: Marsaglia and Tsang, "A simple method for
  // generating gamma variables", ACM TOMS 26 (2000).
  double gamma(double shape);
  // Poisson distribution, mean >= 0: sequential search below 10, above it PTRS of Hoermann, "The
  // transformed rejection method for generating Poisson random variables", Insurance: Mathematics
  // and Economics 12 (1993).
  std::uint32_t poisson(double mean);

 private:
  void refill();

  std::uint64_t seed_;
  std::uint64_t event_;
  std::uint32_t stream_;
  std::uint32_t block_ = 0;
  std::size_t next_;
  bool has_spare_ = false;
  double spare_ = 0;
  std::array<std::uint32_t, 4 * kBlocks> words_;
};

}  // namespace troupe::pipeline
