#include "model/backend/reference/kernels.h"

#include <algorithm>
#include <numeric>

namespace troupe::model::reference {
namespace {

// A coarse image, each cell of which stands for a window of a fine one. Cells of the fine image
// beyond coarse x window belong to no window.
struct Windows {
  std::int64_t batch, channels;
  Extent fine, coarse, window;
};

Windows windows(const UpsampleForward& u) {
  return {u.batch,
          u.channels,
          {u.in[0] * u.factor[0], u.in[1] * u.factor[1], u.in[2] * u.factor[2]},
          u.in,
          u.factor};
}
Windows windows(const PoolGeometry& pool) {  // side by side
  return {pool.batch, pool.channels, pool.in, pool.out, pool.size};
}

// One coarse row (all z) from the fine row at the same place in the window: row += fine.
template <class T>
void add_window_row(const Windows& w, const T* fine, T* row) {
  if (w.window[2] == 1) {
    for (std::int64_t i = 0; i < w.coarse[2] * w.channels; ++i) row[i] += fine[i];
    return;
  }
  if (w.channels == 1) {
    for (std::int64_t z = 0; z < w.coarse[2]; ++z, fine += w.window[2]) {
      row[z] = std::accumulate(fine, fine + w.window[2], row[z]);
    }
    return;
  }
  for (std::int64_t z = 0; z < w.coarse[2]; ++z) {
    for (std::int64_t k = 0; k < w.window[2]; ++k) {
      const T* from = fine + (z * w.window[2] + k) * w.channels;
      for (std::int64_t c = 0; c < w.channels; ++c) row[z * w.channels + c] += from[c];
    }
  }
}

// coarse = scale x sum of the window.
template <class T>
void gather(const Windows& w, const T* fine, T* coarse, T scale) {
  const std::int64_t row_size = w.coarse[2] * w.channels;
  for (std::int64_t plane = 0; plane < w.batch * w.coarse[0]; ++plane) {
    const std::int64_t n = plane / w.coarse[0], x = plane % w.coarse[0];
    for (std::int64_t y = 0; y < w.coarse[1]; ++y) {
      T* row = coarse + (plane * w.coarse[1] + y) * row_size;
      std::fill_n(row, row_size, T{0});
      for (std::int64_t kx = 0; kx < w.window[0]; ++kx) {
        for (std::int64_t ky = 0; ky < w.window[1]; ++ky) {
          const std::int64_t fx = x * w.window[0] + kx, fy = y * w.window[1] + ky;
          add_window_row(w, fine + ((n * w.fine[0] + fx) * w.fine[1] + fy) * w.fine[2] * w.channels,
                         row);
        }
      }
      for (std::int64_t i = 0; i < row_size; ++i) row[i] *= scale;
    }
  }
}

// Every fine cell = scale x its window's coarse cell, 0 outside all windows.
template <class T>
void scatter(const Windows& w, const T* coarse, T* fine, T scale) {
  const std::int64_t row_size = w.fine[2] * w.channels;
  for (std::int64_t plane = 0; plane < w.batch * w.fine[0]; ++plane) {
    const std::int64_t n = plane / w.fine[0], x = plane % w.fine[0] / w.window[0];
    for (std::int64_t fy = 0; fy < w.fine[1]; ++fy) {
      T* row = fine + (plane * w.fine[1] + fy) * row_size;
      const std::int64_t y = fy / w.window[1];
      const bool covered = x < w.coarse[0] && y < w.coarse[1];
      const T* from = coarse + ((n * w.coarse[0] + x) * w.coarse[1] + y) * w.coarse[2] * w.channels;
      const auto put = [&](const T* cells, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) row[i] = cells[i] * scale;
        row += count;
      };
      T* const end = row + row_size;
      if (covered && w.window[2] == 1) {
        put(from, w.coarse[2] * w.channels);
      } else if (covered) {
        for (std::int64_t z = 0; z < w.coarse[2]; ++z) {
          for (std::int64_t k = 0; k < w.window[2]; ++k) put(from + z * w.channels, w.channels);
        }
      }
      std::fill(row, end, T{0});
    }
  }
}

template <class T>
T mean_scale(const Extent& window) {
  return T{1} / static_cast<T>(window[0] * window[1] * window[2]);
}

// The part of a window inside the image: its first element, and its cells.
struct InnerWindow {
  std::int64_t first = 0;
  Extent size{};
};

// Calls use(window) for each, in ascending order.
template <class Use>
void for_each_window(const PoolGeometry& g, const Use& use) {
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t wx = 0; wx < g.out[0]; ++wx) {
      const CellRange x = cells_of_window(g, 0, wx);
      for (std::int64_t wy = 0; wy < g.out[1]; ++wy) {
        const CellRange y = cells_of_window(g, 1, wy);
        const std::int64_t row = ((n * g.in[0] + x.begin) * g.in[1] + y.begin) * g.in[2];
        for (std::int64_t wz = 0; wz < g.out[2]; ++wz) {
          const CellRange z = cells_of_window(g, 2, wz);
          use(InnerWindow{(row + z.begin) * g.channels, {x.size(), y.size(), z.size()}});
        }
      }
    }
  }
}

// Calls use(first element) for each cell of the window.
template <class Use>
void for_each_cell(const PoolGeometry& g, const InnerWindow& window, const Use& use) {
  const std::int64_t row = g.in[2] * g.channels, plane = g.in[1] * row;
  for (std::int64_t x = 0; x < window.size[0]; ++x) {
    for (std::int64_t y = 0; y < window.size[1]; ++y) {
      std::int64_t place = window.first + x * plane + y * row;
      for (std::int64_t z = 0; z < window.size[2]; ++z, place += g.channels) use(place);
    }
  }
}

// Windows that overlap, or have cells outside.
template <class T>
void average(const PoolGeometry& g, const T* x, T* y) {
  for_each_window(g, [&](const InnerWindow& window) {
    std::fill_n(y, g.channels, T{0});
    for_each_cell(g, window, [&](std::int64_t place) {
      for (std::int64_t c = 0; c < g.channels; ++c) y[c] += x[place + c];
    });
    const T scale = mean_scale<T>(window.size);
    for (std::int64_t c = 0; c < g.channels; ++c) y[c] *= scale;
    y += g.channels;
  });
}
template <class T>
void average_backward(const PoolGeometry& g, const T* dy, T* dx) {
  std::fill_n(dx, g.batch * g.in[0] * g.in[1] * g.in[2] * g.channels, T{0});
  for_each_window(g, [&](const InnerWindow& window) {
    const T scale = mean_scale<T>(window.size);
    for_each_cell(g, window, [&](std::int64_t place) {
      for (std::int64_t c = 0; c < g.channels; ++c) dx[place + c] += dy[c] * scale;
    });
    dy += g.channels;
  });
}

}  // namespace

template <class T>
void run(const PadForward& pad, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  const Extent &in = pad.in, &before = pad.amount.before, &behind = pad.amount.behind;
  const std::int64_t body = in[2] * pad.channels;
  for (std::int64_t n = 0; n < pad.batch; ++n) {
    for (std::int64_t ix = -before[0]; ix < in[0] + behind[0]; ++ix) {
      for (std::int64_t iy = -before[1]; iy < in[1] + behind[1]; ++iy) {
        const bool inside = ix >= 0 && ix < in[0] && iy >= 0 && iy < in[1];
        y = std::fill_n(y, before[2] * pad.channels, T{0});
        if (inside) {
          y = std::copy_n(x + ((n * in[0] + ix) * in[1] + iy) * body, body, y);
        } else {
          y = std::fill_n(y, body, T{0});
        }
        y = std::fill_n(y, behind[2] * pad.channels, T{0});
      }
    }
  }
}

template <class T>
void run(const PadBackward& pad, const KernelCall& call) {
  const auto* dy = call.operand<const T>(0);
  auto* dx = call.operand<T>(1);
  const Extent &in = pad.in, &before = pad.amount.before, all = padded(in, pad.amount);
  const std::int64_t body = in[2] * pad.channels;
  for (std::int64_t n = 0; n < pad.batch; ++n) {
    for (std::int64_t x = before[0]; x < in[0] + before[0]; ++x) {
      for (std::int64_t y = before[1]; y < in[1] + before[1]; ++y) {
        const std::int64_t row = (n * all[0] + x) * all[1] + y;
        dx = std::copy_n(dy + (row * all[2] + before[2]) * pad.channels, body, dx);
      }
    }
  }
}

template <class T>
void run(const UpsampleForward& upsample, const KernelCall& call) {
  scatter(windows(upsample), call.operand<const T>(0), call.operand<T>(1), T{1});
}

template <class T>
void run(const UpsampleBackward& u, const KernelCall& call) {
  gather(windows(UpsampleForward{u.batch, u.channels, u.in, u.factor}), call.operand<const T>(0),
         call.operand<T>(1), T{1});
}

template <class T>
void run(const AveragePoolForward& pool, const KernelCall& call) {
  const PoolGeometry& g = pool.geometry;
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  if (!side_by_side(g)) return average(g, x, y);
  gather(windows(g), x, y, mean_scale<T>(g.size));
}

template <class T>
void run(const AveragePoolBackward& pool, const KernelCall& call) {
  const PoolGeometry& g = pool.geometry;
  const auto* dy = call.operand<const T>(0);
  auto* dx = call.operand<T>(1);
  if (!side_by_side(g)) return average_backward(g, dy, dx);
  scatter(windows(g), dy, dx, mean_scale<T>(g.size));
}

namespace {

// Calls use(place in the coarse image, place in the fine one of the window's first largest cell).
// Channels are compared side by side.
template <class T, class Use>
void for_each_largest(const PoolGeometry& g, const T* x, const Use& use) {
  constexpr std::int64_t kAtOnce = 16;
  const std::int64_t row = g.in[2] * g.channels, plane = g.in[1] * row;
  std::int64_t to = 0;
  const auto search = [&](const InnerWindow& window, std::int64_t first, std::int64_t channels) {
    T largest[kAtOnce];
    std::int32_t numbers[kAtOnce] = {}, number = 0;  // of cells in the window
    std::copy_n(x + window.first + first, channels, largest);
    for_each_cell(g, window, [&](std::int64_t place) {
      const T* cell = x + place + first;
      for (std::int64_t c = 0; c < channels; ++c) {
        const bool larger = largest[c] == largest[c] && !(cell[c] <= largest[c]);
        largest[c] = larger ? cell[c] : largest[c];
        numbers[c] = larger ? number : numbers[c];
      }
      ++number;
    });
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t of_row = numbers[c] / window.size[2], z = numbers[c] % window.size[2];
      const std::int64_t place = of_row / window.size[1] * plane + of_row % window.size[1] * row;
      use(to++, window.first + first + place + z * g.channels + c);
    }
  };
  for_each_window(g, [&](const InnerWindow& window) {
    for (std::int64_t c = 0; c < g.channels; c += kAtOnce) {
      search(window, c, std::min(kAtOnce, g.channels - c));
    }
  });
}

}  // namespace

template <class T>
void run(const MaxPoolForward& pool, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  for_each_largest(pool.geometry, x,
                   [&](std::int64_t to, std::int64_t largest) { y[to] = x[largest]; });
}

template <class T>
void run(const MaxPoolBackward& pool, const KernelCall& call) {
  const PoolGeometry& g = pool.geometry;
  const auto* dy = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  std::fill_n(dx, g.batch * g.in[0] * g.in[1] * g.in[2] * g.channels, T{0});
  const bool apart = side_by_side(g);
  for_each_largest(g, call.operand<const T>(0), [&](std::int64_t from, std::int64_t largest) {
    dx[largest] = apart ? dy[from] : dx[largest] + dy[from];
  });
}

TROUPE_INSTANTIATE_RUN(MaxPoolForward);
TROUPE_INSTANTIATE_RUN(MaxPoolBackward);
TROUPE_INSTANTIATE_RUN(PadForward);
TROUPE_INSTANTIATE_RUN(PadBackward);
TROUPE_INSTANTIATE_RUN(UpsampleForward);
TROUPE_INSTANTIATE_RUN(UpsampleBackward);
TROUPE_INSTANTIATE_RUN(AveragePoolForward);
TROUPE_INSTANTIATE_RUN(AveragePoolBackward);

}  // namespace troupe::model::reference
