// Sums over micro-batches (model/vector_sums.h). One item adds up one element of `count` vectors.

// Raises `largest` to what an item has seen. It never falls, so most items only look.
FUNCTION void note_largest(uint32 seen, GLOBAL uint32 *largest) {
  if (seen > *(volatile GLOBAL uint32 *)largest) ATOMIC_MAX(largest, seen);
}

// A value whose integer exceeds all limits is left out: `largest` tells of it.
KERNEL void add_exactly(OPERAND(const float, values), OPERAND(uint64, sums),
                        OPERAND(uint32, largest), const long size, const int count,
                        const double factor) {
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
  note_largest(most, AT(largest, 0));
}

KERNEL void add_floats(OPERAND(const float, values), OPERAND(float, sums), OPERAND(uint32, largest),
                       const long size, const int count) {
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
  note_largest(most, AT(largest, 0));
}
