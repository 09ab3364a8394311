// Batch normalisation (cpu/batch_norm.cpp). Its first sums are channel_sums().

// sums: [sums, squares of the deviations][part][place in the period]; means[channel] behind them.
KERNEL void batch_norm_means(OPERAND(double, sums), const ChannelSizes s) {
  LOCAL double of_chains[BLOCK_ITEMS];
  GLOBAL double *all = AT(sums, item(1));
  const ItemOfTotal own = item_of_total(s);
  const double total = total_of_channel(all, s, own, s.channels, of_chains);
  if (own.chain > 0 || own.channel >= s.channels) return;
  const double rows = (double)(s.rows > 1 ? s.rows : 1);
  all[2 * CHAINS(s) + own.channel] = total / rows;
}

KERNEL void batch_norm_squares(OPERAND(const float, x), OPERAND(double, sums),
                               const ChannelSizes s) {
  const int place = item(0), group = item(1);
  if (place >= CHAINS(s)) return;
  GLOBAL const float *values = AT(x, group);
  GLOBAL double *all = AT(sums, group);
  const double mean = all[2 * CHAINS(s) + place % s.channels];
  const int end = end_of_part(s, place);
  double sum = 0.0;
  UNROLLED_BY(8) for (int i = begin_of_part(s, place); i < end; i += s.period) {
    const double deviation = (double)values[i] - mean;
    sum = fma(deviation, deviation, sum);
  }
  all[CHAINS(s) + place] = sum;
}

KERNEL void batch_norm_statistics(OPERAND(const double, sums), OPERAND(float, mean),
                                  OPERAND(float, inverse_deviation), OPERAND(float, batch_mean),
                                  OPERAND(float, batch_variance), const ChannelSizes s,
                                  const double epsilon) {
  LOCAL double of_chains[BLOCK_ITEMS];
  const int group = item(1);
  GLOBAL const double *all = AT(sums, group);
  const ItemOfTotal own = item_of_total(s);
  const double squares = total_of_channel(all + CHAINS(s), s, own, s.channels, of_chains);
  const int channel = own.channel;
  if (own.chain > 0 || channel >= s.channels) return;
  const double rows = (double)(s.rows > 1 ? s.rows : 1);
  const float rounded = (float)all[2 * CHAINS(s) + channel];
  AT(mean, group)[channel] = rounded;
  AT(batch_mean, group)[channel] = rounded;
  AT(inverse_deviation, group)[channel] = (float)(1.0 / sqrt(squares / rows + epsilon));
  AT(batch_variance, group)[channel] = (float)(squares / (rows > 2.0 ? rows - 1.0 : 1.0));
}

// Inverse deviations of the moving variances.
KERNEL void batch_norm_inverse(OPERAND(const float, variance), OPERAND(float, deviation),
                               const int channels, const double epsilon) {
  const int c = item(0);
  if (c >= channels) return;
  AT(deviation, 0)[c] = (float)(1.0 / sqrt((double)AT(variance, 0)[c] + epsilon));
}

KERNEL void batch_norm_normalise(OPERAND(const float, x), OPERAND(const float, gamma_),
                                 OPERAND(const float, beta), OPERAND(float, y),
                                 OPERAND(const float, mean), OPERAND(const float, deviation),
                                 const ChannelSizes s) {
  const int group = item(1), first = 4 * item(0);
  float values[4];
  load_neighbours(values, AT(x, group), first, s.rows * s.channels);
  int c = first % s.channels;
  UNROLLED for (int i = 0; i < 4; ++i) {
    const float scale = AT(deviation, group)[c] * AT(gamma_, group)[c];
    values[i] = fma(values[i] - AT(mean, group)[c], scale, AT(beta, group)[c]);
    c = c + 1 < s.channels ? c + 1 : 0;
  }
  store_neighbours(AT(y, group), values, first, s.rows * s.channels);
}

// [sums of dy, sums of dy x^][part][period]
KERNEL void batch_norm_products(OPERAND(const float, x), OPERAND(const float, dy),
                                OPERAND(const float, mean), OPERAND(const float, deviation),
                                OPERAND(double, sums), const ChannelSizes s) {
  const int place = item(0), group = item(1);
  if (place >= CHAINS(s)) return;
  const float shift = AT(mean, group)[place % s.channels];
  const float scale = AT(deviation, group)[place % s.channels];
  GLOBAL const float *values = AT(x, group);
  GLOBAL const float *derivatives = AT(dy, group);
  const int end = end_of_part(s, place);
  double sum = 0.0, product = 0.0;
  UNROLLED_BY(8) for (int i = begin_of_part(s, place); i < end; i += s.period) {
    const float normalised = (values[i] - shift) * scale;
    sum += (double)derivatives[i];
    product = fma((double)derivatives[i], (double)normalised, product);
  }
  AT(sums, group)[place] = sum;
  AT(sums, group)[CHAINS(s) + place] = product;
}

// means: [of dy, of dy x^][channel]. dgamma and dbeta are null where `wanted` is 0.
KERNEL void batch_norm_totals(OPERAND(const double, sums), OPERAND(float, means),
                              OPERAND(float, dgamma), OPERAND(float, dbeta),
                              const ChannelSizes s, const int wanted) {
  LOCAL double of_chains[2][BLOCK_ITEMS];
  const int group = item(1);
  GLOBAL const double *all = AT(sums, group);
  const ItemOfTotal own = item_of_total(s);
  const double sum = total_of_channel(all, s, own, s.channels, of_chains[0]);
  const double product = total_of_channel(all + CHAINS(s), s, own, s.channels, of_chains[1]);
  const int channel = own.channel;
  if (own.chain > 0 || channel >= s.channels) return;
  const double rows = (double)(s.rows > 1 ? s.rows : 1);
  AT(means, group)[channel] = (float)(sum / rows);
  AT(means, group)[s.channels + channel] = (float)(product / rows);
  if (!wanted) return;
  AT(dgamma, group)[channel] = (float)product;
  AT(dbeta, group)[channel] = (float)sum;
}

KERNEL void batch_norm_backward(OPERAND(const float, x), OPERAND(const float, dy),
                                OPERAND(const float, gamma_), OPERAND(const float, mean),
                                OPERAND(const float, deviation), OPERAND(const float, means),
                                OPERAND(float, dx), const ChannelSizes s) {
  const int group = item(1), first = 4 * item(0);
  float values[4], derivatives[4];
  load_neighbours(values, AT(x, group), first, s.rows * s.channels);
  load_neighbours(derivatives, AT(dy, group), first, s.rows * s.channels);
  int c = first % s.channels;
  UNROLLED for (int i = 0; i < 4; ++i) {
    const float scale = AT(deviation, group)[c];
    const float factor = AT(gamma_, group)[c] * scale;
    const float slope = AT(means, group)[s.channels + c];
    const float normalised = (values[i] - AT(mean, group)[c]) * scale;
    const float centred = fma(-normalised, slope, derivatives[i] - AT(means, group)[c]);
    values[i] = factor * centred;
    c = c + 1 < s.channels ? c + 1 : 0;
  }
  store_neighbours(AT(dx, group), values, first, s.rows * s.channels);
}
