// Arguments that kernels get by value. Both the host and the kernels' program include this file, so
// it is plain C.

// Items of a block, unless a kernel says otherwise.
#define BLOCK_ITEMS 64
// Outputs and positions whose sums an item of a convolution keeps, lanes of sums over positions, x
// planes of the output whose products are summed at once; and rows and outputs of sixteen lanes, and
// how many times sixteen are in a block (convolution.cl).
#define ITEM_OUTPUTS 8
#define ITEM_POSITIONS 4
#define LANES 16
#define PLANES_AT_ONCE 8
#define DOT_ROWS 4
#define DOT_OUTPUTS 8
#define DOT_TEAMS 4

// An operand's place in its memory, in elements, and the way to that of a group's next micro-batch.
typedef struct {
  long offset, stride;
} Place;

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

// A coarse image, each cell of which stands for a window of a fine one.
typedef struct {
  int fine[3], coarse[3], window[3], channels;
  float scale;
} WindowSizes;

typedef struct {
  int rows, channels, period;
  double epsilon;
} BatchNormSizes;

typedef struct {
  unsigned long seed;
  unsigned int iteration, slot_and_stream;
} DrawSizes;
