#include "telemetry/sinks/shower_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace troupe::telemetry {
namespace {

using nlohmann::json;
using Space = std::array<std::uint32_t, 3>;

constexpr std::uint32_t kPixels = 4;  // a cell's side
constexpr std::uint32_t kGap = 4;     // pixels between two views
constexpr double kDecades = 4.0;
constexpr std::uint32_t kMostCells = 512;  // along an axis

// A shower summed along one axis. The first of the two other axes goes to the right.
struct View {
  std::uint32_t width = 0, height = 0;
  std::vector<double> gev;
};

// The sums along z, y and x.
std::array<View, 3> views_of(const json& shower, const Space& space) {
  constexpr std::array<std::array<std::size_t, 2>, 3> kKept{{{0, 1}, {0, 2}, {1, 2}}};
  std::array<View, 3> views;
  for (std::size_t i = 0; i < 3; ++i) {
    views[i].width = space[kKept[i][0]];
    views[i].height = space[kKept[i][1]];
    views[i].gev.resize(std::size_t{views[i].width} * views[i].height);
  }
  const auto cells = shower.value("cells", std::vector<std::uint64_t>());
  const auto gev = shower.value("gev", std::vector<double>());
  for (std::size_t n = 0; n < std::min(cells.size(), gev.size()); ++n) {
    const std::uint64_t z = cells[n] % space[2], y = cells[n] / space[2] % space[1];
    const std::uint64_t x = cells[n] / space[2] / space[1];
    if (x >= space[0]) continue;
    const std::array<std::uint64_t, 3> at{x, y, z};
    for (std::size_t i = 0; i < 3; ++i) {
      views[i].gev[at[kKept[i][1]] * views[i].width + at[kKept[i][0]]] += gev[n];
    }
  }
  return views;
}

void paint(const View& view, double brightest, std::uint32_t left, std::uint32_t top,
           Image& image) {
  for (std::uint32_t row = 0; row < view.height * kPixels; ++row) {
    for (std::uint32_t column = 0; column < view.width * kPixels; ++column) {
      const double gev = view.gev[std::size_t{row / kPixels} * view.width + column / kPixels];
      double part = 0.0;
      if (gev > 0.0 && brightest > 0.0) part = 1.0 + std::log10(gev / brightest) / kDecades;
      image.samples[std::size_t{top + row} * image.width + left + column] =
          static_cast<std::uint8_t>(std::lround(255.0 * std::clamp(part, 0.0, 1.0)));
    }
  }
}

// Both rows are painted by one brightness, so that data and generated showers can be compared. Gaps
// between the views stay grey.
Image image_of(const json& event, const Space& space) {
  const std::array<std::array<View, 3>, 2> rows{views_of(event.at("data"), space),
                                                views_of(event.at("generated"), space)};
  double brightest = 0.0;
  Image image;
  std::uint32_t height = 0;
  for (const auto& row : rows) {
    std::uint32_t width = 0;
    for (const View& view : row) {
      for (const double gev : view.gev) brightest = std::max(brightest, gev);
      width += view.width * kPixels + kGap;
      height = std::max(height, view.height * kPixels);
    }
    image.width = width - kGap;
  }
  image.height = 2 * height + kGap;
  image.samples.assign(std::size_t{image.width} * image.height, 64);
  for (std::uint32_t row = 0; row < 2; ++row) {
    std::uint32_t left = 0;
    for (const View& view : rows[row]) {
      paint(view, brightest, left, row * (height + kGap), image);
      left += view.width * kPixels + kGap;
    }
  }
  return image;
}

// A space that is too large to be drawn gives no pictures, and is no error.
ShowerPictures pictures_of(const json& showers) {
  ShowerPictures pictures;
  const auto space = showers.at("space").get<Space>();
  const bool fits = std::all_of(space.begin(), space.end(), [](std::uint32_t cells) {
    return cells >= 1 && cells <= kMostCells;
  });
  if (!fits) return pictures;
  for (const json& event : showers.at("events")) {
    pictures.images.emplace_back(fmt::format("{:.4g} GeV", event.at("energy").get<double>()),
                                 image_of(event, space));
  }
  for (const json& histogram : showers.at("histograms")) {
    const auto name = histogram.at("name").get<std::string>();
    for (const char* sample : {"data", "generated"}) {
      const auto counts = histogram.at(sample).get<std::vector<double>>();
      pictures.histograms.emplace_back(fmt::format("{}/{}", name, sample),
                                       histogram_of(histogram.at("low").get<double>(),
                                                    histogram.at("high").get<double>(), counts));
    }
  }
  return pictures;
}

}  // namespace

runtime::Result<ShowerPictures> shower_pictures(std::string_view text) {
  try {
    return pictures_of(json::parse(text));
  } catch (const json::exception& error) {
    return runtime::Error{runtime::ErrorKind::kData,
                          fmt::format("showers that cannot be read: {}", error.what())};
  }
}

}  // namespace troupe::telemetry
