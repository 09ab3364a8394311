#include "runtime/transport/ucx_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <utility>

namespace troupe::runtime {
namespace {

// The library's start takes these over, and with them an ignored SIGHUP, which nohup has asked for.
class KeptSignals {
 public:
  KeptSignals() {
    for (auto& [number, action] : kept_) ::sigaction(number, nullptr, &action);
  }
  ~KeptSignals() {
    for (const auto& [number, action] : kept_) ::sigaction(number, &action, nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  std::array<std::pair<int, struct sigaction>, 6> kept_{
      {{SIGHUP, {}}, {SIGILL, {}}, {SIGBUS, {}}, {SIGFPE, {}}, {SIGSEGV, {}}, {SIGABRT, {}}}};
};

struct Opened {
  UcxLibrary library;
  std::string missing;  // "": nothing
};

Opened open_library() {
  const KeptSignals kept;
  Opened opened;
  void* const library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    opened.missing = "libucp.so.0 cannot be opened; install UCX (Debian: libucx0)";
    return opened;
  }
#define TROUPE_FIND(function)                                                         \
  opened.library.function =                                                           \
      reinterpret_cast<decltype(opened.library.function)>(dlsym(library, #function)); \
  if (opened.library.function == nullptr) {                                           \
    opened.missing = "libucp.so.0 has no " #function "; install UCX 1.13 or later";   \
  }
  TROUPE_UCX_FUNCTIONS(TROUPE_FIND)
#undef TROUPE_FIND
  return opened;
}

}  // namespace

Result<const UcxLibrary*> ucx_library() {
  static const Opened kOpened = open_library();
  if (!kOpened.missing.empty()) return Error{ErrorKind::kUsage, kOpened.missing};
  return &kOpened.library;
}

}  // namespace troupe::runtime
