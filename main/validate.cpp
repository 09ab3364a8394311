#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "main/command_line.h"
#include "main/common_options.h"
#include "main/files.h"
#include "main/validation.h"
#include "model/physics/class_figures.h"
#include "model/physics/figures.h"
#include "model/physics/figures_text.h"
#include "model/physics/validation_report.h"
#include "model/physics/verdict.h"
#include "runtime/base/json_writer.h"

namespace troupe {
namespace {

// The members of the object.
std::string json(const Validated& sides, const std::string& against) {
  std::string members;
  runtime::JsonWriter out(members);
  out.text("against", against, 0);
  out.number("events", sides.events());
  out.list("remarks", sides.remarks, 0);
  if (sides.generated.size() > 1) out.text("by", sides.by, 0);
  out.list("generated", sides.generated, 0,
           [&](runtime::JsonWriter& items, const model::RankedSample& sample) {
             items.group("", [&](runtime::JsonWriter& object) {
               object.text("name", sample.name, 0);
               object.number("events", sample.events);
               object.number("left_out", sample.left_out);
               if (!sides.images) {
                 object.text("verdict", model::verdict_line(sample.faults), 0);
                 object.list("faults", sample.faults, 0);
               }
               object.list("figures", sample.figures, 0);
             });
           });
  return members;
}

void print_for_people(const Validated& sides) {
  if (sides.generated.size() > 1) {
    std::cout << model::ranking_text(sides.generated) << "\n"
              << fmt::format("The best by {}, {}:\n", sides.by, sides.generated.front().name);
  }
  const model::RankedSample& best = sides.generated.front();
  if (!sides.images) std::cout << model::verdict_text(best.faults);
  for (const model::Fault& remark : sides.remarks) std::cout << "  " << remark.text << "\n";
  std::cout << "\n" << model::figures_text(best.figures);
}

int validate(const CommandLine& line) {
  if (line.has("by")) {
    const auto by = line.get<std::string>("by");
    if (model::figure_meant(by).empty() && !model::is_class_figure(by)) {
      return line.usage_error(fmt::format("--by: no figure {}; --json lists them", by));
    }
  }
  if (line.has("hit-threshold") && line.get<double>("hit-threshold") <= 0.0) {
    return line.usage_error("--hit-threshold: expected an energy above 0, in GeV");
  }
  const bool reports = line.has("report");
  if (reports) {
    std::vector<std::string> read{line.get<std::string>("generated")};
    for (const char* const input : {"against", "judge"}) {
      if (line.has(input)) read.push_back(line.get<std::string>(input));
    }
    const auto checked =
        check_output_file(line.get<std::string>("report"), line.get<bool>("force"), read);
    if (!checked.ok()) return report(checked.error());
  }
  Validation validation(line);
  const auto sides = validation.run();
  if (!sides.ok()) return report(sides.error());
  std::string against = "the test data of the run";
  line.take("against", against);
  if (reports) {
    const std::string html =
        model::validation_html({against, sides->data->sample, *sides->best, sides->generated,
                                sides->remarks, sides->outputs});
    runtime::FileDisk disk;
    const auto written =
        disk.replace(line.get<std::string>("report"), std::as_bytes(std::span(html)));
    if (!written.ok()) return report(written.error());
  }
  if (line.get<bool>("json")) {
    answer(json(*sides, against));
  } else {
    print_for_people(*sides);
  }
  return 0;
}

std::vector<Option> validate_options() {
  return {
      {.name = "against",
       .value = "FILE",
       .about = "showers that are right (HDF5), or a quoted pattern of such files (default: the "
                "test data of the run, whose checkpoints are then ranked)",
       .takes = Takes::kFile},
      {.name = "rank",
       .about = "of a run's folder, compares all checkpoints that are kept, not only the best"},
      latest_option(),
      {.name = "by",
       .value = "FIGURE",
       .about = "ranks by this figure's distance from what equal samples have (default: that of "
                "actors.validator.best)",
       .takes = Takes::kText},
      {.name = "judge",
       .value = "FILE",
       .about = "checkpoint or folder of a supervised run: its classifier says what the images of "
                "a generator show, and what those of the data do (default: actors.validator.judge)",
       .takes = Takes::kFile},
      {.name = "report",
       .value = "FILE",
       .about = "writes a page with all figures and plots (HTML)",
       .takes = Takes::kFile},
      {.name = "events",
       .value = "N",
       .about = "takes the first N showers; of images that a classifier judges, N from all of them",
       .takes = Takes::kWhole,
       .preset = "1000000000",
       .preset_shown = "all",
       .least = 2},
      {.name = "hit-threshold",
       .value = "GEV",
       .about = "cells above it are hits (default: as the run has it, else 3e-4)",
       .takes = Takes::kNumber},
      {.name = "energy-bins",
       .value = "N",
       .about = "equal bins over the energies of the data (default: those that the run's topology "
                "gives, else 5)",
       .takes = Takes::kWhole,
       .least = 1,
       .most = 100},
      {.name = "angle-bins",
       .value = "N",
       .about = "the same over their angles (default: likewise, else 3)",
       .takes = Takes::kWhole,
       .least = 1,
       .most = 100},
      {.name = "replicas",
       .value = "N",
       .about = "samples drawn for uncertainties, and as many for floors",
       .takes = Takes::kWhole,
       .preset = "200",
       .least = 2,
       .most = 100000},
      seed_option("of the noise and of the samples drawn"),
      threads_option("compute threads; the figures do not depend on it"),
      device_option("cpu"),
      raw_option(),
      force_option(),
      json_option()};
}

}  // namespace

Command validate_verb() {
  return {.name = "validate",
          .summary = "generated showers against data",
          .about =
              "Compares showers with data and says what is wrong: response, profiles, moments, "
              "hits, cells, correlations, copies, what a classifier can tell, each figure with its "
              "uncertainty and with what the data have against themselves. Images that are no "
              "showers are judged by a trained classifier. GENERATED is a file of "
              "showers, or a checkpoint, "
              "which makes a shower for each of the data; a run's folder stands for its best, "
              "without --against for all of them, ranked, and with --latest for its newest.",
          .example = "troupe validate showers.h5 --against data.h5 --report report.html",
          .places = {{.name = "generated",
                      .asked = "which showers, or which checkpoint?",
                      .takes = Takes::kFile}},
          .options = validate_options(),
          .carry_out = validate};
}

}  // namespace troupe
