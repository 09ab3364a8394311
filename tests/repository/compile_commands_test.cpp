#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

namespace troupe::repository {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Why a compiler called like this may give other bits than the next machine's, one line per reason.
std::vector<std::string> faults_in(const std::string& command) {
  std::vector<std::string> faults;
  bool contraction_off = false;
  const std::regex forbidden(
      "-ffast-math|-Ofast|-funsafe-math-optimizations|-fassociative-math|-freciprocal-math|"
      "-march=native|-mtune=native|-mfpmath=387");
  std::istringstream words(command);
  for (std::string word; words >> word;) {
    if (std::regex_match(word, forbidden)) faults.push_back(word);
    if (word.starts_with("-ffp-contract=")) contraction_off = word == "-ffp-contract=off";
  }
  if (!contraction_off) faults.emplace_back("-ffp-contract=off is missing");
  return faults;
}

// The commands of the build this test belongs to; CMake writes one per line.
std::vector<std::string> compile_commands() {
  std::ifstream file(TROUPE_BINARY_DIR "/compile_commands.json");
  std::vector<std::string> commands;
  for (std::string line; std::getline(file, line);)
    if (line.find("\"command\":") != std::string::npos) commands.push_back(line);
  return commands;
}

TEST(CompileCommands, FlagsThatChangeBitsAreFound) {
  EXPECT_THAT(faults_in("g++ -O3 -ffp-contract=off -c a.cpp"), IsEmpty());
  EXPECT_THAT(faults_in("g++ -ffp-contract=off -ffast-math -c a.cpp"), ElementsAre("-ffast-math"));
  EXPECT_THAT(faults_in("g++ -ffp-contract=off -march=native -c a.cpp"),
              ElementsAre("-march=native"));
  EXPECT_THAT(faults_in("g++ -O3 -c a.cpp"), SizeIs(1));
  EXPECT_THAT(faults_in("g++ -ffp-contract=off -ffp-contract=fast -c a.cpp"), SizeIs(1));
}

TEST(CompileCommands, EverySourceIsCompiledToTheSameBitsEverywhere) {
  const std::vector<std::string> commands = compile_commands();
  ASSERT_GT(commands.size(), 20u) << TROUPE_BINARY_DIR "/compile_commands.json";
  for (const std::string& command : commands) EXPECT_THAT(faults_in(command), IsEmpty()) << command;
}

}  // namespace
}  // namespace troupe::repository
