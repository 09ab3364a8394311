#include <algorithm>
#include <cmath>
#include <limits>

#include "model/backend/reference/kernels.h"
#include "runtime/base/math.h"

// Softmax, attention and embedding.

namespace troupe::model::reference {
namespace {

// weights = softmax(weights).
void weigh(double* weights, std::int64_t count) {
  const double largest = largest_of(weights, count);
  double sum = 0.0;
  for (std::int64_t j = 0; j < count; ++j) {
    weights[j] = runtime::math::exp(weights[j] - largest);
    sum += weights[j];
  }
  for (std::int64_t j = 0; j < count; ++j) weights[j] /= sum;
}

// One head of one sample.
template <class T>
class Head {
 public:
  Head(const AttentionForward& attention, const T* sample, std::int64_t head)
      : cells_(attention.cells),
        width_(attention.width),
        step_(3 * attention.heads * attention.width),
        part_(attention.heads * attention.width),
        values_(sample + head * attention.width),
        scale_(1.0 / std::sqrt(static_cast<double>(attention.width))) {}

  enum Part { kQuery, kKey, kValue };
  const T* at(Part part, std::int64_t cell) const {
    return values_ + cell * step_ + static_cast<std::int64_t>(part) * part_;
  }
  std::int64_t cells() const { return cells_; }
  std::int64_t width() const { return width_; }
  double scale() const { return scale_; }

  // How much each cell counts for cell i.
  void weights_of(std::int64_t i, double* weights) const {
    for (std::int64_t j = 0; j < cells_; ++j) {
      weights[j] = scale_ * dot(at(kQuery, i), at(kKey, j));
    }
    weigh(weights, cells_);
  }
  double dot(const T* a, const T* b) const {
    double sum = 0.0;
    for (std::int64_t d = 0; d < width_; ++d) {
      sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
    }
    return sum;
  }

 private:
  std::int64_t cells_, width_, step_, part_;
  const T* values_;
  double scale_;
};

}  // namespace

template <class T>
void run(const SoftmaxForward& softmax, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  const std::int64_t channels = softmax.channels;
  for (std::int64_t r = 0; r < softmax.rows; ++r, x += channels, y += channels) {
    const double largest = static_cast<double>(largest_of(x, channels));
    const auto power = [&](std::int64_t c) {
      return runtime::math::exp(static_cast<double>(x[c]) - largest);
    };
    double sum = 0.0;
    for (std::int64_t c = 0; c < channels; ++c) sum += power(c);
    for (std::int64_t c = 0; c < channels; ++c) y[c] = static_cast<T>(power(c) / sum);
  }
}

template <class T>
void run(const SoftmaxBackward& softmax, const KernelCall& call) {
  const auto* y = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  const std::int64_t channels = softmax.channels;
  for (std::int64_t r = 0; r < softmax.rows; ++r) {
    double sum = 0.0;
    for (std::int64_t c = 0; c < channels; ++c) {
      sum += static_cast<double>(y[c]) * static_cast<double>(dy[c]);
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      dx[c] = static_cast<T>(static_cast<double>(y[c]) * (static_cast<double>(dy[c]) - sum));
    }
    y += channels;
    dy += channels;
    dx += channels;
  }
}

TROUPE_INSTANTIATE_RUN(SoftmaxForward);
TROUPE_INSTANTIATE_RUN(SoftmaxBackward);

template <class T>
void run(const AttentionForward& attention, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  auto* weights = reinterpret_cast<double*>(call.scratch);
  const std::int64_t cells = attention.cells, channels = attention.heads * attention.width;
  for (std::int64_t n = 0; n < attention.batch; ++n) {
    for (std::int64_t h = 0; h < attention.heads; ++h) {
      const Head<T> head(attention, x + n * cells * 3 * channels, h);
      for (std::int64_t i = 0; i < cells; ++i) {
        head.weights_of(i, weights);
        T* to = y + (n * cells + i) * channels + h * attention.width;
        for (std::int64_t d = 0; d < attention.width; ++d) {
          double sum = 0.0;
          for (std::int64_t j = 0; j < cells; ++j) {
            sum += weights[j] * static_cast<double>(head.at(Head<T>::kValue, j)[d]);
          }
          to[d] = static_cast<T>(sum);
        }
      }
    }
  }
}

// With w the weights: dw_ij = dy_i . value_j, ds_ij = w_ij (dw_ij - sum_j w_ij dw_ij), and from
// them the derivatives of queries, keys and values.
template <class T>
void run(const AttentionBackward& a, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  const std::int64_t cells = a.cells, channels = a.heads * a.width;
  auto* weights = reinterpret_cast<double*>(call.scratch);
  auto* slopes = weights + cells * cells;
  for (std::int64_t n = 0; n < a.batch; ++n) {
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const Head<T> head({a.batch, cells, a.heads, a.width}, x + n * cells * 3 * channels, h);
      const auto derivative = [&](std::int64_t i) {
        return dy + (n * cells + i) * channels + h * a.width;
      };
      for (std::int64_t i = 0; i < cells; ++i) {
        double *w = weights + i * cells, *s = slopes + i * cells, mean = 0.0;
        head.weights_of(i, w);
        for (std::int64_t j = 0; j < cells; ++j) {
          s[j] = head.dot(derivative(i), head.at(Head<T>::kValue, j));
          mean += w[j] * s[j];
        }
        for (std::int64_t j = 0; j < cells; ++j) s[j] = w[j] * (s[j] - mean);
      }
      for (std::int64_t i = 0; i < cells; ++i) {
        T* to = dx + (n * cells + i) * 3 * channels + h * a.width;
        for (std::int64_t d = 0; d < a.width; ++d) {
          double query = 0.0, key = 0.0, value = 0.0;
          for (std::int64_t j = 0; j < cells; ++j) {
            query += slopes[i * cells + j] * static_cast<double>(head.at(Head<T>::kKey, j)[d]);
            key += slopes[j * cells + i] * static_cast<double>(head.at(Head<T>::kQuery, j)[d]);
            value += weights[j * cells + i] * static_cast<double>(derivative(j)[d]);
          }
          to[d] = static_cast<T>(query * head.scale());
          to[channels + d] = static_cast<T>(key * head.scale());
          to[2 * channels + d] = static_cast<T>(value);
        }
      }
    }
  }
}

TROUPE_INSTANTIATE_RUN(AttentionForward);
TROUPE_INSTANTIATE_RUN(AttentionBackward);

namespace {

// The row of a class; -1 when the number is that of none.
template <class T>
std::int64_t row_of(T number, std::int64_t classes) {
  if (!(number >= T{0} && number < static_cast<T>(classes))) return -1;
  const auto row = static_cast<std::int64_t>(number);
  return static_cast<T>(row) == number ? row : -1;
}

}  // namespace

template <class T>
void run(const EmbeddingForward& embedding, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* kernel = call.operand<const T>(1);
  auto* y = call.operand<T>(2);
  for (std::int64_t n = 0; n < embedding.batch; ++n) {
    const std::int64_t row = row_of(x[n], embedding.classes);
    if (row < 0) {
      y = std::fill_n(y, embedding.units, std::numeric_limits<T>::quiet_NaN());
    } else {
      y = std::copy_n(kernel + row * embedding.units, embedding.units, y);
    }
  }
}

template <class T>
void run(const EmbeddingBackward& embedding, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  auto* dkernel = call.operand<T>(2);
  auto* sums = reinterpret_cast<double*>(call.scratch);
  const std::int64_t units = embedding.units;
  for (std::int64_t row = 0; row < embedding.classes; ++row) {
    std::fill_n(sums, units, 0.0);
    for (std::int64_t n = 0; n < embedding.batch; ++n) {
      if (row_of(x[n], embedding.classes) != row) continue;
      for (std::int64_t unit = 0; unit < units; ++unit) {
        sums[unit] += static_cast<double>(dy[n * units + unit]);
      }
    }
    for (std::int64_t unit = 0; unit < units; ++unit) *dkernel++ = static_cast<T>(sums[unit]);
  }
}

TROUPE_INSTANTIATE_RUN(EmbeddingForward);
TROUPE_INSTANTIATE_RUN(EmbeddingBackward);

}  // namespace troupe::model::reference
