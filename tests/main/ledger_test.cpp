// The ledger of a run against one computed here from the definitions of pipeline/data/sampler.h and
// pipeline/steps/step_record.h alone: every event of a committed epoch was fed exactly once. And
// what tests/main/ledger, which does the same with every step of a run, says of records that are
// wrong.

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "tests/main/ledger_check.h"
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

constexpr Number kLedgerSlots = 4;

class Ledger : public ToyRun {
 protected:
  // All 200 events are for training.
  JsonValue ledger_of(const std::string& name, Words more) {
    more = more + Words{"--set", "data.test_one_in=0"};
    return summary_of(name, more)["ledger"];
  }
};

// One iteration is the whole epoch, so that no order enters: only whether each event came once.
TEST_F(Ledger, IterationOfAllEventsFeedsEachOnce) {
  const JsonValue ledger = ledger_of("a", {"--set", "train.micro_batch=20", "--set",
                                           "train.micro_batches=10", "--set", "train.epochs=3"});
  Number sum = 0;
  for (Number iteration = 0; iteration < 3; ++iteration) {
    for (Number slot = 0; slot < kLedgerSlots; ++slot) {
      for (Number event = 0; event < 200; ++event) sum += share(event, iteration, slot);
    }
  }
  EXPECT_EQ(ledger["events"].integer(), 3 * kLedgerSlots * 200);
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
      for (Number slot = 0; slot < kLedgerSlots; ++slot)
        sum += share(order[position], iteration, slot);
    }
  }
  const JsonValue ledger = ledger_of("a", many);
  EXPECT_EQ(ledger["events"].integer(), 3 * kLedgerSlots * 200);
  EXPECT_EQ(ledger["sum"].text(), fmt::format("{:016x}", sum));
}

using testing::AllOf;
using testing::HasSubstr;

// For two epochs, each with four events too few for another iteration.
class LedgerProgram : public ToyRun {
 protected:
  using Lines = std::vector<std::string>;

  Lines lines() const {
    Lines all;
    std::istringstream text(read_text(path("a/metrics.jsonl")));
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }
  static std::size_t line_of(const Lines& lines, Number step) {
    const std::string begin = fmt::format(R"({{"kind":"step","step":{},)", step);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].starts_with(begin)) return i;
    }
    throw std::runtime_error("no line of " + begin);
  }
  static void replace(std::string& line, const std::string& what, const std::string& by) {
    const std::size_t at = line.find(what);
    ASSERT_NE(at, std::string::npos) << line;
    line.replace(at, what.size(), by);
  }
  // What is said of run "a" with changed lines, or with a changed file of that name.
  ProcessEnd with_lines(const std::function<void(Lines&)>& change) const {
    Lines changed = lines();
    change(changed);
    return with_text("metrics.jsonl", fmt::format("{}\n", fmt::join(changed, "\n")));
  }
  ProcessEnd with_text(const std::string& file, const std::string& text) const {
    std::filesystem::remove_all(path("b"));
    std::filesystem::copy(path("a"), path("b"));
    write_text(path("b/" + file), text);
    return check_ledger(path("b"));
  }
  // The sum of the step's line without one event and with another.
  void put_event(Lines& lines, Number step, Number gone, Number came) const {
    const Number iteration = step / kLedgerSlots, slot = step % kLedgerSlots;
    std::string& line = lines[line_of(lines, step)];
    const std::string sum = parse_json(line)["event_sum"].text();
    replace(line, sum,
            fmt::format("{:016x}", integer_of(sum) - share(gone, iteration, slot) +
                                       share(came, iteration, slot)));
  }
  static void expect_wrong(const ProcessEnd& end, const std::string& counts,
                           const std::string& said) {
    EXPECT_EQ(end.exit_code, 1) << end.err;
    EXPECT_THAT(end.out, AllOf(HasSubstr(counts), HasSubstr(said)));
  }
};

TEST_F(LedgerProgram, IsContentWithRunsThatAreWhole) {
  hash_of("a", {"--seed", "42"});
  expect_clean_ledger(path("a"), 88);
  resumed("a", {"--set", "train.epochs=3"});
  expect_clean_ledger(path("a"), 132);
  hash_of("b", {"--set", "train.micro_batch=9", "--set", "train.micro_batches=20"});
  expect_clean_ledger(path("b"), 8, 180);
}

TEST_F(LedgerProgram, NoticesStepsThatAreMissingOrDoubled) {
  hash_of("a");
  expect_wrong(with_lines([](Lines& all) { all.erase(all.begin() + line_of(all, 51)); }),
               "87 steps, 1392 events: 0 lost, 0 repeated, 1 steps missing, 0 doubled",
               "step 51 is missing");
  expect_wrong(with_lines([](Lines& all) { all.erase(all.begin() + line_of(all, 87)); }),
               "0 lost, 0 repeated, 1 steps missing, 0 doubled", "step 87 is missing");
  expect_wrong(with_lines([](Lines& all) { all.push_back(all[line_of(all, 3)]); }),
               "88 steps, 1408 events: 0 lost, 0 repeated, 0 steps missing, 1 doubled",
               "step 3 is told twice");
}

TEST_F(LedgerProgram, NoticesEventsThatAreLostOrRepeated) {
  hash_of("a");
  const Number event = order_of(180, 1, 0)[20], other = order_of(180, 1, 0)[0];  // of iteration 1
  expect_wrong(with_lines([&](Lines& all) { put_event(all, 5, event, other); }),
               "88 steps, 1408 events: 1 lost, 1 repeated, 0 steps missing, 0 doubled",
               fmt::format("step 5 (iteration 1): event {} is lost", event));
  expect_wrong(with_lines([&](Lines& all) { put_event(all, 5, event, other); }), "1 repeated",
               fmt::format("event {} came and should not have", other));
  expect_wrong(with_lines([&](Lines& all) {
                 replace(all[line_of(all, 5)], R"("events":16)", R"("events":15)");
               }),
               "1 lost, 0 repeated", "step 5 (iteration 1): an event is lost");
  expect_wrong(with_lines([&](Lines& all) {
                 std::string& line = all[line_of(all, 40)];
                 const std::size_t digit = line.find("event_sum") + 12;
                 line[digit] = line[digit] == '0' ? '1' : '0';
               }),
               "1 lost, 1 repeated", "step 40 (iteration 10)");
}

// With lines that are as they should be.
TEST_F(LedgerProgram, NoticesWhatTheLastStateWasMadeOfTwiceOrNever) {
  hash_of("a");
  const std::string summary = read_text(path("a/summary.json"));
  const JsonValue ledger = parse_json(summary)["ledger"];
  const JsonValue line = parse_json(lines()[line_of(lines(), 7)]);
  const Number step = integer_of(line["event_sum"].text());
  const auto with_ledger = [&](Number events, Number sum) {
    std::string changed = summary;
    const auto text = [](Number number, const std::string& hash) {
      return fmt::format(R"("ledger":{{"events":{},"sum":"{}"}})", number, hash);
    };
    replace(changed, text(ledger["events"].integer(), ledger["sum"].text()),
            text(events, fmt::format("{:016x}", sum)));
    return with_text("summary.json", changed);
  };
  const Number sum = integer_of(ledger["sum"].text());
  expect_wrong(with_ledger(1408 + 16, sum + step), "0 steps missing, 1 doubled",
               "the state has step 7 twice");
  expect_wrong(with_ledger(1408 - 16, sum - step), "1 steps missing, 0 doubled",
               "the state lacks step 7");
  expect_wrong(with_ledger(1408, sum + 1), "1 lost, 1 repeated", "not made of the events");
}

TEST_F(LedgerProgram, SaysWhatItCannotTell) {
  EXPECT_EQ(check_ledger(path("nothing")).exit_code, 2);
  hash_of("a");
  const ProcessEnd other = check_ledger(path("a"), 100);
  EXPECT_EQ(other.exit_code, 1) << other.out;
}

}  // namespace
}  // namespace troupe
