#pragma once

// Parsing of one verb's arguments: Boost.Program_options with our words for what goes wrong.

#include <optional>
#include <string>

#include <boost/program_options.hpp>

#include "main/commands.h"
#include "runtime/base/error.h"

namespace troupe {

class CommandLine {
 public:
  // `synopsis` is the line after "usage: troupe ", `example` a command that works, `about` one or
  // two sentences.
  CommandLine(std::string synopsis, std::string about, std::string example);

  // Options are added as with Boost: add()("seed", value<uint64_t>(), "what it does").
  boost::program_options::options_description_easy_init add() { return options_.add_options(); }
  // Names the positional arguments in order; each is also an option of that name, hidden from help.
  void positional(const std::string& name);

  // All that are left of them: a vector of strings.
  void positional_rest(const std::string& name);

  // What only this program gives itself, when it starts another process of its own.
  void hidden_flag(const std::string& name);
  template <class T>
  void hidden_value(const std::string& name) {
    hidden_.add_options()(name.c_str(), boost::program_options::value<T>(), "");
  }

  // An exit code when there is nothing to run: 0 after --help (printed), 2 after an error
  // (printed).
  std::optional<int> parse(const Arguments& arguments);

  bool has(const std::string& name) const { return values_.count(name) > 0; }
  template <class T>
  const T& get(const std::string& name) const {
    return values_[name].as<T>();
  }
  // For verbs with --threads N: an exit code when N is no number of threads (printed).
  std::optional<int> check_threads() const;
  // Prints "troupe VERB: what" and a pointer to --help, notes what; returns 2.
  int usage_error(const std::string& what) const;

 private:
  void print_help() const;

  std::string synopsis_, about_, example_;
  boost::program_options::options_description options_;
  boost::program_options::options_description hidden_;
  boost::program_options::positional_options_description positional_;
  boost::program_options::variables_map values_;
};

// Says on standard error that the system gave fewer threads than --threads asked for, if it did.
void report_threads(int asked, int given);
// Prints the error for people, notes it and returns its exit code.
int report(const runtime::Error& error);
// Remembers what went wrong, for --json: the verb has printed no object that tells of it.
void note_failure(const std::string& what);
// "" when nothing was noted.
const std::string& noted_failure();

}  // namespace troupe
