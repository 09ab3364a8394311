#pragma once

// Durable files behind an interface, so that a test can fill or tear the disk; and short texts,
// which need none.

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::runtime {

class Disk {
 public:
  virtual ~Disk() = default;
  // Replaces `path` by `bytes` as a NewFile is put in its place (runtime/base/new_file.h). Errors
  // are kData and name the path and the cause, such as that there is something else but a file.
  virtual Result<void> replace(const std::string& path, std::span<const std::byte> bytes) = 0;
  // Errors are kData: no such file, something else but a file, more than memory holds.
  virtual Result<Buffer> read(const std::string& path) = 0;
  virtual Result<void> remove(const std::string& path) = 0;
  // Names (not paths) of the files in a folder, sorted bytewise.
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;
  // Creates the folder and those above it; one that exists is no error.
  virtual Result<void> make_folder(const std::string& folder) = 0;
  // Makes `path` a symbolic link to the file `target` of the same folder, at once in place of one
  // that is there. Errors are kData, among them that the file system has no such links.
  virtual Result<void> link(const std::string& path, const std::string& target) = 0;
};

// The file system.
class FileDisk : public Disk {
 public:
  Result<void> replace(const std::string& path, std::span<const std::byte> bytes) override;
  Result<Buffer> read(const std::string& path) override;
  Result<void> remove(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Result<void> make_folder(const std::string& folder) override;
  Result<void> link(const std::string& path, const std::string& target) override;
};

// The text of a file. Errors (kData) name the path: there is no such file, it is something else, or
// it holds more than `most` bytes.
Result<std::string> read_file(const std::string& path, std::size_t most);

// Reads an open file, pipe or device from where it stands to its end, or `most` bytes of it. Waits
// for the writers of a pipe that was opened without waiting (O_NONBLOCK); a pipe without a writer
// is at its end. Errors (kData) say why the system gives nothing.
Result<std::string> read_text(const Descriptor& file, std::size_t most);

// Makes a file and flushes what it holds to the disk. Errors (kData) name the path, as of one that
// exists; what could be written in part is removed.
Result<void> write_new_file(const std::string& path, std::string_view text, mode_t mode);

// Copies an open file into a new file at `path`, and makes the descriptor lead to the new one, for
// appending. So a file that was removed or moved away while it is written comes back; a file that
// is still at the path is left alone. The descriptor is open for reading and appending, and not
// used by anyone else meanwhile. kData: there is another file at the path, or it cannot be written;
// the descriptor is then as before.
Result<void> put_back(int descriptor, const std::string& path);

}  // namespace troupe::runtime
