// Sums over micro-batches (model/vector_sums.h). One item adds up one element of `count` vectors.

// Raises `largest` to the largest that an item of the block has seen.
FUNCTION void note_largest(IN_LOCAL const uint32 *seen, GLOBAL uint32 *largest) {
  if (item_of_block(0) != 0) return;
  uint32 most = 0;
  for (int i = 0; i < BLOCK_ITEMS; ++i) most = seen[i] > most ? seen[i] : most;
  if (most > 0) ATOMIC_MAX(largest, most);
}

// A value whose integer exceeds all limits is left out: `largest` tells of it.
KERNEL void add_exactly(OPERAND(const float, values), OPERAND(uint64, sums),
                        OPERAND(uint32, largest), const long size, const int count,
                        const double factor) {
  LOCAL uint32 seen[BLOCK_ITEMS];
  const int i = item(0);
  uint32 most = 0;
  if (i < size) {
    uint64 sum = AT(sums, 0)[i];
    for (int vector = 0; vector < count; ++vector) {
      const float value = AT(values, vector)[i];
      const uint32 magnitude = bits_of_float(value) & 0x7fffffffu;
      most = magnitude > most ? magnitude : most;
      const double scaled = (double)value * factor;
      if (fabs(scaled) <= 0x1p62) sum += (uint64)(long)rint(scaled);
    }
    AT(sums, 0)[i] = sum;
  }
  seen[item_of_block(0)] = most;
  BARRIER;
  note_largest(seen, AT(largest, 0));
}

KERNEL void add_floats(OPERAND(const float, values), OPERAND(float, sums), OPERAND(uint32, largest),
                       const long size, const int count) {
  LOCAL uint32 seen[BLOCK_ITEMS];
  const int i = item(0);
  uint32 most = 0;
  if (i < size) {
    float sum = AT(sums, 0)[i];
    for (int vector = 0; vector < count; ++vector) {
      const float value = AT(values, vector)[i];
      const uint32 magnitude = bits_of_float(value) & 0x7fffffffu;
      most = magnitude > most ? magnitude : most;
      sum += value;
    }
    AT(sums, 0)[i] = sum;
  }
  seen[item_of_block(0)] = most;
  BARRIER;
  note_largest(seen, AT(largest, 0));
}
