#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "main/command_line.h"
#include "main/common_options.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_text.h"
#include "runtime/base/utf8.h"

namespace troupe {
namespace {

using runtime::json_string;
using runtime::printable;

bool is_right(const pipeline::CheckpointSummary& summary) {
  return summary.recomputed_hash == summary.state_hash;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

std::string parts_text(const pipeline::TrainingState& state) {
  const char* const parts = state.outer || state.turns ? "workers" : "micro-batches";
  return fmt::format("{} {} of {}{}", state.micro_batches, parts, state.micro_batch,
                     state.outer || state.turns ? " events each" : "");
}

// A line of its own, where the checkpoint has one.
std::string mean_text(const pipeline::TrainingState& state) {
  if (!state.mean) return "";
  return fmt::format("  mean of the weights: of {} updates\n", state.mean->updates);
}

// Names and texts are the file's, and that may be anybody's.
void print_for_people(const pipeline::CheckpointSummary& summary) {
  std::cout << fmt::format(
      "{}\n  format version {}, model {}\n  next step: epoch {}, iteration {}, slot {}; seed {}; "
      "{}\n{}  first weights: {}\n  numerics class: {}\n  data fingerprint {}\n"
      "  topology hash {}\n  state hash {} ({})\n\n",
      printable(summary.path), summary.version, printable(summary.model), summary.state.epoch,
      summary.state.iteration, summary.state.slot, summary.state.seed, parts_text(summary.state),
      mean_text(summary.state), summary.origin.empty() ? "by the seed" : printable(summary.origin),
      printable(summary.state.numerics_class), summary.state.data_fingerprint.text(),
      summary.topology_hash.text(), summary.recomputed_hash.text(),
      is_right(summary) ? "as stored" : "STORED: " + summary.state_hash.text());
  for (const auto& tensor : summary.tensors) {
    std::cout << fmt::format("  {:<64} {}\n", printable(tensor.path), shape_text(tensor.shape));
  }
}

// The members of the object.
std::string json(const pipeline::CheckpointSummary& summary) {
  std::string tensors;
  for (const auto& tensor : summary.tensors) {
    tensors += fmt::format("{}{{\"path\":{},\"shape\":[{}]}}", tensors.empty() ? "" : ",",
                           json_string(tensor.path), fmt::join(tensor.shape, ","));
  }
  return fmt::format(
      R"("path":{},"version":{},"model":{},"epoch":{},"iteration":{},"slot":{},"seed":{},)"
      R"("micro_batch":{},"micro_batches":{},"workers":{},"mean_updates":{},"numerics_class":{},)"
      R"("data_fingerprint":"{}","origin":{},"topology_hash":"{}","state_hash":"{}","recomputed_hash":"{}","tensors":[{}])",
      json_string(summary.path), summary.version, json_string(summary.model), summary.state.epoch,
      summary.state.iteration, summary.state.slot, summary.state.seed, summary.state.micro_batch,
      summary.state.micro_batches,
      summary.state.outer || summary.state.turns ? fmt::to_string(summary.state.micro_batches)
                                                 : "null",
      summary.state.mean ? fmt::to_string(summary.state.mean->updates) : "null",
      json_string(summary.state.numerics_class), summary.state.data_fingerprint.text(),
      summary.origin.empty() ? "null" : json_string(summary.origin), summary.topology_hash.text(),
      summary.state_hash.text(), summary.recomputed_hash.text(), tensors);
}

// A checkpoint whose hash is wrong is shown all the same, and then reported.
int inspect(const CommandLine& line) {
  runtime::FileDisk disk;
  const auto path = checkpoint_of(line, disk);
  if (!path.ok()) return report(path.error());
  const auto file = disk.read(*path);
  if (!file.ok()) return report(file.error());
  const auto summary = pipeline::inspect_checkpoint(*file, *path);
  if (!summary.ok()) return report(summary.error());
  std::optional<runtime::Error> wrong;
  if (!is_right(*summary)) {
    wrong = {runtime::ErrorKind::kData,
             fmt::format("{}: its state has hash {}, it says {}: a defect wrote it, and no run "
                         "resumes from it",
                         *path, summary->recomputed_hash.text(), summary->state_hash.text())};
  }
  if (line.get<bool>("json")) {
    answer(json(*summary), wrong ? wrong->message : "",
           wrong ? runtime::exit_code(wrong->kind) : 0);
  } else {
    print_for_people(*summary);
  }
  return wrong ? report(*wrong) : 0;
}

}  // namespace

Command inspect_verb() {
  return {.name = "inspect",
          .summary = "what a checkpoint holds",
          .about =
              "Says what a checkpoint holds: counters, shapes, and the state hash computed anew "
              "from its content. A run's folder stands for its best checkpoint, or the newest "
              "where none was validated.",
          .example = "troupe inspect runs/demo/checkpoints/step-000000000400.h5",
          .places = {{.name = "checkpoint", .asked = "which checkpoint?", .takes = Takes::kFile}},
          .options = {latest_option(), json_option()},
          .carry_out = inspect};
}

}  // namespace troupe
