#include "launch/meeting/pmi.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace troupe::launch {
namespace {

using runtime::Result;

constexpr int kPatienceMilliseconds = 10'000;
constexpr std::size_t kMostBytes = 4096;

runtime::Error unheard(const char* what) {
  return {runtime::ErrorKind::kUsage,
          fmt::format("PMI_FD in the environment leads to no mpiexec that tells {}", what)};
}

// Asks and returns the answer's line, which must begin so.
Result<std::string> ask(int descriptor, const std::string& line, const std::string& answers) {
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(descriptor, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return unheard("anything");
    sent += static_cast<std::size_t>(count);
  }
  std::string answer;
  while (answer.size() < kMostBytes) {
    pollfd readable{descriptor, POLLIN, 0};
    char next = 0;
    if (::poll(&readable, 1, kPatienceMilliseconds) != 1) break;
    if (::read(descriptor, &next, 1) != 1) break;
    if (next != '\n') {
      answer += next;
    } else {
      if (!answer.starts_with(answers)) break;
      return answer.substr(answers.size());
    }
  }
  return unheard(answers.c_str());
}

}  // namespace

Result<std::string> name_of_pmi_job(int descriptor) {
  RETURN_IF_ERROR(
      ask(descriptor, "cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=response_to_init "));
  ASSIGN_OR_RETURN(std::string name,
                   ask(descriptor, "cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname="));
  RETURN_IF_ERROR(ask(descriptor, "cmd=finalize\n", "cmd=finalize_ack"));
  return name.substr(0, name.find(' '));
}

}  // namespace troupe::launch
