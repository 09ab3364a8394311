// The Provisioner with launchers that fail, lie, are slow, start twice or never, and a head that is
// killed at any moment, and a journal that cannot always be written: no node is ever lost track of,
// never are more wanted than there may be, and a budget is never exceeded.

#include "actors/provisioner.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/actors/theatre.h"
#include "tests/sim/dice.h"
#include "tests/support/stride.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Result;
using runtime::Script;
using std::chrono::seconds;

constexpr std::uint32_t kMost = 3;
// Seconds from the word to leave on, nearly as long as a budget reckons with.
constexpr std::uint64_t kLeavesWithin = 115;

// Machines, and what the tool says of them. It outlives the heads.
struct Cloud {
  struct Machine {
    std::string name;
    int queued_for = 0;  // looks
    int boots_for = 0;   // seconds, behind that
    bool stops = false;
    bool is_stray = false;  // nobody can know that it costs something
    int told_to_stop = -1;  // when; below 0: never
  };
  std::map<std::string, Machine> machines;  // by id
  std::map<std::string, int> leaving;       // members that were let go: when they have left
  int next = 0;
  int second = 0;
  double cost = 0.0;             // a second of a machine costs 1
  std::size_t most_at_once = 0;  // of different names
  std::vector<std::string> wrong;

  void start(const std::string& name, sim::Dice& dice, bool is_stray = false) {
    machines[std::to_string(next++)] = {name, static_cast<int>(dice.below(4)),
                                        static_cast<int>(dice.below(30)), false, is_stray};
    std::set<std::string> names;
    for (const auto& [id, machine] : machines) {
      if (!machine.stops) names.insert(machine.name);
    }
    most_at_once = std::max(most_at_once, names.size());
  }
};

// What was written down before the head was killed.
struct Journal {
  std::map<std::string, PoolNode> nodes;
  std::map<std::string, int> written;  // when
  std::map<std::string, std::uint32_t> wanted;
};

runtime::Error fault(const char* what) { return {runtime::ErrorKind::kLostPeers, what}; }

class FaultyLauncher final : public Launcher {
 public:
  // The head is killed in one of so many calls, before or after it takes effect.
  FaultyLauncher(Cloud& cloud, Journal& journal, sim::Dice& dice, bool& dead)
      : cloud_(cloud),
        journal_(journal),
        dice_(dice),
        dead_(dead),
        dies_in_(dice.below(3) > 0 ? 2000 : 40) {}

  Result<std::string> start(const NodeOrder& order) override {
    if (dead_ || dies()) return fault("the head is dead");
    if (!journal_.nodes.contains(order.name))
      cloud_.wrong.push_back(order.name + " is not written");
    const std::uint64_t kind = dice_.below(10);
    if (kind == 0) return runtime::Error{runtime::ErrorKind::kUsage, "refused"};
    const int id = cloud_.next;
    cloud_.start(order.name, dice_);
    if (kind == 1) cloud_.start(order.name, dice_, true);      // twice
    if (kind == 2) cloud_.machines.erase(std::to_string(id));  // it says so, and does not
    if (dies() || kind == 3) return fault("no answer in time");
    return std::to_string(id);
  }
  Result<std::vector<ListedNode>> list() override {
    if (dead_ || dies() || dice_.below(8) == 0) return fault("no answer");
    std::vector<ListedNode> nodes;
    for (auto& [id, machine] : cloud_.machines) {
      nodes.push_back({machine.name, id, machine.queued_for > 0});
      if (machine.queued_for > 0) --machine.queued_for;
    }
    std::erase_if(cloud_.machines, [&](const auto& each) {
      return each.second.stops || dice_.below(60) == 0;  // some are taken away
    });
    return nodes;
  }
  Result<void> stop(const std::string& name, const std::string& id) override {
    if (dead_ || dies()) return fault("the head is dead");
    const bool answers = dice_.below(6) > 0;
    for (auto& [own, machine] : cloud_.machines) {
      if (id.empty() ? machine.name != name : own != id) continue;
      machine.stops = machine.stops || (answers && dice_.below(5) > 0);
      if (machine.told_to_stop < 0) machine.told_to_stop = cloud_.second;
    }
    if (!answers) return fault("no answer");
    return {};
  }

 private:
  bool dies() {
    if (dice_.below(dies_in_) > 0) return false;
    return dead_ = true;
  }

  Cloud& cloud_;
  Journal& journal_;
  sim::Dice& dice_;
  bool& dead_;
  const std::uint64_t dies_in_;
};

// A tool that does not stop what it is told to stop is not the run's to pay for.
void pass_a_second(Cloud& cloud) {
  ++cloud.second;
  for (auto& [id, machine] : cloud.machines) {
    if (machine.queued_for == 0 && machine.boots_for > 0) --machine.boots_for;
    const bool stays = machine.told_to_stop >= 0 && cloud.second - machine.told_to_stop > 60;
    if (machine.queued_for == 0 && !machine.is_stray && !stays) cloud.cost += 1.0;
  }
}

TreasurerOptions treasurer(std::optional<double> budget, int second) {
  TreasurerOptions options;
  config::PoolSection pool;
  pool.name = "hpc";
  pool.most = kMost;
  pool.price_per_node_hour = 3600.0;
  pool.starts_in = seconds(40);
  options.pools.push_back(pool);
  if (budget) options.limits = {.budget = budget, .decide_every = 10.0};
  options.work.micro_batches = 8;
  options.made.iterations = 200;
  options.seconds_before = second;
  return options;
}

// A worker that is of no pool trains, and has told of it.
void begin_to_train(Context& context) {
  auto view = std::make_shared<pipeline::View>();
  view->ring = {0};
  view->owners.assign(8, 0);
  context.send_control("provisioner", Message::of(ViewMessage{view}));
  for (std::uint64_t told = 1; told <= 2; ++told) {
    context.send_control("provisioner", Message::of(Pace{0, 10 * told, 80, 80.0}));
  }
}

// One head: until it is killed, or 400 s are over. Whether it was killed.
bool play_head(Cloud& cloud, Journal& journal, sim::Dice& dice, std::uint64_t seed,
               std::optional<double> budget) {
  constexpr int kLives = 400;
  bool dead = false;
  ProvisionerOptions options;
  PoolLimits limits{"hpc", 2, kMost, seconds(40)};
  options.pools.push_back(
      {limits, 1, std::make_shared<FaultyLauncher>(cloud, journal, dice, dead)});
  options.treasurer = treasurer(budget, cloud.second);
  for (auto& [name, node] : journal.nodes) {
    if (is_costing(node.state)) node.paid.cost += cloud.second - journal.written[name];
    journal.written[name] = cloud.second;
    options.adopted.push_back(node);
  }
  options.note_work = [](const auto&, const auto&) { return Result<void>(); };
  options.wanted = journal.wanted;
  options.note_node = [&](const PoolNode& node) -> Result<void> {
    if (dice.below(30) == 0) return runtime::Error{runtime::ErrorKind::kData, "the disk is full"};
    if (dead) return {};
    journal.nodes[node.name] = node;
    journal.written[node.name] = cloud.second;
    return {};
  };
  options.note_wanted = [&](const std::string& pool, std::uint32_t nodes) -> Result<void> {
    if (!dead) journal.wanted[pool] = nodes;
    return {};
  };
  options.token = [] { return Result<std::string>(""); };
  options.launched_on = [](const std::string& member) {
    const std::size_t space = member.find(' ');
    return space == std::string::npos ? "" : member.substr(space + 1);
  };
  const auto change = [](Context& context, const std::string& member, const char* state) {
    context.send_control("provisioner", Message::of(NodeChange{{.name = member, .state = state}}));
  };
  // Members come and go as their machines do, and people change their minds.
  Script root;
  std::set<std::string> members;
  int second = 0;
  const bool has_others = dice.below(3) > 0;
  root.start = [&](Context& context) {
    if (has_others) begin_to_train(context);
    context.after(seconds(1));
  };
  root.timer = [&](Context& context, runtime::TimerId) {
    pass_a_second(cloud);
    context.post_progress();  // as steps are
    if (dead || ++second == kLives) return context.finish();
    for (const auto& [member, when] : cloud.leaving) {
      if (when > cloud.second) continue;
      if (members.erase(member) > 0) change(context, member, "ended");
      cloud.machines.erase(member.substr(1, member.find(' ') - 1));
    }
    std::set<std::string> there;
    for (const auto& [id, machine] : cloud.machines) {
      if (machine.queued_for == 0 && machine.boots_for == 0)
        there.insert("m" + id + " " + machine.name);
    }
    for (const std::string& member : members) {
      const std::string id = member.substr(1, member.find(' ') - 1);
      if (!cloud.machines.contains(id)) change(context, member, "dead");
    }
    std::erase_if(members, [&](const std::string& member) {
      return !cloud.machines.contains(member.substr(1, member.find(' ') - 1));
    });
    for (const std::string& member : there) {
      if (members.insert(member).second) change(context, member, "running");
    }
    if (dice.below(30) == 0) {
      const std::string wish = std::to_string(dice.below(5));
      context.send_control("provisioner",
                           Message::of(runtime::RequestAsked{
                               {runtime::HeadRequest::Kind::kBurst, "hpc", wish},
                               "somebody",
                               std::make_shared<runtime::RequestReply>([](const auto&) {})}));
    }
    context.after(seconds(1));
  };
  root.receive = [&](Context& context, const Message& message) {
    // The budget is spent, so the run ends.
    if (message.as<MemberFailed>() != nullptr) second = kLives - 1;
    const auto* let_go = message.as<LetGo>();
    if (let_go == nullptr) return;
    for (const std::string& member : let_go->nodes) {
      // The last member ends a run with a budget, and is kept otherwise.
      if (!budget && dice.below(5) == 0) {
        context.send_control("provisioner", Message::of(Kept{member, "it is the last"}));
      } else {
        const auto takes = static_cast<int>(kLeavesWithin - dice.below(10));
        cloud.leaving.try_emplace(member, cloud.second + takes);
      }
    }
  };
  Play play;
  play.actor("coordinator", root).actor("monitor", Script{}).actor("provisioner", [&] {
    return std::make_unique<Provisioner>(options, std::make_shared<RunOutcome>());
  });
  play.run(seed);
  return dead;
}

void play_run(std::uint64_t seed) {
  SCOPED_TRACE(seed);
  sim::Dice dice(seed);
  Cloud cloud;
  Journal journal;
  const std::uint64_t heads = 1 + dice.below(4);
  std::optional<double> budget;
  if (dice.below(2) > 0) budget = 300.0 + 10.0 * static_cast<double>(dice.below(40));
  bool was_killed = false;
  for (std::uint64_t head = 0; head < heads; ++head) {
    was_killed = play_head(cloud, journal, dice, seed + head, budget);
  }
  EXPECT_LE(cloud.cost, budget.value_or(1e9));
  EXPECT_TRUE(cloud.wrong.empty()) << cloud.wrong.front();
  EXPECT_LE(cloud.most_at_once, kMost);
  for (const auto& [id, machine] : cloud.machines) {
    const auto known = journal.nodes.find(machine.name);
    ASSERT_NE(known, journal.nodes.end()) << machine.name << " is lost track of";
    // One that was started twice is found where the tool lists it, by a head that lives.
    if (was_killed && machine.is_stray) continue;
    EXPECT_TRUE(machine.stops || known->second.state != PoolNodeState::kGone)
        << machine.name << " runs on, and counts as ended";
  }
}

TEST(ProvisionerPlay, LosesTrackOfNoNode) {
  for (std::uint64_t seed = 1; seed <= 5000 && !HasFailure(); seed += stride(40)) play_run(seed);
}

}  // namespace
}  // namespace troupe::actors
