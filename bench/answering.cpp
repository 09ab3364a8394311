#include "bench/answering.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace troupe::bench {

Answering::Answering(std::vector<std::string> words) {
  // What a child is told comes on another descriptor than its standard input.
  const std::string script = fmt::format("exec \"$@\" <&{}", launch::kParentLineDescriptor);
  words.insert(words.begin(), {"/bin/sh", "-c", script, "sh"});
  auto started = launch::ChildProcess::start(
      {std::move(words), [this](std::string_view line) { lines_.emplace_back(line); }, {}});
  if (started.ok()) child_.push_back(std::move(started).value());
}

runtime::Result<std::string> Answering::answer() {
  while (lines_.empty() && runs()) launch::wait_for_children(child_);
  if (lines_.empty()) {
    return runtime::Error{runtime::ErrorKind::kInternal, "it ended without an answer"};
  }
  const std::string line = lines_.front();
  lines_.pop_front();
  if (!line.starts_with("ok")) return runtime::Error{runtime::ErrorKind::kInternal, line};
  return line.size() > 3 ? line.substr(3) : std::string();
}

runtime::Result<std::string> Answering::ask(const std::string& request) {
  if (runs()) child_.front()->tell(request);
  return answer();
}

bool Answering::is_missing() const {
  constexpr int kNotFound = 127;
  return child_.empty() || child_.front()->end() == launch::ChildEnd{kNotFound, 0};
}

}  // namespace troupe::bench
