// Sums over rows, in double, one for each channel (cpu/channel_sums.h). Value i belongs to chain i
// modulo the period, which is a multiple of the channels, and chains are cut into parts.

#define CHAINS(s) ((s).period * (s).parts)

// The chains of a channel, part after part.
FUNCTION double total_of_channel(GLOBAL const double *sums, const ChannelSizes s, int channel) {
  double total = 0.0;
  UNROLLED_BY(8) for (int i = channel; i < CHAINS(s); i += s.channels) total += sums[i];
  return total;
}
// The first value of a part of a chain, and the end of the part.
FUNCTION int begin_of_part(const ChannelSizes s, int chain) {
  return chain / s.period * s.part_rows * s.channels + chain % s.period;
}
FUNCTION int end_of_part(const ChannelSizes s, int chain) {
  const int end = (chain / s.period + 1) * s.part_rows;
  return (end < s.rows ? end : s.rows) * s.channels;
}

// [sample][part][place in the period]
KERNEL void channel_sums(OPERAND(const float, x), OPERAND(double, sums), const ChannelSizes s,
                         const int samples) {
  const int i = item(0), group = item(1);
  if (i >= CHAINS(s) * samples) return;
  const int chain = i % CHAINS(s);
  GLOBAL const float *values = AT(x, group) + (long)(i / CHAINS(s)) * s.rows * s.channels;
  const int end = end_of_part(s, chain);
  double sum = 0.0;
  UNROLLED_BY(4) for (int k = begin_of_part(s, chain); k < end; k += s.period) {
    sum += (double)values[k];
  }
  AT(sums, group)[i] = sum;
}

// [sample][channel]
KERNEL void channel_totals(OPERAND(const double, sums), OPERAND(float, totals),
                           const ChannelSizes s, const int samples) {
  const int i = item(0), group = item(1);
  if (i >= s.channels * samples) return;
  GLOBAL const double *all = AT(sums, group) + (long)(i / s.channels) * CHAINS(s);
  AT(totals, group)[i] = (float)total_of_channel(all, s, i % s.channels);
}
