// Convolutions by tensor cores (kernels/tensor.cl). They have no tiles along z: a card makes
// products faster than it moves the planes of such tiles.

#include <optional>

#include <fmt/format.h>

#include "model/backend/device/convolution_sizes.h"

namespace troupe::model::device {
namespace {

constexpr std::int64_t kWordsOfStep = 8, kItems = TENSOR_WARPS * 32;
constexpr std::int64_t kMostWordsOfCell = 8, kCellsOfWarp = 16, kChannelsOfTile = 8;

std::int64_t rounded_up(std::int64_t count, std::int64_t size) {
  return blocks_of(count, size) * size;
}
bool in_pairs(const Maker& make) { return make.tensor_cores == Precision::kBf16; }

// Taps along y that a block's warps read a row for at once: those that leave the fewest unused.
std::int64_t window_of(const ConvolutionGeometry& g) {
  return rounded_up(g.kernel[1], 3) <= rounded_up(g.kernel[1], 2) ? 3 : 2;
}

// How a block's warps lie side by side: rows and cells of its outputs.
struct Block {
  std::int64_t warps_z, rows, cells;

  explicit Block(std::int64_t along_z)
      : warps_z(along_z),
        rows(TENSOR_WARPS / along_z * TENSOR_ROWS),
        cells(along_z * kCellsOfWarp) {}
  std::int64_t outputs(const ConvolutionGeometry& g) const {  // the unused ones included
    return rounded_up(g.out[1], rows) * rounded_up(g.out[2], cells);
  }
};

// The block that leaves the fewest outputs unused; with equally many the one nearest to a square.
Block block_of(const ConvolutionGeometry& g) {
  Block best(2);
  for (const std::int64_t warps_z : {1, 4}) {
    const Block block(warps_z);
    if (block.outputs(g) < best.outputs(g)) best = block;
  }
  return best;
}

// How an image is cut; nothing where one word of a cell is too much for a tile.
std::optional<TensorImage> image_of(const ConvolutionGeometry& g, bool pairs) {
  const Block block = block_of(g);
  const std::int64_t words = pairs ? blocks_of(g.in_channels, 2) : g.in_channels;
  const std::int64_t taps_y = rounded_up(g.kernel[1], window_of(g)),
                     tile_rows = block.rows + taps_y - 1;
  const std::int64_t row_blocks = blocks_of(g.out[1], block.rows),
                     z_blocks = blocks_of(g.out[2], block.cells);
  const auto steps_of = [&](std::int64_t cell) {
    return blocks_of(g.kernel[2] * cell, kWordsOfStep);
  };
  for (std::int64_t chunks = blocks_of(words, kMostWordsOfCell);; ++chunks) {
    const std::int64_t least = blocks_of(words, chunks);
    // Cells on 16 bytes are made and loaded faster, where most of their words are used.
    for (const std::int64_t cell : {rounded_up(least, 4), least}) {
      const std::int64_t steps = steps_of(cell);
      const std::int64_t row = rounded_up((block.cells - 1) * cell + steps * kWordsOfStep, 4);
      if (4 * least < 3 * cell && steps > steps_of(least)) continue;
      if (tile_rows * row > TENSOR_WORDS / 2) continue;  // one is copied beside another
      return TensorImage{.cell = as_int(cell),
                         .chunks = as_int(chunks),
                         .taps_y = as_int(taps_y),
                         .steps = as_int(steps),
                         .rows = as_int((row_blocks - 1) * block.rows + tile_rows),
                         .row = as_int(row),
                         .tile_rows = as_int(tile_rows),
                         .warps_z = as_int(block.warps_z),
                         .block_rows = as_int(block.rows),
                         .block_cells = as_int(block.cells),
                         .row_blocks = as_int(row_blocks),
                         .z_blocks = as_int(z_blocks),
                         .output_blocks = as_int(blocks_of(g.out_channels, 8))};
    }
    if (least == 1) return std::nullopt;
  }
}

// Taps along y that a block of a gradient sums for: 4 or 6, whichever leaves fewer unused.
std::int64_t gradient_taps(const ConvolutionGeometry& g) {
  return rounded_up(g.kernel[1], 6) <= rounded_up(g.kernel[1], 4) ? 6 : 4;
}

// How a gradient is divided among blocks and warps; nothing where the taps along z are too many for
// a tile.
std::optional<TensorGradient> gradient_of(const ConvolutionGeometry& g, bool pairs) {
  const std::int64_t cell = pairs ? 4 : 8, positions = pairs ? 16 : 8;
  const std::int64_t taps = gradient_taps(g), taps_z = std::int64_t{2} * GRADIENT_TILES;
  const std::int64_t rounds_y = blocks_of(g.kernel[1], taps),
                     rounds_z = blocks_of(g.kernel[2], taps_z);
  struct Tile {
    std::int64_t strips, steps, along_y, along_z, left_row, right_row;
    std::int64_t words(std::int64_t taps_y) const {
      return (strips * GRADIENT_STRIP + taps_y - 1) * left_row +
             strips * GRADIENT_STRIP * right_row;
    }
    // Turns of the warps for a plane.
    std::int64_t turns() const {
      return along_y * along_z * blocks_of(strips * steps, TENSOR_WARPS);
    }
  };
  const auto tile_of = [&](std::int64_t strips, std::int64_t steps) {
    return Tile{.strips = strips,
                .steps = steps,
                .along_y = blocks_of(g.out[1], strips * GRADIENT_STRIP),
                .along_z = blocks_of(g.out[2], steps * positions),
                .left_row = (steps * positions + rounds_z * taps_z - 1) * cell,
                .right_row = steps * positions * cell};
  };
  Tile tile = tile_of(1, 1);
  if (tile.words(taps) > GRADIENT_WORDS) return std::nullopt;
  for (std::int64_t steps = blocks_of(g.out[2], positions); steps > 0; --steps) {
    for (std::int64_t strips = 1; strips <= TENSOR_WARPS; ++strips) {
      const Tile other = tile_of(strips, steps);
      if (other.words(taps) <= GRADIENT_WORDS && other.turns() < tile.turns()) tile = other;
    }
  }
  return TensorGradient{
      .chunks = as_int(blocks_of(g.in_channels, kChannelsOfTile)),
      .output_blocks = as_int(blocks_of(g.out_channels, kChannelsOfTile)),
      .rounds_y = as_int(rounds_y),
      .rounds_z = as_int(rounds_z),
      .parts = as_int(blocks_of(g.out[0], PLANES_AT_ONCE)),
      .image_rows = as_int(tile.along_y * tile.strips * GRADIENT_STRIP + rounds_y * taps - 1),
      .tiles_y = as_int(tile.along_y),
      .tiles_z = as_int(tile.along_z),
      .strips = as_int(tile.strips),
      .steps = as_int(tile.steps),
      .left_row = as_int(tile.left_row),
      .right_row = as_int(tile.right_row)};
}

// An image as words: what a call of its kernel takes.
struct CutImage {
  ConvolutionSizes sizes;
  TensorImage image{};
  std::int64_t words, blocks;

  CutImage(const ConvolutionSizes& of, const TensorImage& cut) : sizes(of), image(cut) {
    const std::int64_t planes = std::int64_t{of.batch} * of.in[0] * cut.chunks * cut.z_blocks;
    const std::int64_t of_plane = std::int64_t{cut.rows} * cut.row;
    words = planes * of_plane;
    blocks = planes * blocks_of(of_plane / (cut.cell % 4 == 0 ? 4 : 1), IMAGE_PARTS * BLOCK_ITEMS);
    as_int(of_plane + IMAGE_PARTS * BLOCK_ITEMS);
  }
  void make(const Launcher& launch, const GroupCall& call, std::size_t operand,
            const std::uint32_t* to) const {
    launch.blocks(blocks, BLOCK_ITEMS, call.group.count,
                  call.with({operand}).operand(to, words).value(sizes).value(image));
  }
};

// The images of a gradient: eight channels a cell, in tiles along z.
CutImage gradient_image(const ConvolutionSizes& sizes, const TensorGradient& t, bool derivatives) {
  TensorImage cut{};
  cut.cell = sizes.pairs ? 4 : 8;
  cut.chunks = derivatives ? t.output_blocks : t.chunks;
  cut.rows = derivatives ? t.tiles_y * t.strips * GRADIENT_STRIP : t.image_rows;
  cut.row = derivatives ? t.right_row : t.left_row;
  cut.z_blocks = t.tiles_z;
  cut.block_cells = t.right_row / cut.cell;
  return {sizes, cut};
}

// The derivatives as an image of their own, without zeros around it.
ConvolutionSizes derivative_sizes(ConvolutionSizes sizes) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    sizes.in[axis] = sizes.out[axis];
    sizes.before[axis] = 0;
  }
  sizes.in_channels = sizes.out_channels;
  return sizes;
}

}  // namespace

std::unique_ptr<Kernel> tensor_image_kernel(const Maker& make, const ConvolutionGeometry& g,
                                            const Activation& activation, const ImageOperands& of) {
  const bool pairs = in_pairs(make);
  const auto cut = image_of(g, pairs);
  if (!cut) return nullptr;
  const TensorImage t = *cut;
  const ConvolutionSizes sizes = sizes_of(g, pairs, activation);
  const CutImage cut_image(sizes, t);
  const std::int64_t weights_size =
      std::int64_t{t.output_blocks} * t.chunks * g.kernel[0] * t.taps_y * t.steps * 64;
  const std::int64_t blocks = g.batch * g.out[0] * t.row_blocks * t.z_blocks * t.output_blocks;
  GroupScratch scratch(make.group);
  const MirroredKernel mirrored(make, g, of.mirror, scratch);
  const std::size_t weights_at = scratch.add_shared<std::uint32_t>(weights_size);
  const std::size_t image_at = scratch.add<std::uint32_t>(cut_image.words);
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
        cut_image.make(to_image, call, of.x, image);
        Arguments arguments;
        arguments.operand(image, cut_image.words)
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
  const CutImage left = gradient_image(sizes, t, false);
  const CutImage right = gradient_image(derivative_sizes(sizes), t, true);
  const std::int64_t terms = g.batch * t.parts, size = kernel_size(g);
  const std::int64_t blocks =
      g.batch * t.parts * g.kernel[0] * t.chunks * t.output_blocks * t.rounds_y * t.rounds_z;
  GroupScratch scratch(make.group);
  const std::size_t left_at = scratch.add<std::uint32_t>(left.words);
  const std::size_t right_at = scratch.add<std::uint32_t>(right.words);
  const std::size_t terms_at = scratch.add<float>(terms * size);
  const BiasGradient bias(make, g, scratch);
  return operation_kernel(
      scratch.bytes(),
      [=, to_image = make.kernel("tensor_image"), add = make.kernel("add_terms"),
       multiply = make.kernel(fmt::format("tensor_gradient_{}_{}", pairs ? "bf16" : "tf32",
                                          gradient_taps(g)))](const GroupCall& call) {
        const std::int64_t count = call.group.count;
        const auto *image = at<std::uint32_t>(call, left_at),
                   *derivatives = at<std::uint32_t>(call, right_at);
        const auto* each = at<float>(call, terms_at);
        left.make(to_image, call, 0, image);
        right.make(to_image, call, 1, derivatives);
        Arguments of_products;
        multiply.blocks(blocks, kItems, count,
                        of_products.operand(image, left.words)
                            .operand(derivatives, right.words)
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
