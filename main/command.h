#pragma once

// A verb as data. Parsing, --help, the manual page, the completions of shells and the suggestions
// are all made from it.

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

class CommandLine;

// The words behind the verb.
using Arguments = std::vector<std::string>;

// The value of an option, or of a place on the command line.
enum class Takes : std::uint8_t {
  kNothing,  // a flag
  kText,
  kWhole,     // a number within the option's bounds
  kNumber,    // a finite one
  kWord,      // one of the option's words
  kSetting,   // a.b=c of a topology
  kFile,      // of this machine
  kFolder,    // likewise
  kTopology,  // a file, or the name of one that comes with the program
  kRun,       // a folder, or the address of a run's page
};

struct Option {
  std::string name{};   // without dashes
  std::string value{};  // how help calls what it takes: "N"; empty for a flag
  std::string about{};  // what it does; its default, unless that is `preset`
  Takes takes = Takes::kNothing;
  std::string preset{};        // what it has where it is not given; empty: nothing
  std::string preset_shown{};  // in words, where that differs from machine to machine
  std::uint64_t least = 0, most = UINT64_MAX;  // with kWhole
  std::vector<std::string> words{};            // with kWord
  bool repeats = false;
  bool hidden = false;  // for processes that the program starts itself
};

// A word without dashes; its place is that in Command::places.
struct Place {
  std::string name{};   // help shows it in capitals
  std::string asked{};  // what is said where it is missing: "which checkpoint?"; empty: it may be
  Takes takes = Takes::kText;
  bool repeats = false;              // the last place may take all that are left
  std::vector<std::string> words{};  // with kWord
};

struct Command {
  std::string name{};     // "run"; "data make" for a verb below another
  std::string summary{};  // a line, for the list of verbs
  std::string about{};    // one or two sentences
  std::string example{};  // a command that works
  // How it is called, without "troupe" and the name; empty: the places, then the options.
  std::vector<std::string> forms{};
  std::vector<Place> places{};
  std::vector<Option> options{};
  std::vector<std::string> synonyms{};  // what others call it
  bool hidden = false;
  // Makes what --json prints where the verb failed without an object; null: error and exit_code
  // alone.
  std::string (*failed)(const std::string& error, int exit_code) = nullptr;
  // With its words read. Returns the exit code; results go to standard output, all else to standard
  // error.
  int (*carry_out)(const CommandLine& line) = nullptr;
};

// The command's option of that name, without dashes; null: it has none.
const Option* find_option(const Command& command, const std::string& name);

// The verbs of the program, each made by its file.
Command run_verb();
Command plan_verb();
Command study_verb();
Command join_verb();
Command drain_verb();
Command burst_verb();
Command pools_verb();
Command watch_verb();
Command check_verb();
Command devices_verb();
Command data_make_verb();
Command data_info_verb();
Command data_convert_verb();
Command data_fetch_verb();
Command generate_verb();
Command validate_verb();
Command inspect_verb();
Command export_verb();
Command import_verb();
Command keygen_verb();
Command token_verb();
Command completions_verb();
Command manual_verb();

// All of them, in the order of help, and those that are shown.
const std::vector<Command>& all_verbs();
std::vector<const Command*> shown_verbs();

// The options of the program itself, such as --version, without dashes.
const std::vector<std::string>& program_options();

// The group in a name of two words: "data" of "data make"; empty for other verbs.
std::string group_of(const Command& verb);

}  // namespace troupe
