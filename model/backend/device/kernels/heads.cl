// The discriminators' outputs without parameters, and losses (reference/heads.cpp, loss.cpp).

// An event seen along z, in scratch memory: [energy, x, y, slope_x, slope_y][layer], then the total,
// the means of x, y, z, and the slopes of these means.
#define LAYER(array, z) profile[(array) * layers + (z)]
#define EVENT(number) profile[5 * layers + (number)]
enum { kEnergy, kX, kY, kSlopeX, kSlopeY };
enum { kTotal, kMeanX, kMeanY, kMeanZ, kSlopeOfMeanX, kSlopeOfMeanY, kSlopeOfMeanZ, kEventNumbers };

FUNCTION double centre(int index) { return (double)index + 0.5; }

// An item is a layer of an event.
KERNEL void angle_layers(OPERAND(const float, x), OPERAND(double, profiles), const int batch,
                         const int size_x, const int size_y, const int layers) {
  const int i = item(0), group = item(1);
  if (i >= batch * layers) return;
  const int z = i % layers;
  const long n = i / layers;
  GLOBAL double *profile = AT(profiles, group) + n * (5 * layers + kEventNumbers);
  GLOBAL const float *image = AT(x, group) + n * size_x * size_y * layers;
  double energy = 0.0, sum_x = 0.0, sum_y = 0.0;
  for (int ix = 0; ix < size_x; ++ix) {
    UNROLLED_BY(8) for (int iy = 0; iy < size_y; ++iy) {
      const double cell = (double)image[((long)ix * size_y + iy) * layers + z];
      energy += cell;
      sum_x += cell * centre(ix);
      sum_y += cell * centre(iy);
    }
  }
  LAYER(kEnergy, z) = energy;
  LAYER(kX, z) = sum_x;
  LAYER(kY, z) = sum_y;
}

FUNCTION void finish_profile(GLOBAL double *profile, int layers) {
  double total = 0.0, mean_x = 0.0, mean_y = 0.0, mean_z = 0.0;
  for (int z = 0; z < layers; ++z) {
    const double energy = LAYER(kEnergy, z);
    total += energy;
    mean_x += LAYER(kX, z);
    mean_y += LAYER(kY, z);
    mean_z += energy * centre(z);
    LAYER(kX, z) = energy == 0.0 ? 0.0 : LAYER(kX, z) / energy;
    LAYER(kY, z) = energy == 0.0 ? 0.0 : LAYER(kY, z) / energy;
  }
  EVENT(kTotal) = total;
  EVENT(kMeanX) = mean_x / total;
  EVENT(kMeanY) = mean_y / total;
  EVENT(kMeanZ) = mean_z / total;
}

typedef struct {
  double from_x, from_z, length, sign, slope;
  int clipped;
} Direction;

FUNCTION Direction direction_of(GLOBAL const double *profile, int layers, int z) {
  Direction d;
  d.from_x = LAYER(kX, z) - EVENT(kMeanX);
  d.from_z = centre(z) - EVENT(kMeanZ);
  const double square = d.from_x * d.from_x + d.from_z * d.from_z;
  d.clipped = square < 1e-7;
  d.length = sqrt(d.clipped ? 1e-7 : square);
  d.sign = d.from_z < 0.0 ? -1.0 : 1.0;
  d.slope = (LAYER(kY, z) - EVENT(kMeanY)) / d.length;
  return d;
}

FUNCTION double weight_of_layers(GLOBAL const double *profile, int layers) {
  double weight = 0.0;
  for (int z = 0; z < layers; ++z) weight += LAYER(kEnergy, z) == 0.0 ? 0.0 : centre(z);
  return weight;
}

KERNEL void angle_forward(OPERAND(double, profiles), OPERAND(float, y), const int batch,
                          const int layers) {
  const int n = item(0), group = item(1);
  if (n >= batch) return;
  GLOBAL double *profile = AT(profiles, group) + n * (5 * layers + kEventNumbers);
  finish_profile(profile, layers);
  double angle = 100.0;
  if (EVENT(kTotal) != 0.0) {
    double sum = 0.0;
    for (int z = 0; z < layers; ++z) {
      if (LAYER(kEnergy, z) == 0.0) continue;
      const Direction d = direction_of(profile, layers, z);
      sum += (0x1.921fb54442d18p+0 - atan_exactly(d.sign * d.slope)) * centre(z);
    }
    angle = sum / weight_of_layers(profile, layers);
  }
  AT(y, group)[n] = (float)angle;
}

KERNEL void angle_slopes(OPERAND(double, profiles), const int batch, const int layers) {
  const int n = item(0), group = item(1);
  if (n >= batch) return;
  GLOBAL double *profile = AT(profiles, group) + n * (5 * layers + kEventNumbers);
  finish_profile(profile, layers);
  const double weight = weight_of_layers(profile, layers);
  double of_x = 0.0, of_y = 0.0, of_z = 0.0;
  for (int z = 0; z < layers; ++z) {
    LAYER(kSlopeX, z) = LAYER(kSlopeY, z) = 0.0;
    if (LAYER(kEnergy, z) == 0.0) continue;
    const Direction d = direction_of(profile, layers, z);
    const double by_m = -d.sign / (1.0 + d.slope * d.slope) * (centre(z) / weight);
    const double by_square = d.clipped ? 0.0 : by_m * d.slope / (d.length * d.length);
    LAYER(kSlopeY, z) = by_m / d.length;
    LAYER(kSlopeX, z) = -by_square * d.from_x;
    of_y -= LAYER(kSlopeY, z);
    of_x -= LAYER(kSlopeX, z);
    of_z += by_square * d.from_z;
  }
  EVENT(kSlopeOfMeanX) = of_x;
  EVENT(kSlopeOfMeanY) = of_y;
  EVENT(kSlopeOfMeanZ) = of_z;
}

KERNEL void angle_backward(OPERAND(const double, profiles), OPERAND(const float, dy),
                           OPERAND(float, dx), const int batch, const int size_x,
                           const int size_y, const int layers) {
  const int i = item(0), group = item(1);
  if (i >= batch * size_x * size_y * layers) return;
  const int z = i % layers;
  const int iy = i / layers % size_y;
  const int ix = i / layers / size_y % size_x;
  const long n = i / layers / size_y / size_x;
  GLOBAL const double *profile = AT(profiles, group) + n * (5 * layers + kEventNumbers);
  float result = 0.0f;
  if (EVENT(kTotal) != 0.0) {
    const double event_xy = EVENT(kSlopeOfMeanX) * (centre(ix) - EVENT(kMeanX)) +
                            EVENT(kSlopeOfMeanY) * (centre(iy) - EVENT(kMeanY));
    const double event =
        (event_xy + EVENT(kSlopeOfMeanZ) * (centre(z) - EVENT(kMeanZ))) / EVENT(kTotal);
    const double layer = LAYER(kSlopeX, z) * (centre(ix) - LAYER(kX, z)) +
                         LAYER(kSlopeY, z) * (centre(iy) - LAYER(kY, z));
    const double energy = LAYER(kEnergy, z) == 0.0 ? 1.0 : LAYER(kEnergy, z);
    result = (float)((double)AT(dy, group)[n] * (event + layer / energy));
  }
  AT(dx, group)[i] = result;
}

// One item counts one event.
KERNEL void bins_forward(OPERAND(const float, x), OPERAND(float, y), const int batch,
                         const long cells) {
  const int n = item(0), group = item(1);
  if (n >= batch) return;
  GLOBAL const float *image = AT(x, group) + n * cells;
  const float edges[7] = {0.05f, 0.03f, 0.02f, 0.0125f, 0.008f, 0.003f, 0.0f};
  int counts[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (long i = 0; i < cells; ++i) {
    const float cell = image[i];
    if (cell == 0.0f) ++counts[7];
    if (!(cell > 0.0f)) continue;
    int bin = 0;
    while (!(cell > edges[bin])) ++bin;
    ++counts[bin];
  }
  for (int k = 0; k < 8; ++k) AT(y, group)[n * 8 + k] = (float)counts[k];
}

#define LOSS_BINARY_CROSSENTROPY 0
#define LOSS_ABSOLUTE_ERROR 1
#define LOSS_SQUARED_ERROR 3
#define LOSS_HUBER 4
#define LOSS_LOGISTIC_CROSSENTROPY 5
#define LOSS_HINGE 6
#define LOSS_WASSERSTEIN 7

// One item is a micro-batch.
KERNEL void mean_loss(OPERAND(const float, p), OPERAND(const float, t), OPERAND(float, value),
                      OPERAND(float, gradient), const long elements, const int kind,
                      const double weight, const double least_target) {
  const int group = item(1);
  if (item(0) > 0) return;
  const double count = (double)elements;
  double sum = 0.0;
  for (long i = 0; i < elements; ++i) {
    const double output = (double)AT(p, group)[i];
    const double given = (double)AT(t, group)[i];
    const double target = least_target < given ? given : least_target;
    double loss, slope;
    if (kind == LOSS_BINARY_CROSSENTROPY) {
      const double low = 1e-7, high = 1.0 - 1e-7;
      const double q = output < low ? low : (output > high ? high : output);
      loss = -target * log_exactly(q) - (1.0 - target) * log_exactly(1.0 - q);
      slope = output < low || output > high ? 0.0 : (q - target) / (q * (1.0 - q));
    } else if (kind == LOSS_LOGISTIC_CROSSENTROPY) {
      const double positive = output < 0.0 ? 0.0 : output;
      const double rest = log_exactly(1.0 + exp_exactly(-fabs(output)));
      loss = positive - output * target + rest;
      slope = sigmoid_exactly(output) - target;
    } else if (kind == LOSS_HINGE) {
      const double sign = 2.0 * target - 1.0, margin = 1.0 - sign * output;
      loss = margin <= 0.0 ? 0.0 : margin;
      slope = margin <= 0.0 ? 0.0 : -sign;
    } else if (kind == LOSS_WASSERSTEIN) {
      slope = 1.0 - 2.0 * target;
      loss = slope * output;
    } else if (kind == LOSS_SQUARED_ERROR) {
      const double difference = output - target;
      loss = difference * difference;
      slope = 2.0 * difference;
    } else if (kind == LOSS_HUBER && !(fabs(output - target) > 1.0)) {
      const double difference = output - target;
      loss = 0.5 * difference * difference;
      slope = difference;
    } else {
      const double size = fabs(target);
      const double scale = 100.0 / (size > 1e-7 ? size : 1e-7);
      const double difference = output - target;
      const double sign = difference > 0.0 ? 1.0 : (difference < 0.0 ? -1.0 : 0.0);
      loss = fabs(target - output);
      slope = sign;
      if (kind == LOSS_HUBER) {
        loss = loss - 0.5;
      } else if (kind != LOSS_ABSOLUTE_ERROR) {
        loss = scale * loss;
        slope = scale * slope;
      }
    }
    sum += loss;
    AT(gradient, group)[i] = (float)(weight * slope / count);
  }
  AT(value, group)[0] = (float)(sum / count);
}

// One item is a micro-batch.
KERNEL void class_crossentropy(OPERAND(const float, p), OPERAND(const float, t),
                               OPERAND(float, value), OPERAND(float, gradient), const long batch,
                               const long classes, const double weight) {
  const int group = item(1);
  if (item(0) > 0) return;
  const double count = (double)batch;
  double sum = 0.0;
  for (long b = 0; b < batch; ++b) {
    GLOBAL const float *outputs = AT(p, group) + b * classes;
    GLOBAL float *gradients = AT(gradient, group) + b * classes;
    const double target = (double)AT(t, group)[b];
    float highest = outputs[0];
    for (long k = 1; k < classes; ++k) {
      if (highest < outputs[k]) highest = outputs[k];
    }
    const double most = (double)highest;
    double all = 0.0, own = 0.0;
    int is_class = 0;
    for (long k = 0; k < classes; ++k) {
      const double output = (double)outputs[k] - most;
      all += exp_exactly(output);
      if (target == (double)k) {
        own = output;
        is_class = 1;
      }
    }
    const double lost = is_class ? 0.0 : (double)NAN;
    sum += log_exactly(all) - own + lost;
    for (long k = 0; k < classes; ++k) {
      const double output = (double)outputs[k] - most;
      const double expected = target == (double)k ? 1.0 : lost;
      const double slope = exp_exactly(output) / all - expected;
      gradients[k] = (float)(weight * slope / count);
    }
  }
  AT(value, group)[0] = (float)(sum / count);
}

// One item looks through one micro-batch.
KERNEL void count_empty(OPERAND(const float, x), OPERAND(float, y), const int batch,
                        const long cells) {
  const int group = item(1);
  if (item(0) > 0) return;
  GLOBAL const float *image = AT(x, group);
  int empty = 0;
  for (int n = 0; n < batch; ++n, image += cells) {
    long i = 0;
    while (i < cells && image[i] == 0.0f) ++i;
    empty += i == cells;
  }
  AT(y, group)[0] = (float)empty;
}

KERNEL void mix_events(OPERAND(const float, a), OPERAND(const float, b), OPERAND(const float, u),
                       OPERAND(float, y), const int batch, const long cells) {
  const int i = item(0), group = item(1);
  if (i >= batch * cells) return;
  const double from = (double)AT(a, group)[i], to = (double)AT(b, group)[i];
  AT(y, group)[i] = (float)(from + (double)AT(u, group)[i / cells] * (to - from));
}

FUNCTION double norm_of(GLOBAL const float *values, const long count) {
  double squares = 0.0;
  for (long i = 0; i < count; ++i) squares += (double)values[i] * (double)values[i];
  return sqrt(squares);
}

// One item is an event.
KERNEL void slope_probes(OPERAND(const float, x), OPERAND(const float, dx), OPERAND(float, slope),
                         OPERAND(float, above), OPERAND(float, below), OPERAND(float, factors),
                         const int batch, const long cells) {
  const int n = item(0), group = item(1);
  if (n >= batch) return;
  GLOBAL const float *at = AT(x, group) + n * cells;
  GLOBAL const float *gradient = AT(dx, group) + n * cells;
  const double length = norm_of(gradient, cells), size = norm_of(at, cells);
  const double step = (size < 1.0 ? 1.0 : size) / 1024.0;
  const double along = length > 0.0 ? step / length : 0.0;
  for (long i = 0; i < cells; ++i) {
    const double moved = along * (double)gradient[i];
    AT(above, group)[n * cells + i] = (float)((double)at[i] + moved);
    AT(below, group)[n * cells + i] = (float)((double)at[i] - moved);
  }
  AT(slope, group)[n] = (float)length;
  AT(factors, group)[n] = (float)(0.5 / step);
  AT(factors, group)[batch + n] = (float)(-0.5 / step);
}
