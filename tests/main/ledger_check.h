#pragma once

// tests/main/ledger tells whether a run made every step once, of the events that belong to it.

#include <cstdint>
#include <string>

#include "tests/support/process.h"

namespace troupe {

// The number of the toy's training events.
inline constexpr std::uint64_t kToyEvents = 180;

// The program's end. `run` is a folder.
ProcessEnd check_ledger(const std::string& run, std::uint64_t events = kToyEvents);
// Prints its line, and expects that the run has made so many steps and nothing is wrong with them.
void expect_clean_ledger(const std::string& run, std::uint64_t steps,
                         std::uint64_t events_per_step = 16);

}  // namespace troupe
