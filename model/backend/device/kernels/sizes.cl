// Arguments that kernels get by value. Both the host and the kernels' program include this file, so
// it is plain C.
// NOLINTBEGIN(modernize-use-using)

// Items of a block, unless a kernel says otherwise. Cards begin about one block in a cycle.
#define BLOCK_ITEMS 256
// Elements of an item where these are computed one by one: neighbours (load_neighbours()).
#define ITEM_ELEMENTS 4
// Convolutions: outputs and positions whose sums an item keeps, of upsampled images and of planes.
#define ITEM_OUTPUTS 8
#define ITEM_POSITIONS 4
#define MULTIPLY_POSITIONS 8
// Their gradients: lanes of sums over positions, and x planes whose products are summed at once;
// rows and outputs of sixteen lanes, and how many times sixteen are in a block.
#define LANES 16
#define PLANES_AT_ONCE 8
#define DOT_ROWS 4
#define DOT_OUTPUTS 8
#define DOT_TEAMS 4
// By tensor cores: warps of a block, what an item makes of an image, rows of a warp, and words of a
// block's two tiles.
#define TENSOR_WARPS 4
#define IMAGE_PARTS 4
#define TENSOR_ROWS 13
#define TENSOR_WORDS 10240
// Their gradients: of a warp, pairs of taps along z, most taps along y and rows of derivatives that
// are multiplied at once; words of a block's tile.
#define GRADIENT_TILES 3
#define GRADIENT_TAPS 6
#define GRADIENT_STRIP 8
#define GRADIENT_WORDS 11264

// An operand's place in its memory, in elements, and the way to that of a group's next micro-batch.
typedef struct {
  long offset, stride;
} Place;

// model/network.h: ActivationKind.
#define ACTIVATION_LINEAR 0
#define ACTIVATION_RELU 1
#define ACTIVATION_LEAKY_RELU 2
#define ACTIVATION_SIGMOID 3
#define ACTIVATION_TANH 4
#define ACTIVATION_SOFTPLUS 5
#define ACTIVATION_GELU 6
#define ACTIVATION_SILU 7
#define ACTIVATION_ELU 8

typedef struct {
  int kind;  // ActivationKind
  float slope;
} ActivationSizes;

// As ConvolutionGeometry, Tiling and ImageConvolution have them.
typedef struct {
  int batch, in[3], out[3], taps[3], before[3], factor[3];
  int in_channels, out_channels, bias;
  ActivationSizes activation;
  int points, outputs, row, taps_in_z, parts, taps_of_part, positions, plane;
  int pairs;       // 1: bfloat16, multiplied in pairs
  int weight_row;  // outputs, zeros behind the last included, of a channel in the weights
} ConvolutionSizes;

// An image as words, for convolutions by tensor cores. Blocks along z overlap by the taps.
typedef struct {
  int cell, chunks;           // words of a cell in a chunk of channels, and chunks
  int taps_y, steps;          // taps along y, whole windows; steps of eight words along (kz, word)
  int rows, row;              // rows of a plane, and words of a row of a block along z
  int tile_rows;              // rows of a block's tile
  int warps_z;                // of a block's warps, side by side along z
  int block_rows, block_cells;  // from a block to the next one
  int row_blocks, z_blocks, output_blocks;
} TensorImage;

// Their gradients.
typedef struct {
  int chunks, output_blocks;  // of eight channels
  int rounds_y, rounds_z;     // of taps
  int parts;                  // of the x planes
  int image_rows;             // of a plane of the image
  int tiles_y, tiles_z;       // of a plane of derivatives
  int strips, steps;          // of a tile
  int left_row, right_row;    // words of a tile's rows of the image, and of derivatives
} TensorGradient;

// A coarse image, each cell of which stands for a window of a fine one.
typedef struct {
  int fine[3], coarse[3], window[3], channels;
  float scale;
} WindowSizes;

// As PoolGeometry has them.
typedef struct {
  int in[3], size[3], stride[3], before[3], out[3], channels;
} PoolSizes;

// As Phases has them.
typedef struct {
  int batch, channels, space[3], cells[3], stride[3], offset[3], apart;
} PhaseSizes;

// As GroupedGeometry has them.
typedef struct {
  int batch, in[3], out[3], taps[3], before[3], stride[3], dilation[3];
  int in_channels, out_channels, groups, bias;
} GroupedSizes;

// As GroupNormForward has them.
typedef struct {
  int samples, rows, channels, groups;
} GroupNormSizes;

// As AttentionForward has them.
typedef struct {
  int batch, cells, heads, width;
} AttentionSizes;

// As PermuteAxes has them.
typedef struct {
  int in[4], order[4];
} AxisSizes;

// As CopyParts has them.
typedef struct {
  int count, from_offset, from_step, to_offset, to_step;
} PartSizes;

// As cpu::ChannelSums has them.
typedef struct {
  int rows, channels, period;
  int parts, part_rows;  // of each chain, and rows of a part, in whole periods
} ChannelSizes;

#define OPTIMISER_SGD 0
#define OPTIMISER_RMSPROP 1
#define OPTIMISER_ADAM 2

// UpdateFactors, and which optimiser it is: an OptimiserKind.
typedef struct {
  int kind, has_momentum;
  float rate, momentum, rho, rest_of_rho, beta_1, rest_of_beta_1, beta_2, rest_of_beta_2, epsilon;
} OptimiserSizes;

typedef struct {
  unsigned long seed;
  unsigned int iteration, slot_and_stream;
} DrawSizes;
// NOLINTEND(modernize-use-using)
