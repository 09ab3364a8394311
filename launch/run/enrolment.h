#pragma once

// How a process becomes a member of a run. The member asks the head (ask_head); the head chooses
// which one it is to be and tells it all that it needs (HeadKeeper::invite). Then the member's
// gate dials the head anew, as a node, and the head tells the members of each other, which let
// nobody else in (MemberKeeper).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/folder/membership_file.h"
#include "launch/meeting/invitation.h"
#include "launch/meeting/member_names.h"
#include "launch/run/run_signals.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/node/gate_options.h"
#include "runtime/relay/relay.h"
#include "runtime/transport/ask.h"
#include "runtime/transport/keys.h"
#include "runtime/transport/wire.h"

namespace troupe::launch {

// The relay of a run, in its head's process: members that nobody can dial reach each other through
// it (runtime/relay/relay.h). A member's number is that of its client. One thread's.
class HeadRelay {
 public:
  // For a head that listens there; one in the file system needs none. `tokens`: what members that
  // earlier heads have invited are known by. Without a relay, which the log says, the run goes on.
  HeadRelay(const std::string& listen, const std::map<std::string, runtime::RelayToken>& tokens,
            const runtime::Log& log);

  // 0: there is none.
  std::uint16_t port() const { return relay_ ? relay_->port() : std::uint16_t{0}; }
  // Draws what the member is known by from now on. None if there is no relay.
  std::optional<runtime::RelayToken> admit(const std::string& member);

 private:
  std::unique_ptr<runtime::Relay> relay_;
};

// The head's answer to a process that it has taken in.
struct Slot {
  std::string node;
  std::uint32_t member = 0;
  MemberInvitation invitation;
};

// Asks until the head answers, as the options say. Errors: as of runtime::enrol; kLostPeers: the
// answer cannot be understood.
runtime::Result<Slot> ask_head(const runtime::EnrolOptions& options, runtime::Wire& wire,
                               const runtime::Clock& clock);

struct TrainingSetup;
// What every member of the run is told; without the relay's part. `data_folder` is the head's.
MemberInvitation invitation_to(const TrainingSetup& setup, const std::string& data_folder);

// The head's. It knows those that the heads before it knew, and writes down those that it gets to
// know.
class HeadKeeper final : public runtime::Gatekeeper {
 public:
  // `invitation`: what every member is told; the relay's part is filled in. `gives_again`: see
  // MemberNames::why_none(). `members_here`: those
  // that the process above this one starts, and that ask for their own names. `signals`: of a head
  // that `troupe run` restarts when it dies; null: it does not. All outlive it.
  HeadKeeper(MemberInvitation invitation, bool gives_again,
             const std::vector<std::string>& members_here, MembershipFile& membership,
             HeadRelay& relay, RunSignals* signals, const runtime::Clock& clock,
             const runtime::Log& log);

  runtime::Result<runtime::EnrolmentAnswer> invite(
      const runtime::Enrolment& enrolment, const std::vector<std::string>& awaited) override;
  std::uint64_t number_between(const std::string& one, const std::string& other) override;
  bool is_this_machine(const std::string& host) override;
  // Kills this process, unless the run is being ended, which no other head would go on with.
  bool makes_room(const std::string& node) override;

 private:
  // Those of the names that the run cannot begin without, while there are any.
  std::vector<std::string> first_of(const std::vector<std::string>& names) const;

  const MemberInvitation invitation_;
  const bool gives_again_;
  MemberNames names_;
  MembershipFile& membership_;
  HeadRelay& relay_;
  RunSignals* const signals_;
  const runtime::Clock& clock_;
  const runtime::Log& log_;
};

// A member's. One thread's.
class MemberKeeper final : public runtime::Gatekeeper {
 public:
  void neighbours_are(const std::vector<runtime::DirectoryEntry>& neighbours) override;
  // The keys of the members that the head has told of last.
  const std::vector<runtime::AllowedKey>& allowed() const { return allowed_; }

 private:
  std::vector<runtime::AllowedKey> allowed_;
};

}  // namespace troupe::launch
