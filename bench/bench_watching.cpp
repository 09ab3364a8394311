// What it costs a training to be watched: page with clients, TensorBoard, a stream of messages, and
// ten thousand numbers a second that an actor tells, against none of it, in pairs that take turns;
// and the same with clients that never read, nonsense, and a full disk.
// The state hash is the same in all runs, and whoever watches has got something, or the bench
// fails.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "bench/watched_run.h"

namespace {

using troupe::bench::run_watched;
using troupe::bench::WatchedRunEnd;
using troupe::bench::WatchedRunRequest;

double at(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

// "" or what is wrong.
std::string problem(const WatchedRunEnd& run, const WatchedRunRequest& request) {
  if (run.updates < static_cast<std::uint64_t>(request.clients)) return "no client saw anything";
  if (run.latencies.empty()) return "no line came to a client";
  if (run.published == 0) return "nothing was published";
  if (run.telling == 0.0) return "no thread was seen that tells";
  if (run.samples == 0) return "no samples were told";
  if (request.beset && run.garbage == 0) return "nobody talked nonsense";
  if (run.event_file_bytes < 1000) return "TensorBoard's file is empty";
  return {};
}

void print_median(const char* name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  // The k-th and the last but k of n pairs enclose the median with this much trust: 11 pairs and
  // k = 2 (from 1) have 98.8 %, 5 and k = 1 93.8 %.
  const std::size_t k = values.size() >= 11 ? 1 : 0;
  fmt::print("{}: {} pairs, median {:.4f} [{:.4f}, {:.4f}]\n", name, values.size(), at(values, 0.5),
             values[k], values[values.size() - 1 - k]);
}

// A pair of runs for each of two ways to be watched, in turns.
struct Case {
  const char* name;
  bool beset;
};

// False: the bench has failed, and said why.
bool compare(const Case& which, int pairs, WatchedRunRequest request,
             troupe::runtime::Hash128& hash, bool& known) {
  request.beset = which.beset;
  std::vector<double> ratios, core_ratios, telling, latencies, resident;
  std::uint64_t samples = 0, dropped = 0, garbage = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    WatchedRunEnd ends[2];
    for (int turn = 0; turn < 2; ++turn) {
      request.watched = (pair + turn) % 2 == 1;
      WatchedRunEnd& end = ends[request.watched ? 1 : 0];
      end = run_watched(request);
      if (known && hash != end.state_hash) {
        fmt::print("the state depends on who watches: {} and {}\n", hash.text(),
                   end.state_hash.text());
        return false;
      }
      hash = end.state_hash;
      known = true;
    }
    if (const std::string what = problem(ends[1], request); !what.empty()) {
      fmt::print("{}: {}\n", which.name, what);
      return false;
    }
    ratios.push_back(ends[1].events_per_second / ends[0].events_per_second);
    core_ratios.push_back(ends[1].core_seconds / ends[0].core_seconds);
    telling.push_back(100.0 * (ends[1].telling - ends[0].telling));
    latencies.insert(latencies.end(), ends[1].latencies.begin(), ends[1].latencies.end());
    resident.push_back(static_cast<double>(ends[1].resident_bytes) / 1048576.0);
    samples += ends[1].samples;
    dropped += ends[1].dropped;
    garbage += ends[1].garbage;
    fmt::print("{} {:>2}: {:.1f} events/s unwatched, {:.1f} watched, {:.0f} MiB\n", which.name,
               pair + 1, ends[0].events_per_second, ends[1].events_per_second, resident.back());
    std::fflush(stdout);
  }
  fmt::print("{}\n", which.name);
  print_median("  events/s, watched of unwatched", ratios);
  print_median("  processor time, watched of unwatched", core_ratios);
  print_median("  more of it for those who tell, %", telling);
  std::sort(latencies.begin(), latencies.end());
  fmt::print(
      "  from a line's time to a client: {} times, median {:.0f} ms, 99 % {:.0f} ms, most "
      "{:.0f} ms\n",
      latencies.size(), 1e3 * at(latencies, 0.5), 1e3 * at(latencies, 0.99),
      1e3 * latencies.back());
  fmt::print(
      "  {} samples told besides, {} messages of metrics dropped, {} connections of garbage\n",
      samples, dropped, garbage);
  fmt::print("  resident after the first run {:.0f} MiB, after the last {:.0f} MiB\n",
             resident.front(), resident.back());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc == 2 && std::strcmp(argv[1], "--small") == 0;
  if (argc > 2 || (argc == 2 && !small)) {
    std::fputs("usage: bench_watching [--small]\n", stderr);
    return 2;
  }
  WatchedRunRequest request;
  request.iterations = small ? 4 : 40;
  troupe::runtime::Hash128 hash;
  bool known = false;
  for (const Case& which : {Case{"watched", false}, Case{"beset", true}}) {
    if (!compare(which, small ? 1 : 15, request, hash, known)) return 1;
  }
  fmt::print("all state hashes are {}\n", hash.text());
  return 0;
}
