#include "config/network_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config/suggestion.h"
#include "config/zoo.h"

namespace troupe::config {
namespace {

using model::GanDescription;
using model::NetworkDescription;
using model::NetworkShapes;

// Beyond this a description is a slip of the pen; a run would ask for terabytes.
constexpr std::int64_t kMostParameters = std::int64_t{1} << 31;
constexpr std::int64_t kMostElements = std::int64_t{1} << 28;

// Where in a network at `path` a problem is to be mended.
std::string place_of(const model::NetworkProblem& problem, const std::string& path) {
  if (problem.layer >= 0) return fmt::format("{}.layers.{}", path, problem.layer);
  return problem.message.starts_with("output ") ? path + ".outputs" : path;
}

// Shapes of a network at `path`, its problems reported; without problems when `ok`.
NetworkShapes check_network(const NetworkDescription& network, const std::string& path,
                            Reader& reader) {
  NetworkShapes shapes = model::infer_shapes(network);
  for (const model::NetworkProblem& problem : shapes.problems) {
    const std::string at = place_of(problem, path);
    const Reader::Step step(reader, at);
    reader.problem(reader.origin(at), problem.message);
  }
  if (!shapes.problems.empty()) return shapes;
  for (std::size_t i = 0; i < shapes.layers.size(); ++i) {
    if (shapes.layers[i].elements() <= kMostElements) continue;
    const std::string at = fmt::format("{}.layers.{}", path, i);
    const Reader::Step step(reader, at);
    reader.problem(reader.origin(at), fmt::format("{} makes more than {} values for one event",
                                                  shapes.layers[i].text(), kMostElements));
  }
  const std::int64_t parameters = model::layout_parameters(network, shapes).size();
  if (parameters > kMostParameters) {
    const Reader::Step step(reader, path);
    reader.problem(reader.origin(path),
                   fmt::format("{} parameters, more than {}", parameters, kMostParameters));
  }
  return shapes;
}

void check_losses(const GanDescription& gan, Reader& reader) {
  std::set<std::string> judged;
  for (const model::LossTerm& term : gan.losses) {
    const auto& outputs = gan.discriminator.outputs;
    judged.insert(term.output);
    if (std::find(outputs.begin(), outputs.end(), term.output) != outputs.end()) continue;
    const std::string at = "model.losses." + term.output;
    const Reader::Step step(reader, at);
    reader.problem(reader.origin(at),
                   fmt::format("\"{}\" is no output of the discriminator{}", shown(term.output),
                               suggestion(term.output, outputs)));
  }
  for (const std::string& output : gan.discriminator.outputs) {
    if (judged.contains(output)) continue;
    const Reader::Step step(reader, "model.losses");
    reader.problem(reader.origin("model.losses"),
                   fmt::format("output \"{}\" of the discriminator has no loss", shown(output)));
  }
}

}  // namespace

NetworkDescription complete_generator(const GanDescription& gan) {
  NetworkDescription generator = gan.generator;
  generator.name = "generator";
  generator.input = model::Shape::features(gan.latent.size);
  return generator;
}

void check_networks(const GanDescription& gan, Reader& reader) {
  const NetworkDescription generator = complete_generator(gan);
  const NetworkShapes shapes = check_network(generator, "model.generator", reader);
  NetworkDescription discriminator = gan.discriminator;
  discriminator.name = "discriminator";
  check_network(discriminator, "model.discriminator", reader);
  if (shapes.problems.empty()) {
    const model::Shape image = shapes.layers[static_cast<std::size_t>(shapes.outputs.front())];
    if (!(image == discriminator.input)) {
      // Where the author wrote something: a part of the zoo is not what is wrong.
      std::string at = fmt::format("model.generator.layers.{}", shapes.outputs.front());
      if (is_from_zoo(reader.origin(at))) at = "model.discriminator.input";
      const Reader::Step step(reader, at);
      reader.problem(reader.origin(at),
                     fmt::format("the generator makes {}, but the discriminator reads {}",
                                 image.text(), discriminator.input.text()));
    }
  }
  check_losses(gan, reader);
}

}  // namespace troupe::config
