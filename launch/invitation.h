#pragma once

// What the head tells a process that asks to be a member: all it needs to make the same run of.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/transport/packets.h"

namespace troupe::launch {

struct MemberInvitation {
  std::string topology;       // effective, as text
  std::uint32_t members = 1;  // of the run
  std::string data_folder;    // the head's; of use on its own host
  std::string host;           // of the head
};

runtime::Buffer pack_invitation(const MemberInvitation& invitation);
// kLostPeers: not what a head of this version sends.
runtime::Result<MemberInvitation> unpack_invitation(const runtime::Buffer& contents);

// Which of the awaited nodes a process shall be. A node that was promised to another process is
// given away again only when that one has not come within kPromise.
class MemberNames {
 public:
  static constexpr runtime::Duration kPromise = std::chrono::seconds(60);

  // `reserved`: those that somebody else asks for by name, given to nobody who wants just any.
  explicit MemberNames(std::set<std::string> reserved = {}) : reserved_(std::move(reserved)) {}

  // `wanted` "" for any. kUsage: there is none to give, or not the wanted one.
  runtime::Result<std::string> choose(const std::string& wanted,
                                      const std::vector<std::string>& awaited,
                                      runtime::TimePoint now);

 private:
  const std::set<std::string> reserved_;
  std::map<std::string, runtime::TimePoint> promised_;
};

}  // namespace troupe::launch
