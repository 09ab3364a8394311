#pragma once

// A cluster that trains the toy of the zoo through the real actors, in one thread over simulated
// wires, on a disk in memory.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/spawn.h"
#include "launch/run/training_setup.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "tests/actors/theatre.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/sim/world.h"

namespace troupe::sim {

// A disk that can be full, and of which a file can be torn.
class SimDisk final : public runtime::Disk {
 public:
  // So many more files are written; after that the disk is full.
  void fill_after(int files) { files_left_ = files; }
  // Cuts the file to so many bytes.
  void tear(const std::string& path, std::size_t bytes);

  runtime::Result<void> replace(const std::string& path, std::span<const std::byte> bytes) override;
  runtime::Result<runtime::Buffer> read(const std::string& path) override;
  runtime::Result<void> remove(const std::string& path) override;
  runtime::Result<std::vector<std::string>> list(const std::string& folder) override;
  runtime::Result<void> make_folder(const std::string& folder) override;
  runtime::Result<void> link(const std::string& path, const std::string& target) override;

 private:
  actors::MemoryDisk files_;
  std::optional<int> files_left_;
};

inline constexpr const char* kShortTraining =
    "train: {micro_batch: 2, micro_batches: 4, epochs: 5}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 8}}\n";

// The order of members. Ascending, the first has the sum of a step before all others. Descending,
// the first, which leads and teaches, has it last, as it may be where steps are cut into pieces;
// and four members or more are a ring of rings.
enum class RingOrder : std::uint8_t { kAscending, kDescending };

// The parts that all runs have in common. One for a whole test program: it opens the data and
// compiles the networks.
class TrainingStage {
 public:
  // For a topology file with these sections besides model and data, and settings like those of
  // --set.
  explicit TrainingStage(const std::string& sections = kShortTraining,
                         RingOrder ring_order = RingOrder::kAscending,
                         const std::vector<std::string>& settings = {});

  RingOrder ring_order() const { return ring_order_; }
  const config::Topology& topology() const { return topology_; }
  // The set-up of a run with so many members; 0: in one process.
  launch::TrainingSetup& setup(std::uint32_t members);
  // The same for a member that computes otherwise.
  launch::TrainingSetup& broken_setup(std::uint32_t members);
  actors::StatePointer initial_state();
  // The order in which workers take turns in each of its runs, of which the setups set the first
  // half; null where they take none.
  const launch::TurnOrder& order_of_turns() const { return order_of_turns_; }
  // The hash of a run in one process that nothing disturbs.
  runtime::Hash128 undisturbed();
  // The newest state that can be read from the disk; the initial one when there is none.
  actors::StatePointer newest_state(runtime::Disk& disk);

 private:
  TemporaryFolder folder_;
  const RingOrder ring_order_;
  config::Topology topology_;
  launch::TrainingSetup make_setup(std::uint32_t members);

  std::map<std::uint32_t, launch::TrainingSetup> setups_, broken_setups_;
  launch::TurnOrder order_of_turns_;
  std::optional<runtime::Hash128> undisturbed_;
};

// The stage of short trainings.
TrainingStage& stage();

std::string hash_of(const actors::StatePointer& state);

// The parts that the nodes of a run are made of; `member` of those that compute.
actors::NodeParts parts_of(TrainingStage& stage, launch::TrainingSetup& setup, std::uint32_t member,
                           const actors::StatePointer& state, runtime::Disk& disk);

// The blow that a run is dealt besides delays.
enum class Fate : std::uint8_t {
  kNothing,
  kShortTroubles,  // broken connections, short cuts and stops: nobody is given up
  kHeadKilled,
  kLongTroubles,                 // the same, and such as members and heads are given up for
  kSpeedsChange,                 // the head hears of other speeds again and again
  kSlowNewcomers,                // get late what members send, and are many steps behind
  kLastMemberComputesOtherwise,  // draws other noise: as a broken processor would, its gradients
                                 // are wrong and look sound
};

// The process dies when so many packets of data and control have arrived anywhere.
struct Death {
  std::uint64_t after = 0;
  ProcessId process = 0;  // 0: the head
  // Its starter tells the head, which has to notice by silence otherwise.
  bool told = true;
  // Words of one other process to another may be held up for a while, from then on and before.
  ProcessId from = 0, to = 0;
  Duration held{0};
  // For the head: so much later another process takes its place. None: no other will.
  std::optional<Duration> next_head{};
  // For the head: it does not die, but stands still for so long. If it has been given up then,
  // another one takes its place.
  std::optional<Duration> stands_still{};
  // For a member: it does not die, but is told to end.
  bool leaves = false;
  // For a member: it does not die, but stands still for so long, as a process does that is stopped.
  std::optional<Duration> sleeps{};
};

// Processes that come while a run goes on, as soon as there is a place for the next one, and that
// do not stay: each is dealt a blow of its own, drawn from the seed, some time after it came. It is
// killed, told to end, or stands still and may wake when its place is another one's.
struct Guests {
  std::uint32_t most = 0;  // of them; 0: none come
  std::uint64_t seed = 0;
};

struct TrainingEnd {
  bool over = false;  // every process has ended or was killed
  bool killed = false;
  std::optional<runtime::Error> head_error;
  std::optional<runtime::Error> member_error;  // the first member's that has one
  // The words of the first member, or of the head, that has found another not to do what all do, or
  // itself to compute otherwise. Nobody finds that of sound members, whatever happens to them.
  std::optional<runtime::Error> accusation;
  actors::StatePointer state;            // last committed, as the head reports it
  bool saved = false;                    // and has put on the disk
  std::size_t changes = 0;               // of the View
  std::size_t joined = 0;                // members, meanwhile
  std::size_t guests = 0;                // that came; see Guests
  std::size_t most_of_one_place = 0;     // the most processes that were one member
  std::size_t outlived = 0;              // guests that woke when their place was another one's
  std::vector<std::string> unrefused{};  // those of them that did not end for it
  std::size_t shared_anew = 0;           // how often micro-batches were
  std::size_t heads = 1;                 // that there were
  std::set<std::pair<ProcessId, ProcessId>> met{};  // two that had a connection, no head among them
  std::uint64_t arrivals = 0;                       // of packets of data and control
  Duration simulated{0};
};

// "" when the run is over, its head, and all its members if they count, have ended well, nobody was
// accused, and its state is that of a run that nothing disturbs; else what is wrong.
std::string fault_of(TrainingStage& stage, const TrainingEnd& end, bool members_count = false);

// Trains from `state` with so many members, as the seed has it; others come at these times. Those
// of `remote`, by number, have no data.
TrainingEnd play_training(TrainingStage& stage, std::uint64_t seed, std::uint32_t members,
                          const actors::StatePointer& state, runtime::Disk& disk, Fate fate,
                          const std::vector<Death>& deaths = {},
                          const std::vector<TimePoint>& joins = {},
                          const std::set<std::uint32_t>& remote = {},
                          const World::Trace& trace = {}, const Guests& guests = {});

}  // namespace troupe::sim
