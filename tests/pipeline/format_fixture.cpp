#include "tests/pipeline/format_fixture.h"

#include <zlib.h>

#include <fstream>

#include "pipeline/data/example_message.h"
#include "runtime/base/error.h"
#include "runtime/base/tf_record.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::pipeline {

std::string idx_text(std::uint8_t type, const std::vector<std::uint32_t>& shape,
                     const std::string& numbers) {
  std::string text{'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  for (const std::uint32_t extent : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(extent >> shift);
  }
  return text + numbers;
}

std::string gzip_text(const std::string& content) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  std::string copy = content;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  CHECK(file.good(), path);
}

std::string SmallDigits::images() const {
  std::string numbers;
  for (std::size_t e = 0; e < events; ++e) {
    for (std::size_t c = 0; c < rows * columns; ++c) numbers += static_cast<char>(20 * e + c);
  }
  return idx_text(0x08, {static_cast<std::uint32_t>(events), rows, columns}, numbers);
}

std::string SmallDigits::labels() const {
  std::string numbers;
  for (std::size_t e = 0; e < events; ++e) numbers += static_cast<char>(e % 10);
  return idx_text(0x08, {static_cast<std::uint32_t>(events)}, numbers);
}

std::string SmallDigits::write(const std::string& folder, const std::string& stem,
                               bool packed) const {
  const std::string end = packed ? ".gz" : "";
  const auto content = [&](const std::string& text) { return packed ? gzip_text(text) : text; };
  write_text(folder + "/" + stem + "-labels-idx1-ubyte" + end, content(labels()));
  const std::string path = folder + "/" + stem + "-images-idx3-ubyte" + end;
  write_text(path, content(images()));
  return path;
}

std::string small_records(std::size_t events) {
  const SmallData data(events);
  std::string all;
  for (std::size_t e = 0; e < events; ++e) {
    const std::int64_t label[] = {static_cast<std::int64_t>(e)};
    const std::span<const float> cells(data.cells);
    const std::span<const float> target(data.target);
    all += runtime::tf_record(ExampleWriter()
                                  .floats("ECAL", cells.subspan(e * 60, 60))
                                  .floats("energy", target.subspan(2 * e + 1, 1))
                                  .integers("label", label)
                                  .message());
  }
  return all;
}

std::string small_binning() {
  return R"(<Bins>
   <Bin pid="22" etaMin="0" etaMax="130" name="photon">
      <Layer id="0" r_edges="0,5,10.5,30" n_bin_alpha="1" />
      <Layer id="1" r_edges="0" n_bin_alpha="1" />
      <Layer id="2" r_edges="0,2,4" n_bin_alpha="2"/>
      <Layer id="12" r_edges="0,100" n_bin_alpha="1" />
   </Bin>
   <Bin pid="11" name="electron">
      <Layer id="0" r_edges="0,1,2,3" n_bin_alpha="2"/>
      <Layer id="1" r_edges="0,1,2,3" n_bin_alpha="2"/>
   </Bin>
</Bins>
)";
}

}  // namespace troupe::pipeline
