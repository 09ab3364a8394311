#include "pipeline/leaving/onnx_model.h"

#include <algorithm>
#include <numbers>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/leaving/onnx_network.h"

namespace troupe::pipeline {
namespace {

using runtime::Result;

// The newest that Debian 12's libonnx knows.
constexpr int kOpset = 17;
constexpr int kIrVersion = 8;

constexpr double kPar04MostGev = 1024.0;
constexpr double kPar04MostAngle = std::numbers::pi / 2;
constexpr std::int64_t kPar04Conditions = 4;
constexpr double kNetworkGev = 100.0;  // the unit of energy that networks are given

std::vector<std::int64_t> sizes_of(const model::Shape& shape) {
  if (shape.spatial_rank == 0) return {shape.channels};
  return {shape.space[0], shape.space[1], shape.space[2], shape.channels};
}

// "conditions (energy / 100 GeV, angle in rad) and normal noise".
std::string latent_text(const model::LatentDescription& latent) {
  const std::vector<std::string> columns = model::columns_of(latent);
  if (latent.mode == model::LatentMode::kMultiply) {
    return "normal noise, times the condition (" +
           (columns.empty() ? "energy / 100 GeV, or angle in rad" : columns.front()) + ")";
  }
  if (latent.conditions.empty()) return "normal noise";
  return fmt::format("conditions ({}) and normal noise",
                     columns.empty() ? "energy / 100 GeV, angle in rad"
                                     : fmt::format("{}", fmt::join(latent.conditions, ", ")));
}

// No other value has it: those of layers have a "/".
std::string output_name(const std::string& column) {
  const bool may_be_taken =
      column == "latent" || column == "shower" || column.find('/') != std::string::npos;
  return may_be_taken ? "column " + column : column;
}

Result<void> write_3dgan(OnnxGraph& graph, const NetworkParameters& generator,
                         const model::LatentDescription& latent) {
  graph.input("latent", {latent.size}, latent_text(latent));
  const auto& shapes = generator.shapes();
  const model::Shape& shape = shapes.layers[static_cast<std::size_t>(shapes.outputs.front())];
  ASSIGN_OR_RETURN(const auto outputs, add_network(graph, generator, "latent"));
  graph.node("Identity", {outputs.front()}, "shower");
  graph.output("shower", sizes_of(shape), "cells in the units of training");
  const auto& makes = generator.network().makes;
  for (std::size_t i = 0; i < makes.size(); ++i) {
    const std::string name = output_name(makes[i].column);
    graph.node("Identity", {outputs[1 + i]}, name);
    graph.output(name, {1}, makes[i].column + " as the data have it");
  }
  return {};
}

// No layer is called as an input, and no value but an output has the name of a layer alone.
Result<void> write_as_it_is(OnnxGraph& graph, const NetworkParameters& network) {
  graph.input("input", sizes_of(network.network().input), "as the network reads it");
  if (const auto& told = network.network().conditions; !told.empty()) {
    graph.input("conditions", {std::ssize(told)},
                fmt::format("{}; energy in 100 GeV, angle in rad", fmt::join(told, ", ")));
  }
  ASSIGN_OR_RETURN(const auto outputs, add_network(graph, network, "input"));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto layer = static_cast<std::size_t>(network.shapes().outputs[i]);
    const std::string& name = network.network().layers[layer].name;
    graph.node("Identity", {outputs[i]}, name);
    graph.output(name, sizes_of(network.shapes().layers[layer]), "as the network tells it");
  }
  return {};
}

// The columns [first, last) of `input`.
std::string columns(OnnxGraph& graph, const std::string& name, std::int64_t first,
                    std::int64_t last) {
  return graph.node("Slice",
                    {"input", graph.integers(name + "/first", {first}),
                     graph.integers(name + "/last", {last}), graph.integers(name + "/axis", {1})},
                    name);
}

std::string times(OnnxGraph& graph, const std::string& value, double factor,
                  const std::string& name) {
  return graph.node("Mul", {value, graph.number(name + "/factor", factor)}, name);
}

Result<void> write_par04(OnnxGraph& graph, const NetworkParameters& generator,
                         const TrainedModel& trained) {
  const model::LatentDescription& latent = trained.gan.latent;
  if (const auto further = model::columns_of(latent); !further.empty()) {
    return runtime::Error{
        runtime::ErrorKind::kTopology,
        fmt::format("Par04 asks for energies and angles, and this model for {} besides; use the "
                    "flavour 3dgan",
                    further.front())};
  }
  const bool multiply = latent.mode == model::LatentMode::kMultiply;
  const auto conditions = static_cast<std::int64_t>(latent.conditions.size());
  const std::int64_t noise_size = latent.size - (multiply ? 0 : conditions);
  graph.input("input", {noise_size + kPar04Conditions},
              "normal noise, energy / 1.024 TeV, angle / 90 degrees, two unused");
  const std::string noise = columns(graph, "noise", 0, noise_size);
  const std::string energy = columns(graph, "par04_energy", noise_size, noise_size + 1);
  const std::string angle = columns(graph, "par04_angle", noise_size + 1, noise_size + 2);
  std::vector<std::string> given;
  for (const std::string& condition : latent.conditions) {
    given.push_back(condition == model::kEnergyCondition
                        ? times(graph, energy, kPar04MostGev / kNetworkGev, "energy")
                        : times(graph, angle, kPar04MostAngle, "angle"));
  }
  given.push_back(noise);
  const std::string latents =
      multiply ? graph.node("Mul", {noise, given.front()}, "latent")
               : graph.node("Concat", given, "latent", {{"axis", std::int64_t{1}}});
  ASSIGN_OR_RETURN(const auto outputs, add_network(graph, generator, latents));
  // cell = (units_per_gev x GeV)^power.
  std::string cells =
      graph.node("Relu", {graph.node("Flatten", {outputs.front()}, "cells")}, "positive");
  if (trained.units.power != 1.0) {
    cells =
        graph.node("Pow", {cells, graph.number("exponent", 1.0 / trained.units.power)}, "powers");
  }
  const std::string unit =
      times(graph, energy, kPar04MostGev * trained.units.units_per_gev, "energy_in_units");
  graph.node("Div", {cells, unit}, "shower");
  const auto& shapes = generator.shapes();
  const model::Shape& shape = shapes.layers[static_cast<std::size_t>(shapes.outputs.front())];
  graph.output("shower", {shape.elements()}, "energies of cells / energy of the particle");
  return {};
}

}  // namespace

Result<std::string> onnx_model(const TrainedModel& trained, OnnxFlavour flavour,
                               const std::string& producer) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  onnx::OperatorSetIdProto& operators = *model.add_opset_import();
  operators.set_domain("");
  operators.set_version(kOpset);
  model.set_producer_name(producer.substr(0, producer.find(' ')));
  model.set_producer_version(
      producer.substr(std::min(producer.find(' '), producer.size() - 1) + 1));
  for (const auto& [name, value] : trained.facts) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(name);
    entry.set_value(value);
  }
  OnnxGraph graph(*model.mutable_graph());
  const bool makes = trained.gan.task == model::Task::kGan;
  model.mutable_graph()->set_name(makes ? "generator" : "network");
  if (!makes && flavour == OnnxFlavour::kPar04) {
    return runtime::Error{runtime::ErrorKind::kTopology,
                          "Par04 takes generators, and not the network of task " +
                              model::task_name(trained.gan.task)};
  }
  const NetworkParameters network(makes ? trained.gan.generator : trained.gan.discriminator,
                                  makes ? trained.state.generator : trained.state.discriminator);
  RETURN_IF_ERROR(!makes                           ? write_as_it_is(graph, network)
                  : flavour == OnnxFlavour::k3dgan ? write_3dgan(graph, network, trained.gan.latent)
                                                   : write_par04(graph, network, trained));
  std::string bytes;
  CHECK(model.SerializeToString(&bytes), "a model that protobuf does not take");
  return bytes;
}

}  // namespace troupe::pipeline
