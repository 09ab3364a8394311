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
  return bits_of_float(bfloat16_of(first)) >> 16 | bits_of_float(bfloat16_of(second));
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

// Copies to a block's tile, which its items share: fours of words, which lie on 16 bytes. A batch
// of them is under way until wait_for_copies(); then a barrier shows it to the other items.
FUNCTION void copy_four(IN_LOCAL uint4 *to, GLOBAL const uint4 *from) {
#ifdef TENSOR_CORES
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(LOCAL_ADDRESS(to)), "l"(from)
               : "memory");
#else
  *to = *from;
#endif
}
FUNCTION void end_batch_of_copies(void) {
#ifdef TENSOR_CORES
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}
// Waits for all batches, or for all but the last one.
FUNCTION void wait_for_copies(const int but_for_the_last) {
#ifdef TENSOR_CORES
  if (but_for_the_last) {
    asm volatile("cp.async.wait_group 1;" : : : "memory");
  } else {
    asm volatile("cp.async.wait_group 0;" : : : "memory");
  }
#endif
}
FUNCTION void copy_tile(IN_LOCAL uint4 *to, GLOBAL const uint4 *from, int fours) {
  for (int i = item_of_block(0); i < fours; i += TENSOR_WARPS * 32) copy_four(to + i, from + i);
}

// ---- Images: y = activation(conv(x, kernel) + bias)

// [sample][x plane][chunk of channels][row][cell along z][word]: the image, with zeros around it. A
// warp makes a row.
KERNEL void tensor_image(OPERAND(const float, x), OPERAND(uint32, image), const ConvolutionSizes s,
                         const TensorImage t) {
  const int group = item(1);
  int rest = item(0) / 32;
  if (rest >= s.batch * s.in[0] * t.chunks * t.rows) return;
  GLOBAL uint32 *to = AT(image, group) + (long)rest * t.row;
  const int y = rest % t.rows - s.before[1];
  rest /= t.rows;
  const int in_word = s.pairs ? 2 : 1, first = rest % t.chunks * t.cell * in_word;
  rest /= t.chunks;
  const int in_row = y >= 0 && y < s.in[1];
  GLOBAL const float *from = AT(x, group) + ((long)rest * s.in[1] + y) * s.in[2] * s.in_channels;
  for (int place = item_of_block(0) % 32; place < t.row; place += 32) {
    const int z = place / t.cell - s.before[2], channel = first + place % t.cell * in_word;
    const int inside = in_row && z >= 0 && z < s.in[2] && channel < s.in_channels;
    GLOBAL const float *cell = from + z * s.in_channels + channel;
    to[place] =
        tensor_word(inside ? cell[0] : 0.0f,
                    inside && s.pairs && channel + 1 < s.in_channels ? cell[1] : 0.0f, s.pairs);
  }
}

// [block of outputs][chunk][kx][ky][step along (kz, word)][item of a warp][2]: right factors,
// zeros where there is no tap, channel or output.
KERNEL void tensor_weights(OPERAND(const float, kernel_), OPERAND(uint32, weights),
                           const ConvolutionSizes s, const TensorImage t) {
  int rest = item(0) / 64;
  const int lane = item(0) / 2 % 32;
  const int word = (rest % t.steps) * 8 + lane % 4 + item(0) % 2 * 4;
  rest /= t.steps;
  const int ky = rest % t.taps_y;
  rest /= t.taps_y;
  const int kx = rest % s.taps[0];
  rest /= s.taps[0];
  const int in_word = s.pairs ? 2 : 1;
  const int channel = ((rest % t.chunks) * t.cell + word % t.cell) * in_word;
  const int output = (rest / t.chunks) * 8 + lane / 4, kz = word / t.cell;
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
// steps of eight words along z.
FUNCTION void multiply_plane(float sum[TENSOR_ROWS][4], IN_LOCAL const uint32 *tile,
                             GLOBAL const uint2 *weights, const TensorImage t, const int pairs,
                             const int window, const int in_fours, IN_LOCAL uint32 *exchange) {
  const int lane = item_of_block(0) % 32;
  for (int ky = 0; ky < t.taps_y; ky += window) {
    for (int step = 0; step < t.steps; ++step) {
      uint32 right[3][2], left[3][4];
      for (int j = 0; j < window; ++j) {
        const uint2 words = weights[((ky + j) * t.steps + step) * 32];
        right[j][0] = words.x;
        right[j][1] = words.y;
      }
      IN_LOCAL const uint32 *row = tile + ky * t.tile_row + step * 8;
      for (int j = 0; j < window - 1; ++j) {
        load_cells(left[j], row + j * t.tile_row, t.cell, in_fours, lane);
      }
      UNROLLED_TILES for (int o = 0; o < TENSOR_ROWS; ++o) {
        const int last = o + window - 1;
        load_cells(left[last % window], row + last * t.tile_row, t.cell, in_fours, lane);
        for (int j = 0; j < window; ++j) {
          add_product(sum[o], left[(o + j) % window], right[j], pairs, exchange);
        }
      }
    }
  }
}

// Begins to copy the i-th plane of a block to its half of the tile, a warp row after row.
FUNCTION void copy_plane(GLOBAL const uint32 *image, int i, int begin, int end, int first_x, long n,
                         int row_block, int z_block, const ConvolutionSizes s, const TensorImage t,
                         IN_LOCAL uint32 *tile) {
  const int chunk = i / (end - begin), x = first_x + begin + i % (end - begin);
  GLOBAL const uint32 *plane = image +
                               ((n * s.in[0] + x) * t.chunks + chunk) * t.rows * t.row +
                               (long)row_block * 2 * TENSOR_ROWS * t.row + z_block * 32 * t.cell;
  IN_LOCAL uint32 *own = tile + i % 2 * (TENSOR_WORDS / 2);
  for (int row = item_of_block(0) / 32; row < t.tile_rows; row += TENSOR_WARPS) {
    IN_LOCAL uint4 *to = (IN_LOCAL uint4 *)(own + row * t.tile_row);
    GLOBAL const uint4 *from = (GLOBAL const uint4 *)(plane + (long)row * t.row);
    for (int four = item_of_block(0) % 32; four < t.tile_row / 4; four += 32) {
      copy_four(to + four, from + four);
    }
  }
  end_batch_of_copies();
}

// A block makes eight outputs of 2 TENSOR_ROWS rows of 32 cells; each of its warps TENSOR_ROWS
// rows of 16. A left factor serves the rows of outputs that it is under one of `window` taps of: 2
// or 3.
FUNCTION void tensor_multiply(GLOBAL const uint32 *image, GLOBAL const uint32 *weights,
                              GLOBAL const float *bias, GLOBAL float *y, const ConvolutionSizes s,
                              const TensorImage t, const int pairs, const int window,
                              IN_LOCAL uint32 *tile, IN_LOCAL uint32 *exchange) {
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
  const int first_row = warp / 2 * TENSOR_ROWS, first_z = warp % 2 * 16;
  float sum[TENSOR_ROWS][4];
  UNROLLED_TILES for (int o = 0; o < TENSOR_ROWS; ++o) {
    for (int i = 0; i < 4; ++i) sum[o][i] = 0.0f;
  }
  // Taps outside the image in x are left out.
  const int first_x = ox - s.before[0];
  const int begin = first_x < 0 ? -first_x : 0;
  const int end = s.in[0] - first_x < s.taps[0] ? s.in[0] - first_x : s.taps[0];
  // The planes under the taps of each chunk, one after the other; the next one is copied meanwhile.
  const int planes = (end - begin) * t.chunks;
  if (planes > 0) {
    copy_plane(image, 0, begin, end, first_x, n, row_block, z_block, s, t, tile);
  }
  for (int i = 0; i < planes; ++i) {
    if (i + 1 < planes) {
      copy_plane(image, i + 1, begin, end, first_x, n, row_block, z_block, s, t, tile);
    }
    wait_for_copies(i + 1 < planes);
    BARRIER;
    const int chunk = i / (end - begin), kx = begin + i % (end - begin);
    GLOBAL const uint2 *right_at =
        (GLOBAL const uint2 *)weights +
        (((long)outputs * t.chunks + chunk) * s.taps[0] + kx) * t.taps_y * t.steps * 32 + lane;
    IN_LOCAL const uint32 *own =
        tile + i % 2 * (TENSOR_WORDS / 2) + first_row * t.tile_row + first_z * t.cell;
    if (t.cell % 4 == 0) {
      multiply_plane(sum, own, right_at, t, pairs, window, 1, exchange);
    } else {
      multiply_plane(sum, own, right_at, t, pairs, window, 0, exchange);
    }
    BARRIER;
  }
  // An item has two neighbouring outputs of two cells of each row.
  const int channel = outputs * 8 + lane % 4 * 2, oz = z_block * 32 + first_z + lane / 4;
  const int first_y = row_block * 2 * TENSOR_ROWS + first_row, row_size = s.out[2] * s.out_channels;
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
                  window, (IN_LOCAL uint32 *)tile, exchange)
KERNEL void tensor_multiply_bf16_2(OPERAND(const uint32, image), OPERAND(const uint32, weights),
                   OPERAND(const float, bias), OPERAND(float, y), const ConvolutionSizes s,
                   const TensorImage t) {
  LOCAL uint4 tile[TENSOR_WORDS / 4];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_MULTIPLY(1, 2);
}
KERNEL void tensor_multiply_bf16_3(OPERAND(const uint32, image), OPERAND(const uint32, weights),
                   OPERAND(const float, bias), OPERAND(float, y), const ConvolutionSizes s,
                   const TensorImage t) {
  LOCAL uint4 tile[TENSOR_WORDS / 4];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_MULTIPLY(1, 3);
}
KERNEL void tensor_multiply_tf32_2(OPERAND(const uint32, image), OPERAND(const uint32, weights),
                   OPERAND(const float, bias), OPERAND(float, y), const ConvolutionSizes s,
                   const TensorImage t) {
  LOCAL uint4 tile[TENSOR_WORDS / 4];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_MULTIPLY(0, 2);
}
KERNEL void tensor_multiply_tf32_3(OPERAND(const uint32, image), OPERAND(const uint32, weights),
                   OPERAND(const float, bias), OPERAND(float, y), const ConvolutionSizes s,
                   const TensorImage t) {
  LOCAL uint4 tile[TENSOR_WORDS / 4];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  TENSOR_MULTIPLY(0, 3);
}

// ---- Gradients of kernels: sums over positions

// [sample][x plane][chunk of channels][row][channel][position along z]: an image with zeros around
// it. With pairs a word has the numbers of a position and of the eighth behind it. An item makes
// the words of a position.
KERNEL void tensor_rows(OPERAND(const float, x), OPERAND(uint32, rows), const TensorRows r) {
  const int group = item(1), position = item(0) % r.row;
  int rest = item(0) / r.row;
  if (rest >= r.planes * r.chunks * r.rows) return;
  GLOBAL uint32 *to = AT(rows, group) + (long)rest * r.chunk * r.row + position;
  const int y = rest % r.rows - r.before_y, z = position - r.before_z, other = z + 8;
  rest /= r.rows;
  const int first = rest % r.chunks * r.chunk;
  rest /= r.chunks;
  const int in_row = y >= 0 && y < r.size_y;
  const int inside = in_row && z >= 0 && z < r.size_z;
  const int has_other = in_row && r.pairs && other >= 0 && other < r.size_z;
  GLOBAL const float *from =
      AT(x, group) + (((long)rest * r.size_y + y) * r.size_z + z) * r.channels + first;
  for (int i = 0; i < r.chunk; ++i) {
    const int known = first + i < r.channels;
    to[i * r.row] = tensor_word(known && inside ? from[i] : 0.0f,
                                known && has_other ? from[8 * r.channels + i] : 0.0f, r.pairs);
  }
}

// Left factors of GRADIENT_TILES times sixteen rows of the gradient: a row is a tap along z and a
// channel.
FUNCTION void load_rows(uint32 left[GRADIENT_TILES][4], IN_LOCAL const uint32 *row,
                        int places[GRADIENT_TILES][2]) {
  UNROLLED for (int m = 0; m < GRADIENT_TILES; ++m) {
    left[m][0] = row[places[m][0]];
    left[m][1] = row[places[m][1]];
    left[m][2] = row[places[m][0] + 4];
    left[m][3] = row[places[m][1] + 4];
  }
}

// Terms: [sample][part of the x planes][share of the rows][kx, ky, kz][in][out]. A warp makes
// eight outputs of GRADIENT_TILES times sixteen rows for two taps along y, over all or half of the
// rows of a strip.
FUNCTION void tensor_gradient(GLOBAL const uint32 *images, GLOBAL const uint32 *derivatives,
                              GLOBAL float *terms, const ConvolutionSizes s, const TensorGradient t,
                              const int pairs, IN_LOCAL uint32 *tile, IN_LOCAL uint32 *exchange) {
  const int lane = item_of_block(0) % 32, warp = item_of_block(0) / 32;
  int rest = block(0);
  const int round = rest % t.rounds;
  rest /= t.rounds;
  const int outputs = rest % t.output_blocks;
  rest /= t.output_blocks;
  const int chunk = rest % t.chunks;
  rest /= t.chunks;
  const int kx = rest % s.taps[0];
  rest /= s.taps[0];
  const int part = rest % t.parts;
  const long n = rest / t.parts;
  const int at_once = TENSOR_WARPS / t.shares, share = warp / at_once;
  const int own = round * at_once + warp % at_once;
  const int job = own < t.jobs ? own : t.jobs - 1;  // behind the last it is made again, not written
  const int ky = job % (t.taps_y / 2) * 2;
  const int first = job / (t.taps_y / 2) * GRADIENT_TILES * 16;
  const int rows = s.taps[2] * t.chunk;
  IN_LOCAL uint32 *left_tile = tile, *right_tile = tile + t.tile_rows * t.left_line;
  int places[GRADIENT_TILES][2];
  float sum[2][GRADIENT_TILES][4];
  UNROLLED for (int m = 0; m < GRADIENT_TILES; ++m) {
    for (int i = 0; i < 2; ++i) {
      const int row = first + m * 16 + lane / 4 + i * 8;
      const int known = row < rows ? row : rows - 1;
      places[m][i] = known % t.chunk * t.left_row + known / t.chunk + lane % 4;
    }
    for (int i = 0; i < 4; ++i) sum[0][m][i] = sum[1][m][i] = 0.0f;
  }
  const int last = (part + 1) * PLANES_AT_ONCE < s.out[0] ? (part + 1) * PLANES_AT_ONCE : s.out[0];
  const int least = s.before[0] - kx, most = s.in[0] + s.before[0] - kx;
  const int begin = least > part * PLANES_AT_ONCE ? least : part * PLANES_AT_ONCE;
  const int end = most < last ? most : last;
  const int step_size = pairs ? 16 : 8;
  for (int ox = begin; ox < end; ++ox) {
    for (int strip = 0; strip < t.strips; ++strip) {
      const long first_left =
          ((n * s.in[0] + ox + kx - s.before[0]) * t.chunks + chunk) * t.left_rows +
          strip * GRADIENT_STRIP;
      const long first_right =
          ((n * s.out[0] + ox) * t.output_blocks + outputs) * (long)t.strips * GRADIENT_STRIP +
          strip * GRADIENT_STRIP;
      BARRIER;
      copy_tile((IN_LOCAL uint4 *)left_tile,
                (GLOBAL const uint4 *)(images + first_left * t.left_line),
                t.tile_rows * t.left_line / 4);
      copy_tile((IN_LOCAL uint4 *)right_tile,
                (GLOBAL const uint4 *)(derivatives + first_right * 8 * t.right_row),
                GRADIENT_STRIP * 8 * t.right_row / 4);
      end_batch_of_copies();
      wait_for_copies(0);
      BARRIER;
      for (int step = 0; step < t.steps; ++step) {
        for (int unit = share; unit < 2; unit += t.shares) {
          const int row = unit * GRADIENT_STRIP / 2;
          IN_LOCAL const uint32 *left_at =
              left_tile + (row + ky) * t.left_line + step * step_size;
          IN_LOCAL const uint32 *right_at = right_tile + (row * 8 + lane / 4) * t.right_row +
                                            step * step_size + lane % 4;
          uint32 left[2][GRADIENT_TILES][4], right[2];
          load_rows(left[0], left_at, places);
          UNROLLED_TILES for (int o = 0; o < GRADIENT_STRIP / 2; ++o) {
            load_rows(left[(o + 1) % 2], left_at + (o + 1) * t.left_line, places);
            right[0] = right_at[o * 8 * t.right_row];
            right[1] = right_at[o * 8 * t.right_row + 4];
            for (int i = 0; i < 2; ++i) {
              UNROLLED_TILES for (int m = 0; m < GRADIENT_TILES; ++m) {
                add_product(sum[i][m], left[(o + i) % 2][m], right, pairs, exchange);
              }
            }
          }
        }
      }
    }
  }
  if (own >= t.jobs) return;
  const long taps = (long)s.taps[0] * s.taps[1] * s.taps[2];
  GLOBAL float *to = terms + ((n * t.parts + part) * t.shares + share) * taps * s.in_channels *
                                 s.out_channels;
  UNROLLED_TILES for (int m = 0; m < GRADIENT_TILES; ++m) {
    for (int k = 0; k < 8; ++k) {
      const int i = k / 4, j = k % 4;
      const int row = first + m * 16 + lane / 4 + j / 2 * 8;
      const int in = chunk * t.chunk + row % t.chunk, out = outputs * 8 + lane % 4 * 2 + j % 2;
      if (ky + i >= s.taps[1] || row >= rows) continue;
      if (in >= s.in_channels || out >= s.out_channels) continue;
      const long tap = ((long)kx * s.taps[1] + ky + i) * s.taps[2] + row / t.chunk;
      to[(tap * s.in_channels + in) * s.out_channels + out] = sum[i][m][j];
    }
  }
}

KERNEL void tensor_gradient_bf16(OPERAND(const uint32, images),
                                 OPERAND(const uint32, derivatives), OPERAND(float, terms),
                                 const ConvolutionSizes s, const TensorGradient t) {
  LOCAL uint4 tile[GRADIENT_WORDS / 4];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  tensor_gradient(AT(images, item(1)), AT(derivatives, item(1)), AT(terms, item(1)), s, t, 1,
                  (IN_LOCAL uint32 *)tile, exchange);
}
KERNEL void tensor_gradient_tf32(OPERAND(const uint32, images),
                                 OPERAND(const uint32, derivatives), OPERAND(float, terms),
                                 const ConvolutionSizes s, const TensorGradient t) {
  LOCAL uint4 tile[GRADIENT_WORDS / 4];
  LOCAL uint32 exchange[EXCHANGE_WORDS];
  tensor_gradient(AT(images, item(1)), AT(derivatives, item(1)), AT(terms, item(1)), s, t, 0,
                  (IN_LOCAL uint32 *)tile, exchange);
}

#endif
