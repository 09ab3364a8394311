// Checkpoints. An input whose first byte is even is a file; one whose first byte is odd describes
// how a sound file is forged (hostile_hdf5.h). Bytes that only the HDF5 library interprets
// are changed behind the seal's back in neither case: the library is known to crash at them, and
// the seal is what keeps damage from it.

#include <span>

#include "fuzz/hostile_hdf5.h"
#include "fuzz/memory_meter.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "tests/pipeline/state_example.h"

namespace {

using namespace troupe;

// What the HDF5 library keeps for any file.
constexpr std::size_t kConstantBytes = std::size_t{4} << 20;

runtime::Buffer sound_file(const pipeline::StateExample& example) {
  pipeline::Checkpoint checkpoint;
  checkpoint.state = pipeline::initial_state(example.layout, example.options, "reference", {1, 2});
  checkpoint.topology = "name: example\n";
  return pipeline::encode_checkpoint(checkpoint, example.layout, example.options).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const pipeline::StateExample kExample = pipeline::state_example();
  static const runtime::Buffer kSound = sound_file(kExample);
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  const runtime::Buffer file =
      data[0] % 2 == 0 ? runtime::Buffer::copy_of(input) : fuzz::edit_checkpoint(kSound, input);
  const fuzz::MemoryMeter meter;
  const auto read = pipeline::decode_checkpoint(file, "fuzz.h5", kExample.layout, kExample.options);
  const auto summary = pipeline::inspect_checkpoint(file, "fuzz.h5");
  meter.check(file.size(), kConstantBytes);
  // What a model takes can be looked at without one.
  CHECK(!read.ok() || summary.ok());
  return 0;
}
