// Study files. A study that is accepted must print as one that says the same.

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "study/study_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto loaded = study::parse_study(text, "fuzz.yaml", ".");
  if (!loaded.ok()) {
    CHECK(loaded.error().kind == runtime::ErrorKind::kTopology, "an error of another kind");
    CHECK(!loaded.error().message.empty(), "an error without a word");
    return 0;
  }
  const std::string printed = study::print_study(loaded->study);
  const auto again = study::parse_study(printed, "printed.yaml", "/");
  CHECK(again.ok(), again.error().message);
  CHECK(again->study == loaded->study, "another study");
  CHECK(study::study_hash(*again) == study::study_hash(*loaded), "another hash");
  return 0;
}
