// Numbers of eight significant bits, as floats, and their products (cpu/bfloat16.h). A subnormal
// number counts as zero.

FUNCTION float signed_zero(float of) { return float_of_bits(bits_of_float(of) & 0x80000000u); }

FUNCTION float bfloat16_of(float value) {
  const uint32 bits = bits_of_float(value);
  const uint32 rounded =
      value != value ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
  const uint32 whole = rounded & 0xffff0000u;
  return float_of_bits((whole & 0x7f800000u) == 0u ? whole & 0x80000000u : whole);
}

// fma(a, b, c) of numbers that are not subnormal. A result is subnormal if it is so when rounded as
// if there were smaller exponents; rounding to a subnormal number may make it the least normal one.
FUNCTION float fma_flushed(float a, float b, float c) {
  const float result = fma(a, b, c), size = fabs(result);
  if (size > 0x1p-126f || result != result) return result;
  if (size < 0x1p-126f) return signed_zero(result);
  const double exact = fabs(fma((double)a, (double)b, (double)c));
  return exact < 0x1p-126 - 0x1p-151 ? signed_zero(result) : result;
}

// Adds the products of two pairs.
FUNCTION float add_pair(float a0, float b0, float a1, float b1, float sum) {
  return fma_flushed(a0, b0, fma_flushed(a1, b1, sum));
}
