#pragma once

// A picture of the figures of trials, as SVG inside a page. Its colours are the page's, by the
// classes that kPictureStyle sets.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "study/study_file.h"
#include "study/trial_run.h"

namespace troupe::study {

// A trial with a figure: where it stands from left to right, from 0 to 1, and its figure.
struct Dot {
  std::uint32_t trial = 0;
  double x = 0.0, figure = 0.0;
  std::optional<double> deviation;  // standard, of one repeat
};

// Trials that differ in what the picture goes over alone.
struct Group {
  std::string name;
  std::vector<Dot> dots;  // from left to right
};

struct Picture {
  std::string title;
  std::vector<std::pair<double, std::string>> ticks;  // where, from 0 to 1, and what
  std::vector<Dot> dots;
  bool tells_best = false;         // a line of the best figure so far, in the order of the dots
  std::vector<Curve> curves = {};  // from left to right, from 0 to 1
  std::vector<Group> groups = {};  // each with a line and a colour of its own, kMostGroups at most
  std::vector<std::string> key = {};  // what ticks that are numbers from 1 stand for
};

inline constexpr std::size_t kMostGroups = 6;

// Draws pictures of the same trials with one scale of figures, the greatest at the top. The scale
// is logarithmic where figures differ by orders of magnitude.
class Drawing {
 public:
  // `dots`: at least one.
  Drawing(const Study& study, std::optional<std::uint32_t> best, const std::vector<Dot>& dots);

  // A <figure>.
  std::string html(const Picture& picture) const;

 private:
  double scaled(double cost) const;
  double unscaled(double height) const;
  double y(double cost) const;
  std::string dot(const Dot& dot, const std::string& kind) const;
  std::string line(const std::string& kind, const std::vector<std::pair<double, double>>& points,
                   const std::string& title = "") const;
  std::string best_line(const std::vector<Dot>& dots) const;
  std::string group(const Group& group, std::size_t number) const;

  const Study& study_;
  const std::optional<std::uint32_t> best_;
  bool is_log_ = false;
  double low_ = 0.0, high_ = 1.0;  // of what is drawn, scaled
};

extern const char* const kPictureStyle;

}  // namespace troupe::study
