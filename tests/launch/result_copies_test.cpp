// The end of a run whose results are copied to a server that does not answer.

#include "launch/run/result_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;

TEST(ResultCopiesEnd, FileOnItsWayToASilentServerIsGivenUpWithTheRest) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "served");
  std::filesystem::create_directories(folder / "run/checkpoints");
  write_text(folder / "run/topology.yaml", "name: a\n");
  write_text(folder / "run/checkpoints/step-000000000001.h5", std::string(3'000'000, 'x'));
  Process server({TROUPE_SOURCE_DIR "/tests/pipeline/file_server", folder / "served"});
  ASSERT_TRUE(server.wait_until([&] { return server.out().ends_with('\n'); })) << server.err();
  const std::string port = server.out().substr(0, server.out().size() - 1);
  std::string said;
  runtime::LogOptions lines;
  lines.to_stderr = false;
  lines.also = [&](runtime::LogLevel, std::string_view line) { said += std::string(line) + "\n"; };
  const auto log = runtime::Log::open(lines);
  ASSERT_TRUE(log.ok());
  runtime::FileDisk disk;
  const auto copies =
      ResultCopies::begin(folder / "run", "http://127.0.0.1:" + port + "/silent/runs/a", disk, *log,
                          std::chrono::milliseconds(300));
  ASSERT_TRUE(copies.ok()) << copies.error().message;
  (*copies)->finish();
  EXPECT_THAT(said, HasSubstr("topology.yaml: given up at the run's end"));
  EXPECT_THAT(said, HasSubstr("2 files of the run are not copied to http://127.0.0.1"));
}

}  // namespace
}  // namespace troupe::launch
