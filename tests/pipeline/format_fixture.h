#pragma once

// Small files in formats other than HDF5, as other programs write them.

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::pipeline {

// A header and the bytes of an IDX file.
std::string idx_text(std::uint8_t type, const std::vector<std::uint32_t>& shape,
                     const std::string& numbers);

// The bytes as one member of a gzip file.
std::string gzip_text(const std::string& content);

void write_text(const std::string& path, const std::string& text);

// `events` images of bytes, and labels 0 to 9 again and again: cell c of event e is 20 e + c,
// modulo 256.
struct SmallDigits {
  std::size_t events;
  std::uint32_t rows = 4;
  std::uint32_t columns = 3;
  std::string images() const;
  std::string labels() const;
  // "FOLDER/STEM-images-idx3-ubyte" and the labels beside it; packed with ".gz" behind. Returns the
  // path of the images.
  std::string write(const std::string& folder, const std::string& stem, bool packed = false) const;
};

// A record file of Examples with features ECAL (60 floats), energy (1 float) and label (1 integer),
// of the events of SmallData.
std::string small_records(std::size_t events);

// XML of two particles: one with layers of 1 x 3, 2 x 2 and 1 x 1 voxels (angles x radii) and empty
// ones between, one with 2 layers of 2 x 3.
std::string small_binning();

}  // namespace troupe::pipeline
