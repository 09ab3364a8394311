// Sums over rows, in double, one for each channel (cpu/channel_sums.h). Value i belongs to chain i
// modulo the period, which is a multiple of the channels, and chains are cut into parts.

#define CHAINS(s) ((s).period * (s).parts)

// An item of a block that makes totals: its channel, and which of the channel's chains it adds,
// whose number is a power of two. The channels of a block lie side by side.
typedef struct {
  int channel, chain;
  int channels_of_block;
} ItemOfTotal;
FUNCTION ItemOfTotal item_of_total(const ChannelSizes s) {
  ItemOfTotal own;
  own.channels_of_block = BLOCK_ITEMS / (s.period / s.channels);
  own.channel = block(0) * own.channels_of_block + item_of_block(0) % own.channels_of_block;
  own.chain = item_of_block(0) / own.channels_of_block;
  return own;
}
// The sum of a channel's chains, each part after part, for items of its first chain. `channels` may
// be those of several samples. All items of a block call it, each time with other memory.
FUNCTION double total_of_channel(GLOBAL const double *sums, const ChannelSizes s,
                                 const ItemOfTotal own, int channels, IN_LOCAL double *totals) {
  double total = 0.0;
  if (own.channel < channels) {
    GLOBAL const double *from = sums + (long)(own.channel / s.channels) * CHAINS(s) +
                                own.chain * s.channels + own.channel % s.channels;
    UNROLLED_BY(8) for (int part = 0; part < s.parts; ++part) total += from[part * s.period];
  }
  totals[item_of_block(0)] = total;
  BARRIER;
  total = 0.0;
  if (own.chain == 0) {
    for (int i = item_of_block(0); i < BLOCK_ITEMS; i += own.channels_of_block) total += totals[i];
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
  LOCAL double of_chains[BLOCK_ITEMS];
  const int group = item(1), all = s.channels * samples;
  const ItemOfTotal own = item_of_total(s);
  const double total = total_of_channel(AT(sums, group), s, own, all, of_chains);
  if (own.chain > 0 || own.channel >= all) return;
  AT(totals, group)[own.channel] = (float)total;
}
