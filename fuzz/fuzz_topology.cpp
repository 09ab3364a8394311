// Topology files. One that is accepted must print as one that reads the same.

#include <string_view>

#include "config/topology_file.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto loaded = config::parse_topology(text, "fuzz.yaml", ".");
  if (!loaded.ok()) {
    CHECK(loaded.error().kind == runtime::ErrorKind::kTopology, "an error of another kind");
    CHECK(!loaded.error().message.empty(), "an error without a word");
    return 0;
  }
  const std::string printed = config::print_topology(*loaded);
  const auto again = config::parse_topology(printed, "printed.yaml", ".");
  CHECK(again.ok(), again.error().message);
  CHECK(config::print_topology(*again).size() > 0);
  return 0;
}
