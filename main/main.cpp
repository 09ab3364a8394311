#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "main/command_line.h"
#include "main/commands.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/error.h"
#include "runtime/base/heap.h"
#include "runtime/base/json_text.h"
#include "runtime/base/start_thread.h"

namespace {

using troupe::Arguments;

struct Verb {
  const char* name;
  const char* about;
  int (*run)(const Arguments&);
};

constexpr std::array kVerbs{
    Verb{"run", "train: launch a topology file, all of it", troupe::run_command},
    Verb{"join", "make this process a member of a run that goes on elsewhere",
         troupe::join_command},
    Verb{"drain", "let a member leave a run that goes on without it", troupe::drain_command},
    Verb{"watch", "show a run that goes on, or what became of it", troupe::watch_command},
    Verb{"check", "say everything that is wrong with a topology file, or what it would do",
         troupe::check_command},
    Verb{"data", "make showers, or say what files hold", troupe::data_command},
    Verb{"generate", "showers from a trained generator", troupe::generate_command},
    Verb{"inspect", "what a checkpoint holds", troupe::inspect_command},
    Verb{"keygen", "node keys, for connections between machines", troupe::keygen_command},
    Verb{"token", "let a machine without keys join, for a while", troupe::token_command},
};

void print_help(std::ostream& out) {
  out << "Troupe trains generative models of particle detectors; the trained bits do not depend\n"
         "on how many workers there were.\n\nusage: troupe VERB ...\n\n";
  for (const Verb& verb : kVerbs) out << fmt::format("  {:<10}{}\n", verb.name, verb.about);
  out << "\n  --version says what this build can do; troupe VERB --help shows options and an "
         "example.\n";
}

int print_version() {
  std::cout << "troupe " TROUPE_VERSION
               "\n"
               "backends: portable (fp32), cpu (fp32), reference (fp32, fp64)\n"
               "kernels: portable, fastest (oneDNN for wide layers)\n"
               "venues: one process, several processes and hosts\n"
               "reduction: exact, fp32, bf16, int8\n";
  return 0;
}

int run_verb(const Arguments& words) {
  if (words.empty()) {
    print_help(std::cerr);
    return troupe::runtime::exit_code(troupe::runtime::ErrorKind::kUsage);
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help(std::cout);
    return 0;
  }
  if (words[0] == "--version") return print_version();
  for (const Verb& verb : kVerbs) {
    if (words[0] == verb.name) return verb.run(Arguments(words.begin() + 1, words.end()));
  }
  std::cerr << "troupe: no verb '" << words[0] << "'\n\n";
  print_help(std::cerr);
  return troupe::runtime::exit_code(troupe::runtime::ErrorKind::kUsage);
}

int run_guarded(const Arguments& words) {
  using troupe::runtime::Error;
  using troupe::runtime::ErrorKind;
  try {
    return run_verb(words);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      const std::string why = error.code().message();
      return troupe::report(troupe::runtime::no_thread("a part of the program", why));
    }
    return troupe::report(
        Error{ErrorKind::kInternal, fmt::format("internal error: {}", error.what())});
  } catch (const std::exception& error) {
    return troupe::report(
        Error{ErrorKind::kInternal, fmt::format("internal error: {}", error.what())});
  }
}

// For scripts that read what --json prints, where the verb had nothing to print.
void print_failure(const Arguments& words, int code) {
  const bool has_json = !words.empty() && (words[0] == "run" || words[0] == "check") &&
                        std::find(words.begin(), words.end(), "--json") != words.end();
  if (!has_json || code == 0 || troupe::noted_failure().empty()) return;
  std::cout << fmt::format("{{\"error\":{},\"exit_code\":{}}}\n",
                           troupe::runtime::json_string(troupe::noted_failure()), code);
}

}  // namespace

int main(int count, char** values) {
  troupe::runtime::keep_freed_memory();
  troupe::runtime::raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is as a full disk
  // `run` waits for it while it can write a checkpoint; before and after it must not kill.
  std::signal(SIGUSR1, SIG_IGN);
  const Arguments words(values + 1, values + count);
  const int code = run_guarded(words);
  print_failure(words, code);
  if (std::cout.flush()) return code;
  std::cerr << "troupe: cannot write standard output; is the disk full, or its reader gone?\n";
  return code == 0 ? troupe::runtime::exit_code(troupe::runtime::ErrorKind::kInternal) : code;
}
