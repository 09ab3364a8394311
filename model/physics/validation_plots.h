#pragma once

// The plots of a comparison, each made of what two samples keep. The note of a plot says how far
// the two are apart: chi-square / bins, and of distributions the largest difference of the two,
// summed from the left as shares (KS). observable_plot() sets none: figures
// tell the same with their floors.

#include <string>
#include <vector>

#include "model/physics/shower_sample.h"
#include "model/physics/svg_plot.h"

namespace troupe::model {

// Energy by index along the axis (0: x, 1: y, 2: z), mean and its error over showers.
ComparisonPlot profile_plot(const ShowerSample& data, const ShowerSample& generated,
                            std::size_t axis, bool log_y);
// The same of the showers in a bin of energies, or of angles.
ComparisonPlot profile_plot(const ShowerSample& data, const ShowerSample& generated,
                            std::size_t axis, const EnergyBin& bin);
ComparisonPlot profile_plot(const ShowerSample& data, const ShowerSample& generated,
                            std::size_t axis, const AngleBin& bin);
// Mean response, or its width / mean, in ten bins of the primary energy.
ComparisonPlot response_plot(const ShowerSample& data, const ShowerSample& generated, bool width);
// Share of the showers by an observable.
ComparisonPlot observable_plot(const ShowerSample& data, const ShowerSample& generated,
                               const ShowerObservable& observable);
// Cells of a shower by their energy.
ComparisonPlot spectrum_plot(const ShowerSample& data, const ShowerSample& generated);
// Share of cells above a threshold.
ComparisonPlot occupancy_plot(const ShowerSample& data, const ShowerSample& generated);

// Pearson's correlations of the layers' energies: of the data, the generated showers, and the
// difference.
std::vector<HeatMap> correlation_maps(const ShowerSample& data, const ShowerSample& generated);
// Sums of the kept images along one axis (0: x, 1: y, 2: z), mean over those of usable showers:
// log10 of GeV by the other two, of both samples; with `angles` of those in the bin alone.
std::vector<HeatMap> projection_maps(const ShowerSample& data, const ShowerSample& generated,
                                     std::size_t axis, const AngleBin* angles = nullptr);

// A number that a discriminator has for each shower.
struct DiscriminatorOutput {
  std::string title, x_label;
  double low = 0.0, high = 1.0;  // of the histogram; what lies outside counts in its ends
  bool by_values = false;        // the histogram reaches from the least to the most value instead
  std::vector<float> data, generated;
};
ComparisonPlot output_plot(const DiscriminatorOutput& output);

}  // namespace troupe::model
