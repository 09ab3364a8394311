#pragma once

// The way to files on servers, and from them, whatever they speak.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/data/progress.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Which version of a file a server has.
struct RemoteVersion {
  std::string tag;  // ETag, or the time of the last change; empty: the server tells neither
  std::uint64_t size = 0;
  bool has_size = false;

  bool operator==(const RemoteVersion&) const = default;
};

struct RemoteAnswer {
  RemoteVersion version = {};  // of the whole file
  // Another attempt may succeed: nobody is to blame but the line or the server's state.
  bool again = false;
  bool beyond = false;       // the file ends before the byte that was asked for
  bool missing = false;      // there is no such file
  bool slow = false;         // it is broken off for that, whatever it has brought
  bool folderless = false;   // perhaps there is no folder for what is put there
  std::string failure = {};  // why it has not, without the address; empty: it has
};

class RemoteSource {
 public:
  virtual ~RemoteSource() = default;

  // Asks what version there is.
  virtual RemoteAnswer version(const std::string& address) const = 0;
  // Copies what lies at the address to `path`, which then holds all of it or what it held before.
  // The bytes of a copy that failed may stay in "PATH.part" for the next attempt. `progress`
  // is told bytes. The caller has the FileTurn of the path. `checksum`: what it must have
  // (checksum.h); empty: anything. Errors (kData) name the address and what to do.
  virtual runtime::Result<void> copy(const std::string& address, const std::string& path,
                                     const std::string& checksum,
                                     const Progress& progress) const = 0;
  // Puts a file of this machine at the address, in place of what is there, as a whole or not at
  // all. Errors (kData) name the address and what to do: the file cannot be read, or the server
  // refuses it, or does not answer. `progress` is told bytes, at least once
  // a second where the source says no less; an Error of it ends the transfer.
  virtual runtime::Result<void> put(const std::string& path, const std::string& address,
                                    const Progress& progress) const = 0;
  // The addresses that begin with this one, however many, in any order. Errors (kData): the server
  // has no lists, or refuses.
  virtual runtime::Result<std::vector<std::string>> list(const std::string& prefix) const = 0;
};

// True for "https://...", "http://...", "s3://BUCKET/KEY", "root://HOST//PATH" and "roots://...".
bool is_readable_address(std::string_view address);

// The address as messages tell it: without what stands behind a question mark, which may be a
// signature, and without a name and a password. Any other text stays as it is.
std::string shown_address(const std::string& address);

// The part of that behind "://".
std::string_view shown_rest(std::string_view address);

// An Error (kData) for an address that nobody should use: one with a password in it, one without a
// file's name.
runtime::Result<void> check_address(const std::string& address);

// For sources. An Error (kData) where so many bytes more leave too little of the path's disk free.
runtime::Result<void> check_room(const std::string& address, const std::string& path,
                                 std::uint64_t bytes);
// For sources: makes "PATH.part" what lies at the path, or removes it if its checksum is another.
runtime::Result<void> put_in_place(const std::string& address, const std::string& path,
                                   const std::string& checksum);

// A version, kept as a file. Nothing where no such file stands at the path.
std::optional<RemoteVersion> read_version(const std::string& path);
runtime::Result<void> write_version(const std::string& path, const RemoteVersion& version);

// Copies for whoever asks. One process copies to a path at a time, the others wait.
runtime::Result<void> copy_from(const RemoteSource& source, const std::string& address,
                                const std::string& path, const std::string& checksum = {},
                                const Progress& progress = {});

}  // namespace troupe::pipeline
