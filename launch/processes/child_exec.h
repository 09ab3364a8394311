#pragma once

// The steps of a forked process until it is another program.

#include <sys/types.h>

namespace troupe::launch {

// Everything is made ready before the fork: memory must not be allocated after it, because another
// thread may have held the allocator's lock.
struct ExecPlan {
  char* const* words;  // the program's path and arguments; ends with null
  int in;              // becomes its standard input
  int out, err;        // become its standard output and error; -1: what they are
  int line;            // becomes kParentLineDescriptor
  int report;          // takes an ExecFailure if it does not become the program
  pid_t parent;        // who forked
};

// Why a process did not become the program.
struct ExecFailure {
  int number;    // the errno
  bool in_exec;  // it is about the program itself; else about what is made ready before
};

// In the child of a fork only. Makes sure that the process is killed when its parent ends, even if
// that has happened already; closes everything but the descriptors above at exec; becomes the
// program, or reports why not and ends with 127.
[[noreturn]] void become_program(const ExecPlan& plan);

}  // namespace troupe::launch
