// The manual page and what shells complete with: made from the tables that --help is made from, and
// taken by the programs that read them, where those are installed.

#include <gmock/gmock.h>

#include <cctype>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// The options that the verb's help lists, with dashes.
std::vector<std::string> options_of(Words verb) {
  verb.push_back("--help");
  std::vector<std::string> options;
  std::istringstream lines(call(verb).out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  --")) options.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return options;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// From where it begins to where the next one does.
std::string section(const std::string& text, const std::string& begin, const std::string& next) {
  const std::size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  return text.substr(at, text.find(next, at + 1) - at);
}

bool is_installed(const std::string& program) {
  return Process({"/bin/sh", "-c", "command -v " + program}).wait().exit_code == 0;
}

class Shells : public testing::Test {
 protected:
  // What the shell prints of the script; skips the test where there is no such shell.
  ProcessEnd shell(const std::string& name, const std::string& script) {
    return Process({"/usr/bin/env", "LC_ALL=C", name, "-c", script}).wait();
  }
  std::string completions(const std::string& name) {
    const ProcessEnd end = call({"completions", name});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    write_text(folder_ / name, end.out);
    return folder_ / name;
  }
  // What bash prints by `print` after it has completed the last of the words.
  std::string completed(const Words& words, const std::string& print) {
    const std::string script = fmt::format(
        "source {}; compopt() {{ asked=$*; }}; COMP_WORDS=({}); COMP_CWORD={}; cd {}; _troupe; ",
        completions("bash"), fmt::format("'{}'", fmt::join(words, "' '")), words.size() - 1,
        folder_.path());
    const ProcessEnd end = shell("bash", script + print);
    EXPECT_EQ(end.err, "");
    return end.out;
  }
  // What it offers.
  std::vector<std::string> offered(const Words& words) {
    const std::string out = completed(words, "printf '%s\\n' \"${COMPREPLY[@]}\"");
    std::vector<std::string> lines;
    std::istringstream text(out);
    for (std::string line; std::getline(text, line);) {
      if (!line.empty()) lines.push_back(line);
    }
    return lines;
  }

  TemporaryFolder folder_;
};

TEST_F(Shells, EveryVerbAndOptionIsInTheManualAndInAllCompletions) {
  const std::string manual = replaced(call({"manual"}).out, "\\-", "-");
  const std::string bash = call({"completions", "bash"}).out;
  const std::string zsh = call({"completions", "zsh"}).out;
  const std::string fish = call({"completions", "fish"}).out;
  for (const Words& verb : every_verb()) {
    const std::string name = fmt::format("{}", fmt::join(verb, " "));
    EXPECT_THAT(manual, HasSubstr(".SS troupe " + name + "\n"));
    EXPECT_THAT(bash, HasSubstr("'" + name + "')"));
    EXPECT_THAT(zsh, HasSubstr("'" + name + "')"));
    EXPECT_THAT(fish, HasSubstr("__fish_seen_subcommand_from " + verb.back() + "'"));
    const auto options = options_of(verb);
    ASSERT_FALSE(options.empty()) << name;
    const std::string in_manual = section(manual, ".SS troupe " + name + "\n", "\n.SS ");
    const std::string in_bash = section(bash, "\n    '" + name + "')", "\n    '");
    const std::string in_zsh = section(zsh, "\n    '" + name + "')", "\n    '");
    for (const std::string& option : options) {
      EXPECT_THAT(in_manual, HasSubstr("\\fB" + option)) << name;
      EXPECT_THAT(in_bash, testing::ContainsRegex(option + "[ ']")) << name;
      EXPECT_THAT(in_zsh, HasSubstr(option + "[")) << name;
      EXPECT_THAT(fish, HasSubstr(verb.back() + "' -l " + option.substr(2) + " ")) << name;
    }
  }
}

// The manual leaves out what docs/commands.md explains of a code.
TEST_F(Shells, ManualHasTheExitCodesOfTheDocumentation) {
  const std::string documented = read_text(TROUPE_SOURCE_DIR "/docs/commands.md");
  const std::string table = section(documented, "| exit code | meaning |\n|---|---|\n", "\n\n");
  std::istringstream rows(table);
  std::string row;
  std::getline(rows, row);
  std::getline(rows, row);
  const std::string manual = call({"manual"}).out;
  std::istringstream lines(section(manual, ".SH EXIT STATUS\n", "\n.SH "));
  std::string line, code, meaning;
  std::getline(lines, line);
  while (std::getline(lines, line) && std::getline(lines, code) && std::getline(lines, meaning)) {
    ASSERT_TRUE(std::getline(rows, row)) << code;
    EXPECT_EQ(line, ".TP");
    const std::string number = replaced(replaced(code, "\\fB", ""), "\\fR", "");
    meaning.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(meaning.front())));
    meaning.pop_back();
    EXPECT_THAT(row, testing::StartsWith("| " + number + " | " + meaning));
  }
  EXPECT_FALSE(std::getline(rows, row)) << row;
}

TEST_F(Shells, BashOffersVerbsOptionsAndValues) {
  using testing::Contains;
  using testing::ElementsAre;
  if (!is_installed("bash")) GTEST_SKIP() << "no bash";
  EXPECT_THAT(offered({"troupe", "ru"}), ElementsAre("run"));
  EXPECT_THAT(offered({"troupe", "data", ""}), ElementsAre("make", "info", "convert", "fetch"));
  EXPECT_THAT(offered({"troupe", "data", "make", "--det"}), ElementsAre("--detector"));
  EXPECT_THAT(offered({"troupe", "data", "make", "--detector", "lcd-a"}),
              ElementsAre("lcd-angle-51"));
  EXPECT_THAT(offered({"troupe", "run", "--log-level", "w"}), ElementsAre("warning"));
  EXPECT_THAT(offered({"troupe", "run", "gan3d_5"}), ElementsAre("gan3d_51"));
  EXPECT_THAT(offered({"troupe", "help", "insp"}), ElementsAre("inspect"));
  std::filesystem::create_directory(folder_ / "first run");
  write_text(folder_ / "file.h5", "");
  EXPECT_THAT(offered({"troupe", "run", "--out", "f"}), ElementsAre("first run"));
  EXPECT_THAT(offered({"troupe", "inspect", "f"}),
              testing::UnorderedElementsAre("first run", "file.h5"));
}

// It appends a slash to what it takes for one where there is a folder of that name.
TEST_F(Shells, BashTakesForFilesWhatMayBeOne) {
  if (!is_installed("bash")) GTEST_SKIP() << "no bash";
  EXPECT_EQ(call({"completions", "bash"}).out.find("\ncomplete -o"), std::string::npos);
  const std::string print = "echo $asked";
  for (const Words& words : {Words{"troupe", "da"},
                             {"troupe", "data", "ma"},
                             {"troupe", "run", "--log-level", "w"},
                             {"troupe", "run", "--o"}}) {
    EXPECT_EQ(completed(words, print), "\n") << testing::PrintToString(words);
  }
  for (const Words& words : {Words{"troupe", "run", "quick"},
                             {"troupe", "run", "--out", "f"},
                             {"troupe", "inspect", "f"}}) {
    EXPECT_EQ(completed(words, print), "-o filenames\n") << testing::PrintToString(words);
  }
}

TEST_F(Shells, ZshAndFishReadTheirCompletions) {
  if (!is_installed("zsh") && !is_installed("fish")) GTEST_SKIP() << "neither zsh nor fish";
  for (const char* name : {"zsh", "fish"}) {
    if (!is_installed(name)) continue;
    const ProcessEnd end =
        Process({"/usr/bin/env", "LC_ALL=C", name, "-n", completions(name)}).wait();
    EXPECT_EQ(end.exit_code, 0) << name;
    EXPECT_EQ(end.err, "") << name;
  }
}

TEST_F(Shells, ManualIsTakenByWhatReadsManuals) {
  if (!is_installed("groff") && !is_installed("mandoc")) GTEST_SKIP() << "neither groff nor mandoc";
  const std::string page = folder_ / "troupe.1";
  write_text(page, call({"manual"}).out);
  for (const Words& reader : {Words{"groff", "-man", "-Tutf8", "-ww", "-z", page},
                              Words{"mandoc", "-T", "lint", "-W", "error", page}}) {
    if (!is_installed(reader.front())) continue;
    const ProcessEnd end = Process(Words{"/usr/bin/env"} + reader).wait();
    // What else it says differs from version to version, and with it what it warns of.
    EXPECT_EQ(end.exit_code, 0) << reader.front() << ": " << end.out << end.err;
    EXPECT_EQ((end.out + end.err).find("error"), std::string::npos) << end.out << end.err;
  }
}

}  // namespace
}  // namespace troupe
