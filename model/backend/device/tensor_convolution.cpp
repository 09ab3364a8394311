// Convolutions by tensor cores (kernels/tensor.cl). They have no tiles along z: a card makes
// products faster than it moves the planes of such tiles.

#include <optional>

#include <fmt/format.h>

#include "model/backend/device/convolution_sizes.h"

namespace troupe::model::device {
namespace {

constexpr std::int64_t kWordsOfStep = 8, kItems = TENSOR_WARPS * 32;
constexpr std::int64_t kMostWordsOfCell = 8, kMostChannels = 16;

std::int64_t rounded_up(std::int64_t count, std::int64_t size) {
  return blocks_of(count, size) * size;
}
bool in_pairs(const Maker& make) { return make.tensor_cores == Precision::kBf16; }

// Taps along y that a block's warps read a row for at once: those that leave the fewest unused.
std::int64_t window_of(const ConvolutionGeometry& g) {
  return rounded_up(g.kernel[1], 3) <= rounded_up(g.kernel[1], 2) ? 3 : 2;
}

// How an image is cut; nothing where one word of a cell is too much for a tile.
std::optional<TensorImage> image_of(const ConvolutionGeometry& g, bool pairs) {
  constexpr std::int64_t kRows = std::int64_t{2} * TENSOR_ROWS, kCells = 32;
  const std::int64_t words = pairs ? blocks_of(g.in_channels, 2) : g.in_channels;
  const std::int64_t taps_y = rounded_up(g.kernel[1], window_of(g)), tile_rows = kRows + taps_y - 1;
  const std::int64_t row_blocks = blocks_of(g.out[1], kRows),
                     z_blocks = blocks_of(g.out[2], kCells);
  const auto steps_of = [&](std::int64_t cell) {
    return blocks_of(g.kernel[2] * cell, kWordsOfStep);
  };
  for (std::int64_t chunks = blocks_of(words, kMostWordsOfCell);; ++chunks) {
    const std::int64_t least = blocks_of(words, chunks);
    // Cells on 16 bytes are loaded faster, where they take no more steps.
    for (const std::int64_t cell : {rounded_up(least, 4), least}) {
      const std::int64_t steps = steps_of(cell);
      const std::int64_t tile_row = rounded_up((kCells - 1) * cell + steps * kWordsOfStep, 4);
      if (steps > steps_of(least)) continue;
      if (tile_rows * tile_row > TENSOR_WORDS / 2) continue;  // one is copied beside another
      return TensorImage{.cell = as_int(cell),
                         .chunks = as_int(chunks),
                         .taps_y = as_int(taps_y),
                         .steps = as_int(steps),
                         .rows = as_int((row_blocks - 1) * kRows + tile_rows),
                         .row = as_int((z_blocks - 1) * kCells * cell + tile_row),
                         .tile_rows = as_int(tile_rows),
                         .tile_row = as_int(tile_row),
                         .row_blocks = as_int(row_blocks),
                         .z_blocks = as_int(z_blocks),
                         .output_blocks = as_int(blocks_of(g.out_channels, 8))};
    }
    if (least == 1) return std::nullopt;
  }
}

// Words of a row along z: a multiple of four that is odd in fours, so that the same word of eight
// neighbouring rows lies in different banks.
std::int64_t row_for(std::int64_t words) { return rounded_up(words + 4, 8) - 4; }

// How a gradient is divided among warps; nothing where one channel is too much for a tile.
std::optional<TensorGradient> gradient_of(const ConvolutionGeometry& g, bool pairs) {
  const std::int64_t positions = pairs ? 16 : 8, steps = blocks_of(g.out[2], positions);
  const std::int64_t last = (steps - 1) * positions + 8;  // words that a row's steps reach
  const std::int64_t taps_y = rounded_up(g.kernel[1], 2), tile_rows = GRADIENT_STRIP + taps_y - 1;
  const std::int64_t left_row = row_for(last + g.kernel[2] - 1), right_row = row_for(last);
  const std::int64_t strips = blocks_of(g.out[1], GRADIENT_STRIP);
  for (std::int64_t chunks = blocks_of(g.in_channels, kMostChannels);; ++chunks) {
    const std::int64_t chunk = blocks_of(g.in_channels, chunks);
    if (tile_rows * chunk * left_row + GRADIENT_STRIP * 8 * right_row > GRADIENT_WORDS) {
      if (chunk == 1) return std::nullopt;
      continue;
    }
    const std::int64_t jobs = taps_y / 2 * blocks_of(g.kernel[2] * chunk, GRADIENT_TILES * 16);
    const std::int64_t shares = jobs <= TENSOR_WARPS / 2 ? 2 : 1;
    return TensorGradient{.chunk = as_int(chunk),
                          .chunks = as_int(chunks),
                          .taps_y = as_int(taps_y),
                          .steps = as_int(steps),
                          .left_rows = as_int(strips * GRADIENT_STRIP + taps_y - 1),
                          .left_row = as_int(left_row),
                          .left_line = as_int(chunk * left_row),
                          .right_row = as_int(right_row),
                          .tile_rows = as_int(tile_rows),
                          .strips = as_int(strips),
                          .parts = as_int(blocks_of(g.out[0], PLANES_AT_ONCE)),
                          .shares = as_int(shares),
                          .jobs = as_int(jobs),
                          .rounds = as_int(blocks_of(jobs, TENSOR_WARPS / shares)),
                          .output_blocks = as_int(blocks_of(g.out_channels, 8))};
  }
}

// An image along z: with zeros around it, or derivatives without.
TensorRows rows_of(const ConvolutionGeometry& g, const TensorGradient& t, bool pairs,
                   bool derivatives) {
  TensorRows r{};
  const Extent& size = derivatives ? g.out : g.in;
  r.planes = as_int(g.batch * size[0]);
  r.size_y = as_int(size[1]);
  r.size_z = as_int(size[2]);
  r.channels = as_int(derivatives ? g.out_channels : g.in_channels);
  r.pairs = pairs;
  r.before_y = derivatives ? 0 : as_int(g.pad_before[1]);
  r.before_z = derivatives ? 0 : as_int(g.pad_before[2]);
  r.chunk = derivatives ? 8 : t.chunk;
  r.chunks = derivatives ? t.output_blocks : t.chunks;
  r.rows = derivatives ? t.strips * GRADIENT_STRIP : t.left_rows;
  r.row = derivatives ? t.right_row : t.left_row;
  return r;
}
std::int64_t words_of(const TensorRows& r) {
  return std::int64_t{r.planes} * r.chunks * r.rows * r.chunk * r.row;
}

}  // namespace

std::unique_ptr<Kernel> tensor_image_kernel(const Maker& make, const ConvolutionGeometry& g,
                                            const Activation& activation, const ImageOperands& of) {
  const bool pairs = in_pairs(make);
  const auto cut = image_of(g, pairs);
  if (!cut) return nullptr;
  const TensorImage t = *cut;
  const ConvolutionSizes sizes = sizes_of(g, pairs, activation);
  const std::int64_t rows = g.batch * g.in[0] * t.chunks * t.rows, words = rows * t.row;
  const std::int64_t weights_size =
      std::int64_t{t.output_blocks} * t.chunks * g.kernel[0] * t.taps_y * t.steps * 64;
  const std::int64_t blocks = g.batch * g.out[0] * t.row_blocks * t.z_blocks * t.output_blocks;
  GroupScratch scratch(make.group);
  const MirroredKernel mirrored(make, g, of.mirror, scratch);
  const std::size_t weights_at = scratch.add_shared<std::uint32_t>(weights_size);
  const std::size_t image_at = scratch.add<std::uint32_t>(words);
  return operation_kernel(
      scratch.bytes(),
      [=, to_words = make.kernel("tensor_weights"), to_image = make.kernel("tensor_image"),
       multiply = make.kernel(fmt::format("tensor_multiply_{}_{}", pairs ? "bf16" : "tf32",
                                          window_of(g)))](const GroupCall& call) {
        const std::int64_t count = call.group.count;
        const auto *weights = at<std::uint32_t>(call, weights_at),
                   *image = at<std::uint32_t>(call, image_at);
        Arguments of_weights;
        of_weights.operand(mirrored(call, of.kernel, sizes)).operand(weights);
        to_words(weights_size, 1, of_weights.value(sizes).value(t));
        to_image(rows * 32, count, call.with({of.x}).operand(image, words).value(sizes).value(t));
        Arguments arguments;
        arguments.operand(image, words)
            .operand(weights)
            .operand(g.bias ? static_cast<const float*>(call.operands[of.bias]) : nullptr);
        multiply.blocks(blocks, kItems, count, call.add(arguments, {of.y}).value(sizes).value(t));
      });
}

std::unique_ptr<Kernel> tensor_gradient_kernel(const Maker& make, const ConvolutionGeometry& g) {
  const bool pairs = in_pairs(make);
  const auto cut = gradient_of(g, pairs);
  if (!cut) return nullptr;
  const TensorGradient t = *cut;
  const ConvolutionSizes sizes = sizes_of(g, pairs, {});
  const TensorRows left = rows_of(g, t, pairs, false), right = rows_of(g, t, pairs, true);
  const std::int64_t terms = g.batch * t.parts * t.shares, size = kernel_size(g);
  const std::int64_t blocks =
      g.batch * t.parts * g.kernel[0] * t.chunks * t.output_blocks * t.rounds;
  GroupScratch scratch(make.group);
  const std::size_t left_at = scratch.add<std::uint32_t>(words_of(left));
  const std::size_t right_at = scratch.add<std::uint32_t>(words_of(right));
  const std::size_t terms_at = scratch.add<float>(terms * size);
  const BiasGradient bias(make, g, scratch);
  return operation_kernel(
      scratch.bytes(),
      [=, to_rows = make.kernel("tensor_rows"), add = make.kernel("add_terms"),
       multiply = make.kernel(pairs ? "tensor_gradient_bf16" : "tensor_gradient_tf32")](
          const GroupCall& call) {
        const std::int64_t count = call.group.count;
        const auto *images = at<std::uint32_t>(call, left_at),
                   *derivatives = at<std::uint32_t>(call, right_at);
        const auto* each = at<float>(call, terms_at);
        to_rows(words_of(left) / left.chunk, count,
                call.with({0}).operand(images, words_of(left)).value(left));
        to_rows(words_of(right) / right.chunk, count,
                call.with({1}).operand(derivatives, words_of(right)).value(right));
        Arguments of_products;
        multiply.blocks(blocks, kItems, count,
                        of_products.operand(images, words_of(left))
                            .operand(derivatives, words_of(right))
                            .operand(each, terms * size)
                            .value(sizes)
                            .value(t));
        Arguments of_terms;
        of_terms.operand(each, terms * size);
        add(size, count,
            call.add(of_terms, {2}).value(static_cast<long>(size)).value(static_cast<int>(terms)));
        bias(call);
      });
}

}  // namespace troupe::model::device
