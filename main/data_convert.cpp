#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "main/command_line.h"
#include "main/common_options.h"
#include "main/data_parts.h"
#include "main/files.h"
#include "pipeline/data/conversion.h"
#include "runtime/base/json_text.h"
#include "runtime/base/thread_team.h"

namespace troupe {
namespace {

using runtime::json_string;

runtime::Result<pipeline::ConversionOptions> conversion(const CommandLine& line) {
  pipeline::ConversionOptions options;
  if (!line.has("to")) {
    return runtime::Error{runtime::ErrorKind::kUsage, "--to: which schema shall be written?"};
  }
  options.paths = {line.get<std::string>("file")};
  ASSIGN_OR_RETURN(options.from, describe_options(line));
  options.to = *pipeline::parse_schema(line.get<std::string>("to"));
  options.gzip_level = line.get<int>("gzip");
  options.program = "troupe " TROUPE_VERSION;
  return options;
}

int convert(const CommandLine& line) {
  const auto options = conversion(line);
  if (!options.ok()) return report(options.error());
  const auto out = line.get<std::string>("out");
  const auto files = pipeline::converted_files(options->to, out);
  for (const std::string& file : files) {
    const auto possible = check_output_file(file, line.get<bool>("force"), options->paths);
    if (!possible.ok()) return report(possible.error());
  }
  runtime::ThreadTeam team(line.get<int>("threads"));
  report_threads(line.get<int>("threads"), team.threads());
  const auto events = pipeline::convert_dataset(*options, out, team, event_progress());
  if (!events.ok()) return report(events.error());
  if (line.get<bool>("json")) {
    std::string names;
    for (const auto& file : files) names += (names.empty() ? "" : ",") + json_string(file);
    answer(fmt::format(R"("files":[{}],"events":{})", names, *events));
    return 0;
  }
  for (const auto& file : files) std::cout << file << "\n";
  std::cerr << fmt::format("{} events\n", *events);
  return 0;
}

std::vector<Option> convert_options() {
  std::vector<std::string> schemas;
  for (const auto& facts : pipeline::all_schemas()) {
    if (facts.schema != pipeline::DataSchema::kCustom) schemas.emplace_back(facts.text);
  }
  std::vector<Option> options{{.name = "to",
                               .value = "NAME",
                               .about = "the schema to write",
                               .takes = Takes::kWord,
                               .words = std::move(schemas)},
                              {.name = "gzip",
                               .value = "LEVEL",
                               .about = "compression of HDF5; 0 for none",
                               .takes = Takes::kWhole,
                               .preset = "1",
                               .most = 9}};
  for (Option& option : part_options()) options.push_back(std::move(option));
  options.push_back(threads_option("compute threads"));
  options.push_back(force_option());
  options.push_back(json_option());
  return options;
}

}  // namespace

Command data_convert_verb() {
  return {
      .name = "data convert",
      .summary = "files of another schema",
      .about =
          "Reads all events of a file, or of those that a quoted pattern matches, and writes "
          "them as one file of another schema, in its units. The file tells where it comes from.",
      .example = "troupe data convert 'data/ele_*.h5' nnlo.h5 --to nnlo",
      .places = {{.name = "file", .asked = "which file?", .takes = Takes::kFile},
                 {.name = "out", .asked = "which file shall be made?", .takes = Takes::kFile}},
      .options = convert_options(),
      .carry_out = convert};
}

}  // namespace troupe
