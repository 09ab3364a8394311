#pragma once

// Optimisers in Keras' arithmetic, element by element in float without contraction: the same bits
// on every instruction set.
//
// With g the mean gradient, lr the step's learning rate and all arrays at zero before step t = 1:
//   SGD       w -= lr g;                           momentum > 0: m = momentum m + lr g, w -= m
//   RMSprop   v = rho v + (1 - rho) g^2, u = lr g / (sqrt(v) + eps), w -= u;
//             momentum > 0: m = momentum m + u, w -= m
//   Adam      m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
//             w -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)
//   Adadelta  v = rho v + (1 - rho) g^2, u = g sqrt(d + eps) / sqrt(v + eps),
//             d = rho d + (1 - rho) u^2, w -= lr u
//   LARS      m = momentum m + lr r (g + decay w), w -= m, r = trust |w| / (|g| + decay |w|)
//   LAMB      m and v as Adam's, u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay w,
//             w -= lr r u, r = |w| / |u|
// LARS and LAMB take norms over a tensor, before the update, summed in double in four chains. r is
// 1 where a norm of it is zero. Sources: Keras optimizer_v2; Tieleman and Hinton 2012; Kingma and
// Ba, arXiv:1412.6980; Zeiler, arXiv:1212.5701; You, Gitman and Ginsburg, arXiv:1708.03888; You et
// al., arXiv:1904.00962. Factors that are the same for every element (1 - rho, Adam's rate) are
// computed in double and rounded to float once; the rest is float, from left to right.

#include <cstdint>
#include <span>
#include <string>

namespace troupe::model {

enum class OptimiserKind : std::uint8_t { kSgd, kRmsprop, kAdam, kAdadelta, kLars, kLamb };

struct OptimiserOptions {
  OptimiserKind kind = OptimiserKind::kRmsprop;
  double momentum = 0.0;  // SGD, RMSprop and LARS: m = momentum m + update; w -= m
  double rho = 0.9;       // RMSprop (Keras default 0.9) and Adadelta (0.95)
  double beta_1 = 0.9;    // Adam and LAMB
  double beta_2 = 0.999;  // Adam and LAMB
  double epsilon = 1e-7;  // RMSprop, Adam, LAMB: g / (sqrt(v) + eps); Adadelta: inside both roots
  double trust = 1e-3;    // LARS: share of a tensor's norm that a step changes, by the rate
  double decay = 0.0;     // LARS and LAMB: of the weights
};

// LARS and LAMB: an update of one weight depends on all weights of its tensor.
bool takes_norms(const OptimiserOptions& options);

// Arrays of the weights' size the optimiser keeps, and their names in checkpoints: "velocity" (m
// of SGD, RMSprop and LARS, kept only with momentum > 0), "mean" (m of Adam and LAMB),
// "mean_square" (v), "mean_square_update" (d). All start at zero. In the order: mean, mean_square,
// mean_square_update, velocity, as far as the optimiser has them.
int optimiser_arrays(const OptimiserOptions& options);
std::string optimiser_array_name(const OptimiserOptions& options, int array);

// The optimiser's numbers besides arrays. Adam's and LAMB's beta powers grow by repeated
// multiplication, so that a resumed run has the same bits.
struct OptimiserCounters {
  std::uint64_t updates = 0;
  double beta_1_power = 1.0;
  double beta_2_power = 1.0;
  bool operator==(const OptimiserCounters&) const = default;
};

// Gradients g for which update() is defined: |g| < 2^64. The square of a larger one is no float,
// and an infinite mean square stops a weight for ever.
inline constexpr int kLargestGradientExponent = 64;

// Once per step, before update(): counts the step and multiplies the beta powers.
void begin_update(const OptimiserOptions& options, OptimiserCounters& counters);

// The numbers of an update that all elements share.
struct UpdateFactors {
  float rate = 0.0f;  // Adam's, both bias corrections included; LARS' and LAMB's without norms
  float momentum = 0.0f, rho = 0.0f, rest_of_rho = 0.0f;
  float beta_1 = 0.0f, rest_of_beta_1 = 0.0f, beta_2 = 0.0f, rest_of_beta_2 = 0.0f;
  float epsilon = 0.0f;
};
UpdateFactors update_factors(const OptimiserOptions& options, const OptimiserCounters& counters,
                             double learning_rate);

// Updates weights[i] and arrays[k * stride + i] from gradients[i]; spans of one range of a network,
// which is a whole tensor for optimisers that take norms.
// `arrays` points at array 0 of the range, `stride` is the distance between arrays in elements.
void update(const OptimiserOptions& options, const OptimiserCounters& counters,
            double learning_rate, std::span<const float> gradients, std::span<float> weights,
            float* arrays, std::int64_t stride);

// An optimiser of a backend that computes elsewhere than on the host. It has a network's weights
// and arrays there, and updates them with the bits of update(). One thread.
class PlacedOptimiser {
 public:
  virtual ~PlacedOptimiser() = default;
  // The next update is of these.
  virtual void place(std::span<const float> weights, std::span<const float> arrays) = 0;
  // On the host, one per weight: the gradients of the next update.
  virtual std::span<float> gradients() = 0;
  // Updates all weights, and brings them and the arrays to the host. Nothing that is under way
  // reads the weights.
  virtual void update(const UpdateFactors& factors, std::span<float> weights,
                      std::span<float> arrays) = 0;
  // In the backend's memory.
  virtual const float* weights() const = 0;
};

}  // namespace troupe::model
