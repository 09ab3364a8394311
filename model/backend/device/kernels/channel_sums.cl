// Sums over rows, in double, one for each channel (cpu/channel_sums.h). Value i belongs to chain i
// modulo the period, which is a multiple of the channels, and chains are cut into parts.

#define CHAINS(s) ((s).period * (s).parts)

// An item of a block that makes totals: its channel, and the place of its chain among the
// channel's, which are a power of two.
typedef struct {
  int channel, place;
} ChainOfTotal;
FUNCTION ChainOfTotal chain_of_total(const ChannelSizes s) {
  const int places = s.period / s.channels, channels = BLOCK_ITEMS / places;
  ChainOfTotal chain;
  chain.channel = block(0) * channels + item_of_block(0) % channels;
  chain.place = item_of_block(0) / channels;
  return chain;
}
// The sum of a channel's chains, each part after part, for items whose place is 0. `channels` may
// be those of several samples. All items of a block call it, each time with other memory.
FUNCTION double total_of_channel(GLOBAL const double *sums, const ChannelSizes s,
                                 const ChainOfTotal chain, int channels, IN_LOCAL double *chains) {
  const int each = BLOCK_ITEMS / (s.period / s.channels);
  double total = 0.0;
  if (chain.channel < channels) {
    GLOBAL const double *from = sums + (long)(chain.channel / s.channels) * CHAINS(s) +
                                chain.place * s.channels + chain.channel % s.channels;
    UNROLLED_BY(8) for (int part = 0; part < s.parts; ++part) total += from[part * s.period];
  }
  chains[item_of_block(0)] = total;
  BARRIER;
  total = 0.0;
  if (chain.place == 0) {
    for (int i = item_of_block(0); i < each * (s.period / s.channels); i += each) total += chains[i];
  }
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
  UNROLLED_BY(8) for (int k = begin_of_part(s, chain); k < end; k += s.period) {
    sum += (double)values[k];
  }
  AT(sums, group)[i] = sum;
}

// [sample][channel]
KERNEL void channel_totals(OPERAND(const double, sums), OPERAND(float, totals),
                           const ChannelSizes s, const int samples) {
  LOCAL double chains[BLOCK_ITEMS];
  const int group = item(1), all = s.channels * samples;
  const ChainOfTotal chain = chain_of_total(s);
  const double total = total_of_channel(AT(sums, group), s, chain, all, chains);
  if (chain.place > 0 || chain.channel >= all) return;
  AT(totals, group)[chain.channel] = (float)total;
}
