#include "study/shared_pools.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "launch/pools/pool_journal.h"
#include "study/worker_shares.h"

namespace troupe::study {
namespace {

constexpr auto kTellAgain = std::chrono::seconds(10);

}  // namespace

SharedPools::SharedPools(const std::vector<config::PoolSection>& pools) {
  for (const config::PoolSection& pool : pools) {
    if (pool.nodes > 0) pools_.push_back({pool.name, pool.nodes});
  }
}

void SharedPools::begin(RunNumber run, const std::string& folder) {
  std::erase_if(runs_, [&](const Run& each) { return each.folder == folder; });
  runs_.push_back({run, folder, true, std::vector<Share>(pools_.size())});
  looks_again_ = {};
}

void SharedPools::end(RunNumber run) {
  for (Run& each : runs_) {
    if (each.number == run) each.goes_on = false;
  }
  looks_again_ = {};
}

void SharedPools::read_journals() {
  for (Run& run : runs_) {
    const auto left = launch::nodes_left(
        launch::read_pool_journal(run.folder + "/" + launch::PoolJournal::kName));
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      run.shares[i].left = run.shares[i].leaving = 0;
      for (const actors::PoolNode& node : left) {
        if (node.pool != pools_[i].name) continue;
        ++run.shares[i].left;
        if (!node.is_present()) ++run.shares[i].leaving;
      }
    }
  }
  std::erase_if(runs_, [](const Run& run) {
    return !run.goes_on &&
           std::ranges::all_of(run.shares, [](const Share& share) { return share.left == 0; });
  });
}

std::vector<NodeWish> SharedPools::next(runtime::TimePoint now) {
  std::vector<NodeWish> wishes;
  if (pools_.empty() || now < looks_again_) return wishes;
  looks_again_ = now + kLook;
  read_journals();
  for (std::size_t i = 0; i < pools_.size(); ++i) add_wishes(i, now, wishes);
  return wishes;
}

void SharedPools::add_wishes(std::size_t pool, runtime::TimePoint now,
                             std::vector<NodeWish>& wishes) {
  std::uint32_t nodes = pools_[pool].nodes;
  std::vector<Run*> runs;
  std::vector<RunMembers> members;
  for (Run& run : runs_) {
    const Share& share = run.shares[pool];
    if (!run.goes_on) {
      nodes -= std::min(nodes, share.left);
      continue;
    }
    const std::uint32_t all =
        std::max(share.left, std::max(share.wanted, share.aim()) + share.leaving);
    runs.push_back(&run);
    members.push_back({share.aim(), all - share.aim()});
  }
  const std::vector<MemberChange> changes = member_changes(nodes, members, 0);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Share& share = runs[i]->shares[pool];
    const std::uint32_t aim = share.aim() - changes[i].leave + changes[i].come;
    if (share.told || now < share.again || (share.is_sure && aim == share.wanted)) continue;
    share.told = aim;
    wishes.push_back({runs[i]->number, pools_[pool].name, aim});
  }
}

bool SharedPools::answer(const NodeWish& wish, Answer answer, runtime::TimePoint now) {
  looks_again_ = {};
  bool is_first = false;
  for (Run& run : runs_) {
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      Share& share = run.shares[i];
      if (run.number != wish.run || pools_[i].name != wish.pool || share.told != wish.nodes) {
        continue;
      }
      share.told.reset();
      if (answer == Answer::kDone) {
        share.wanted = wish.nodes;
        share.is_sure = true;
        continue;
      }
      if (answer == Answer::kNone) {
        share.wanted = std::max(share.wanted, wish.nodes);
        share.is_sure = false;
      }
      share.again = now + kTellAgain;
      is_first = !std::exchange(share.has_failed, true);
    }
  }
  return is_first;
}

}  // namespace troupe::study
