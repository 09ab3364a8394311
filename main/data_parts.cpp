#include "main/data_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace troupe {
namespace {

constexpr std::array kNameOptions{"image",         "energy",      "energy-column",
                                  "energy-offset", "energy-unit", "angle"};

// "25,25,25", or with channels behind. Nothing if the text is something else.
std::optional<pipeline::ImageShape> shape_of(const std::string& text) {
  pipeline::ImageShape shape{{1, 1, 1}, 1};
  std::uint32_t* const places[] = {&shape.space[0], &shape.space[1], &shape.space[2],
                                   &shape.channels};
  std::size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (; count < std::size(places); ++count) {
    const auto read = std::from_chars(at, end, *places[count]);
    if (read.ec != std::errc() || *places[count] < 1 || *places[count] > 65535) return {};
    if (read.ptr == end) return shape;
    if (*read.ptr != ',') return {};
    at = read.ptr + 1;
  }
  return {};
}

}  // namespace

std::vector<Option> part_options() {
  std::vector<std::string> schemas;
  for (const auto& facts : pipeline::all_schemas()) schemas.emplace_back(facts.text);
  return {{.name = "schema",
           .value = "NAME",
           .about = "of the files, instead of the one that they look like",
           .takes = Takes::kWord,
           .words = std::move(schemas)},
          {.name = "image",
           .value = "NAME",
           .about = "the part with the images; several: one behind the other",
           .takes = Takes::kText,
           .repeats = true},
          {.name = "energy",
           .value = "NAME",
           .about = "the part with the energies",
           .takes = Takes::kText},
          {.name = "energy-column",
           .value = "N",
           .about = "which of its columns, counted from 0",
           .takes = Takes::kWhole,
           .most = 1000},
          {.name = "energy-offset",
           .value = "X",
           .about = "added to the stored number before the unit",
           .takes = Takes::kNumber},
          {.name = "energy-unit",
           .value = "GEV",
           .about = "of a stored number: 0.001 where it is in MeV",
           .takes = Takes::kNumber},
          {.name = "angle",
           .value = "NAME",
           .about = "the part with the angles, in rad",
           .takes = Takes::kText},
          {.name = "binning",
           .value = "FILE",
           .about = "the XML file of CaloChallenge; showers are boxes then",
           .takes = Takes::kFile},
          {.name = "shape",
           .value = "X,Y,Z",
           .about = "of images that are stored as rows of numbers",
           .takes = Takes::kText}};
}

runtime::Result<pipeline::DescribeOptions> describe_options(const CommandLine& line) {
  pipeline::DescribeOptions options;
  if (line.has("schema")) options.schema = pipeline::parse_schema(line.get<std::string>("schema"));
  line.take("binning", options.binning);
  if (line.has("shape")) {
    const auto shape = shape_of(line.get<std::string>("shape"));
    if (!shape) {
      return runtime::Error{runtime::ErrorKind::kUsage,
                            fmt::format("--shape {}: expected numbers such as 25,25,25",
                                        line.get<std::string>("shape"))};
    }
    options.shape = *shape;
  }
  const auto given = [&](const std::string& name) { return line.has(name); };
  if (std::ranges::none_of(kNameOptions, given)) return options;
  auto& names = options.names.emplace(
      pipeline::default_names(options.schema.value_or(pipeline::DataSchema::kCustom)));
  line.take("image", names.images);
  line.take("energy", names.energy);
  line.take("energy-column", names.energy_column);
  line.take("energy-offset", names.energy_offset);
  line.take("energy-unit", names.energy_unit_gev);
  line.take("angle", names.angle);
  if (names.energy.empty()) {
    return runtime::Error{runtime::ErrorKind::kUsage, "--energy: which part holds the energies?"};
  }
  return options;
}

}  // namespace troupe
