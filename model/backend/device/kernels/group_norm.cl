// Norms of single samples (reference/group_norm.cpp). An item has a channel of a sample, or a group
// of its channels, or an element.
FUNCTION double sum_of_group(GLOBAL const double *of_channels, const GroupNormSizes s, int i) {
  const int of_group = s.channels / s.groups;
  GLOBAL const double *from =
      of_channels + (long)(i / s.groups) * s.channels + i % s.groups * of_group;
  double total = 0.0;
  for (int c = 0; c < of_group; ++c) total += from[c];
  return total;
}
FUNCTION double values_of_group(const GroupNormSizes s) {
  return (double)((long)s.rows * (s.channels / s.groups));
}
// The group of a channel of a sample.
FUNCTION int group_of(const GroupNormSizes s, int sample, int channel) {
  return sample * s.groups + channel / (s.channels / s.groups);
}

KERNEL void group_norm_sums(OPERAND(const float, x), OPERAND(double, sums),
                            const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.channels) return;
  GLOBAL const float *values =
      AT(x, group) + (long)(i / s.channels) * s.rows * s.channels + i % s.channels;
  double sum = 0.0;
  for (int r = 0; r < s.rows; ++r) sum += (double)values[(long)r * s.channels];
  AT(sums, group)[i] = sum;
}
KERNEL void group_norm_means(OPERAND(const double, sums), OPERAND(double, means),
                             OPERAND(float, mean), const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.groups) return;
  const double own = sum_of_group(AT(sums, group), s, i) / values_of_group(s);
  AT(means, group)[i] = own;
  AT(mean, group)[i] = (float)own;
}
KERNEL void group_norm_squares(OPERAND(const float, x), OPERAND(double, sums),
                               OPERAND(const double, means), const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.channels) return;
  const int sample = i / s.channels, channel = i % s.channels;
  const double mean = AT(means, group)[group_of(s, sample, channel)];
  GLOBAL const float *values = AT(x, group) + (long)sample * s.rows * s.channels + channel;
  double squares = 0.0;
  for (int r = 0; r < s.rows; ++r) {
    const double deviation = (double)values[(long)r * s.channels] - mean;
    squares += deviation * deviation;
  }
  AT(sums, group)[i] = squares;
}
KERNEL void group_norm_deviations(OPERAND(const double, sums), OPERAND(float, inverse_deviation),
                                  const GroupNormSizes s, const double epsilon) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.groups) return;
  const double variance = sum_of_group(AT(sums, group), s, i) / values_of_group(s);
  AT(inverse_deviation, group)[i] = (float)(1.0 / sqrt(variance + epsilon));
}
KERNEL void group_norm_normalise(OPERAND(const float, x), OPERAND(const float, gamma),
                                 OPERAND(const float, beta), OPERAND(const float, mean),
                                 OPERAND(const float, inverse_deviation), OPERAND(float, y),
                                 const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= (long)s.samples * s.rows * s.channels) return;
  const int channel = i % s.channels;
  const int own = group_of(s, i / s.channels / s.rows, channel);
  AT(y, group)[i] = (AT(x, group)[i] - AT(mean, group)[own]) *
                        (AT(inverse_deviation, group)[own] * AT(gamma, group)[channel]) +
                    AT(beta, group)[channel];
}

// [sample][channel]: sums of dy, then of dy x^.
KERNEL void group_norm_products(OPERAND(const float, x), OPERAND(const float, dy),
                                OPERAND(const float, mean),
                                OPERAND(const float, inverse_deviation), OPERAND(double, sums),
                                const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.channels) return;
  const int sample = i / s.channels, channel = i % s.channels;
  const int own = group_of(s, sample, channel);
  const float shift = AT(mean, group)[own], scale = AT(inverse_deviation, group)[own];
  const long first = (long)sample * s.rows * s.channels + channel;
  double sum = 0.0, products = 0.0;
  for (int r = 0; r < s.rows; ++r) {
    const long at = first + (long)r * s.channels;
    const double derivative = (double)AT(dy, group)[at];
    const float normalised = (AT(x, group)[at] - shift) * scale;
    sum += derivative;
    products += derivative * (double)normalised;
  }
  AT(sums, group)[i] = sum;
  AT(sums, group)[s.samples * s.channels + i] = products;
}
KERNEL void group_norm_totals(OPERAND(const double, sums), OPERAND(float, dgamma),
                              OPERAND(float, dbeta), const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.channels) return;
  double sum = 0.0, products = 0.0;
  for (int sample = 0; sample < s.samples; ++sample) {
    sum += AT(sums, group)[sample * s.channels + i];
    products += AT(sums, group)[(s.samples + sample) * s.channels + i];
  }
  AT(dgamma, group)[i] = (float)products;
  AT(dbeta, group)[i] = (float)sum;
}
KERNEL void group_norm_mean_products(OPERAND(const float, gamma), OPERAND(const double, sums),
                                     OPERAND(float, means), const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.groups) return;
  const int of_group = s.channels / s.groups, first = i % s.groups * of_group;
  const int sample = i / s.groups;
  double sum = 0.0, products = 0.0;
  for (int c = first; c < first + of_group; ++c) {
    const double factor = (double)AT(gamma, group)[c];
    sum += factor * AT(sums, group)[sample * s.channels + c];
    products += factor * AT(sums, group)[(s.samples + sample) * s.channels + c];
  }
  AT(means, group)[i] = (float)(sum / values_of_group(s));
  AT(means, group)[s.samples * s.groups + i] = (float)(products / values_of_group(s));
}
KERNEL void group_norm_backward(OPERAND(const float, x), OPERAND(const float, dy),
                                OPERAND(const float, gamma), OPERAND(const float, mean),
                                OPERAND(const float, inverse_deviation),
                                OPERAND(const float, means), OPERAND(float, dx),
                                const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= (long)s.samples * s.rows * s.channels) return;
  const int channel = i % s.channels;
  const int own = group_of(s, i / s.channels / s.rows, channel);
  const float scale = AT(inverse_deviation, group)[own];
  const float normalised = (AT(x, group)[i] - AT(mean, group)[own]) * scale;
  const float centred = AT(gamma, group)[channel] * AT(dy, group)[i] - AT(means, group)[own] -
                        normalised * AT(means, group)[s.samples * s.groups + own];
  AT(dx, group)[i] = scale * centred;
}
