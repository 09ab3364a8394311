#include "main/answer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "runtime/base/json_text.h"
#include "runtime/base/utf8.h"

namespace troupe {
namespace {

std::string failure;
FailedObject failed_object = nullptr;
bool answered = false;

std::string ending(const std::string& error, int code) {
  return fmt::format("\"error\":{},\"exit_code\":{}",
                     error.empty() ? "null" : runtime::json_string(error), code);
}

}  // namespace

void answer(const std::string& members, const std::string& error, int exit_code) {
  answer_object(
      fmt::format("{{{}{}{}}}", members, members.empty() ? "" : ",", ending(error, exit_code)));
}

void answer_object(const std::string& object) {
  std::cout << object << std::endl;
  answered = true;
}

void set_failed_object(FailedObject object) { failed_object = object; }

void note_failure(const std::string& what) { failure = what; }

int report(const runtime::Error& error) {
  note_failure(error.message);
  std::cerr << "troupe: " << runtime::printable_lines(error.message) << "\n";
  return runtime::exit_code(error.kind);
}

int report(const runtime::Error& error, const runtime::Log& log) {
  note_failure(error.message);
  log.error(error.message);
  return runtime::exit_code(error.kind);
}

void report_threads(int asked, int given) {
  if (given == asked) return;
  std::cerr << fmt::format("troupe: the system gave {} of {} threads; going on with these\n", given,
                           asked);
}

// A pipe without a reader shows an error.
bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

// The flush comes after the last object, since only it tells whether the answer was written. The
// failure of the verb itself goes before that of the output.
int finish(const Arguments& words, int code) {
  const bool wants_json = std::find(words.begin(), words.end(), "--json") != words.end();
  if (wants_json && !answered && code != 0 && !failure.empty()) {
    if (failed_object != nullptr) {
      answer_object(failed_object(failure, code));
    } else {
      answer("", failure, code);
    }
  }
  if (std::cout.flush()) return code;
  const bool gone = reader_is_gone();
  if (!gone) std::cerr << "troupe: cannot write standard output; is the disk full?\n";
  if (code != 0) return code;
  return gone ? kReaderGone : runtime::exit_code(runtime::ErrorKind::kInternal);
}

}  // namespace troupe
