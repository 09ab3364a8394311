#include "bench/allreduce_case.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/base/error.h"
#include "tests/support/process.h"

namespace troupe::bench {
namespace {

constexpr unsigned kMostSeconds = 120;

// A child leaves this in its pipe.
struct Word {
  double seconds = 0;
  double core_seconds = 0;
  char complaint[240] = "";
};

int be_child(int rank, int out, const std::function<AllreduceRun(int rank)>& work) {
  ::alarm(kMostSeconds);
  Word word;
  const AllreduceRun run = work(rank);
  word.seconds = run.seconds;
  word.core_seconds = run.core_seconds;
  std::strncpy(word.complaint, run.complaint.c_str(), sizeof(word.complaint) - 1);
  return ::write(out, &word, sizeof(word)) == sizeof(word) ? 0 : 1;
}

}  // namespace

AllreduceRun run_forked(int processes, const std::function<AllreduceRun(int rank)>& work) {
  int words[2];
  CHECK(::pipe(words) == 0, "no descriptors are left");
  std::vector<std::unique_ptr<ForkedProcess>> children;
  for (int rank = 0; rank < processes; ++rank) {
    children.push_back(
        std::make_unique<ForkedProcess>([&] { return be_child(rank, words[1], work); }));
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
  for (const auto& child : children) child->status();
  if (heard < processes && all.complaint.empty()) {
    all.complaint = fmt::format("{} of {} processes said nothing", processes - heard, processes);
  }
  return all;
}

}  // namespace troupe::bench
