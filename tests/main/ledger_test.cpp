// The ledger of a run against one computed here from the definitions of pipeline/sampler.h and
// pipeline/step_record.h alone: every event of a committed epoch was fed exactly once.

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using Number = unsigned long long;

// The finaliser of SplitMix64.
Number mix(Number x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

Number share(Number event, Number iteration, Number slot) {
  return mix(event ^ mix(iteration ^ mix(slot + 1)));
}

// The order of an epoch: eight alternating Feistel rounds on (column, row) of the smallest
// near-square that holds all events, repeated until the place is one of an event.
std::vector<Number> order_of(Number events, Number seed, Number epoch) {
  Number columns = 1;
  while (columns * columns < events) ++columns;
  const Number rows = (events + columns - 1) / columns;
  std::vector<Number> keys;
  for (Number key = mix(seed); keys.size() < 8;) {
    key = mix(key + mix(mix(epoch)));
    keys.push_back(key);
  }
  std::vector<Number> order;
  for (Number start = 0; start < events; ++start) {
    Number place = start;
    do {
      Number column = place % columns, row = place / columns;
      for (std::size_t round = 0; round < 8; ++round) {
        if (round % 2 == 0) {
          column = (column + mix(row ^ keys[round]) % columns) % columns;
        } else {
          row = (row + mix(column ^ keys[round]) % rows) % rows;
        }
      }
      place = row * columns + column;
    } while (place >= events);
    order.push_back(place);
  }
  return order;
}

constexpr Number kSlots = 4;

class Ledger : public ToyRun {
 protected:
  // All 200 events are for training.
  JsonValue ledger_of(const std::string& name, Words more) {
    more.insert(more.end(), {"--set", "data.test_one_in=0"});
    return summary_of(name, more)["ledger"];
  }
};

// One iteration is the whole epoch, so that no order enters: only whether each event came once.
TEST_F(Ledger, IterationOfAllEventsFeedsEachOnce) {
  const JsonValue ledger = ledger_of("a", {"--set", "train.micro_batch=20", "--set",
                                           "train.micro_batches=10", "--set", "train.epochs=3"});
  Number sum = 0;
  for (Number iteration = 0; iteration < 3; ++iteration) {
    for (Number slot = 0; slot < kSlots; ++slot) {
      for (Number event = 0; event < 200; ++event) sum += share(event, iteration, slot);
    }
  }
  EXPECT_EQ(ledger["events"].integer(), 3 * kSlots * 200);
  EXPECT_EQ(ledger["sum"].text(), fmt::format("{:016x}", sum));
}

TEST_F(Ledger, EpochOfManyIterationsFeedsEachEventOnce) {
  const Words many{"--set", "train.micro_batches=5", "--set", "train.epochs=3", "--seed", "42"};
  Number sum = 0;
  for (Number epoch = 0; epoch < 3; ++epoch) {
    const auto order = order_of(200, 42, epoch);
    ASSERT_EQ(std::set<Number>(order.begin(), order.end()).size(), 200);
    for (Number position = 0; position < 200; ++position) {
      const Number iteration = epoch * 10 + position / 20;
      for (Number slot = 0; slot < kSlots; ++slot) sum += share(order[position], iteration, slot);
    }
  }
  const JsonValue ledger = ledger_of("a", many);
  EXPECT_EQ(ledger["events"].integer(), 3 * kSlots * 200);
  EXPECT_EQ(ledger["sum"].text(), fmt::format("{:016x}", sum));
}

}  // namespace
}  // namespace troupe
