#pragma once

// A run as the page's server hands it out.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/fields.h"
#include "telemetry/history.h"

namespace troupe::telemetry {

// A pool whose nodes may be more or fewer, and how many it has at most.
struct PoolChoice {
  std::string name;
  std::uint32_t most = 0;
};

template <class Archive>
void fields(Archive& archive, runtime::Like<PoolChoice> auto& pool) {
  archive.text("name", pool.name, pool.name.size());
  archive.number("most", pool.most);
}

// How many nodes of a pool a client wants.
struct PoolWish {
  std::string pool;
  std::string nodes;  // "8", "+4" or "-2"
};

template <class Archive>
void fields(Archive& archive, runtime::Like<PoolWish> auto& wish) {
  archive.text("pool", wish.pool, wish.pool.size());
  archive.text("nodes", wish.nodes, wish.nodes.size());
}

inline const char* fault_of(const PoolWish& wish) {
  return wish.pool.empty() || wish.nodes.empty() ? "a pool or its nodes are missing" : nullptr;
}

struct RunSource {
  using Answer = std::function<void(runtime::Result<std::string>)>;
  using Question = std::function<void(Answer)>;

  std::string name;  // until the history tells one
  std::string folder;
  // Whether the run goes on now. Called on the server's thread. Empty: it does not.
  std::function<bool()> live;
  std::shared_ptr<const History> history;  // always there
  // The JSON of a step's showers. Called on the server's thread, so it reads a file at most. Empty:
  // there are none.
  std::function<runtime::Result<std::string>(std::uint64_t step)> showers;
  // Questions to a live run. Each is answered once, sooner or later and by any thread, maybe after
  // the server has gone. They are called on the server's thread, and again only after an answer or
  // when PageLimits::idle_time has passed. Empty: the run cannot be asked.
  Question trace, waits;
  // The pools for which clients are offered a change.
  std::vector<PoolChoice> pools;
  // Gives a live run other nodes, for a client that may. Answered as a question is, and called for
  // every client. Empty: the run has none to give.
  std::function<void(const PoolWish& wish, Answer)> burst;
};

}  // namespace troupe::telemetry
