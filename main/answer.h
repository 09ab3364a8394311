#pragma once

// How a verb ends: what --json prints, and what went wrong. A process carries out one verb. One
// thread.

#include <string>

#include "main/command.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe {

// Prints the object that --json promises: `members` ("\"a\":1,\"b\":2"), then error, null when it
// is empty, and exit_code.
void answer(const std::string& members, const std::string& error = "", int exit_code = 0);
// The same for one that has all of that already.
void answer_object(const std::string& object);

// Remembers what went wrong, for finish(), where a log has told people already.
void note_failure(const std::string& what);
// Prints the error for people, notes it and returns its exit code.
int report(const runtime::Error& error);
// The same for one that the log tells people.
int report(const runtime::Error& error, const runtime::Log& log);
// Says on standard error that the system gave fewer threads than --threads asked for, if it did.
void report_threads(int asked, int given);

// Once a reader of standard output has gone, nobody wants the rest: what a shell says of a program
// that SIGPIPE has ended.
inline constexpr int kReaderGone = 141;
// Whether standard output leads to somebody who has gone, as `head` has after its lines.
bool reader_is_gone();

// Makes the object that --json prints of a verb that failed, from what went wrong and the exit
// code.
using FailedObject = std::string (*)(const std::string& error, int exit_code);
// Which one finish() uses. Null, as at the beginning: its object has error and exit_code alone.
void set_failed_object(FailedObject object);

// The last of the program. Where the words ask for --json and the verb failed without an object,
// prints that of a failed verb. Returns the exit code: `code`, or kReaderGone or 1 when a
// verb that succeeded could not write what it found.
int finish(const Arguments& words, int code);

}  // namespace troupe
