// Convolutions of `kernels: fastest`: products of small matrices, 16 x 8 words by 8 words x 8,
// which tensor cores make where a card has them. A word is two numbers of bfloat16, or one of tf32
// (a float of eleven significant bits). The bits do not depend on the group, nor on which block
// ends first. A warp is 32 neighbouring items of a block. The host says where the program has
// them: TENSOR_CORES, a generation, or PLAYED_TENSOR_CORES.

#if defined(TENSOR_CORES) || defined(PLAYED_TENSOR_CORES)

#ifdef TENSOR_CORES
#define EXCHANGE_WORDS 1
#define UNROLLED_TILES UNROLLED
#else
#define EXCHANGE_WORDS (TENSOR_WARPS * 32 * 6)
#define UNROLLED_TILES
#endif

FUNCTION uint32 tensor_float(float value) {
  const uint32 bits = bits_of_float(value);
  return value != value ? bits | 0x400000u : (bits + 0x1000u) & 0xffffe000u;
}

// Two neighbours as one word, or the first one alone.
FUNCTION uint32 tensor_word(float first, float second, const int pairs) {
  if (!pairs) return tensor_float(first);
#ifdef TENSOR_CORES
  uint32 word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
#else
  return bits_of_float(bfloat16_of(first)) >> 16 | bits_of_float(bfloat16_of(second));
#endif
}

// Adds a product to the sums. Item 4 g + t of a warp has words (row g, word t), (g + 8, t), (g, t
// + 4) and (g + 8, t + 4) of the left factor, words (t, column g) and (t + 4, g) of the right one,
// and sums (g, 2 t), (g, 2 t + 1), (g + 8, 2 t) and (g + 8, 2 t + 1). Every item of a block calls
// it equally often.
FUNCTION void add_product(float *sum, const uint32 *left, const uint32 *right, const int pairs,
                          IN_LOCAL uint32 *exchange) {
#ifdef TENSOR_CORES
  if (pairs) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  }
#else
  // The same in ordinary arithmetic: one chain for each sum.
  const int lane = item_of_block(0) % 32;
  IN_LOCAL uint32 *warp = exchange + item_of_block(0) / 32 * 32 * 6;
  for (int i = 0; i < 4; ++i) warp[lane * 6 + i] = left[i];
  for (int i = 0; i < 2; ++i) warp[lane * 6 + 4 + i] = right[i];
  BARRIER;
  for (int i = 0; i < 4; ++i) {
    const int row = i / 2, column = lane % 4 * 2 + i % 2;
    for (int word = 0; word < 8; ++word) {
      const uint32 a = warp[(lane / 4 * 4 + word % 4) * 6 + word / 4 * 2 + row];
      const uint32 b = warp[(column * 4 + word % 4) * 6 + 4 + word / 4];
      if (pairs) {
        sum[i] = fma(float_of_bits(a << 16), float_of_bits(b << 16), sum[i]);
        sum[i] = fma(float_of_bits(a & 0xffff0000u), float_of_bits(b & 0xffff0000u), sum[i]);
      } else {
        sum[i] = fma(float_of_bits(a), float_of_bits(b), sum[i]);
      }
    }
  }
  BARRIER;
#endif
}

// Copies to a block's tile, which its items share. A mark tells when so many of them are done; its
// parity changes with each round. Since sm_90 one item asks for a whole tile.
#if defined(TENSOR_CORES) && TENSOR_CORES >= 90
#define BULK_COPIES
#endif

FUNCTION void prepare_marks(IN_LOCAL uint64 *marks, int count, int copies) {
#ifdef BULK_COPIES
  if (item_of_block(0) == 0) {
    for (int i = 0; i < count; ++i) {
      asm volatile("mbarrier.init.shared.b64 [%0], %1;"
                   :
                   : "r"(LOCAL_ADDRESS(marks + i)), "r"(copies)
                   : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
  }
  BARRIER;
#endif
}
FUNCTION void copy_tile(IN_LOCAL uint32 *to, GLOBAL const uint32 *from, int words,
                        IN_LOCAL uint64 *mark) {
#ifdef BULK_COPIES
  if (item_of_block(0) == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :
                 : "r"(LOCAL_ADDRESS(mark)), "r"(words * 4)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :
        : "r"(LOCAL_ADDRESS(to)), "l"(from), "r"(words * 4), "r"(LOCAL_ADDRESS(mark))
        : "memory");
  }
#else
  for (int i = item_of_block(0) * 4; i < words; i += TENSOR_WARPS * 32 * 4) {
#ifdef TENSOR_CORES
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(LOCAL_ADDRESS(to + i)), "l"(from + i)
                 : "memory");
#else
    *(IN_LOCAL uint4 *)(to + i) = *(GLOBAL const uint4 *)(from + i);
#endif
  }
#ifdef TENSOR_CORES
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
#endif
}
// Waits for the copies of a mark; others that began behind them may be under way.
FUNCTION void wait_for_copies(IN_LOCAL uint64 *mark, int parity, const int others) {
#ifdef BULK_COPIES
  uint32 done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(LOCAL_ADDRESS(mark)), "r"(parity)
        : "memory");
  }
#else
#ifdef TENSOR_CORES
  if (others) {
    asm volatile("cp.async.wait_group 1;" : : : "memory");
  } else {
    asm volatile("cp.async.wait_group 0;" : : : "memory");
  }
#endif
  BARRIER;
#endif
}

// ---- Images: y = activation(conv(x, kernel) + bias)

// Four words of one cell, from its channel `first`.
FUNCTION uint4 tensor_four(GLOBAL const float *cell, int first, const ConvolutionSizes s) {
  const int channels = s.pairs ? 8 : 4;
  float value[8];
  UNROLLED for (int i = 0; i < 8; i += 2) {
    value[i] = value[i + 1] = 0.0f;
    if (i >= channels || first + i >= s.in_channels) continue;
    if (s.in_channels % 2 == 0) {
      const float2 two = LOAD_TWO(cell + first + i);
      value[i] = two.x;
      value[i + 1] = two.y;
    } else {
      value[i] = cell[first + i];
      if (first + i + 1 < s.in_channels) value[i + 1] = cell[first + i + 1];
    }
  }
  uint4 words;
  if (s.pairs) {
    words.x = tensor_word(value[0], value[1], 1);
    words.y = tensor_word(value[2], value[3], 1);
    words.z = tensor_word(value[4], value[5], 1);
    words.w = tensor_word(value[6], value[7], 1);
  } else {
    words.x = tensor_float(value[0]);
    words.y = tensor_float(value[1]);
    words.z = tensor_float(value[2]);
    words.w = tensor_float(value[3]);
  }
  return words;
}

// [sample][x plane][chunk of channels][block along z][row][cell][word]: the image, with zeros
// around it. Rows of a block lie one behind the other, so that a tile of them is one piece. A block
// makes a part of a plane's block along z; an item IMAGE_PARTS times four words where
// cells lie on 16 bytes, and else one.
KERNEL void tensor_image(OPERAND(const float, x), OPERAND(uint32, image), const ConvolutionSizes s,
                         const TensorImage t) {
  const int group = item(1), in_fours = t.cell % 4 == 0, at_once = in_fours ? 4 : 1;
  const int of_row = t.row / at_once, of_plane = t.rows * of_row;
  const int blocks = (of_plane + IMAGE_PARTS * BLOCK_ITEMS - 1) / (IMAGE_PARTS * BLOCK_ITEMS);
  const int begin = block(0) % blocks * IMAGE_PARTS * BLOCK_ITEMS + item_of_block(0);
  int rest = block(0) / blocks;
  GLOBAL uint32 *to = AT(image, group) + (long)rest * t.rows * t.row;
  const int first_z = rest % t.z_blocks * t.block_cells - s.before[2];
  rest /= t.z_blocks;
  const int in_word = s.pairs ? 2 : 1, first_channel = rest % t.chunks * t.cell * in_word;
  rest /= t.chunks;
  GLOBAL const float *from = AT(x, group) + (long)rest * s.in[1] * s.in[2] * s.in_channels;
  UNROLLED for (int part = 0; part < IMAGE_PARTS; ++part) {
    const int own = begin + part * BLOCK_ITEMS, row = own / of_row;
    if (own >= of_plane) continue;
    const int place = (own - row * of_row) * at_once;
    const int of_cell = in_fours ? place >> (t.cell == 4 ? 2 : 3) : place / t.cell;
    const int y = row - s.before[1], z = first_z + of_cell;
    const int channel = first_channel + (place - of_cell * t.cell) * in_word;
    const int inside = y >= 0 && y < s.in[1] && z >= 0 && z < s.in[2] && channel < s.in_channels;
    GLOBAL const float *cell = from + (y * s.in[2] + z) * s.in_channels;
    if (in_fours) {
      uint4 words;
      words.x = words.y = words.z = words.w = 0u;
      if (inside) words = tensor_four(cell, channel, s);
      *(GLOBAL uint4 *)(to + own * 4) = words;
      continue;
    }
    const int has_second = inside && s.pairs && channel + 1 < s.in_channels;
    to[own] = tensor_word(inside ? cell[channel] : 0.0f, has_second ? cell[channel + 1] : 0.0f,
                          s.pairs);
  }
}

// [block of outputs][kx][chunk][ky][step along (kz, word)][item of a warp][2]: right factors,
// zeros where there is no tap, channel or output.
KERNEL void tensor_weights(OPERAND(const float, kernel_), OPERAND(uint32, weights),
                           const ConvolutionSizes s, const TensorImage t) {
  int rest = item(0) / 64;
  const int lane = item(0) / 2 % 32;
  const int word = (rest % t.steps) * 8 + lane % 4 + item(0) % 2 * 4;
  rest /= t.steps;
  const int ky = rest % t.taps_y;
  rest /= t.taps_y;
  const int in_word = s.pairs ? 2 : 1;
  const int channel = ((rest % t.chunks) * t.cell + word % t.cell) * in_word;
  rest /= t.chunks;
  const int kx = rest % s.taps[0];
  const int output = (rest / s.taps[0]) * 8 + lane / 4, kz = word / t.cell;
  if (output >= t.output_blocks * 8) return;
  const int inside = ky < s.taps[1] && kz < s.taps[2] && channel < s.in_channels &&
                     output < s.out_channels;
  const long tap = ((long)kx * s.taps[1] + ky) * s.taps[2] + kz;
  GLOBAL const float *from =
      AT(kernel_, 0) + (tap * s.in_channels + channel) * s.out_channels + output;
  const float first = inside ? from[0] : 0.0f;
  const float second =
      inside && s.pairs && channel + 1 < s.in_channels ? from[s.out_channels] : 0.0f;
  AT(weights, 0)[item(0)] = tensor_word(first, second, s.pairs);
}

// Sixteen cells along z of one row, as a left factor: cells overlap, as the taps of neighbours do.
// Where cells lie on 16 bytes, items load rows of four words for each other.
FUNCTION void load_cells(uint32 *left, IN_LOCAL const uint32 *row, int cell, const int in_fours,
                         int lane) {
#ifdef TENSOR_CORES
  if (in_fours) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(left[0]), "=r"(left[1]), "=r"(left[2]), "=r"(left[3])
                 : "r"(LOCAL_ADDRESS(row + lane % 16 * cell + lane / 16 * 4))
                 : "memory");
    return;
  }
#endif
  IN_LOCAL const uint32 *from = row + lane / 4 * cell + lane % 4;
  left[0] = from[0];
  left[1] = from[8 * cell];
  left[2] = from[4];
  left[3] = from[8 * cell + 4];
}

// Adds the products of a plane's tile: rows under the taps along y, a window after the other, in
// steps of eight words along z. Each row is loaded once, for the outputs of all rows that it is
// under a tap of, so that neighbouring products belong to different sums and need not wait.
FUNCTION void multiply_plane(float sum[TENSOR_ROWS][4], IN_LOCAL const uint32 *tile,
                             GLOBAL const uint2 *weights, const TensorImage t, const int pairs,
                             const int window, const int in_fours, IN_LOCAL uint32 *exchange) {
  const int lane = item_of_block(0) % 32;
  for (int ky = 0; ky < t.taps_y; ky += window) {
    for (int step = 0; step < t.steps; ++step) {
      uint32 right[3][2], left[2][4];
      for (int j = 0; j < window; ++j) {
        const uint2 words = weights[((ky + j) * t.steps + step) * 32];
        right[j][0] = words.x;
        right[j][1] = words.y;
      }
      IN_LOCAL const uint32 *row = tile + ky * t.row + step * 8;
      load_cells(left[0], row, t.cell, in_fours, lane);
      UNROLLED_TILES for (int r = 0; r < TENSOR_ROWS + window - 1; ++r) {
        row += t.row;
        if (r < TENSOR_ROWS + window - 2) {
          load_cells(left[(r + 1) % 2], row, t.cell, in_fours, lane);
        }
        for (int j = 0; j < window; ++j) {
          if (r < j || r - j >= TENSOR_ROWS) continue;
          add_product(sum[r - j], left[r % 2], right[j], pairs, exchange);
        }
      }
    }
  }
}

// A block makes eight outputs of some rows and cells, each of its warps those of TENSOR_ROWS rows
// of 16 cells. A left factor serves the rows of outputs that it is under one of `window` taps of:
// 2 or 3.
FUNCTION void tensor_multiply(GLOBAL const uint32 *image, GLOBAL const uint32 *weights,
                              GLOBAL const float *bias, GLOBAL float *y, const ConvolutionSizes s,
                              const TensorImage t, const int pairs, const int window,
                              IN_LOCAL uint32 *tile, IN_LOCAL uint64 *marks,
                              IN_LOCAL uint32 *exchange) {
  const int lane = item_of_block(0) % 32, warp = item_of_block(0) / 32;
  int rest = block(0);
  const int outputs = rest % t.output_blocks;
  rest /= t.output_blocks;
  const int z_block = rest % t.z_blocks;
  rest /= t.z_blocks;
  const int row_block = rest % t.row_blocks;
  rest /= t.row_blocks;
  const int ox = rest % s.out[0];
  const long n = rest / s.out[0];
  const int first_row = warp / t.warps_z * TENSOR_ROWS, first_z = warp % t.warps_z * 16;
  float sum[TENSOR_ROWS][4];
  UNROLLED_TILES for (int o = 0; o < TENSOR_ROWS; ++o) {
    for (int i = 0; i < 4; ++i) sum[o][i] = 0.0f;
  }
  // Taps outside the image in x are left out.
  const int first_x = ox - s.before[0];
  const int begin = first_x < 0 ? -first_x : 0;
  const int end = s.in[0] - first_x < s.taps[0] ? s.in[0] - first_x : s.taps[0];
  // The planes under the taps, chunk by chunk; the next one is copied while one is multiplied.
  const int planes = (end - begin) * t.chunks, words = t.tile_rows * t.row;
  const long plane_words = (long)t.z_blocks * t.rows * t.row;
  GLOBAL const uint32 *plane = image + (n * s.in[0] + first_x + begin) * t.chunks * plane_words +
                               ((long)z_block * t.rows + row_block * t.block_rows) * t.row;
  const int weights_of_plane = t.taps_y * t.steps * 32;
  GLOBAL const uint2 *right_at = (GLOBAL const uint2 *)weights + lane +
                                 ((long)outputs * s.taps[0] + begin) * t.chunks * weights_of_plane;
  const int own = first_row * t.row + first_z * t.cell;
  prepare_marks(marks, 2, 1);
  if (planes > 0) copy_tile(tile, plane, words, marks);
  for (int i = 0; i < planes; ++i, right_at += weights_of_plane) {
    plane += plane_words;
    if (i + 1 < planes) {
      copy_tile(tile + (i + 1) % 2 * (TENSOR_WORDS / 2), plane, words, marks + (i + 1) % 2);
    }
    wait_for_copies(marks + i % 2, i / 2 % 2, i + 1 < planes);
    IN_LOCAL const uint32 *at = tile + i % 2 * (TENSOR_WORDS / 2) + own;
    if (t.cell % 4 == 0) {
      multiply_plane(sum, at, right_at, t, pairs, window, 1, exchange);
    } else {
      multiply_plane(sum, at, right_at, t, pairs, window, 0, exchange);
    }
    BARRIER;
  }
  // An item has two neighbouring outputs of two cells of each row.
  const int channel = outputs * 8 + lane % 4 * 2, oz = z_block * t.block_cells + first_z + lane / 4;
  const int first_y = row_block * t.block_rows + first_row, row_size = s.out[2] * s.out_channels;
  const float shifts[2] = {s.bias && channel < s.out_channels ? bias[channel] : 0.0f,
                           s.bias && channel + 1 < s.out_channels ? bias[channel + 1] : 0.0f};
  GLOBAL float *to = y + ((n * s.out[0] + ox) * s.out[1] + first_y) * row_size +
                     oz * s.out_channels + channel;
  UNROLLED_TILES for (int o = 0; o < TENSOR_ROWS; ++o, to += row_size) {
    for (int i = 0; i < 4; ++i) {
      if (first_y + o >= s.out[1] || oz + i / 2 * 8 >= s.out[2]) continue;
      if (channel + i % 2 >= s.out_channels) continue;
      to[i / 2 * 8 * s.out_channels + i % 2] = finished(s.activation, sum[o][i], shifts[i % 2]);
    }
  }
}

#define TENSOR_MULTIPLY(pairs, window)                                                         \
  tensor_multiply(AT(image, item(1)), AT(weights, 0), AT(bias, 0), AT(y, item(1)), s, t, pairs, \
                  window, (IN_LOCAL uint32 *)tile, marks, exchange)
KERNEL void tensor_multiply_bf16_2(OPERAND(const uint32, image), OPERAND(const uint32, weights),
    OPERAND(const float, bias), OPERAND(float, y), const ConvolutionSizes s,
    const TensorImage t) {
  LOCAL uint4 tile[TENSOR_WORDS / 4];
  LOCAL uint64 marks[2];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_MULTIPLY(1, 2);
}
KERNEL void tensor_multiply_bf16_3(OPERAND(const uint32, image), OPERAND(const uint32, weights),
    OPERAND(const float, bias), OPERAND(float, y), const ConvolutionSizes s,
    const TensorImage t) {
  LOCAL uint4 tile[TENSOR_WORDS / 4];
  LOCAL uint64 marks[2];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_MULTIPLY(1, 3);
}
KERNEL void tensor_multiply_tf32_2(OPERAND(const uint32, image), OPERAND(const uint32, weights),
    OPERAND(const float, bias), OPERAND(float, y), const ConvolutionSizes s,
    const TensorImage t) {
  LOCAL uint4 tile[TENSOR_WORDS / 4];
  LOCAL uint64 marks[2];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_MULTIPLY(0, 2);
}
KERNEL void tensor_multiply_tf32_3(OPERAND(const uint32, image), OPERAND(const uint32, weights),
    OPERAND(const float, bias), OPERAND(float, y), const ConvolutionSizes s,
    const TensorImage t) {
  LOCAL uint4 tile[TENSOR_WORDS / 4];
  LOCAL uint64 marks[2];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_MULTIPLY(0, 3);
}

// ---- Gradients of kernels: sums over positions

// Both factors are images of eight channels a cell, made by tensor_image: the image with zeros
// around it, and the derivatives. A step is that many positions along z: two for each word.

// A channel's numbers of two neighbouring positions, or of one.
FUNCTION uint32 channel_word(IN_LOCAL const uint32 *cells, int channel, const int pairs) {
  if (!pairs) return cells[channel];
  const uint32 shift = channel % 2 * 16;
  const uint32 first = cells[channel / 2], second = cells[4 + channel / 2];
  return (first >> shift & 0xffffu) | (second >> shift) << 16;
}

// A left factor: its rows are eight channels of a tap along z, and of the next tap.
FUNCTION void load_taps(uint32 *left, IN_LOCAL const uint32 *cells, const int pairs, int lane) {
#ifdef TENSOR_CORES
  if (pairs) {
    const int position = lane % 8 + lane / 16 * 8 + lane / 8 % 2;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(left[0]), "=r"(left[1]), "=r"(left[2]), "=r"(left[3])
                 : "r"(LOCAL_ADDRESS(cells + position * 4))
                 : "memory");
    return;
  }
#endif
  const int cell = pairs ? 4 : 8, one = pairs ? 2 : 1;
  IN_LOCAL const uint32 *from = cells + lane % 4 * one * cell;
  for (int i = 0; i < 4; ++i) {
    left[i] = channel_word(from + (i / 2 * 4 * one + i % 2) * cell, lane / 4, pairs);
  }
}

// Right factors of two rows of derivatives, which are `row` words apart: the columns are channels.
FUNCTION void load_derivatives(uint32 *right, IN_LOCAL const uint32 *cells, int row,
                               const int pairs, int lane) {
#ifdef TENSOR_CORES
  if (pairs) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(right[0]), "=r"(right[1]), "=r"(right[2]), "=r"(right[3])
                 : "r"(LOCAL_ADDRESS(cells + lane / 16 * row + lane % 16 * 4))
                 : "memory");
    return;
  }
#endif
  const int cell = pairs ? 4 : 8, one = pairs ? 2 : 1;
  IN_LOCAL const uint32 *from = cells + lane % 4 * one * cell;
  for (int i = 0; i < 4; ++i) {
    right[i] = channel_word(from + i / 2 * row + i % 2 * 4 * one * cell, lane / 4, pairs);
  }
}

// Adds the products of a strip of rows of derivatives with the rows of the image that are under one
// of `taps` taps along y, for a step along z. A left factor serves the rows of derivatives that it
// is under a tap of. Nothing is added where the strip is not `known`.
FUNCTION void add_strip(float sum[GRADIENT_TAPS][GRADIENT_TILES][4],
                        IN_LOCAL const uint32 *left_at, IN_LOCAL const uint32 *right_at,
                        const TensorGradient t, const int pairs, const int taps, int known,
                        IN_LOCAL uint32 *exchange) {
  const int lane = item_of_block(0) % 32, two_taps = pairs ? 8 : 16;
  uint32 right[GRADIENT_STRIP][2];
  UNROLLED_TILES for (int r = 0; r < GRADIENT_STRIP + taps - 1; ++r, left_at += t.left_row) {
    if (r % 2 == 0 && r < GRADIENT_STRIP) {
      load_derivatives(right[r], right_at + r * t.right_row, t.right_row, pairs, lane);
      for (int k = 0; k < 4 && !known; ++k) right[r + k / 2][k % 2] = 0u;
    }
    uint32 left[GRADIENT_TILES][4];
    UNROLLED_TILES for (int m = 0; m < GRADIENT_TILES; ++m) {
      load_taps(left[m], left_at + m * two_taps, pairs, lane);
    }
    UNROLLED_TILES for (int i = 0; i < taps; ++i) {
      if (r < i || r - i >= GRADIENT_STRIP) continue;
      UNROLLED_TILES for (int m = 0; m < GRADIENT_TILES; ++m) {
        add_product(sum[i][m], left[m], right[r - i], pairs, exchange);
      }
    }
  }
}

// Terms: [sample][part of the x planes][kx, ky, kz][in][out]. A block makes eight outputs of eight
// channels for `taps` taps along y and two for each of GRADIENT_TILES along z. Its warps share the
// strips and steps of a tile.
FUNCTION void tensor_gradient(GLOBAL const uint32 *images, GLOBAL const uint32 *derivatives,
                              GLOBAL float *terms, const ConvolutionSizes s, const TensorGradient t,
                              const int pairs, const int taps, IN_LOCAL uint32 *tile,
                              IN_LOCAL uint64 *marks, IN_LOCAL uint32 *exchange) {
  const int lane = item_of_block(0) % 32, warp = item_of_block(0) / 32;
  int rest = block(0);
  const int first_ky = rest % t.rounds_y * taps;
  rest /= t.rounds_y;
  const int first_kz = rest % t.rounds_z * 2 * GRADIENT_TILES;
  rest /= t.rounds_z;
  const int outputs = rest % t.output_blocks;
  rest /= t.output_blocks;
  const int chunk = rest % t.chunks;
  rest /= t.chunks;
  const int kx = rest % s.taps[0];
  rest /= s.taps[0];
  const int part = rest % t.parts;
  const long n = rest / t.parts;
  const int cell = pairs ? 4 : 8, step_words = (pairs ? 16 : 8) * cell;
  const int right_rows = t.strips * GRADIENT_STRIP, left_rows = right_rows + taps - 1;
  IN_LOCAL uint32 *right_tile = tile + left_rows * t.left_row;
  float sum[GRADIENT_TAPS][GRADIENT_TILES][4];
  UNROLLED_TILES for (int i = 0; i < GRADIENT_TAPS; ++i) {
    UNROLLED_TILES for (int m = 0; m < GRADIENT_TILES; ++m) {
      for (int j = 0; j < 4; ++j) sum[i][m][j] = 0.0f;
    }
  }
  const int last = (part + 1) * PLANES_AT_ONCE < s.out[0] ? (part + 1) * PLANES_AT_ONCE : s.out[0];
  const int least = s.before[0] - kx, most = s.in[0] + s.before[0] - kx;
  const int begin = least > part * PLANES_AT_ONCE ? least : part * PLANES_AT_ONCE;
  const int end = most < last ? most : last;
  // The image's and the derivatives' tiles, plane by plane and along z, then along y.
  const int left_words = left_rows * t.left_row, right_words = right_rows * t.right_row;
  const int left_plane = t.image_rows * t.left_row, right_plane = t.tiles_y * right_words;
  GLOBAL const uint32 *left_from =
      images + first_ky * t.left_row +
      ((n * s.in[0] + begin + kx - s.before[0]) * t.chunks + chunk) * t.tiles_z * left_plane;
  GLOBAL const uint32 *right_from =
      derivatives +
      ((n * s.out[0] + begin) * t.output_blocks + outputs) * t.tiles_z * right_plane;
  prepare_marks(marks, 1, 2);
  int parity = 0;
  for (int ox = begin; ox < end; ++ox) {
    for (int i = 0; i < t.tiles_z * t.tiles_y; ++i, parity ^= 1) {
      const int along_z = i / t.tiles_y, along_y = i % t.tiles_y;
      BARRIER;
      copy_tile(tile, left_from + along_z * left_plane + along_y * right_rows * t.left_row,
                left_words, marks);
      copy_tile(right_tile, right_from + along_z * right_plane + along_y * right_words,
                right_words, marks);
      wait_for_copies(marks, parity, 0);
      const int units = t.strips * t.steps;
      for (int begun = 0; begun < units; begun += TENSOR_WARPS) {
        const int known = begun + warp < units, unit = known ? begun + warp : 0;
#ifdef TENSOR_CORES
        if (!known) break;  // where products are played all items of a block make as many
#endif
        const int first = unit / t.steps * GRADIENT_STRIP, step = unit % t.steps * step_words;
        add_strip(sum, tile + first * t.left_row + step + first_kz * cell,
                  right_tile + first * t.right_row + step, t, pairs, taps, known, exchange);
      }
    }
    left_from += t.chunks * t.tiles_z * left_plane;
    right_from += t.output_blocks * t.tiles_z * right_plane;
  }
  // The warps' sums, added warp by warp: [warp][tap along y][two taps along z][4][item of warp].
  IN_LOCAL float *shared = (IN_LOCAL float *)tile;
  BARRIER;
  UNROLLED_TILES for (int i = 0; i < taps; ++i) {
    UNROLLED_TILES for (int m = 0; m < GRADIENT_TILES; ++m) {
      for (int j = 0; j < 4; ++j) {
        shared[(((warp * taps + i) * GRADIENT_TILES + m) * 4 + j) * 32 + lane] = sum[i][m][j];
      }
    }
  }
  BARRIER;
  const long all_taps = (long)s.taps[0] * s.taps[1] * s.taps[2];
  GLOBAL float *to = terms + (n * t.parts + part) * all_taps * s.in_channels * s.out_channels;
  const int of_warp = taps * (GRADIENT_TILES * 4);
  UNROLLED_BY(1) for (int k = warp; k < of_warp; k += TENSOR_WARPS) {
    const int i = k / (GRADIENT_TILES * 4), m = k / 4 % GRADIENT_TILES, j = k % 4;
    const int ky = first_ky + i, kz = first_kz + 2 * m + j / 2;
    const int in = chunk * 8 + lane / 4, out = outputs * 8 + lane % 4 * 2 + j % 2;
    if (ky >= s.taps[1] || kz >= s.taps[2]) continue;
    if (in >= s.in_channels || out >= s.out_channels) continue;
    float total = shared[k * 32 + lane];
    for (int w = 1; w < TENSOR_WARPS; ++w) total += shared[(w * of_warp + k) * 32 + lane];
    const long tap = ((long)kx * s.taps[1] + ky) * s.taps[2] + kz;
    to[(tap * s.in_channels + in) * s.out_channels + out] = total;
  }
}

// An item has so few registers that a multiprocessor holds three blocks.
#ifdef __OPENCL_VERSION__
#define GRADIENT_KERNEL KERNEL
#else
#define GRADIENT_KERNEL extern "C" __global__ __launch_bounds__(TENSOR_WARPS * 32, 3)
#endif
#define TENSOR_GRADIENT(pairs, taps)                                                             \
  tensor_gradient(AT(images, item(1)), AT(derivatives, item(1)), AT(terms, item(1)), s, t, pairs, \
                  taps, (IN_LOCAL uint32 *)tile, marks, exchange)
GRADIENT_KERNEL void tensor_gradient_bf16_4(OPERAND(const uint32, images),
    OPERAND(const uint32, derivatives), OPERAND(float, terms),
    const ConvolutionSizes s, const TensorGradient t) {
  LOCAL uint4 tile[GRADIENT_WORDS / 4];
  LOCAL uint64 marks[1];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_GRADIENT(1, 4);
}
GRADIENT_KERNEL void tensor_gradient_bf16_6(OPERAND(const uint32, images),
    OPERAND(const uint32, derivatives), OPERAND(float, terms),
    const ConvolutionSizes s, const TensorGradient t) {
  LOCAL uint4 tile[GRADIENT_WORDS / 4];
  LOCAL uint64 marks[1];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_GRADIENT(1, 6);
}
GRADIENT_KERNEL void tensor_gradient_tf32_4(OPERAND(const uint32, images),
    OPERAND(const uint32, derivatives), OPERAND(float, terms),
    const ConvolutionSizes s, const TensorGradient t) {
  LOCAL uint4 tile[GRADIENT_WORDS / 4];
  LOCAL uint64 marks[1];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_GRADIENT(0, 4);
}
GRADIENT_KERNEL void tensor_gradient_tf32_6(OPERAND(const uint32, images),
    OPERAND(const uint32, derivatives), OPERAND(float, terms),
    const ConvolutionSizes s, const TensorGradient t) {
  LOCAL uint4 tile[GRADIENT_WORDS / 4];
  LOCAL uint64 marks[1];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_GRADIENT(0, 6);
}

#endif
