#include "bench/forked.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::bench {
namespace {

constexpr unsigned kMostSeconds = 120;

// What a child leaves in its pipe.
struct Word {
  double seconds = 0;
  double core_seconds = 0;
  char complaint[240] = "";
};

[[noreturn]] void be_child(int rank, int out, const std::function<AllreduceRun(int rank)>& work) {
  ::alarm(kMostSeconds);
  Word word;
  const AllreduceRun run = work(rank);
  word.seconds = run.seconds;
  word.core_seconds = run.core_seconds;
  std::strncpy(word.complaint, run.complaint.c_str(), sizeof(word.complaint) - 1);
  const bool told = ::write(out, &word, sizeof(word)) == sizeof(word);
  std::_Exit(told ? 0 : 1);
}

}  // namespace

AllreduceRun run_forked(int processes, const std::function<AllreduceRun(int rank)>& work) {
  int words[2];
  CHECK(::pipe(words) == 0, "no descriptors are left");
  std::vector<pid_t> children;
  for (int rank = 0; rank < processes; ++rank) {
    const pid_t child = ::fork();
    CHECK(child >= 0, "no process can be started");
    if (child == 0) be_child(rank, words[1], work);
    children.push_back(child);
  }
  ::close(words[1]);
  AllreduceRun all;
  int heard = 0;
  for (Word word; ::read(words[0], &word, sizeof(word)) == sizeof(word); ++heard) {
    all.seconds = std::max(all.seconds, word.seconds);
    all.core_seconds += word.core_seconds;
    if (all.complaint.empty()) all.complaint = word.complaint;
  }
  ::close(words[0]);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  if (heard < processes && all.complaint.empty()) {
    all.complaint = fmt::format("{} of {} processes said nothing", processes - heard, processes);
  }
  return all;
}

}  // namespace troupe::bench
