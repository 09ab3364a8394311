#include "tests/main/toy_run.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "pipeline/data/hdf5_file.h"
#include "runtime/base/random.h"

namespace troupe {
namespace {

constexpr const char* kTopology = R"(name: toy
model: {zoo: toy}
data: {train: toy.h5}
train: {epochs: 2, micro_batch: 4, micro_batches: 4, seed: 1}
actors:
  replica: {count: 2}
  checkpointer: {every: 5 iterations, keep: 3}
  validator: {every: none}
cluster: {rebalance: false}
)";

}  // namespace

Words until_iteration(std::uint64_t iterations, Words more) {
  more = more + Words{"--set", "train.epochs=1000000", "--set",
                      fmt::format("train.iterations={}", iterations)};
  return more;
}

Words command(const Words& words) { return Words{TROUPE_BINARY} + words; }

ProcessEnd call(const Words& words, const ProcessOptions& options) {
  ProcessEnd end = Process(command(words), options).wait();
  EXPECT_FALSE(end.timed_out) << "hangs: " << fmt::format("{}", fmt::join(words, " "));
  return end;
}

std::vector<Words> every_verb() {
  std::vector<Words> verbs;
  std::istringstream lines(call({"--help"}).out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;
    std::istringstream words(line.substr(2, line.find("  ", 2) - 2));
    Words& verb = verbs.emplace_back();
    for (std::string word; words >> word;) verb.push_back(word);
  }
  EXPECT_GT(verbs.size(), 20U);
  return verbs;
}

JsonValue last_line(const ProcessEnd& end) {
  std::string_view text = end.out;
  if (!text.ends_with('\n')) throw std::runtime_error("no whole line: " + end.out + end.err);
  text.remove_suffix(1);
  const std::size_t before = text.rfind('\n');
  return parse_json(before == std::string_view::npos ? text : text.substr(before + 1));
}

std::vector<JsonValue> json_lines(const std::string& path) {
  std::vector<JsonValue> values;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) values.push_back(parse_json(line));
  return values;
}

std::uint64_t integer_of(const std::string& hexadecimal) {
  return std::stoull(hexadecimal, nullptr, 16);
}

std::vector<float> rows_of(const std::string& path, const std::string& name, std::uint64_t rows,
                           std::uint64_t width) {
  const auto file = pipeline::Hdf5File::open(path);
  CHECK(file.ok(), path);
  const auto dataset = file->dataset(name);
  CHECK(dataset.ok(), name);
  std::vector<float> values(rows * width);
  CHECK(dataset->read_rows(0, rows, values.data()).ok());
  return values;
}

ToyData::ToyData(std::size_t count) : events(count) {
  const runtime::RandomPosition position{.seed = 1};
  for (std::uint32_t event = 0; event < events; ++event) {
    const double energy_gev = 10.0 + 490.0 * runtime::random_uniform(position, event);
    target.push_back(0.0f);
    target.push_back(static_cast<float>(energy_gev));
    for (std::uint32_t cell = 0; cell < 64; ++cell) {
      const double share =
          runtime::random_uniform(position, static_cast<std::uint32_t>(events) + event * 64 + cell);
      cells.push_back(static_cast<float>(energy_gev * 0.02 * share / 32.0));
    }
  }
}

void ToyData::write(const std::string& path) const {
  pipeline::Hdf5Scribe file(path);
  file.add("ECAL", {events, 4, 4, 4}, cells, {.chunk = {16, 4, 4, 4}, .gzip = 1});
  file.add("target", {events, 2}, target);
}

ToyRun::ToyRun() {
  // Whatever has started the tests is not to be taken for the starter of a run.
  for (const char* name :
       {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_STEP_ID", "TF_CONFIG"}) {
    ::unsetenv(name);
  }
  ToyData(200).write(path("toy.h5"));
  write_text(path("toy.yaml"), kTopology);
}

Words ToyRun::run_words(const std::string& name, const Words& more) const {
  return Words{"run", path("toy.yaml"), "--out", path(name)} + more;
}

ProcessEnd ToyRun::run(const std::string& name, const Words& more,
                       const ProcessOptions& options) const {
  return call(run_words(name, more), options);
}

JsonValue ToyRun::summary_of(const std::string& name, const Words& more) const {
  Words words = more;
  words.push_back("--json");
  const ProcessEnd end = run(name, words);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return last_line(end);
}

JsonValue ToyRun::resumed(const std::string& name, const Words& more) const {
  const ProcessEnd end = call(Words{"run", "--resume", path(name), "--json"} + more);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return last_line(end);
}

std::string ToyRun::hash_of(const std::string& name, const Words& more) const {
  return summary_of(name, more)["state_hash"].text();
}

std::vector<std::string> ToyRun::checkpoints(const std::string& name) const {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry :
       std::filesystem::directory_iterator(path(name + "/checkpoints"), missing)) {
    if (entry.path().extension() == ".h5") names.push_back(entry.path().filename().string());
  }
  std::sort(names.rbegin(), names.rend());
  return names;
}

std::string ToyRun::checkpoint(const std::string& name, std::size_t age) const {
  return path(name + "/checkpoints/" + checkpoints(name).at(age));
}

std::uint64_t ToyRun::newest_step(const std::string& name) const {
  return std::stoull(checkpoints(name).front().substr(5, 12));
}

void ToyRun::wait_for_checkpoint(Process& process, const std::string& name,
                                 std::uint64_t step) const {
  process.wait_until([&] {
    const auto names = checkpoints(name);
    return !names.empty() && names.front() >= fmt::format("step-{:012}.h5", step);
  });
}

ProcessEnd ToyRun::interrupt(int signal_number, std::uint32_t draw, std::uint64_t most,
                             const Words& endless, const Words& more) const {
  const bool fresh = !std::filesystem::exists(path("a"));
  Process process(
      command((fresh ? run_words("a", endless) : Words{"run", "--resume", path("a")}) + more));
  const std::uint64_t from = fresh ? 0 : newest_step("a");
  const double share = runtime::random_uniform({.seed = 7}, draw);
  const auto steps = static_cast<std::uint64_t>(share * static_cast<double>(most));
  wait_for_checkpoint(process, "a", from + 1 + steps);
  process.send(signal_number);
  return process.wait();
}

void ToyRun::expect_refused(const ProcessEnd& end, int code,
                            const std::vector<std::string>& parts) {
  EXPECT_EQ(end.exit_code, code) << end.err;
  EXPECT_EQ(end.signal, 0);
  EXPECT_EQ(end.out, "");
  for (const std::string& part : parts) EXPECT_THAT(end.err, testing::HasSubstr(part));
}

}  // namespace troupe
