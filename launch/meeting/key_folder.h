#pragma once

// The keys of a node as a folder that can be carried to another machine: what cluster.keys names
// and `troupe keygen` makes.

#include <chrono>
#include <string>
#include <vector>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/transport/keys.h"

namespace troupe::launch {

struct KeyFolder {
  // The node's own.
  runtime::KeyPair own;
  // Those that may connect to it.
  std::vector<runtime::AllowedKey> allowed;
};

// The files: the node's own keys, of which the first is for nobody else to read, and the list of
// keys it admits.
std::string secret_key_file(const std::string& folder);    // "secret.key"
std::string public_key_file(const std::string& folder);    // "public.key"
std::string allowed_keys_file(const std::string& folder);  // "allowed.keys"

// Makes the folder, for its owner alone if it is new, and fresh keys in it. The list admits the new
// key itself, called `name`: with a copy of the folder any machine may join; to admit another key,
// a line is added. `name` has no line breaks.
//
// kUsage: a file of that name exists, none of which is ever overwritten, or one cannot be written;
// then none is left. kInternal: this build has no encryption.
runtime::Result<KeyFolder> make_key_folder(const std::string& folder, const std::string& name,
                                           runtime::Disk& disk);

// kUsage, naming the file and, where there is one, the line: a file is missing or is none, others
// may read the secret, or nobody is admitted.
runtime::Result<KeyFolder> read_key_folder(const std::string& folder);

// A token with which a machine without a key may join until `until`: the secret half of a fresh key
// pair whose public half the folder's list admits so long. A run that goes on takes notice. Expired
// keys are taken off the list; all else in it stays as it is, comments included. Any number of
// threads and processes may do so at once, each waits for the others; a reader sees the list of
// before or after, whole.
//
// kUsage: the list cannot be locked, read or written. kInternal: this build has no encryption.
runtime::Result<std::string> make_join_token(const std::string& folder,
                                             std::chrono::sys_seconds now,
                                             std::chrono::sys_seconds until, runtime::Disk& disk);

}  // namespace troupe::launch
