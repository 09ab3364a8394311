#include "launch/processes/lost_member.h"

#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace troupe::launch {
namespace {

using runtime::ErrorKind;

constexpr const char* kWord = "lost";

ErrorKind kind_of(const ChildEnd& end) {
  for (const auto kind : {ErrorKind::kInternal, ErrorKind::kUsage, ErrorKind::kTopology,
                          ErrorKind::kData, ErrorKind::kDiverged}) {
    if (end.signal == 0 && end.exit_code == runtime::exit_code(kind)) return kind;
  }
  return ErrorKind::kLostPeers;
}

}  // namespace

runtime::Error LostMember::error() const {
  const bool has_said_why = end.signal == 0;
  return {kind_of(end),
          fmt::format("{} {}{}", name, end.text(), has_said_why ? "; its own lines say why" : "")};
}

LostMembers::LostMembers(bool listens) {
  if (!listens) return;
  line_.emplace(kParentLineDescriptor, [this](const std::string& line) {
    const auto member = parse_lost_member(line);
    const std::scoped_lock lock(mutex_);
    if (member) members_.push_back(*member);
  });
}

std::vector<LostMember> LostMembers::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(members_, {});
}

std::string print(const LostMember& member) {
  return fmt::format("{} {} {} {}", kWord, member.name, member.end.exit_code, member.end.signal);
}

std::optional<LostMember> parse_lost_member(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  LostMember member;
  words >> word >> member.name >> member.end.exit_code >> member.end.signal;
  if (!words || word != kWord) return std::nullopt;
  return member;
}

}  // namespace troupe::launch
