#pragma once

// The binary under test, and a topology that it trains in a moment: the zoo's toy on 4 x 4 x 4
// cells.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/pipeline/data_fixture.h"
#include "tests/support/json_value.h"
#include "tests/support/process.h"

namespace troupe {

// The words of a run that ends after so many iterations.
Words until_iteration(std::uint64_t iterations, Words more = {});

// Runs `troupe words...` to its end.
ProcessEnd call(const Words& words, const ProcessOptions& options = {});
// The words with the binary's path in front.
Words command(const Words& words);
// The verbs that `troupe --help` lists: "data make" is two words.
std::vector<Words> every_verb();

// The last line, which --json promises to be an object.
JsonValue last_line(const ProcessEnd& end);
std::vector<JsonValue> json_lines(const std::string& path);
std::uint64_t integer_of(const std::string& hexadecimal);

// Rows of a dataset of an HDF5 file, with so many floats each.
std::vector<float> rows_of(const std::string& path, const std::string& name, std::uint64_t rows,
                           std::uint64_t width);

// An lcd-fixed file of `events` images of 4 x 4 x 4 cells.
struct ToyData {
  explicit ToyData(std::size_t events);
  void write(const std::string& path) const;

  std::size_t events;
  std::vector<float> cells;   // [events][64]
  std::vector<float> target;  // [events][2]
};

// A folder with toy.h5 (200 events, 180 of them for training) and toy.yaml: micro-batches of 4, 4
// of them an iteration, 11 iterations an epoch, 4 steps an iteration; shared out once and for all,
// because steps that take a moment cannot be told fast from slow.
class ToyRun : public testing::Test {
 protected:
  ToyRun();

  std::string path(const std::string& name) const { return folder_ / name; }
  // Words of `troupe run toy.yaml --out NAME`.
  Words run_words(const std::string& name, const Words& more = {}) const;
  ProcessEnd run(const std::string& name, const Words& more = {},
                 const ProcessOptions& options = {}) const;
  // The same with --json; expects exit 0 and returns the summary.
  JsonValue summary_of(const std::string& name, const Words& more = {}) const;
  JsonValue resumed(const std::string& name, const Words& more = {}) const;
  std::string hash_of(const std::string& name, const Words& more = {}) const;
  // Names in NAME/checkpoints, newest first.
  std::vector<std::string> checkpoints(const std::string& name) const;
  std::string checkpoint(const std::string& name, std::size_t age) const;
  // The step of its newest checkpoint, of which there is one.
  std::uint64_t newest_step(const std::string& name) const;
  // Waits until the run has a checkpoint of `step` or a later one.
  void wait_for_checkpoint(Process& process, const std::string& name, std::uint64_t step) const;
  // Starts run "a" with the words of a run without an end, or goes on with it where it is there,
  // and sends it the signal 1 to `most` steps after its newest checkpoint, as `draw` has it.
  ProcessEnd interrupt(int signal_number, std::uint32_t draw, std::uint64_t most,
                       const Words& endless, const Words& more = {}) const;
  // Expects exit `code`, nothing on standard output, and all `parts` in standard error.
  static void expect_refused(const ProcessEnd& end, int code,
                             const std::vector<std::string>& parts);

  TemporaryFolder folder_;
};

}  // namespace troupe
