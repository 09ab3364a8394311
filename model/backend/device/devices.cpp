#include <unistd.h>

#include <charconv>
#include <iostream>

#include <fmt/format.h>

#include "model/backend/device/device.h"

namespace troupe::model::device {

void device_failed(const std::string& what) {
  std::cerr << "troupe: a device has failed: " + what + "\n" << std::flush;
  ::_exit(runtime::exit_code(runtime::ErrorKind::kInternal));
}

Devices devices() {
  Devices all = cuda_devices();
  Devices others = opencl_devices();
  all.found.insert(all.found.end(), others.found.begin(), others.found.end());
  if (!others.missing.empty()) {
    all.missing += (all.missing.empty() ? "" : "; ") + others.missing;
  }
  return all;
}

runtime::Result<std::shared_ptr<Device>> open(const std::string& word) {
  const std::size_t colon = word.find(':');
  std::size_t number = 0;
  const char* const end = word.data() + word.size();
  const auto read = colon == std::string::npos
                        ? std::from_chars_result{}
                        : std::from_chars(word.data() + colon + 1, end, number);
  if (read.ptr == end && word.starts_with("cuda:")) return open_cuda(number);
  if (read.ptr == end && word.starts_with("opencl:")) return open_opencl(number);
  return runtime::Error{runtime::ErrorKind::kUsage, fmt::format("there is no device {}", word)};
}

}  // namespace troupe::model::device
