#pragma once

// The voxels of CaloChallenge's showers, from the XML file that comes with a dataset, and the box
// that they are trained in.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/data/block_reader.h"
#include "pipeline/data/dataset_options.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

struct CaloLayer {
  int id = 0;
  std::uint32_t angles = 1;
  std::uint32_t radii = 0;

  bool operator==(const CaloLayer&) const = default;
};

// The layers of one particle that have voxels. A shower is stored layer after layer, in a layer
// angle after angle, the radius fastest.
struct CaloBinning {
  std::string particle;  // "photon"
  std::vector<CaloLayer> layers;

  std::uint64_t voxels() const;
  // Angles, radii and layers: the last axis is along the shower, as in all images. Layers with
  // fewer angles or radii than others take the first places of theirs; the places that are left
  // are always 0.
  ImageShape box() const;
  // Numbers of layers, angles and radii, which all that is read depends on.
  std::string text() const;
  // `row` has voxels() values, `box` box().size(), all of which are written.
  void to_box(std::span<const float> row, std::span<float> box) const;
  void from_box(std::span<const float> box, std::span<float> row) const;

 private:
  template <class Visit>
  void walk(const Visit& visit) const;
};

// All particles of the file. Errors (kData): what is not as in CaloChallenge's files, with the
// line.
runtime::Result<std::vector<CaloBinning>> read_binnings(const std::string& path);

// The one of them with so many voxels. An Error (kData) says how many they have.
runtime::Result<CaloBinning> binning_for(const std::string& path, std::uint64_t voxels);

// The rows of another reader as boxes; theirs have binning.voxels() values.
class BoxReader final : public BlockReader {
 public:
  static runtime::Result<std::unique_ptr<BlockReader>> create(std::unique_ptr<BlockReader> rows,
                                                              CaloBinning binning);

 private:
  BoxReader(std::unique_ptr<BlockReader> rows, CaloBinning binning);
  runtime::Result<void> read_block(std::uint32_t block, Scratch& scratch) const override;

  std::unique_ptr<BlockReader> rows_;
  CaloBinning binning_;
};

}  // namespace troupe::pipeline
