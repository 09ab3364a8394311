#include "study/watched_process.h"

#include "launch/folder/run_folder.h"

namespace troupe::study {
namespace {

constexpr std::uint32_t kMostTurns = 5;  // of a run that has lost its address or workers

}  // namespace

bool is_end_of(runtime::ErrorKind kind, const launch::ChildEnd& end) {
  return end == launch::ChildEnd{runtime::exit_code(kind), 0};
}

std::string why_again(const Watched& run, const launch::ChildEnd& end) {
  if (run.address.listen.empty() || run.turns == kMostTurns) return "";
  // Somebody has taken its address since it was looked for.
  if (is_end_of(runtime::ErrorKind::kUsage, end) && !launch::RunFolder::check(run.folder).ok()) {
    return "did not begin, and is tried at another port";
  }
  if (is_end_of(runtime::ErrorKind::kLostPeers, end)) {
    return "has lost all its workers, and goes on with others";
  }
  return "";
}

}  // namespace troupe::study
