#include "pipeline/leaving/model_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/network.h"

namespace troupe::pipeline {
namespace {

// Names and texts are those of files and topologies: a "|" or a line's end would break the table.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char each : text) {
    if (each == '|') safe += '\\';
    safe += each == '\n' ? ' ' : each;
  }
  return safe;
}

std::string table(const char* head, const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string text = fmt::format("| {} | |\n|---|---|\n", head);
  for (const auto& [name, value] : rows) {
    text += fmt::format("| {} | {} |\n", cell(name), cell(value));
  }
  return text;
}

std::string layers_of(const model::NetworkDescription& network) {
  return fmt::format("```text\n{}```\n",
                     model::print_network(network, model::infer_shapes(network)));
}

const char* kind_of(model::Task task) {
  switch (task) {
    case model::Task::kGan:
      return "A generator of calorimeter showers, trained with Troupe as a part of a GAN.";
    case model::Task::kSupervised:
      return "A network that tells numbers of events from their images, trained with Troupe.";
    case model::Task::kDiffusion:
      return "A network that takes noise out of calorimeter showers, trained with Troupe.";
  }
  CHECK(false, "unknown task");
}

}  // namespace

std::string text_of(const ModelCard& card, const TrainedModel& trained) {
  std::string text = fmt::format("# {}\n\n", cell(card.title));
  text += fmt::format("{}\n\n## Files\n\n", kind_of(trained.gan.task));
  for (const std::string& file : card.files) text += fmt::format("- {}\n", file);
  text += fmt::format("\n## Use\n\n{}\n## Origin\n\n{}", card.use, table("fact", trained.facts));
  text += "\n## Figures\n\n";
  if (!card.unlike.empty()) {
    text += fmt::format("**The showers were nothing like the data**: {}.\n\n",
                        cell(fmt::format("{}", fmt::join(card.unlike, ", "))));
  }
  const bool supervised = trained.gan.task == model::Task::kSupervised;
  text += card.figures.empty()
              ? std::string("No validation of this checkpoint is known.\n")
              : fmt::format("Of its validation in the run, {}.\n\n",
                            supervised ? "on test events" : "generated showers against data") +
                    table("figure", card.figures);
  const bool makes = trained.gan.task == model::Task::kGan;
  text +=
      "\n## Networks\n\n" + layers_of(makes ? trained.gan.generator : trained.gan.discriminator);
  return text;
}

}  // namespace troupe::pipeline
