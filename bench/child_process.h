#pragma once

// A program that is asked questions: a line each, answered with a line each.

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::bench {

class ChildProcess {
 public:
  // Starts the program arguments[0], looked for in the path if it is a name alone, with its
  // standard input and output in our hands; it shares our standard error. kInternal: it could not
  // be started.
  static runtime::Result<std::unique_ptr<ChildProcess>> start(
      const std::vector<std::string>& arguments);
  // Ends the child's input and waits until it is gone.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The next line it prints, without the "ok " that a good answer begins with. kInternal: the line
  // is another one (then the message) or the child has ended.
  runtime::Result<std::string> answer();
  // Sends the request and waits for its answer.
  runtime::Result<std::string> ask(const std::string& request);

 private:
  ChildProcess(pid_t process, std::FILE* requests, std::FILE* answers)
      : process_(process), requests_(requests), answers_(answers) {}

  const pid_t process_;
  std::FILE* const requests_;
  std::FILE* const answers_;
};

}  // namespace troupe::bench
