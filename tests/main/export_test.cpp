// Generators that leave, through the binary. What is in the files: tests/pipeline/leaving_test.cpp.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST_F(ToyRun, ExportWritesEachFormatWithACardOfItsRun) {
  run("a", {"--set", "actors.validator={every: 1 epoch, events: 10}"});
  const ProcessEnd end =
      call({"export", path("a"), "--onnx", path("g.onnx"), "--keras", path("w.h5"), "--numpy",
            path("w.npz"), "--licence", "CC-BY-4.0", "--json"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  std::vector<std::string> files;
  const JsonValue told = last_line(end);
  for (const JsonValue& file : told["files"].list()) files.push_back(file.text());
  EXPECT_EQ(files, (std::vector<std::string>{path("g.onnx"), path("g.onnx.md"), path("w.h5"),
                                             path("w_discriminator.h5"), path("w.h5.md"),
                                             path("w.npz"), path("w.npz.md")}));
  for (const std::string& file : files) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  const std::string card = read_text(path("g.onnx.md"));
  const JsonValue inspected = last_line(call({"inspect", path("a"), "--json"}));
  for (const std::string& part :
       {std::string("| licence | CC-BY-4.0 |"), "| state_hash | " + inspected["state_hash"].text(),
        std::string("`g.onnx`: the generator, ONNX opset 17; XXH128 "), path("toy.h5"),
        std::string("| comparison.merit.total | ")}) {
    EXPECT_THAT(card, HasSubstr(part));
  }
  const ProcessEnd par04 =
      call({"export", checkpoint("a", 0), "--onnx", path("p.onnx"), "--flavour", "par04"});
  EXPECT_EQ(par04.exit_code, 0) << par04.err;
  EXPECT_THAT(read_text(path("p.onnx.md")), HasSubstr("/Par04/inference/setSizeLatentVector 2"));
}

TEST_F(ToyRun, ExportLeavesAloneWhatIsThere) {
  run("a");
  write_text(path("g.onnx.md"), "precious");
  const auto names = folder_.names();
  expect_refused(call({"export", checkpoint("a", 0), "--onnx", path("g.onnx")}), 2,
                 {path("g.onnx.md") + " is there already"});
  expect_refused(call({"export", checkpoint("a", 0)}), 2, {"which file?"});
  expect_refused(call({"export", checkpoint("a", 0), "--numpy", checkpoint("a", 0)}), 2,
                 {"is read itself"});
  expect_refused(call({"export", path("toy.h5"), "--numpy", path("w.npz")}), 4,
                 {"not a checkpoint"});
  // Two formats by one name, a card by that of a file, and names that mean one file.
  const auto twice = [&](const Words& outputs) {
    expect_refused(call(Words{"export", checkpoint("a", 0)} + outputs), 2,
                   {"would be written twice"});
  };
  twice({"--onnx", path("g"), "--numpy", path("g")});
  twice({"--onnx", path("g"), "--numpy", path("g.md")});
  twice({"--keras", path("w.h5"), "--numpy", path("a/../w_discriminator.h5")});
  expect_refused(call({"export", checkpoint("a", 0), "--numpy", path("g"), "--flavour", "par04"}),
                 2, {"--flavour is for --onnx"});
  EXPECT_EQ(folder_.names(), names);
  EXPECT_EQ(read_text(path("g.onnx.md")), "precious");
}

// A full disk, of which the first files would still fit.
TEST_F(ToyRun, ExportWritesAllFilesOrNone) {
  run("a");
  const auto words = [&](const std::string& name) {
    return Words{"export",  checkpoint("a", 0), "--onnx",  path(name + ".onnx"),
                 "--keras", path(name + ".h5"), "--numpy", path(name + ".npz")};
  };
  ASSERT_EQ(call(words("whole")).exit_code, 0);
  std::uintmax_t most = 0;
  for (const char* end : {".onnx", ".h5", ".npz"}) {
    most = std::max(most, std::filesystem::file_size(path(std::string("whole") + end)));
  }
  ASSERT_LT(std::filesystem::file_size(path("whole.onnx")), most);
  const auto names = folder_.names();
  expect_refused(call(words("part"), {.largest_file_bytes = most - 1}), 4, {"File too large"});
  EXPECT_EQ(folder_.names(), names);
}

// Somebody else's program may have written lines into it.
TEST_F(ToyRun, ExportPassesOverLinesOfMetricsThatAreNoValidation) {
  run("a", {"--set", "actors.validator={every: 1 epoch, events: 10}"});
  std::string lines;
  for (
      const char* line :
      {R"({"kind":"validation","step":"44","fields":{"rows":[{"name":"generated","a":1}]}})",
       R"({"kind":"validation","step":44,"fields":7})",
       R"({"kind":"validation","step":44,"fields":{"rows":{"name":"generated"}}})",
       R"({"kind":"validation","step":44,"fields":{"rows":[7,{"name":8},{"name":["generated"]}]}})",
       R"([{"kind":"validation","step":44}])", R"({"kind":"validation","step":)",
       R"({"kind":"validation","step":-44,"fields":null})"}) {
    lines += std::string(line) + "\n";
  }
  write_text(path("a/metrics.jsonl"), lines + read_text(path("a/metrics.jsonl")));
  const ProcessEnd end = call({"export", path("a"), "--numpy", path("w.npz")});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  const std::string card = read_text(path("w.npz.md"));
  EXPECT_THAT(card, HasSubstr("| comparison.merit.total | "));
  // Eleven iterations are no training.
  EXPECT_THAT(card, HasSubstr("**The showers were nothing like the data**: "));
}

}  // namespace
}  // namespace troupe
