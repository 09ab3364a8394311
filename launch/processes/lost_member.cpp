#include "launch/processes/lost_member.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "launch/processes/line_splitter.h"
#include "runtime/base/start_thread.h"

namespace troupe::launch {
namespace {

using runtime::ErrorKind;

constexpr const char* kWord = "lost";

// A signal, and an exit code that is no kind's, say no more than that the member is lost.
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

LostMembers::LostMembers(int line) : line_(line), stop_(::eventfd(0, EFD_CLOEXEC)) {
  CHECK(stop_.is_open(), "no eventfd");
  // Children of this process do not inherit the line.
  ::fcntl(line, F_SETFD, FD_CLOEXEC);
  thread_ = runtime::need_thread("the parent's line", [this] { listen(); });
}

LostMembers::~LostMembers() {
  const std::uint64_t one = 1;
  CHECK(::write(stop_.number(), &one, sizeof one) == sizeof one);
  thread_.join();
}

// The stop is looked at before the line, so that the destructor waits for no parent that goes on
// talking. Lines that are of another kind are passed over.
void LostMembers::listen() {
  LineSplitter lines([this](std::string_view line) {
    const auto member = parse_lost_member(std::string(line));
    const std::scoped_lock lock(mutex_);
    if (member) members_.push_back(*member);
  });
  std::array<char, 4096> bytes;
  while (true) {
    pollfd events[2] = {{line_.number(), POLLIN, 0}, {stop_.number(), POLLIN, 0}};
    if (::poll(events, 2, -1) < 0) continue;
    if (events[1].revents != 0) return;
    const ssize_t got = ::read(line_.number(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    lines.add({bytes.data(), static_cast<std::size_t>(got)});
  }
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
