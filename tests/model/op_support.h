#pragma once

// What the tests of kernels share: the operands of every operation, random operations and contents,
// and running a kernel on plain vectors.

#include <cstdint>
#include <string>
#include <vector>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model {

enum class Content : std::uint8_t {
  kSigned,    // uniform in (-1, 1)
  kPositive,  // uniform in (0.5, 1.5)
  kImage,     // about half zeros, else small and positive: a shower
  kClass,     // a whole number from 0 to 4
  kWritten,   // an output
  kUpdated,   // read and written
};

struct OperandDescription {
  std::string name;
  std::int64_t size = 0;
  Content content = Content::kSigned;
};

// In the order of the operation's comment. Size 0: the operand is null.
std::vector<OperandDescription> operands_of(const Operation& operation);

// Numbers drawn one after the other from a seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) { position_.seed = seed; }
  double uniform();                                             // in (0, 1)
  std::int64_t between(std::int64_t first, std::int64_t last);  // both included
  std::vector<double> contents(const OperandDescription& operand);

 private:
  runtime::RandomPosition position_;
  std::uint32_t next_ = 0;
};

// One operation of every kind, in the order of the variant, with small random sizes: even and odd
// kernels, asymmetric padding, one channel, batches of one.
std::vector<Operation> random_operations(Draw& draw);

// A convolution of random geometry, sometimes of spatial rank 1 or 2 or padded wider than its
// kernel.
ConvolutionGeometry random_geometry(Draw& draw);

// One in groups, with stride and dilation.
GroupedGeometry random_grouped_geometry(Draw& draw);
Phases random_phases(Draw& draw);
// Windows side by side or not, with cells inside the image each.
PoolGeometry random_pool(Draw& draw);

// The same as random_geometry() with its input upsampled.
ConvolutionGeometry random_upsampled_geometry(Draw& draw);

// out = in x upsample + before + after - kernel + 1, filled in.
ConvolutionGeometry with_output(ConvolutionGeometry geometry);

template <class T>
using Operands = std::vector<std::vector<T>>;

// Random contents for everything read; outputs have their size and hold NaN.
Operands<double> random_operands(const Operation& operation, Draw& draw);

template <class T>
Operands<T> converted(const Operands<double>& operands);

// Whether every number is the same one, bit by bit: NaN is itself, and 0 is not -0.
bool same_bits(const Operands<float>& a, const Operands<float>& b);

// Runs a kernel of `backend` (whose type must be T) in place, between guards that must stay as they
// were.
template <class T>
void run_operation(const Backend& backend, const Operation& operation, Operands<T>& operands,
                   const runtime::RandomPosition& random = {});
template <class T>
void run_kernel(const Kernel& kernel, Operands<T>& operands,
                const runtime::RandomPosition& random = {});

}  // namespace troupe::model
