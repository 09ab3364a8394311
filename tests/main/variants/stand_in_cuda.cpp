// Stands in for NVIDIA's driver and compiler on machines without a card: keeps account of memory
// and of the order of calls, fails where it is told to, and computes no kernel but the brink cases.
// A wrong call ends the process.
//
// There is one card, or STAND_IN_CARDS; of all the last one has the most free memory.
// STAND_IN_FAIL=CALL:N:CODE lets the N-th call of CALL, from 1, return CODE, and all of them behind
// it. STAND_IN_LOG=FILE: it writes there, at its end, how often each function was called, and the
// bytes that nobody has freed.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

using Address = unsigned long long;

struct State {
  std::mutex mutex;
  std::map<std::string, int> calls;
  std::map<Address, std::size_t> memory;
  std::vector<std::string> functions;
  bool begun = false;

  ~State() {
    const char* path = std::getenv("STAND_IN_LOG");
    if (path == nullptr) return;
    std::FILE* const file = std::fopen(path, "w");
    if (file == nullptr) return;
    for (const auto& [name, count] : calls) std::fprintf(file, "%s %d\n", name.c_str(), count);
    std::size_t left = 0;
    for (const auto& [first, size] : memory) left += size;
    std::fprintf(file, "left %zu\n", left);
    std::fclose(file);
  }
};
State state;
thread_local bool has_context = false;

void wrong(const char* what) {
  std::fprintf(stderr, "stand-in: %s\n", what);
  std::abort();
}

// The code that a call is to return; it is counted.
int called(const char* name) {
  const std::scoped_lock lock(state.mutex);
  const int count = ++state.calls[name];
  if (!state.begun && std::string(name) != "cuInit") wrong("a call before cuInit");
  const char* const fail = std::getenv("STAND_IN_FAIL");
  if (fail == nullptr) return 0;
  const std::string rule = fail;
  const std::size_t first = rule.find(':'), second = rule.rfind(':');
  if (rule.substr(0, first) != name) return 0;
  return count >= std::stoi(rule.substr(first + 1)) ? std::stoi(rule.substr(second + 1)) : 0;
}

int called_in_context(const char* name) {
  if (!has_context) wrong("a call on a thread without a context");
  return called(name);
}

// Memory that was given out and holds so many bytes from there.
void need(Address address, std::size_t bytes) {
  const std::scoped_lock lock(state.mutex);
  auto behind = state.memory.upper_bound(address);
  if (behind == state.memory.begin()) wrong("an address that was not given out");
  const auto& [first, size] = *--behind;
  if (address + bytes > first + size) wrong("a place beyond its memory");
}

int cards() {
  const char* const count = std::getenv("STAND_IN_CARDS");
  return count == nullptr ? 1 : std::atoi(count);
}

void* at(Address address) { return reinterpret_cast<void*>(address); }

}  // namespace

extern "C" {

int cuInit(unsigned) {
  state.begun = true;
  return called("cuInit");
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return called("cuDriverGetVersion");
}
int cuDeviceGetCount(int* count) {
  *count = cards();
  return called("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return called("cuDeviceGet");
}
int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<std::size_t>(size), "stand-in");
  return called("cuDeviceGetName");
}
int cuDeviceGetPCIBusId(char* bus, int size, int card) {
  std::snprintf(bus, static_cast<std::size_t>(size), "0000:%02x:00.0", card);
  return called("cuDeviceGetPCIBusId");
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{1} << 30;
  return called("cuDeviceTotalMem");
}
int cuDeviceGetAttribute(int* value, int which, int) {
  *value = which == 75 ? 9 : (which == 76 ? 0 : 132);
  return called("cuDeviceGetAttribute");
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &state;
  return called("cuDevicePrimaryCtxRetain");
}
int cuDevicePrimaryCtxRelease_v2(int) { return called("cuDevicePrimaryCtxRelease"); }
int cuCtxSetCurrent(void* context) {
  has_context = context == &state;
  return called("cuCtxSetCurrent");
}
int cuStreamCreate(void** stream, unsigned) {
  *stream = &state;
  return called_in_context("cuStreamCreate");
}
int cuStreamDestroy_v2(void*) { return called_in_context("cuStreamDestroy"); }
int cuStreamSynchronize(void*) { return called_in_context("cuStreamSynchronize"); }
int cuMemAlloc_v2(Address* address, std::size_t bytes) {
  const int code = called_in_context("cuMemAlloc");
  if (code != 0) return code;
  *address = reinterpret_cast<Address>(std::malloc(bytes));
  const std::scoped_lock lock(state.mutex);
  state.memory[*address] = bytes;
  return 0;
}
int cuMemFree_v2(Address address) {
  const int code = called_in_context("cuMemFree");
  const std::scoped_lock lock(state.mutex);
  if (state.memory.erase(address) != 1) wrong("memory that is not there is freed");
  std::free(at(address));
  return code;
}
int cuMemsetD8Async(Address address, unsigned char value, std::size_t bytes, void*) {
  need(address, bytes);
  std::memset(at(address), value, bytes);
  return called_in_context("cuMemsetD8");
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, void*) {
  need(to, bytes);
  std::memcpy(at(to), from, bytes);
  return called_in_context("cuMemcpyHtoD");
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, void*) {
  need(from, bytes);
  std::memcpy(to, at(from), bytes);
  return called_in_context("cuMemcpyDtoH");
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, void*) {
  need(from, bytes);
  need(to, bytes);
  std::memmove(at(to), at(from), bytes);
  return called_in_context("cuMemcpyDtoD");
}
int cuMemAllocHost_v2(void** first, std::size_t bytes) {
  Address address = 0;
  const int code = called_in_context("cuMemAllocHost");
  if (code != 0) return code;
  *first = std::malloc(bytes);
  address = reinterpret_cast<Address>(*first);
  const std::scoped_lock lock(state.mutex);
  state.memory[address] = bytes;
  return 0;
}
int cuMemFreeHost(void* first) {
  const int code = called_in_context("cuMemFreeHost");
  const std::scoped_lock lock(state.mutex);
  if (state.memory.erase(reinterpret_cast<Address>(first)) != 1) wrong("no pinned memory is freed");
  std::free(first);
  return code;
}
int cuEventCreate(void** event, unsigned) {
  *event = &state;
  return called_in_context("cuEventCreate");
}
int cuEventRecord(void*, void*) { return called_in_context("cuEventRecord"); }
int cuEventSynchronize(void*) { return called_in_context("cuEventSynchronize"); }
int cuEventDestroy_v2(void*) { return called_in_context("cuEventDestroy"); }
int cuModuleLoadData(void** module, const void* image) {
  if (std::strcmp(static_cast<const char*>(image), "cubin") != 0) wrong("no code of the compiler");
  *module = &state;
  return called_in_context("cuModuleLoadData");
}
int cuModuleUnload(void*) { return called_in_context("cuModuleUnload"); }
int cuModuleGetFunction(void** function, void*, const char* name) {
  const std::scoped_lock lock(state.mutex);
  state.functions.emplace_back(name);
  *function = reinterpret_cast<void*>(state.functions.size());
  return 0;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned group, unsigned, unsigned items,
                   unsigned, unsigned, unsigned, void*, void** parameters, void**) {
  const auto number = reinterpret_cast<std::size_t>(function);
  if (number < 1 || number > state.functions.size()) wrong("a function that was not asked for");
  if (blocks == 0 || group == 0 || items == 0 || items > 1024) wrong("a grid that no card takes");
  if (state.functions[number - 1] == "brink_cases") {
    // numbers, sums, roots, each an address and its place; the count.
    const auto* numbers = static_cast<const float*>(at(*static_cast<Address*>(parameters[0])));
    auto* sums = static_cast<float*>(at(*static_cast<Address*>(parameters[2])));
    auto* roots = static_cast<double*>(at(*static_cast<Address*>(parameters[4])));
    const int count = *static_cast<int*>(parameters[6]);
    for (int i = 0; i < count * count * count; ++i) {
      const float a = numbers[i / count / count], b = numbers[i / count % count],
                  c = numbers[i % count];
      const double product = static_cast<double>(a) * static_cast<double>(b);
      const float rounded = a * b;
      sums[2 * i] = std::fma(a, b, c);
      sums[2 * i + 1] = rounded + c;
      roots[2 * i] = product / static_cast<double>(c);
      roots[2 * i + 1] = std::sqrt(std::fabs(product));
      // A card that fuses what it should not.
      if (std::getenv("STAND_IN_FUSES") != nullptr) sums[2 * i + 1] = sums[2 * i];
    }
  }
  return called_in_context("cuLaunchKernel");
}
int cuGetErrorString(int code, const char** text) {
  *text = code == 2 ? "out of memory" : (code == 719 ? "unspecified launch failure" : "some error");
  return 0;
}

// The management library.
int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** card) {
  int number = 0;
  if (std::sscanf(bus, "0000:%x:00.0", reinterpret_cast<unsigned*>(&number)) != 1) return 2;
  *card = reinterpret_cast<void*>(static_cast<std::size_t>(number) + 1);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* card, unsigned long long* total_free_used) {
  total_free_used[0] = 1ULL << 30;
  total_free_used[2] = static_cast<unsigned long long>(
                           cards() - static_cast<int>(reinterpret_cast<std::size_t>(card)))
                       << 20;
  total_free_used[1] = total_free_used[0] - total_free_used[2];
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* card_memory) {
  card_memory[0] = 75;
  card_memory[1] = 10;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 312400;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned*) { return 3; }  // not supported

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
int nvrtcCreateProgram(void** program, const char* text, const char*, int, const char* const*,
                       const char* const*) {
  if (std::strstr(text, "KERNEL void convolution_dots(") == nullptr) wrong("no program");
  *program = &state;
  return called("nvrtcCreateProgram");
}
int nvrtcCompileProgram(void*, int count, const char* const* options) {
  if (count < 2 || std::string(options[0]) != "--gpu-architecture=sm_90" ||
      std::string(options[1]) != "--fmad=false") {
    wrong("options that keep no bits");
  }
  return called("nvrtcCompileProgram");
}
int nvrtcGetProgramLogSize(void*, std::size_t* size) {
  *size = 8;
  return 0;
}
int nvrtcGetProgramLog(void*, char* log) {
  std::strcpy(log, "its log");
  return 0;
}
int nvrtcGetCUBINSize(void*, std::size_t* size) {
  *size = 6;
  return 0;
}
int nvrtcGetCUBIN(void*, char* code) {
  std::memcpy(code, "cubin", 6);
  return 0;
}
int nvrtcDestroyProgram(void**) { return called("nvrtcDestroyProgram"); }

}  // extern "C"
