#pragma once

// Files of showers in any schema but custom, from any source. They are written as the showers are
// made: memory does not grow with their number.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pipeline/data/calo_binning.h"
#include "pipeline/data/dataset_options.h"
#include "pipeline/data/progress.h"
#include "pipeline/data/shower_generator.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

// Makes showers [first, first + primaries.size()), in stored units; called once for each, in order.
// cells: [n][X][Y][Z], overwritten; columns: [n][numbers of all ShowerFileOptions::columns], 0.
using ShowerSource = std::function<void(std::uint64_t first, std::span<Primary> primaries,
                                        std::span<float> cells, std::span<double> columns)>;

// Further numbers of each event, under a name of their own.
struct ShowerColumn {
  std::string name;
  std::size_t width = 0;  // numbers of an event; 0: one, in a dataset of one axis

  std::size_t numbers() const { return std::max<std::size_t>(1, width); }
  bool operator==(const ShowerColumn&) const = default;
};

struct ShowerFileOptions {
  DataSchema schema = DataSchema::kLcdFixed;  // not kCustom
  std::array<std::uint32_t, 3> shape{};       // X, Y, Z
  std::uint32_t channels = 1;                 // more: idx and tfrecord alone
  bool bytes = false;                         // idx, tfrecord: all cells are 0, 1, ... or 255
  bool labels = false;                        // idx: so are the labels
  bool angles = false;                        // tfrecord: with a feature theta
  bool particles = false;                     // lcd-angle: with a dataset of their numbers
  // Written behind those of the schema, float64 in HDF5 and float32 in TFRecord; idx has no place
  // for any. One that species_column() names stands in place of Primary::particle. No other name
  // may be one of written_parts().
  std::vector<ShowerColumn> columns = {};
  // calochallenge: images are boxes, and are written as the rows of voxels that these are made of.
  std::optional<CaloBinning> binning;
  std::uint64_t events = 0;        // at least 1
  int gzip_level = 1;              // 0: not compressed; 1 to 9: gzip
  std::uint32_t chunk_events = 0;  // per chunk; 0: as many as make about 1 MiB
  // Attributes of the root, beside power (1) and angle ("fixed" or "theta").
  std::vector<std::pair<std::string, std::variant<double, std::uint64_t, std::string>>> attributes;
  // More of them, as text, asked for when all events are written; of files that have no attributes,
  // these stand in "PATH.origin.json". Unset: none.
  std::function<std::vector<std::pair<std::string, std::string>>()> last_attributes;
};

// lcd-fixed: ECAL, target (PDG number of the particle, energy); nnlo: X, y/a (1), y/b (E / 100),
// y/c (sum); calochallenge: showers, incident_energies; tfrecord: ECAL, shape, energy; idx: images,
// and the labels beside them (E / 10 GeV - 1); lcd-angle: ECAL, energy, theta, mtheta (the angle
// measured on the stored cells by the barycentre formula of the models' angle head), sum, pdg if
// asked for. The file stands at `path` whole or not at all (runtime::NewFile). `progress`, if set,
// is told the events done. Errors: its own; kData when the file cannot be written; else kInternal.
runtime::Result<void> write_shower_file(const ShowerFileOptions& options,
                                        const ShowerSource& source, const std::string& path,
                                        runtime::ThreadTeam& team, const Progress& progress = {});

// The columns (DataColumn::name) beside the images in files of an HDF5 schema that are written;
// none for others.
std::vector<std::string> written_columns(DataSchema schema, bool particles);

// The parts that files of the schema are written with, whatever the options.
std::vector<std::string> written_parts(DataSchema schema);
// The column that says which particle it is: "target.0" of lcd-fixed, "pdg" of all others.
std::string species_column(DataSchema schema);

// Name of file `file` of `files`: the path itself if there is one file, else PATH without .h5 + "_"
// + the number in decimals of equal length + ".h5".
std::string shower_file_name(const std::string& path, std::uint32_t file, std::uint32_t files);

// `options.events` showers as `files` (1 to options.events) files of equal size, one event more or
// less, made one after the other. The source is asked for events by their number over all files, so
// that a shower does not depend on how many there are. Returns their paths.
runtime::Result<std::vector<std::string>> write_shower_files(
    const ShowerFileOptions& options, std::uint32_t files, const ShowerSource& source,
    const std::string& path, runtime::ThreadTeam& team, const Progress& progress = {});

// The polar angle that the models' angle head sees in an image [X][Y][Z]: in every layer with
// energy the direction from the shower's energy-weighted centre to the layer's, pi/2 - atan(dy /
// distance in the x-z plane), averaged with the layer's number + 0.5 as weight. In cell units, so
// it differs from the true angle where layers are not as deep as cells are wide. 100 for an empty
// image.
double measure_angle(std::span<const float> cells, std::array<std::uint32_t, 3> shape);

}  // namespace troupe::pipeline
