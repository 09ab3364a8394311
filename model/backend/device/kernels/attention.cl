// Softmax, attention and embedding (reference/attention.cpp).

// An item is a row.
KERNEL void softmax_forward(OPERAND(const float, x), OPERAND(float, y), const int rows,
                            const int channels) {
  const int i = item(0), group = item(1);
  if (i >= rows) return;
  GLOBAL const float *from = AT(x, group) + (long)i * channels;
  float largest = from[0];
  for (int c = 1; c < channels; ++c) {
    if (largest == largest && !(from[c] <= largest)) largest = from[c];
  }
  double sum = 0.0;
  for (int c = 0; c < channels; ++c) sum += exp_exactly((double)from[c] - (double)largest);
  for (int c = 0; c < channels; ++c) {
    AT(y, group)[(long)i * channels + c] =
        (float)(exp_exactly((double)from[c] - (double)largest) / sum);
  }
}
KERNEL void softmax_backward(OPERAND(const float, y), OPERAND(const float, dy), OPERAND(float, dx),
                             const int rows, const int channels) {
  const int i = item(0), group = item(1);
  if (i >= rows) return;
  GLOBAL const float *result = AT(y, group) + (long)i * channels;
  GLOBAL const float *derivative = AT(dy, group) + (long)i * channels;
  double sum = 0.0;
  for (int c = 0; c < channels; ++c) sum += (double)result[c] * (double)derivative[c];
  for (int c = 0; c < channels; ++c) {
    AT(dx, group)[(long)i * channels + c] =
        (float)((double)result[c] * ((double)derivative[c] - sum));
  }
}

// One head of a sample: its first query; keys and values follow it.
FUNCTION GLOBAL const float *head_of(GLOBAL const float *x, const AttentionSizes s, int head) {
  return x + (long)(head / s.heads) * s.cells * 3 * s.heads * s.width + head % s.heads * s.width;
}
// The derivatives of one head's results.
FUNCTION GLOBAL const float *results_of(GLOBAL const float *dy, const AttentionSizes s, int head) {
  return dy + (long)(head / s.heads) * s.cells * s.heads * s.width + head % s.heads * s.width;
}
FUNCTION double dot_of(GLOBAL const float *a, GLOBAL const float *b, int width) {
  double sum = 0.0;
  for (int d = 0; d < width; ++d) sum += (double)a[d] * (double)b[d];
  return sum;
}

// An item is a query of a head.
KERNEL void attention_weights(OPERAND(const float, x), OPERAND(double, weights),
                              const AttentionSizes s, const double scale) {
  const int i = item(0), group = item(1);
  if (i >= s.batch * s.heads * s.cells) return;
  const int part = s.heads * s.width;
  GLOBAL const float *head = head_of(AT(x, group), s, i / s.cells);
  GLOBAL const float *query = head + (long)(i % s.cells) * 3 * part;
  GLOBAL double *own = AT(weights, group) + (long)i * s.cells;
  double largest = 0.0, sum = 0.0;
  for (int j = 0; j < s.cells; ++j) {
    own[j] = scale * dot_of(query, head + (long)j * 3 * part + part, s.width);
    if (j == 0 || (largest == largest && !(own[j] <= largest))) largest = own[j];
  }
  for (int j = 0; j < s.cells; ++j) {
    own[j] = exp_exactly(own[j] - largest);
    sum += own[j];
  }
  for (int j = 0; j < s.cells; ++j) own[j] /= sum;
}

// An item is a number of a query's result.
KERNEL void attention_values(OPERAND(const float, x), OPERAND(const double, weights),
                             OPERAND(float, y), const AttentionSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.batch * s.heads * s.cells * s.width) return;
  const int query = i / s.width, head = query / s.cells, part = s.heads * s.width;
  GLOBAL const float *values = head_of(AT(x, group), s, head) + 2 * part + i % s.width;
  GLOBAL const double *own = AT(weights, group) + (long)query * s.cells;
  double sum = 0.0;
  for (int j = 0; j < s.cells; ++j) sum += own[j] * (double)values[(long)j * 3 * part];
  const long cell = (long)(head / s.heads) * s.cells + query % s.cells;
  AT(y, group)[cell * part + head % s.heads * s.width + i % s.width] = (float)sum;
}

KERNEL void attention_slopes(OPERAND(const float, x), OPERAND(const float, dy),
                             OPERAND(const double, weights), OPERAND(double, slopes),
                             const AttentionSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.batch * s.heads * s.cells) return;
  const int part = s.heads * s.width, head = i / s.cells;
  GLOBAL const float *values = head_of(AT(x, group), s, head) + 2 * part;
  GLOBAL const float *derivative = results_of(AT(dy, group), s, head) + (long)(i % s.cells) * part;
  GLOBAL const double *own = AT(weights, group) + (long)i * s.cells;
  GLOBAL double *slope = AT(slopes, group) + (long)i * s.cells;
  double mean = 0.0;
  for (int j = 0; j < s.cells; ++j) {
    slope[j] = dot_of(derivative, values + (long)j * 3 * part, s.width);
    mean += own[j] * slope[j];
  }
  for (int j = 0; j < s.cells; ++j) slope[j] = own[j] * (slope[j] - mean);
}

// An item is a number of a cell's query, key and value.
KERNEL void attention_backward(OPERAND(const float, x), OPERAND(const float, dy),
                               OPERAND(const double, weights), OPERAND(const double, slopes),
                               OPERAND(float, dx), const AttentionSizes s, const double scale) {
  const int i = item(0), group = item(1);
  if (i >= s.batch * s.heads * s.cells * s.width) return;
  const int d = i % s.width, cell = i / s.width % s.cells, head = i / s.width / s.cells;
  const int part = s.heads * s.width;
  GLOBAL const float *from = head_of(AT(x, group), s, head) + d;
  GLOBAL const float *derivative = results_of(AT(dy, group), s, head) + d;
  GLOBAL const double *w = AT(weights, group) + (long)head * s.cells * s.cells;
  GLOBAL const double *slope = AT(slopes, group) + (long)head * s.cells * s.cells;
  double query = 0.0, key = 0.0, value = 0.0;
  for (int j = 0; j < s.cells; ++j) {
    const long row = (long)j * 3 * part;
    query += slope[(long)cell * s.cells + j] * (double)from[row + part];
    key += slope[(long)j * s.cells + cell] * (double)from[row];
    value += w[(long)j * s.cells + cell] * (double)derivative[(long)j * part];
  }
  GLOBAL float *to = AT(dx, group) +
                     ((long)(head / s.heads) * s.cells + cell) * 3 * part +
                     head % s.heads * s.width + d;
  to[0] = (float)(query * scale);
  to[part] = (float)(key * scale);
  to[2 * part] = (float)value;
}

// The row of a class; -1 when the number is that of none.
FUNCTION int row_of_class(float number, int classes) {
  if (!(number >= 0.0f && number < (float)classes)) return -1;
  return (float)(int)number == number ? (int)number : -1;
}
KERNEL void embedding_forward(OPERAND(const float, x), OPERAND(const float, rows), OPERAND(float, y),
                              const int batch, const int classes, const int units) {
  const int i = item(0), group = item(1);
  if (i >= batch * units) return;
  const int row = row_of_class(AT(x, group)[i / units], classes);
  AT(y, group)[i] =
      row < 0 ? float_of_bits(0x7fc00000u) : AT(rows, group)[(long)row * units + i % units];
}
KERNEL void embedding_backward(OPERAND(const float, x), OPERAND(const float, dy),
                               OPERAND(float, dkernel), const int batch, const int classes,
                               const int units) {
  const int i = item(0), group = item(1);
  if (i >= (long)classes * units) return;
  double sum = 0.0;
  for (int n = 0; n < batch; ++n) {
    if (row_of_class(AT(x, group)[n], classes) == i / units) {
      sum += (double)AT(dy, group)[(long)n * units + i % units];
    }
  }
  AT(dkernel, group)[i] = (float)sum;
}
