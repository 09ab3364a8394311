// The file format of kept indices: what identifies the data, the columns, and a hash of it all.

#include <cstring>
#include <filesystem>
#include <system_error>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/dataset_index.h"
#include "runtime/base/disk.h"

namespace troupe::pipeline {

using runtime::Buffer;
using runtime::Hash128;
using runtime::Result;

namespace {

// Grows with every change of the format or of the result of a scan.
constexpr std::uint64_t kFormat = 0x54525058'00000003;

template <class T>
requires std::is_trivially_copyable_v<T>
void add(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// A vector or a text: the number of its elements, and these.
void add_all(std::string& bytes, const auto& values) {
  add(bytes, std::uint64_t{values.size()});
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
}

// After a read beyond the end every further one gives zeros and whole() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  T get() {
    T value{};
    if (take(sizeof(T))) std::memcpy(&value, taken_.data(), sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> get_all() {
    const auto count = get<std::uint64_t>();
    if (count > rest_.size() / sizeof(T) || !take(count * sizeof(T))) {
      whole_ = false;
      return {};
    }
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), taken_.data(), taken_.size());
    return values;
  }
  std::string get_text() {
    const std::vector<char> text = get_all<char>();
    return {text.begin(), text.end()};
  }
  bool whole() const { return whole_ && rest_.empty(); }

 private:
  bool take(std::size_t bytes) {
    if (bytes > rest_.size()) {
      whole_ = false;
      return false;
    }
    taken_ = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return true;
  }

  std::span<const std::byte> rest_;
  std::span<const std::byte> taken_;
  bool whole_ = true;
};

std::string absolute(const std::string& path) {
  std::error_code cause;
  const auto resolved = std::filesystem::weakly_canonical(path, cause);
  return cause ? path : resolved.string();
}

}  // namespace

std::string index_identity(const IndexKey& key, const std::string& path, const FileStamp& stamp) {
  std::string bytes;
  add(bytes, kFormat);
  add(bytes, stamp.bytes);
  add(bytes, stamp.modified_ns);
  add(bytes, key.schema);
  // One part is told as it was before there could be several, and no text is as long as this.
  if (key.names.images.size() != 1) add(bytes, ~std::uint64_t{key.names.images.size()});
  for (const std::string& image : key.names.images) add_all(bytes, image);
  add_all(bytes, key.names.energy);
  add(bytes, key.names.energy_column);
  add(bytes, key.names.energy_offset);
  add(bytes, key.names.energy_unit_gev);
  add_all(bytes, key.names.angle);
  add_all(bytes, key.box);
  add(bytes, key.preprocessing.threshold);
  add(bytes, key.preprocessing.min_ecal);
  add(bytes, key.preprocessing.scale);
  add(bytes, key.preprocessing.power);
  add_all(bytes, absolute(path));
  // What was kept without columns is what it was before there were any.
  for (const DataColumn& column : key.columns) {
    add_all(bytes, column.name);
    add_all(bytes, column.values);
    add(bytes, column.is_probability);
    if (column.classes > 0) add(bytes, column.classes);
  }
  return bytes;
}

std::string kept_path(const std::string& folder, const IndexKey& key, const std::string& path,
                      std::string_view extension) {
  return fmt::format("{}/{}{}", folder, runtime::hash_of(index_identity(key, path, {})).text(),
                     extension);
}

std::optional<FileIndex> load_index(const std::string& folder, const IndexKey& key,
                                    const std::string& path, const FileStamp& stamp) {
  runtime::FileDisk disk;
  const Result<Buffer> file = disk.read(kept_path(folder, key, path, ".index"));
  if (!file.ok() || file->size() < sizeof(Hash128)) return std::nullopt;
  const auto body = file->bytes().subspan(sizeof(Hash128));
  if (Reader(file->bytes().first(sizeof(Hash128))).get<Hash128>() != runtime::hash_of(body)) {
    return std::nullopt;
  }
  Reader reader(body);
  // The name is a hash of the key, so the whole identity is compared as well. The stamp stands only
  // here: the index of a changed file is not used, and is replaced.
  if (reader.get_text() != index_identity(key, path, stamp)) return std::nullopt;
  FileIndex index;
  index.shape = reader.get<ImageShape>();
  index.block_rows = reader.get<std::uint64_t>();
  index.states = reader.get_all<EventState>();
  index.energies = reader.get_all<float>();
  index.angles = reader.get_all<float>();
  index.ecals = reader.get_all<float>();
  if (!key.columns.empty()) index.columns = reader.get_all<float>();
  index.bad = reader.get<std::uint64_t>();
  const auto told = reader.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < told && i < index.bad; ++i) {
    index.bad_events.push_back(reader.get_text());
  }
  index.content = reader.get<Hash128>();
  if (!reader.whole() || index.columns.size() != index.rows() * key.columns.size()) {
    return std::nullopt;
  }
  return index;
}

Result<void> save_index(const std::string& folder, const IndexKey& key, const std::string& path,
                        const FileStamp& stamp, const FileIndex& index) {
  std::string body;
  // The fields stand in the order in which load_index() reads them.
  add_all(body, index_identity(key, path, stamp));
  add(body, index.shape);
  add(body, index.block_rows);
  add_all(body, index.states);
  add_all(body, index.energies);
  add_all(body, index.angles);
  add_all(body, index.ecals);
  if (!key.columns.empty()) add_all(body, index.columns);
  add(body, index.bad);
  add(body, std::uint64_t{index.bad_events.size()});
  for (const std::string& event : index.bad_events) add_all(body, event);
  add(body, index.content);
  std::string file;
  add(file, runtime::hash_of(body));
  file += body;
  runtime::FileDisk disk;
  RETURN_IF_ERROR(disk.make_folder(folder));
  return disk.replace(kept_path(folder, key, path, ".index"), std::as_bytes(std::span(file)));
}

}  // namespace troupe::pipeline
