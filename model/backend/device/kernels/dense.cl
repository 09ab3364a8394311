// Dense layers (cpu/dense.cpp): units that fill whole lanes of sixteen are chains of fused
// multiply-adds, the others are rounded twice. Where `pairs` is set all are whole lanes, and pairs of
// bfloat16 are multiplied.

// The sum of so many products, two at a time, of numbers so far apart.
FUNCTION float sum_of_pairs(GLOBAL const float *a, const long a_stride, GLOBAL const float *b,
                            const long b_stride, const int count) {
  float sum = 0.0f;
  for (int i = 0; i < count; i += 2, a += 2 * a_stride, b += 2 * b_stride) {
    const int two = i + 1 < count;
    sum = add_pair(bfloat16_of(*a), bfloat16_of(*b), two ? bfloat16_of(a[a_stride]) : 0.0f,
                   two ? bfloat16_of(b[b_stride]) : 0.0f, sum);
  }
  return sum;
}

// The units of whole lanes, one item for each.
KERNEL void dense_forward(OPERAND(const float, x), OPERAND(const float, kernel_),
                          OPERAND(const float, bias), OPERAND(float, y), const int batch,
                          const int inputs, const int units, const int has_bias,
                          const int pairs) {
  const int i = item(0), group = item(1), fused = units / 16 * 16;
  if (i >= batch * fused) return;
  const int n = i / fused, u = i % fused;
  GLOBAL const float *row = AT(x, group) + (long)n * inputs;
  GLOBAL const float *column = AT(kernel_, group) + u;
  float sum = 0.0f;
  if (pairs) {
    sum = sum_of_pairs(row, 1, column, units, inputs);
  } else {
    UNROLLED_BY(8) for (int k = 0; k < inputs; ++k) {
      sum = fma(row[k], column[(long)k * units], sum);
    }
  }
  AT(y, group)[(long)n * units + u] = has_bias ? sum + AT(bias, group)[u] : sum;
}

// The other units, one block for each: its items make products, and one of them adds these.
KERNEL void dense_forward_rest(OPERAND(const float, x), OPERAND(const float, kernel_),
                               OPERAND(const float, bias), OPERAND(float, y), const int inputs,
                               const int units, const int has_bias) {
  LOCAL float products[BLOCK_ITEMS];
  const int group = item(1), first = units / 16 * 16, own = item_of_block(0);
  const int n = block(0) / (units - first), u = first + block(0) % (units - first);
  GLOBAL const float *row = AT(x, group) + (long)n * inputs;
  GLOBAL const float *column = AT(kernel_, group) + u;
  float sum = 0.0f;
  for (int k = 0; k < inputs; k += BLOCK_ITEMS) {
    const int count = inputs - k < BLOCK_ITEMS ? inputs - k : BLOCK_ITEMS;
    if (own < count) products[own] = row[k + own] * column[(long)(k + own) * units];
    BARRIER;
    if (own == 0) {
      UNROLLED_BY(16) for (int i = 0; i < count; ++i) sum += products[i];
    }
    BARRIER;
  }
  if (own == 0) AT(y, group)[(long)n * units + u] = has_bias ? sum + AT(bias, group)[u] : sum;
}

KERNEL void dense_backward_input(OPERAND(const float, dy), OPERAND(const float, kernel_),
                                 OPERAND(float, dx), const int batch, const int inputs,
                                 const int units, const int pairs) {
  const int i = item(0), group = item(1);
  if (i >= batch * inputs) return;
  GLOBAL const float *derivatives = AT(dy, group) + i / inputs * units;
  GLOBAL const float *row = AT(kernel_, group) + i % inputs * units;
  float sum = 0.0f;
  if (pairs) {
    sum = sum_of_pairs(derivatives, 1, row, 1, units);
  } else {
    for (int u = 0; u < units; ++u) sum += derivatives[u] * row[u];
  }
  AT(dx, group)[i] = sum;
}

KERNEL void dense_backward_kernel(OPERAND(const float, x), OPERAND(const float, dy),
                                  OPERAND(float, dkernel), const int batch, const int inputs,
                                  const int units, const int pairs) {
  const int i = item(0), group = item(1);
  if (i >= inputs * units) return;
  const int u = i % units, input = i / units;
  const int fused = u < units / 16 * 16;
  GLOBAL const float *values = AT(x, group) + input;
  GLOBAL const float *derivatives = AT(dy, group) + u;
  float sum = 0.0f;
  if (pairs) {
    AT(dkernel, group)[i] = sum_of_pairs(values, inputs, derivatives, units, batch);
    return;
  }
  for (int n = 0; n < batch; ++n) {
    const float value = values[(long)n * inputs], derivative = derivatives[(long)n * units];
    sum = fused ? fma(value, derivative, sum) : sum + value * derivative;
  }
  AT(dkernel, group)[i] = sum;
}

KERNEL void dense_backward_bias(OPERAND(const float, dy), OPERAND(float, dbias), const int batch,
                                const int units) {
  const int u = item(0), group = item(1);
  if (u >= units) return;
  float sum = 0.0f;
  for (int n = 0; n < batch; ++n) sum += AT(dy, group)[(long)n * units + u];
  AT(dbias, group)[u] = sum;
}
