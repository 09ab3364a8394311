#include "pipeline/data/packed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"
#include "runtime/base/descriptor.h"

namespace troupe::pipeline {

using runtime::Buffer;
using runtime::Descriptor;
using runtime::Hash128;
using runtime::NewFile;
using runtime::Result;

namespace {

// Grows with every change of the format.
constexpr std::uint64_t kPackedFormat = 0x5452504b'00000001;
// A block begins at a cache line, as a Buffer does.
constexpr std::uint64_t kPackedAlignment = Buffer::kAlignment;

// The beginning of the file. The table of blocks and the identity are its end.
struct PackedHeader {
  std::uint64_t format = kPackedFormat;
  std::uint64_t table = 0;  // offset
  std::uint64_t blocks = 0;
  Hash128 hash = {};  // of the table and the identity
};
static_assert(std::is_trivially_copyable_v<PackedHeader> &&
              std::is_trivially_copyable_v<PackedBlock>);

// Nothing where the file cannot be mapped.
std::optional<Buffer> map_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size == 0) {
    return std::nullopt;
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* const begin = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number(), 0);
  if (begin == MAP_FAILED) return std::nullopt;
  std::shared_ptr<void> owner(begin, [bytes](void* first) { ::munmap(first, bytes); });
  return Buffer::wrap(static_cast<std::byte*>(begin), bytes, std::move(owner));
}

}  // namespace

std::optional<PackedFile> PackedFile::open(const std::string& path, std::string_view identity,
                                           std::uint32_t blocks, std::size_t cells) {
  const std::optional<Buffer> mapped = map_file(path);
  PackedHeader header;
  if (!mapped || mapped->size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, mapped->data(), sizeof(header));
  if (header.format != kPackedFormat || header.table > mapped->size()) return std::nullopt;
  const auto end = mapped->bytes().subspan(header.table);
  const std::size_t table_bytes = blocks * sizeof(PackedBlock);
  if (header.blocks != blocks || table_bytes > end.size() || runtime::hash_of(end) != header.hash) {
    return std::nullopt;
  }
  const auto written = end.subspan(table_bytes);
  if (std::string_view(reinterpret_cast<const char*>(written.data()), written.size()) != identity) {
    return std::nullopt;
  }
  PackedFile opened(path, *mapped, cells);
  opened.blocks_.resize(blocks);
  if (table_bytes > 0) std::memcpy(opened.blocks_.data(), end.data(), table_bytes);
  return opened;
}

Result<std::unique_ptr<PackedEvents>> PackedFile::block(std::uint32_t number,
                                                        std::uint64_t events) const {
  CHECK(number < blocks_.size(), "no such block");
  const PackedBlock& block = blocks_[number];
  if (block.events == events && block.offset % kPackedAlignment == 0 &&
      block.offset <= file_.size() && block.bytes <= file_.size() - block.offset) {
    Buffer bytes = file_.slice(block.offset, block.bytes);
    if (runtime::hash_of(bytes.bytes()) == block.hash) {
      if (auto packed = PackedEvents::of(std::move(bytes), events, cells_)) {
        return std::make_unique<PackedEvents>(*std::move(packed));
      }
    }
  }
  return data_error(fmt::format(
      "{}: the kept events of block {} are damaged; remove the file, and it is made anew", path_,
      number));
}

PackedFileWriter::PackedFileWriter(NewFile file, std::uint32_t blocks)
    : file_(std::move(file)), end_(kPackedAlignment), blocks_(blocks) {
  static_assert(sizeof(PackedHeader) <= kPackedAlignment);
}

Result<PackedFileWriter> PackedFileWriter::create(const std::string& path, std::uint32_t blocks) {
  ASSIGN_OR_RETURN(NewFile file, NewFile::create(path));
  return PackedFileWriter(std::move(file), blocks);
}

Result<void> PackedFileWriter::add(std::uint32_t block, const PackedEvents& events) {
  const auto bytes = events.bytes().bytes();
  const Hash128 hash = runtime::hash_of(bytes);
  std::uint64_t offset = 0;
  {
    const std::scoped_lock lock(mutex_);
    offset = end_;
    end_ += (bytes.size() + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
    blocks_[block] = {offset, bytes.size(), events.events(), hash};
  }
  return file_.write(offset, bytes);
}

Result<void> PackedFileWriter::finish(std::string_view identity) {
  const auto table = std::as_bytes(std::span(blocks_));
  std::vector<std::byte> end(table.begin(), table.end());
  const auto text = std::as_bytes(std::span(identity));
  end.insert(end.end(), text.begin(), text.end());
  const PackedHeader header{kPackedFormat, end_, blocks_.size(), runtime::hash_of(end)};
  RETURN_IF_ERROR(file_.write(end_, end));
  RETURN_IF_ERROR(file_.write(0, std::as_bytes(std::span(&header, 1))));
  return file_.finish();
}

}  // namespace troupe::pipeline
