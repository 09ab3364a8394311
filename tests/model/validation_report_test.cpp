#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/physics/figures.h"
#include "model/physics/svg_plot.h"
#include "model/physics/validation_plots.h"
#include "model/physics/validation_report.h"
#include "model/physics/verdict.h"
#include "tests/model/physics_samples.h"

namespace troupe::model {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

ComparisonPlot three_bins() {
  ComparisonPlot plot;
  plot.title = "a < b";
  plot.edges = {0.0, 1.0, 2.0, 3.0};
  plot.data = {{1.0, 2.0, NAN}, {0.1, 0.1, 0.0}};
  plot.generated = {{1.1, 1.0, 5.0}, {0.1, 0.1, 0.2}};
  return plot;
}

TEST(Plot, ShowsEveryValueItsErrorAndTheRatioWhereThereIsOne) {
  const std::string html = plot_html(three_bins());
  EXPECT_EQ(count(html, "<circle"), 3 + 2);  // three values, two ratios
  EXPECT_EQ(count(html, "data-band"), 2 + 2);
  EXPECT_THAT(html,
              HasSubstr("a &lt; b: generated / data is furthest from 1 between 1 and 2, 0.5"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(Plot, RatioBeyondTheEdgeIsAnArrow) {
  ComparisonPlot plot = three_bins();
  plot.generated.values[0] = 100.0;
  EXPECT_EQ(count(plot_html(plot), "h-8z"), 1u);
}

TEST(Plot, LogarithmicAxesLeaveOutWhatIsNotAboveZero) {
  ComparisonPlot plot = three_bins();
  plot.edges = {1e-3, 1e-2, 1e-1, 1.0};
  plot.log_x = plot.log_y = true;
  plot.generated.values = {0.0, -1.0, 1e-5};
  const std::string html = plot_html(plot);
  EXPECT_EQ(count(html, "<circle"), 1 + 1);  // the last, and one ratio that is not far beyond
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf")));
}

TEST(Plot, OfNothingIsAnEmptyFrame) {
  ComparisonPlot plot = three_bins();
  plot.data.values = plot.generated.values = {NAN, NAN, NAN};
  for (const bool log : {false, true}) {
    plot.log_y = log;
    EXPECT_THAT(plot_html(plot), HasSubstr("no bin can be compared"));
  }
}

TEST(Map, HasACellForEachNumber) {
  HeatMap map;
  map.width = 2;
  map.values = {0.5, -0.5, NAN, 1.0};
  map.diverging = true;
  const std::string html = map_html(map);
  EXPECT_EQ(count(html, "var(--generated)"), 2u);
  EXPECT_EQ(count(html, "var(--data)"), 1u);
  EXPECT_THAT(html, HasSubstr("from -0.5 to 1"));
}

ShowerSample sample_of(std::uint64_t seed, std::uint32_t events, double energy_gev = 0.0) {
  StatisticsOptions options;
  options.space = kSampleSpace;
  ShowerSample made(options, true);
  double angle_rad = 1.0;
  for (const SampleEvent& event : random_sample(seed, events)) {
    made.add(event.gev, energy_gev > 0.0 ? energy_gev : event.energy_gev, std::nullopt, angle_rad);
    angle_rad = angle_rad < 2.0 ? angle_rad + 0.1 : 1.0;
  }
  return made;
}

std::string report(ShowerSample data, ShowerSample generated) {
  data.fit_bins(3, 2);
  generated.set_bins(data.options().energy_bins, data.options().angle_bins);
  runtime::ThreadTeam team(1);
  FigureOptions options;
  options.replicas = 5;
  RankedSample judged;
  judged.name = "<script>";
  judged.figures = compute_figures(data, generated, options, team);
  judged.faults = {{"layers", "layers & more"}};
  return validation_html({"data \"d\"", data, generated, std::vector{judged, judged}});
}

TEST(ValidationReport, HasTheVerdictAboveThePlotsAndFloorsBesideTheFigures) {
  const std::string html = report(sample_of(1, 60), sample_of(2, 60));
  const auto verdict = html.find("1 fault was found."), plots = html.find("<figure>");
  ASSERT_NE(verdict, std::string::npos);
  EXPECT_LT(verdict, plots);
  EXPECT_THAT(html, HasSubstr("<li>layers &amp; more</li>"));
  EXPECT_THAT(html, HasSubstr("data against data"));
  for (const char* profile : {"Longitudinal profile, ", "Transverse profile along x, "}) {
    EXPECT_EQ(count(html, profile), 2u * (1 + 3 + 2));  // caption and description
  }
  EXPECT_THAT(html, HasSubstr("<h2>Checkpoints</h2>"));
  EXPECT_EQ(count(html, "<p class=\"note\">chi-square / degrees of freedom "), 14u);
  EXPECT_EQ(count(html, "<p class=\"note\">chi-square / bins "), 3u * (2 + 3 + 2) + 2 + 2);
  EXPECT_EQ(count(html, ", KS 0"), 14u + 3 * (2 + 3 + 2) + 1);
  // Three axes, and two in each bin of angles, of two samples.
  EXPECT_EQ(count(html, "<figcaption>Sum over "), 2u * (3 + 2 * 2));
  EXPECT_THAT(html, Not(HasSubstr("What the discriminator says")));
}

TEST(ValidationReport, HasRemarksOnTheDataAndWhatADiscriminatorSays) {
  const ShowerSample data = sample_of(1, 20), generated = sample_of(2, 20);
  RankedSample judged;
  DiscriminatorOutput output;
  output.title = "Real?";
  output.data = {0.9F, 0.8F, 7.0F, NAN};
  output.generated = {0.1F, -INFINITY, INFINITY};
  const std::vector<Fault> remarks{{"data", "3 < 4"}};
  const std::string html =
      validation_html({"d", data, generated, std::vector{judged}, remarks, std::vector{output}});
  EXPECT_THAT(html, HasSubstr("<p>3 &lt; 4</p>"));
  EXPECT_THAT(html, HasSubstr("<figcaption>Real?</figcaption>"));
  EXPECT_LT(html.find("What the discriminator says"), html.find("<figcaption>Real?"));
}

TEST(Plot, SaysHowFarTheTwoAreApart) {
  DiscriminatorOutput output;
  output.data = {0.1F, 0.1F, 0.1F, 0.9F};
  output.generated = {0.1F, 0.9F};
  // (1/4)^2 / (3/16 + 1/4) and (1/4)^2 / (1/16 + 1/4), mean.
  EXPECT_EQ(output_plot(output).note, "chi-square / bins 0.171, KS 0.25");
  output.generated.clear();
  EXPECT_EQ(output_plot(output).note, "chi-square / bins 2");  // 3 and 1; no share of nothing
}

TEST(Plot, ChiSquareLeavesOutBinsOfOneShower) {
  // The lowest and the highest energy have a bin each, of ten.
  const auto note = [](bool with_another) {
    ShowerSample data = sample_of(1, 30, 10.0), generated = sample_of(2, 30, 10.0);
    data.add(random_sample(3, 1)[0].gev, 1000.0);
    if (with_another) generated.add(random_sample(4, 1)[0].gev, 1000.0);
    return response_plot(data, generated, false).note;
  };
  EXPECT_EQ(note(true), note(false));
}

TEST(Plot, OfOutputsCountsWhatLiesBeyondInTheEnds) {
  DiscriminatorOutput output;
  output.low = -1.0;
  output.data = {-5.0F, -0.99F, 0.99F, 5.0F, NAN};
  output.generated = {0.01F};
  const ComparisonPlot plot = output_plot(output);
  ASSERT_EQ(plot.data.values.size(), 40u);
  EXPECT_EQ(plot.data.values.front(), 0.5);
  EXPECT_EQ(plot.data.values.back(), 0.5);
  EXPECT_EQ(plot.generated.values[20], 1.0);
  EXPECT_EQ(plot.edges.front(), -1.0);
  EXPECT_EQ(plot.edges.back(), 1.0);
}

TEST(Plot, OfOutputsReachesAsFarAsTheValuesWhereTheseHaveNoRange) {
  DiscriminatorOutput output;
  output.by_values = true;
  EXPECT_EQ(output_plot(output).edges.back(), 1.0) << "there is none";
  output.data = {-300.0F, NAN, 100.0F};
  output.generated = {500.0F, INFINITY};
  const ComparisonPlot plot = output_plot(output);
  EXPECT_EQ(plot.edges.front(), -300.0);
  EXPECT_EQ(plot.edges.back(), 500.0);
  EXPECT_EQ(plot.data.values[20], 0.5);
  output.data.clear();
  output.generated = {2.0F};
  EXPECT_EQ(output_plot(output).edges.front(), 1.5);
}

// A shower along the diagonal, and one that no shower is.
TEST(Projection, IsTheMeanOfUsableShowersInTheBin) {
  StatisticsOptions options;
  options.space = {2, 2, 3};
  ShowerSample made(options, true);
  Image image = empty_image(options.space);
  image[cell_index(options.space, 1, 0, 2)] = 4.0F;
  image[cell_index(options.space, 1, 1, 2)] = 6.0F;
  Image bad = image;
  bad[0] = -1.0F;
  made.add(image, 50.0, {}, 1.0);
  made.add(bad, 50.0, {}, 1.0);
  made.add(empty_image(options.space), 50.0, {}, 1.1);
  made.add(image, 50.0, {}, 2.0);
  const auto cells = [&](std::size_t axis, const AngleBin* angles) {
    std::vector<double> found;
    const auto maps = projection_maps(made, made, axis, angles);
    for (const double value : maps[1].values) {
      found.push_back(std::isfinite(value) ? std::pow(10.0, value) : 0.0);
    }
    return found;
  };
  const auto close = [](std::vector<double> wanted) {
    return testing::Pointwise(testing::DoubleNear(1e-12), std::move(wanted));
  };
  EXPECT_THAT(cells(1, nullptr), close({0, 0, 0, 0, 0, 20.0 / 3}));  // x by layer
  EXPECT_THAT(cells(0, nullptr), close({0, 0, 8.0 / 3, 0, 0, 4}));   // y by layer
  EXPECT_THAT(cells(2, nullptr), close({0, 0, 8.0 / 3, 4}));         // x by y
  const AngleBin low{0.9, 1.2};
  EXPECT_THAT(cells(1, &low), close({0, 0, 0, 0, 0, 5}));
  EXPECT_THAT(projection_maps(made, made, 1, &low)[0].title,
              HasSubstr("Sum over y, log10 GeV, 0.9 to 1.2 rad, data"));
}

TEST(ValidationReport, NamesCannotBecomeMarkupAndNothingIsFetched) {
  const std::string html = report(sample_of(1, 20), sample_of(2, 20));
  for (const char* part : {"<script", "http:", "https:", "src=", "url(", "@import"}) {
    EXPECT_THAT(html, Not(HasSubstr(part)));
  }
  EXPECT_THAT(html, HasSubstr("<h1>&lt;script&gt; against data &quot;d&quot;</h1>"));
}

TEST(ValidationReport, OfFewOrEmptyShowersOrOneEnergyIsAPageToo) {
  for (const auto& [data, generated] :
       {std::pair(sample_of(1, 20), sample_of(2, 0)), std::pair(sample_of(1, 1), sample_of(2, 1)),
        std::pair(sample_of(1, 20, 50.0), sample_of(2, 20, 50.0))}) {
    const std::string html = report(data, generated);
    EXPECT_THAT(html, testing::EndsWith("</html>\n"));
    EXPECT_EQ(html.find("=\"nan"), std::string::npos);
    EXPECT_EQ(html.find("=\"-nan"), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::model
