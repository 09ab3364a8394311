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

#define ACTIVATION_LINEAR 0
#define ACTIVATION_RELU 1
#define ACTIVATION_LEAKY_RELU 2
#define ACTIVATION_SIGMOID 3

// With all choices against 0 false for NaN, which therefore passes.
FUNCTION float activated(const ActivationSizes activation, float x) {
  if (activation.kind == ACTIVATION_LINEAR) return x;
  const float positive = x < 0.0f ? 0.0f : x;
  if (activation.kind == ACTIVATION_RELU) return positive;
  if (activation.kind == ACTIVATION_LEAKY_RELU) {
    return positive + activation.slope * (x < 0.0f ? x : 0.0f);
  }
  if (activation.kind == ACTIVATION_SIGMOID) return (float)sigmoid_exactly(x);
  return (float)tanh_exactly(x);
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

KERNEL void activation_forward(OPERAND(const float, x), OPERAND(float, y), const long elements,
                               const ActivationSizes activation) {
  const int group = item(1);
  FOR_ELEMENTS(i, elements) {
    AT(y, group)[i] = activated(activation, AT(x, group)[i]);
  }
}

KERNEL void activation_backward(OPERAND(const float, y), OPERAND(const float, dy),
                                OPERAND(float, dx), const long elements,
                                const ActivationSizes activation) {
  const int group = item(1);
  FOR_ELEMENTS(i, elements) {
    const float value = AT(y, group)[i], derivative = AT(dy, group)[i];
    const float passed = value <= 0.0f ? 0.0f : derivative;
    float result;
    if (activation.kind == ACTIVATION_LINEAR) {
      result = derivative;
    } else if (activation.kind == ACTIVATION_RELU) {
      result = passed;
    } else if (activation.kind == ACTIVATION_LEAKY_RELU) {
      result = passed + activation.slope * (value <= 0.0f ? derivative : 0.0f);
    } else if (activation.kind == ACTIVATION_SIGMOID) {
      result = derivative * (value * (1.0f - value));
    } else {
      result = derivative * (1.0f - value * value);
    }
    AT(dx, group)[i] = result;
  }
}

KERNEL void power_forward(OPERAND(const float, x), OPERAND(float, y), const long elements,
                          const double exponent) {
  const int group = item(1);
  FOR_ELEMENTS(i, elements) {
    const float value = AT(x, group)[i];
    AT(y, group)[i] = (float)pow_exactly(value <= 0.0f ? 0.0 : (double)value, exponent);
  }
}

KERNEL void power_backward(OPERAND(const float, x), OPERAND(const float, dy), OPERAND(float, dx),
                           const long elements, const double exponent) {
  const int group = item(1);
  FOR_ELEMENTS(i, elements) {
    const float value = AT(x, group)[i];
    float slope = 0.0f;
    if (!(value <= 0.0f)) {
      slope = (float)(exponent * pow_exactly(value, exponent - 1.0)) * AT(dy, group)[i];
    }
    AT(dx, group)[i] = slope;
  }
}

KERNEL void accumulate(OPERAND(const float, from), OPERAND(float, into), const long elements) {
  const int group = item(1);
  FOR_ELEMENTS(i, elements) {
    AT(into, group)[i] += AT(from, group)[i];
  }
}

KERNEL void zero_fill(OPERAND(float, y), const long elements) {
  const int group = item(1);
  FOR_ELEMENTS(i, elements) {
    AT(y, group)[i] = 0.0f;
  }
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
KERNEL void dropout(OPERAND(const float, x), OPERAND(float, y), OPERAND(const uint32, indices),
                    const long elements, const DrawSizes draw, const long threshold,
                    const float scale) {
  const int group = item(1);
  const long first = 4 * (long)item(0);
  if (first >= elements) return;
  PhiloxBlock block;
  block.word[0] = (uint32)item(0);
  block.word[1] = AT(indices, 0)[group];
  block.word[2] = draw.iteration;
  block.word[3] = draw.slot_and_stream;
  block = philox(block, draw.seed);
  GLOBAL const float *from = AT(x, group) + first;
  GLOBAL float *to = AT(y, group) + first;
  UNROLLED for (int j = 0; j < 4; ++j) {
    if (first + j < elements) to[j] = (long)block.word[j] >= threshold ? from[j] * scale : 0.0f;
  }
}
