#pragma once

// What a comparison found as one page that needs nothing else: verdict, figures with their floors,
// plots. It reads well in light and dark, and on paper.

#include <span>
#include <string>

#include "model/physics/figures_text.h"
#include "model/physics/shower_sample.h"
#include "model/physics/validation_plots.h"

namespace troupe::model {

struct ValidationReport {
  std::string against;  // the name of the data
  const ShowerSample& data;
  const ShowerSample& generated;         // of the first of `judged`
  std::span<const RankedSample> judged;  // one, or several with the best first
  std::span<const Fault> remarks = {};   // on the data
  // From the discriminator that was trained with the generator, if there is one.
  std::span<const DiscriminatorOutput> outputs = {};
};

// Pure; any thread.
std::string validation_html(const ValidationReport& report);

}  // namespace troupe::model
