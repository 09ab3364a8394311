#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "config/field_search.h"
#include "main/answer.h"
#include "main/command_line.h"
#include "main/help.h"
#include "main/usage_hint.h"
#include "runtime/base/buffer.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/start_thread.h"
#include "runtime/base/utf8.h"

namespace {

using troupe::Arguments;
using troupe::Command;

// The features that a topology may ask for, from the table that reads it.
int print_version() {
  std::cout << "troupe " TROUPE_VERSION "\n";
  for (const auto& [what, field] : {std::pair{"devices", "actors.replica.device"},
                                    {"kernels", "model.kernels"},
                                    {"precision", "model.precision"},
                                    {"reduction", "actors.reducer.reduction"},
                                    {"data schemas", "data.schema"}}) {
    std::cout << fmt::format("{}: {}\n", what, fmt::join(troupe::config::words_of(field), ", "));
  }
  return 0;
}

int usage_error(const std::string& what) {
  troupe::note_failure(what);
  std::cerr << fmt::format("troupe: {}\ntry: troupe --help\n", troupe::runtime::printable(what));
  return troupe::runtime::exit_code(troupe::runtime::ErrorKind::kUsage);
}

// The verb that the words begin with, taken off; null: they begin with none.
const Command* take_verb(Arguments& words) {
  for (const Command& verb : troupe::all_verbs()) {
    const bool below = !troupe::group_of(verb).empty();
    const std::ptrdiff_t count = below ? 2 : 1;
    if (std::ssize(words) < count) continue;
    if ((below ? words[0] + " " + words[1] : words[0]) != verb.name) continue;
    words.erase(words.begin(), words.begin() + count);
    return &verb;
  }
  return nullptr;
}

bool is_group(const std::string& word) {
  for (const Command* verb : troupe::shown_verbs()) {
    if (troupe::group_of(*verb) == word) return true;
  }
  return false;
}

int print(const std::string& text) {
  std::cout << text;
  return 0;
}

int run_verb(Arguments words) {
  if (words.empty()) return usage_error("which verb?");
  const auto asks = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (words[0] == "help") {  // "help run" is "run --help"
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (asks(words[0])) return print(troupe::help_of_program());
  if (words[0] == "--version") return print_version();
  if (words.size() > 1 && is_group(words[0]) && asks(words[1])) {
    return print(troupe::help_of_group(words[0]));
  }
  const Arguments all = words;
  const Command* verb = take_verb(words);
  if (verb == nullptr) return usage_error(troupe::unknown_verb(all));
  troupe::set_failed_object(verb->failed);
  troupe::CommandLine line(*verb);
  if (const auto code = line.parse(words)) return *code;
  return verb->carry_out(line);
}

int run_guarded(const Arguments& words) {
  using troupe::runtime::Error;
  using troupe::runtime::ErrorKind;
  try {
    return run_verb(words);
  } catch (const troupe::runtime::NoThread& error) {
    return troupe::report(Error{ErrorKind::kInternal, error.what()});
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      const std::string why = error.code().message();
      return troupe::report(troupe::runtime::no_thread("a part of the program", why));
    }
    return troupe::report(
        Error{ErrorKind::kInternal, fmt::format("internal error: {}", error.what())});
  } catch (const std::bad_alloc&) {
    return troupe::report(troupe::runtime::no_memory());
  } catch (const std::exception& error) {
    return troupe::report(
        Error{ErrorKind::kInternal, fmt::format("internal error: {}", error.what())});
  }
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
  return troupe::finish(words, run_guarded(words));
}
