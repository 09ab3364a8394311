#include "tests/main/ledger_check.h"

#include <gtest/gtest.h>

#include <iostream>

#include <fmt/format.h>

namespace troupe {

ProcessEnd check_ledger(const std::string& run, std::uint64_t events) {
  return Process({TROUPE_SOURCE_DIR "/tests/main/ledger", run, "--events", std::to_string(events)})
      .wait();
}

void expect_clean_ledger(const std::string& run, std::uint64_t steps,
                         std::uint64_t events_per_step) {
  const ProcessEnd end = check_ledger(run);
  std::cout << end.out << end.err;
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.out,
            fmt::format("ledger: {} steps, {} events: 0 lost, 0 repeated, 0 steps missing, "
                        "0 doubled\n",
                        steps, steps * events_per_step));
}

}  // namespace troupe
