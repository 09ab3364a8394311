// Batch normalisation (cpu/batch_norm.cpp, cpu/channel_vectors.h). Value i belongs to chain i
// modulo the period, which is a multiple of the channels. `kernels: fastest` cuts each chain into
// parts. The chains of a channel, part after part, are then added.

FUNCTION double total_of_channel(GLOBAL const double *sums, const BatchNormSizes s, int channel) {
  double total = 0.0;
  for (int i = channel; i < s.period * s.parts; i += s.channels) total += sums[i];
  return total;
}
// The first value of a part of a chain, and the end of the part.
FUNCTION long begin_of_part(const BatchNormSizes s, long item) {
  return item / s.period * s.part_rows * s.channels + item % s.period;
}
FUNCTION long end_of_part(const BatchNormSizes s, long item) {
  const long end = (item / s.period + 1) * s.part_rows;
  return (end < s.rows ? end : s.rows) * s.channels;
}

// [sums, squares of the deviations][part][period]; means[channel] behind them.
KERNEL void batch_norm_sums(OPERAND(const float, x), OPERAND(double, sums),
                            const BatchNormSizes s) {
  const long place = item(0), group = item(1);
  if (place >= s.period * s.parts) return;
  GLOBAL const float *values = AT(x, group);
  double sum = 0.0;
  for (long i = begin_of_part(s, place); i < end_of_part(s, place); i += s.period) {
    sum += (double)values[i];
  }
  AT(sums, group)[place] = sum;
}

KERNEL void batch_norm_means(OPERAND(double, sums), const BatchNormSizes s) {
  const long channel = item(0), group = item(1);
  if (channel >= s.channels) return;
  GLOBAL double *all = AT(sums, group);
  const double rows = (double)(s.rows > 1 ? s.rows : 1);
  all[2 * s.period * s.parts + channel] = total_of_channel(all, s, (int)channel) / rows;
}

KERNEL void batch_norm_squares(OPERAND(const float, x), OPERAND(double, sums),
                               const BatchNormSizes s) {
  const long place = item(0), group = item(1);
  if (place >= s.period * s.parts) return;
  GLOBAL const float *values = AT(x, group);
  GLOBAL double *all = AT(sums, group);
  const double mean = all[2 * s.period * s.parts + place % s.channels];
  double sum = 0.0;
  for (long i = begin_of_part(s, place); i < end_of_part(s, place); i += s.period) {
    const double deviation = (double)values[i] - mean;
    sum = fma(deviation, deviation, sum);
  }
  all[s.period * s.parts + place] = sum;
}

KERNEL void batch_norm_statistics(OPERAND(const double, sums), OPERAND(float, mean),
                                  OPERAND(float, inverse_deviation), OPERAND(float, batch_mean),
                                  OPERAND(float, batch_variance), const BatchNormSizes s) {
  const long channel = item(0), group = item(1);
  if (channel >= s.channels) return;
  GLOBAL const double *all = AT(sums, group);
  const double rows = (double)(s.rows > 1 ? s.rows : 1);
  const double squares = total_of_channel(all + s.period * s.parts, s, (int)channel);
  const float rounded = (float)all[2 * s.period * s.parts + channel];
  AT(mean, group)[channel] = rounded;
  AT(batch_mean, group)[channel] = rounded;
  AT(inverse_deviation, group)[channel] = (float)(1.0 / sqrt(squares / rows + s.epsilon));
  AT(batch_variance, group)[channel] = (float)(squares / (rows > 2.0 ? rows - 1.0 : 1.0));
}

KERNEL void batch_norm_normalise(OPERAND(const float, x), OPERAND(const float, gamma_),
                                 OPERAND(const float, beta), OPERAND(float, y),
                                 OPERAND(const float, mean), OPERAND(const float, deviation),
                                 const BatchNormSizes s, const int training) {
  const long i = item(0), group = item(1);
  if (i >= (long)s.rows * s.channels) return;
  const int c = (int)(i % s.channels);
  // In training the inverse deviation of the batch, in inference the moving variance.
  float inverse = AT(deviation, group)[c];
  if (!training) inverse = (float)(1.0 / sqrt((double)inverse + s.epsilon));
  const float scale = inverse * AT(gamma_, group)[c];
  AT(y, group)[i] = fma(AT(x, group)[i] - AT(mean, group)[c], scale, AT(beta, group)[c]);
}

// [sums of dy, sums of dy x^][part][period]
KERNEL void batch_norm_products(OPERAND(const float, x), OPERAND(const float, dy),
                                OPERAND(const float, mean), OPERAND(const float, deviation),
                                OPERAND(double, sums), const BatchNormSizes s) {
  const long place = item(0), group = item(1);
  if (place >= s.period * s.parts) return;
  const float shift = AT(mean, group)[place % s.channels];
  const float scale = AT(deviation, group)[place % s.channels];
  GLOBAL const float *values = AT(x, group);
  GLOBAL const float *derivatives = AT(dy, group);
  double sum = 0.0, product = 0.0;
  for (long i = begin_of_part(s, place); i < end_of_part(s, place); i += s.period) {
    const float normalised = (values[i] - shift) * scale;
    sum += (double)derivatives[i];
    product = fma((double)derivatives[i], (double)normalised, product);
  }
  AT(sums, group)[place] = sum;
  AT(sums, group)[s.period * s.parts + place] = product;
}

// totals: [of dy, of dy x^][channel]. dgamma and dbeta are null where `wanted` is 0.
KERNEL void batch_norm_totals(OPERAND(const double, sums), OPERAND(double, totals),
                              OPERAND(float, dgamma), OPERAND(float, dbeta),
                              const BatchNormSizes s, const int wanted) {
  const long channel = item(0), group = item(1);
  if (channel >= s.channels) return;
  GLOBAL const double *all = AT(sums, group);
  const double sum = total_of_channel(all, s, (int)channel);
  const double product = total_of_channel(all + s.period * s.parts, s, (int)channel);
  AT(totals, group)[channel] = sum;
  AT(totals, group)[s.channels + channel] = product;
  if (!wanted) return;
  AT(dgamma, group)[channel] = (float)product;
  AT(dbeta, group)[channel] = (float)sum;
}

KERNEL void batch_norm_backward(OPERAND(const float, x), OPERAND(const float, dy),
                                OPERAND(const float, gamma_), OPERAND(const float, mean),
                                OPERAND(const float, deviation), OPERAND(const double, totals),
                                OPERAND(float, dx), const BatchNormSizes s) {
  const long i = item(0), group = item(1);
  if (i >= (long)s.rows * s.channels) return;
  const int c = (int)(i % s.channels);
  const double rows = (double)(s.rows > 1 ? s.rows : 1);
  const float scale = AT(deviation, group)[c];
  const float factor = AT(gamma_, group)[c] * scale;
  const float mean_of_dy = (float)(AT(totals, group)[c] / rows);
  const float slope = (float)(AT(totals, group)[s.channels + c] / rows);
  const float normalised = (AT(x, group)[i] - AT(mean, group)[c]) * scale;
  const float centred = fma(-normalised, slope, AT(dy, group)[i] - mean_of_dy);
  AT(dx, group)[i] = factor * centred;
}
