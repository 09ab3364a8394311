#include "tests/telemetry/page/failing_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

std::atomic<bool> fails{false};
std::size_t least_bytes = 0, most_bytes = 0;  // of these three, `fails` is written last
std::thread::id spared;

bool finds_none(std::size_t bytes) {
  if (!fails || bytes < least_bytes || bytes > most_bytes) return false;
  return std::this_thread::get_id() != spared && fails.exchange(false);
}

}  // namespace

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return finds_none(bytes) ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace troupe::telemetry {

void fail_once(std::size_t least, std::size_t most) {
  least_bytes = least;
  most_bytes = most;
  spared = std::this_thread::get_id();
  fails = true;
}

bool has_failed() { return !fails; }

}  // namespace troupe::telemetry
