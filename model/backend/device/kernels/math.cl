// runtime/base/math.h, in the same steps: the same bits.

CONSTANT double kExp[14] = {1.0,
                            1.0,
                            1.0 / 2.0,
                            1.0 / 6.0,
                            1.0 / 24.0,
                            1.0 / 120.0,
                            1.0 / 720.0,
                            1.0 / 5040.0,
                            1.0 / 40320.0,
                            1.0 / 362880.0,
                            1.0 / 3628800.0,
                            1.0 / 39916800.0,
                            1.0 / 479001600.0,
                            1.0 / 6227020800.0};
CONSTANT double kAtanh[12] = {1.0,        1.0 / 3.0,  1.0 / 5.0,  1.0 / 7.0,
                              1.0 / 9.0,  1.0 / 11.0, 1.0 / 13.0, 1.0 / 15.0,
                              1.0 / 17.0, 1.0 / 19.0, 1.0 / 21.0, 1.0 / 23.0};
CONSTANT double kAtan[21] = {1.0,         -1.0 / 3.0,  1.0 / 5.0,   -1.0 / 7.0,  1.0 / 9.0,
                             -1.0 / 11.0, 1.0 / 13.0,  -1.0 / 15.0, 1.0 / 17.0,  -1.0 / 19.0,
                             1.0 / 21.0,  -1.0 / 23.0, 1.0 / 25.0,  -1.0 / 27.0, 1.0 / 29.0,
                             -1.0 / 31.0, 1.0 / 33.0,  -1.0 / 35.0, 1.0 / 37.0,  -1.0 / 39.0,
                             1.0 / 41.0};

FUNCTION double horner(IN_CONSTANT const double *coefficients, int count, double x) {
  double sum = coefficients[count - 1];
  for (int i = count - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

FUNCTION double power_of_two(int n) { return double_of_bits((uint64)(n + 1023) << 52); }

// x 2^n, rounded once.
FUNCTION double scaled(double x, int n) {
  if (n > 1023) return x * 0x1p1023 * power_of_two(n - 1023);
  if (n < -1022) return x * power_of_two(n + 54) * 0x1p-54;
  return x * power_of_two(n);
}

FUNCTION double exp_exactly(double x) {
  if (!(x < 709.79)) return x > 0.0 ? (double)INFINITY : x;
  if (x < -745.2) return 0.0;
  const double n = rint(x * 0x1.71547652b82fep+0);
  const double rest = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  return scaled(horner(kExp, 14, rest), (int)n);
}

FUNCTION double log_exactly(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -(double)INFINITY : (double)NAN;
  if (x == (double)INFINITY) return x;
  int shift = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    shift = -54;
  }
  const uint64 bits = bits_of_double(x);
  int exponent = (int)(bits >> 52) - 1023 + shift;
  double mantissa = double_of_bits((bits & 0xFFFFFFFFFFFFFUL) | 0x3FF0000000000000UL);
  if (mantissa > 0x1.6a09e667f3bcdp+0) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double fraction = 2.0 * s * horner(kAtanh, 12, s * s);
  return exponent * 0x1.62e42fee00000p-1 + (exponent * 0x1.a39ef35793c76p-33 + fraction);
}

FUNCTION double pow_exactly(double x, double p) {
  if (x == 0.0) return p > 0.0 ? 0.0 : (p == 0.0 ? 1.0 : (double)INFINITY);
  return exp_exactly(p * log_exactly(x));
}

FUNCTION double atan_exactly(double x) {
  if (x != x) return x;
  const double size = fabs(x);
  const int inverted = size > 1.0;
  double t = inverted ? 1.0 / size : size;
  double base = 0.0;
  if (t > 0x1.6a09e667f3bcdp+0 - 1.0) {
    t = (t - 1.0) / (t + 1.0);
    base = 0x1.921fb54442d18p-1;
  }
  double angle = base + t * horner(kAtan, 21, t * t);
  if (inverted) angle = 0x1.921fb54442d18p+0 - angle;
  return copysign(angle, x);
}

FUNCTION double tanh_exactly(double x) {
  const double size = fabs(x);
  if (x != x) return x;
  if (size > 20.0) return copysign(1.0, x);
  if (size < 0x1p-8) {
    const double s = x * x;
    return x * (1.0 + s * (-1.0 / 3 + s * (2.0 / 15 + s * (-17.0 / 315))));
  }
  const double e = exp_exactly(-2.0 * size);
  return copysign((1.0 - e) / (1.0 + e), x);
}

FUNCTION double sigmoid_exactly(double x) {
  const double e = exp_exactly(-fabs(x));
  return x >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}
