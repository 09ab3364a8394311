#pragma once

// Folders and files for tests and benches.

#include <string>
#include <vector>

namespace troupe {

// A folder of its own, removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // The sorted names of its entries.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

// The content of a file; "" when there is none.
std::string read_text(const std::string& path);
// CHECKs that the file can be written.
void write_text(const std::string& path, const std::string& text);

}  // namespace troupe
