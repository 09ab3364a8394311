#pragma once

// A run of which somebody has started several processes alike: srun, mpirun, or an operator that
// sets RANK or TF_CONFIG. The first of them is the head with a member beside it, and the others are
// members. They find each other without being told anything.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "launch/meeting/placement.h"
#include "runtime/base/clock.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

// One of such processes.
struct Allocation {
  std::string name;         // of all of them, for people: "Slurm step 12.0"
  std::uint32_t rank = 0;   // 0: the first
  std::uint32_t size = 1;   // how many there are
  std::uint32_t place = 0;  // among those of its host
  // Where the first is reached, if the starter says so. Else it leaves a note in a folder that all
  // see.
  std::string host{};
  std::uint16_t port = 0;
};

// The value of a variable of the environment.
using Variables = std::function<std::optional<std::string>(const char* name)>;

// Nothing: the process was started alone. The innermost starter counts: RANK and WORLD_SIZE with
// MASTER_ADDR and MASTER_PORT, then Open MPI, then MPICH's mpiexec, then Slurm, then TF_CONFIG; one
// that has started a single process does not. Errors (kUsage) name the variable that is no number,
// is missing, or contradicts another.
runtime::Result<std::optional<Allocation>> find_allocation(const Variables& variables);

// Where they meet.
struct Meeting {
  std::string listen;  // of the head, as cluster.listen has it
  std::string dial;    // of it, for this process; with its key
  // Where this process listens for members of other hosts; "": where its way to the head begins.
  std::string neighbours{};
  std::optional<std::string> keys{};  // folder; none: all are on this machine
  // The first leaves it for the others while it runs; "": these know where it is.
  std::string note{}, note_file{};
  runtime::Descriptor claim{};  // of the head's ports, where they were looked for
};

// The first's part. `keys` is cluster.keys, and `listen` is cluster.listen where the topology gives
// it. Without keys some are made in the folder where the others look: `prefix` and the allocation's
// name. Errors: kUsage: these cannot be made, or other machines cannot join without keys that they
// have, too.
runtime::Result<Meeting> open_meeting(const Allocation& allocation,
                                      const std::optional<std::string>& keys,
                                      const std::optional<std::string>& listen,
                                      const std::string& prefix, runtime::Disk& disk);

// Leaves the note, and takes it away at its end.
class MeetingNote {
 public:
  explicit MeetingNote(const Meeting& meeting) : meeting_(meeting) {}
  ~MeetingNote();
  MeetingNote(const MeetingNote&) = delete;
  MeetingNote& operator=(const MeetingNote&) = delete;

  runtime::Result<void> leave(runtime::Disk& disk);

 private:
  const Meeting& meeting_;
};

// The others' part: waits until the first has left its note, and says so in the log. Errors:
// kUsage: as above; kLostPeers: it has left none by the deadline.
runtime::Result<Meeting> find_meeting(const Allocation& allocation,
                                      const std::optional<std::string>& keys,
                                      const std::string& prefix, const runtime::Clock& clock,
                                      runtime::TimePoint deadline, const runtime::Log& log);

// The first's: it has the head and one member.
Placement placement_in(const Allocation& allocation, const Meeting& meeting);

}  // namespace troupe::launch
