#pragma once

// A peer in a process of its own: a program that is asked questions on its standard input, a line
// each, and answers each with a line: "ok ", and the answer.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "launch/processes/child_process.h"
#include "runtime/base/error.h"

namespace troupe::bench {

class Answering {
 public:
  explicit Answering(std::vector<std::string> words);
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  // What it says next; kInternal: something else than a good answer, or it has ended.
  runtime::Result<std::string> answer();
  runtime::Result<std::string> ask(const std::string& request);
  // Whether there is no such program.
  bool is_missing() const;

 private:
  bool runs() const { return !child_.empty() && !child_.front()->end(); }

  std::deque<std::string> lines_;
  std::vector<std::unique_ptr<launch::ChildProcess>> child_;  // one
};

}  // namespace troupe::bench
