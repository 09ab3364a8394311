// Topology files, with settings of the command line: lines at the end that begin with "--set ". A
// topology that is accepted must print as one that says the same.

#include <string>
#include <string_view>
#include <vector>

#include "config/topology_fields.h"
#include "config/topology_file.h"
#include "runtime/base/error.h"

namespace {

using namespace troupe;

// Takes the settings off the text.
std::vector<std::string> settings_of(std::string_view& text) {
  constexpr std::string_view kSet = "\n--set ";
  std::vector<std::string> settings;
  for (std::size_t at; (at = text.rfind(kSet)) != std::string_view::npos;) {
    settings.emplace_back(text.substr(at + kSet.size()));
    text = text.substr(0, at + 1);
  }
  return settings;
}

std::string values_of(const config::Topology& topology) {
  return config::print_yaml(config::topology_record().write(topology, config::Selection::kAll));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> settings = settings_of(text);
  const auto loaded = config::parse_topology(text, "fuzz.yaml", ".", settings);
  if (!loaded.ok()) {
    const runtime::ErrorKind kind = loaded.error().kind;
    CHECK(kind == runtime::ErrorKind::kTopology ||
              (kind == runtime::ErrorKind::kUsage && !settings.empty()),
          "an error of another kind");
    CHECK(!loaded.error().message.empty(), "an error without a word");
    return 0;
  }
  const auto again = config::parse_topology(config::print_topology(*loaded), "printed.yaml", ".");
  CHECK(again.ok(), again.error().message);
  CHECK(values_of(again->topology) == values_of(loaded->topology), "another topology");
  return 0;
}
