#include <cstdio>
#include <iostream>

#include <fmt/format.h>

#include "main/command_line.h"
#include "main/commands.h"
#include "pipeline/checkpoint.h"
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

// Names and texts are the file's, and that may be anybody's.
void print_for_people(const pipeline::CheckpointSummary& summary) {
  std::cout << fmt::format(
      "{}\n  format version {}, model {}\n  next step: epoch {}, iteration {}, slot {}; seed {}; "
      "{} micro-batches of {}\n  numerics class: {}\n  data fingerprint {}\n  topology hash {}\n"
      "  state hash {} ({})\n\n",
      printable(summary.path), summary.version, printable(summary.model), summary.epoch,
      summary.iteration, summary.slot, summary.seed, summary.micro_batches, summary.micro_batch,
      printable(summary.numerics_class), summary.data_fingerprint.text(),
      summary.topology_hash.text(), summary.recomputed_hash.text(),
      is_right(summary) ? "as stored" : "STORED: " + summary.state_hash.text());
  for (const auto& tensor : summary.tensors) {
    std::cout << fmt::format("  {:<64} {}\n", printable(tensor.path), shape_text(tensor.shape));
  }
}

std::string json(const pipeline::CheckpointSummary& summary) {
  std::string tensors;
  for (const auto& tensor : summary.tensors) {
    tensors += fmt::format("{}{{\"path\":{},\"shape\":[{}]}}", tensors.empty() ? "" : ",",
                           json_string(tensor.path), fmt::join(tensor.shape, ","));
  }
  return fmt::format(
      R"({{"path":{},"version":{},"model":{},"epoch":{},"iteration":{},"slot":{},"seed":{},)"
      R"("micro_batch":{},"micro_batches":{},"numerics_class":{},"data_fingerprint":"{}",)"
      R"("topology_hash":"{}","state_hash":"{}","recomputed_hash":"{}","tensors":[{}]}})",
      json_string(summary.path), summary.version, json_string(summary.model), summary.epoch,
      summary.iteration, summary.slot, summary.seed, summary.micro_batch, summary.micro_batches,
      json_string(summary.numerics_class), summary.data_fingerprint.text(),
      summary.topology_hash.text(), summary.state_hash.text(), summary.recomputed_hash.text(),
      tensors);
}

}  // namespace

int inspect_command(const Arguments& arguments) {
  namespace po = boost::program_options;
  CommandLine line("inspect CHECKPOINT [--json]",
                   "Says what a checkpoint holds: counters, shapes, and the state hash computed "
                   "anew from its content.",
                   "troupe inspect runs/demo/checkpoints/step-000000000400.h5");
  line.positional("checkpoint");
  line.add()("json", po::bool_switch(), "print one JSON object");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("checkpoint")) return line.usage_error("which checkpoint?");
  const std::string path = line.get<std::string>("checkpoint");
  runtime::FileDisk disk;
  const auto file = disk.read(path);
  if (!file.ok()) return report(file.error());
  const auto summary = pipeline::inspect_checkpoint(*file, path);
  if (!summary.ok()) return report(summary.error());
  if (line.get<bool>("json")) {
    std::cout << json(*summary) << "\n";
  } else {
    print_for_people(*summary);
  }
  if (is_right(*summary)) return 0;
  return report({runtime::ErrorKind::kData,
                 fmt::format("{}: its state has hash {}, it says {}: a defect wrote it, and no run "
                             "resumes from it",
                             path, summary->recomputed_hash.text(), summary->state_hash.text())});
}

}  // namespace troupe
