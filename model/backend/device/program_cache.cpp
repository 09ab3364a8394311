#include "model/backend/device/program_cache.h"

#include <cstdlib>
#include <span>

#include "runtime/base/disk.h"
#include "runtime/base/hash.h"

namespace troupe::model::device {
namespace {

// Empty: the user has none.
std::string cache_folder() {
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::string(cache) + "/troupe";
  }
  const char* const home = std::getenv("HOME");
  return home == nullptr || *home != '/' ? "" : std::string(home) + "/.cache/troupe";
}

// In front of the code: the hashes of source and code, as texts.
std::string head_of(std::string_view source, std::string_view code) {
  return runtime::hash_of(source).text() + runtime::hash_of(code).text();
}

}  // namespace

std::optional<std::string> find_program(const std::string& name, std::string_view source) {
  const std::string folder = cache_folder();
  if (folder.empty()) return std::nullopt;
  const auto file = runtime::FileDisk().read(folder + "/" + name);
  const std::size_t head = head_of(source, {}).size();
  if (!file.ok() || file->size() <= head) return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(file->data()), file->size());
  const std::string_view code = text.substr(head);
  if (text.substr(0, head) != head_of(source, code)) return std::nullopt;
  return std::string(code);
}

void keep_program(const std::string& name, std::string_view source, std::string_view code) {
  const std::string folder = cache_folder();
  runtime::FileDisk disk;
  if (folder.empty() || !disk.make_folder(folder).ok()) return;
  const std::string text = head_of(source, code) + std::string(code);
  (void)disk.replace(folder + "/" + name, std::as_bytes(std::span{text}));
}

}  // namespace troupe::model::device
