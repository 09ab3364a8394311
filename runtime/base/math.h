#pragma once

// The transcendental functions whose results enter the trained state. libm picks its code by CPU,
// so its last bits differ between hosts; these are one polynomial each, in double, without fused
// multiply-add, and give the same bits on every IEEE machine. Relative error under 4e-15 where the
// result is not subnormal; arguments and results outside the double range follow IEEE (infinity,
// NaN).

namespace troupe::runtime::math {

double exp(double x);
// x > 0; log(0) = -infinity, log(x < 0) = NaN.
double log(double x);
// x >= 0; pow(0, p > 0) = 0; computed as exp(p log x), so the relative error grows with |p log x|.
double pow(double x, double p);
// Meant for |x| < 1e5; beyond it the reduction loses accuracy.
double sin(double x);
double cos(double x);
// Result in [-pi/2, pi/2].
double atan(double x);
double tanh(double x);
// 1 / (1 + exp(-x)), without overflow.
double sigmoid(double x);

}  // namespace troupe::runtime::math
