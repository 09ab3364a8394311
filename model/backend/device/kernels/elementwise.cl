// Operations whose elements are computed one by one (reference/elementwise.cpp, cpu/dropout.cpp).

// All triples of `count` numbers: fused and unfused sums, quotients and roots (trial.cpp).
KERNEL void brink_cases(OPERAND(const float, numbers), OPERAND(float, sums), OPERAND(double, roots),
                        const int count) {
  const int i = item(0);
  if (i >= count * count * count) return;
  const float a = AT(numbers, 0)[i / count / count], b = AT(numbers, 0)[i / count % count],
              c = AT(numbers, 0)[i % count];
  const double product = (double)a * (double)b;
  AT(sums, 0)[2 * i] = fma(a, b, c);
  AT(sums, 0)[2 * i + 1] = a * b + c;
  AT(roots, 0)[2 * i] = product / (double)c;
  AT(roots, 0)[2 * i + 1] = sqrt(fabs(product));
}

#define GELU_SCALE 0.79788456080286536
#define GELU_CUBE 0.044715
FUNCTION double gelu_tanh(double x) {
  return tanh_exactly(GELU_SCALE * (x + GELU_CUBE * x * x * x));
}

// With all choices against 0 false for NaN, which therefore passes.
FUNCTION float activated(const ActivationSizes activation, float x) {
  if (activation.kind == ACTIVATION_LINEAR) return x;
  const float positive = x < 0.0f ? 0.0f : x;
  if (activation.kind == ACTIVATION_RELU) return positive;
  if (activation.kind == ACTIVATION_LEAKY_RELU) {
    return positive + activation.slope * (x < 0.0f ? x : 0.0f);
  }
  if (activation.kind == ACTIVATION_SIGMOID) return (float)sigmoid_exactly(x);
  if (activation.kind == ACTIVATION_TANH) return (float)tanh_exactly(x);
  const double value = x;
  if (activation.kind == ACTIVATION_SOFTPLUS) {
    return (float)((value < 0.0 ? 0.0 : value) + log_exactly(1.0 + exp_exactly(-fabs(value))));
  }
  if (activation.kind == ACTIVATION_GELU) return (float)(0.5 * value * (1.0 + gelu_tanh(value)));
  if (activation.kind == ACTIVATION_SILU) return (float)(value * sigmoid_exactly(value));
  return x < 0.0f ? (float)(exp_exactly(value) - 1.0) : x;
}

// A convolution's output from its sum, as finish_plane() has it (cpu/plane_transforms.h).
FUNCTION float finished(const ActivationSizes activation, float sum, float bias) {
  const float value = sum + bias;
  if (activation.kind == ACTIVATION_RELU) return value < 0.0f ? 0.0f : value;
  if (activation.kind == ACTIVATION_LEAKY_RELU) {
    return value < 0.0f ? activation.slope * value : value;
  }
  return value;
}

KERNEL void activation_forward(OPERAND_IN_PLACE(const float, x), OPERAND_IN_PLACE(float, y),
                               const long elements, const ActivationSizes activation) {
  const int group = item(1), first = 4 * item(0);
  float values[4];
  load_neighbours(values, AT(x, group), first, elements);
  UNROLLED for (int i = 0; i < 4; ++i) values[i] = activated(activation, values[i]);
  store_neighbours(AT(y, group), values, first, elements);
}

// dx of the kinds behind tanh, of y, or of x where the kind needs it.
FUNCTION float smooth_slope(int kind, float known, float derivative) {
  const double value = known, dy = derivative;
  if (kind == ACTIVATION_SOFTPLUS) return (float)(dy * (1.0 - exp_exactly(-value)));
  if (kind == ACTIVATION_GELU) {
    const double t = gelu_tanh(value);
    const double inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBE * value * value);
    return (float)(dy * (0.5 * (1.0 + t) + 0.5 * value * (1.0 - t * t) * inner));
  }
  if (kind == ACTIVATION_SILU) {
    const double s = sigmoid_exactly(value);
    return (float)(dy * (s * (1.0 + value * (1.0 - s))));
  }
  return known < 0.0f ? derivative * (known + 1.0f) : derivative;
}

FUNCTION float activation_slope(const ActivationSizes activation, float value, float derivative) {
  const float passed = value <= 0.0f ? 0.0f : derivative;
  if (activation.kind == ACTIVATION_LINEAR) return derivative;
  if (activation.kind == ACTIVATION_RELU) return passed;
  if (activation.kind == ACTIVATION_LEAKY_RELU) {
    return passed + activation.slope * (value <= 0.0f ? derivative : 0.0f);
  }
  if (activation.kind == ACTIVATION_SIGMOID) return derivative * (value * (1.0f - value));
  if (activation.kind == ACTIVATION_TANH) return derivative * (1.0f - value * value);
  return smooth_slope(activation.kind, value, derivative);
}

KERNEL void activation_backward(OPERAND(const float, y), OPERAND_IN_PLACE(const float, dy),
                                OPERAND_IN_PLACE(float, dx), const long elements,
                                const ActivationSizes activation) {
  const int group = item(1), first = 4 * item(0);
  float values[4], derivatives[4];
  load_neighbours(values, AT(y, group), first, elements);
  load_neighbours(derivatives, AT(dy, group), first, elements);
  UNROLLED for (int i = 0; i < 4; ++i) {
    values[i] = activation_slope(activation, values[i], derivatives[i]);
  }
  store_neighbours(AT(dx, group), values, first, elements);
}

KERNEL void power_forward(OPERAND(const float, x), OPERAND(float, y), const long elements,
                          const double exponent) {
  const int group = item(1), first = 4 * item(0);
  float values[4];
  load_neighbours(values, AT(x, group), first, elements);
  UNROLLED for (int i = 0; i < 4; ++i) {
    values[i] = (float)pow_exactly(values[i] <= 0.0f ? 0.0 : (double)values[i], exponent);
  }
  store_neighbours(AT(y, group), values, first, elements);
}

KERNEL void power_backward(OPERAND(const float, x), OPERAND(const float, dy), OPERAND(float, dx),
                           const long elements, const double exponent) {
  const int group = item(1), first = 4 * item(0);
  float values[4], derivatives[4];
  load_neighbours(values, AT(x, group), first, elements);
  load_neighbours(derivatives, AT(dy, group), first, elements);
  UNROLLED for (int i = 0; i < 4; ++i) {
    float slope = 0.0f;
    if (!(values[i] <= 0.0f)) {
      slope = (float)(exponent * pow_exactly(values[i], exponent - 1.0)) * derivatives[i];
    }
    values[i] = slope;
  }
  store_neighbours(AT(dx, group), values, first, elements);
}

KERNEL void accumulate(OPERAND(const float, from), OPERAND(float, into), const long elements) {
  const int group = item(1), first = 4 * item(0);
  float values[4], sums[4];
  load_neighbours(values, AT(from, group), first, elements);
  load_neighbours(sums, AT(into, group), first, elements);
  UNROLLED for (int i = 0; i < 4; ++i) sums[i] += values[i];
  store_neighbours(AT(into, group), sums, first, elements);
}

KERNEL void zero_fill(OPERAND(float, y), const long elements) {
  const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  store_neighbours(AT(y, item(1)), zeros, 4 * item(0), elements);
}

typedef struct {
  uint32 word[4];
} PhiloxBlock;

// runtime/base/random.h
FUNCTION PhiloxBlock philox(PhiloxBlock counter, uint64 key) {
  uint32 key0 = (uint32)key, key1 = (uint32)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64 product0 = (uint64)0xD2511F53u * counter.word[0];
    const uint64 product1 = (uint64)0xCD9E8D57u * counter.word[2];
    PhiloxBlock next;
    next.word[0] = (uint32)(product1 >> 32) ^ counter.word[1] ^ key0;
    next.word[1] = (uint32)product1;
    next.word[2] = (uint32)(product0 >> 32) ^ counter.word[3] ^ key1;
    next.word[3] = (uint32)product0;
    counter = next;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// One item draws the numbers of four elements. Those are kept whose number is no less than the
// threshold, from 0 to 2^32 (cpu/dropout.h).
KERNEL void dropout(OPERAND_IN_PLACE(const float, x), OPERAND_IN_PLACE(float, y),
                    OPERAND(const uint32, indices), const long elements, const DrawSizes draw,
                    const long threshold, const float scale) {
  const int group = item(1), first = 4 * item(0);
  if (first >= elements) return;
  PhiloxBlock block;
  block.word[0] = (uint32)item(0);
  block.word[1] = AT(indices, 0)[group];
  block.word[2] = draw.iteration;
  block.word[3] = draw.slot_and_stream;
  block = philox(block, draw.seed);
  float values[4];
  load_neighbours(values, AT(x, group), first, elements);
  UNROLLED for (int j = 0; j < 4; ++j) {
    values[j] = (long)block.word[j] >= threshold ? values[j] * scale : 0.0f;
  }
  store_neighbours(AT(y, group), values, first, elements);
}
