#include "pipeline/data/calo_binning.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <pugixml.hpp>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/disk.h"
#include "runtime/base/utf8.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::size_t kMostFileBytes = 1u << 20;
constexpr std::uint32_t kMostBins = 4096;        // along each axis
constexpr std::uint64_t kMostVoxels = 1u << 24;  // of a box
constexpr std::uint64_t kMostBlockBytes = std::uint64_t{1} << 30;

std::optional<double> edge_of(std::string_view text) {
  double value = 0;
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// How many bins edges such as "0,5,10.5" bound; nothing unless they are numbers that grow.
std::optional<std::uint32_t> bins_between(std::string_view edges) {
  std::uint32_t count = 0;
  double last = -std::numeric_limits<double>::infinity();
  for (;;) {
    const std::size_t comma = edges.find(',');
    const auto edge = edge_of(edges.substr(0, comma));
    if (!edge || !(*edge > last)) return std::nullopt;
    last = *edge;
    if (comma == std::string_view::npos) return count;
    ++count;
    edges.remove_prefix(comma + 1);
  }
}

// Tells where in the text something stands.
class BinningFile {
 public:
  BinningFile(std::string path, std::string text)
      : path_(std::move(path)), text_(std::move(text)) {}

  Result<std::vector<CaloBinning>> read() const {
    pugi::xml_document document;
    const auto parsed = document.load_buffer(text_.data(), text_.size());
    if (!parsed) return wrong(parsed.offset, parsed.description());
    std::vector<CaloBinning> found;
    for (const pugi::xml_node node : document.child("Bins").children("Bin")) {
      ASSIGN_OR_RETURN(CaloBinning binning, particle(node));
      found.push_back(std::move(binning));
    }
    if (found.empty()) return wrong(0, "expected <Bins> with a <Bin> for each particle");
    return found;
  }

 private:
  Result<CaloBinning> particle(const pugi::xml_node& node) const {
    CaloBinning binning;
    binning.particle = node.attribute("name").as_string(node.attribute("pid").as_string("?"));
    for (const pugi::xml_node layer : node.children("Layer")) {
      ASSIGN_OR_RETURN(const CaloLayer found, this->layer(layer));
      if (found.radii > 0) binning.layers.push_back(found);
    }
    if (binning.layers.empty()) return wrong(node.offset_debug(), "no <Layer> has voxels");
    if (binning.layers.size() > kMostBins || binning.box().size() > kMostVoxels) {
      return wrong(node.offset_debug(), "more voxels than a shower can have");
    }
    return binning;
  }

  Result<CaloLayer> layer(const pugi::xml_node& node) const {
    CaloLayer layer;
    layer.id = node.attribute("id").as_int();
    const char* const edges = node.attribute("r_edges").as_string();
    const auto radii = bins_between(edges);
    if (!radii || *radii > kMostBins) {
      return wrong(node.offset_debug(),
                   fmt::format("r_edges is \"{}\"; expected numbers that grow, with commas between",
                               runtime::printable(std::string(edges))));
    }
    layer.radii = *radii;
    const int angles = node.attribute("n_bin_alpha").as_int(-1);
    if (angles < 1 || angles > static_cast<int>(kMostBins)) {
      return wrong(node.offset_debug(),
                   fmt::format("n_bin_alpha is \"{}\"; expected 1 or more",
                               runtime::printable(node.attribute("n_bin_alpha").as_string())));
    }
    layer.angles = static_cast<std::uint32_t>(angles);
    return layer;
  }

  Error wrong(std::ptrdiff_t offset, std::string_view what) const {
    const auto end = text_.begin() + std::clamp<std::ptrdiff_t>(
                                         offset, 0, static_cast<std::ptrdiff_t>(text_.size()));
    return {ErrorKind::kData, fmt::format("{}:{}: {}; expected the binning XML of CaloChallenge",
                                          path_, 1 + std::count(text_.begin(), end, '\n'), what)};
  }

  std::string path_;
  std::string text_;
};

}  // namespace

// Calls visit(index in the row, index in the box) for each voxel.
template <class Visit>
void CaloBinning::walk(const Visit& visit) const {
  const ImageShape shape = box();
  std::size_t voxel = 0;
  for (std::size_t z = 0; z < layers.size(); ++z) {
    for (std::uint32_t angle = 0; angle < layers[z].angles; ++angle) {
      for (std::uint32_t radius = 0; radius < layers[z].radii; ++radius) {
        visit(voxel++, (std::size_t{angle} * shape.space[1] + radius) * layers.size() + z);
      }
    }
  }
}

std::uint64_t CaloBinning::voxels() const {
  std::uint64_t all = 0;
  for (const CaloLayer& layer : layers) all += std::uint64_t{layer.angles} * layer.radii;
  return all;
}

ImageShape CaloBinning::box() const {
  ImageShape shape{{0, 0, static_cast<std::uint32_t>(layers.size())}};
  for (const CaloLayer& layer : layers) {
    shape.space[0] = std::max(shape.space[0], layer.angles);
    shape.space[1] = std::max(shape.space[1], layer.radii);
  }
  return shape;
}

std::string CaloBinning::text() const {
  std::string all;
  for (const CaloLayer& layer : layers) {
    all += fmt::format("{}{}x{}", all.empty() ? "" : " ", layer.angles, layer.radii);
  }
  return all;
}

void CaloBinning::to_box(std::span<const float> row, std::span<float> box) const {
  std::ranges::fill(box, 0.0f);
  walk([&](std::size_t voxel, std::size_t cell) { box[cell] = row[voxel]; });
}

void CaloBinning::from_box(std::span<const float> box, std::span<float> row) const {
  walk([&](std::size_t voxel, std::size_t cell) { row[voxel] = box[cell]; });
}

Result<std::vector<CaloBinning>> read_binnings(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, runtime::read_file(path, kMostFileBytes));
  return BinningFile(path, std::move(text)).read();
}

Result<CaloBinning> binning_for(const std::string& path, std::uint64_t voxels) {
  ASSIGN_OR_RETURN(const auto binnings, read_binnings(path));
  std::vector<std::string> others;
  for (const CaloBinning& binning : binnings) {
    if (binning.voxels() == voxels) return binning;
    others.push_back(
        fmt::format("{} has {}", runtime::printable(binning.particle), binning.voxels()));
  }
  return Error{ErrorKind::kData, fmt::format("{}: no particle has {} voxels: {}", path, voxels,
                                             fmt::join(others, ", "))};
}

BoxReader::BoxReader(std::unique_ptr<BlockReader> rows, CaloBinning binning)
    : rows_(std::move(rows)), binning_(std::move(binning)) {}

Result<std::unique_ptr<BlockReader>> BoxReader::create(std::unique_ptr<BlockReader> rows,
                                                       CaloBinning binning) {
  CHECK(rows->row_size() == binning.voxels(), rows->place());
  const ImageShape box = binning.box();
  Images images{.place = rows->place(),
                .shape_text = rows->shape_text(),
                .shape = {rows->rows(), box.space[0], box.space[1], box.space[2]},
                .homes = rows->homes(),
                .note = rows->note()};
  const std::uint64_t block_rows = rows->block_rows();
  if (block_rows > kMostBlockBytes / sizeof(float) / box.size()) {
    return Error{ErrorKind::kData,
                 fmt::format("{}: {} rows are read at once, and as boxes of {} they take more than "
                             "1 GiB; store it in smaller chunks",
                             rows->place(), block_rows, box.text())};
  }
  auto reader = std::unique_ptr<BoxReader>(new BoxReader(std::move(rows), std::move(binning)));
  RETURN_IF_ERROR(reader->begin(std::move(images), block_rows));
  return std::unique_ptr<BlockReader>(std::move(reader));
}

Result<void> BoxReader::read_block(std::uint32_t block, Scratch& scratch) const {
  RETURN_IF_ERROR(rows_->read_block(block, scratch));
  scratch.other.resize(block_rows() * row_size());
  for (std::uint64_t i = 0; i < rows_of(block); ++i) {
    binning_.to_box(
        std::span<const float>(scratch.block).subspan(i * rows_->row_size(), rows_->row_size()),
        std::span(scratch.other).subspan(i * row_size(), row_size()));
  }
  std::swap(scratch.block, scratch.other);
  return {};
}

}  // namespace troupe::pipeline
