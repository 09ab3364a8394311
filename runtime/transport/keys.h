#pragma once

// Keys of nodes: CURVE key pairs (Curve25519). A connection that leaves the machine is encrypted
// with them, and a listener lets in only the keys of its allow-list.
//
// A key is written as 64 lower-case hexadecimal digits, which no shell, YAML file or environment
// variable takes for anything else. The 40 characters of Z85 that earlier releases wrote are read
// as well. Everything below returns keys in digits.
//
// A key file is text: comment lines begin with '#', and then "public KEY" and, in the secret file,
// "secret KEY". An allow-list has one "KEY NAME" per line, or
// "KEY NAME until 2026-01-31T12:00:00Z", where spaces and tabs are the same; so no name has the
// word "until". A comment begins with '#' at the start of a line (a key in Z85 may hold one).

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::runtime {

struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

// One line of an allow-list. The name is for people.
struct AllowedKey {
  std::string key;
  std::string name;
  // After this moment the key is not admitted any more; none: it always is.
  std::optional<std::chrono::sys_seconds> until = std::nullopt;
};

// Fresh keys from the system's randomness. Errors (kInternal): libzmq was built without CURVE.
Result<KeyPair> make_keys();

// The pair of a secret key, in either form. Errors (kUsage): the text is no key.
Result<KeyPair> keys_of_secret(std::string_view secret_key);

inline constexpr std::size_t kKeyBytes = 32;
inline constexpr std::size_t kKeyDigits = 2 * kKeyBytes;
inline constexpr std::size_t kZ85KeyCharacters = 40;

// The key that the text stands for, in either form, its digits lower-case; "" when it is none.
std::string key_of_text(std::string_view text);
// Whether the text is a key in digits.
bool is_key(std::string_view text);
// Between a key and the bytes that libraries take. CHECKs that it is a key.
std::string key_of_bytes(std::span<const std::uint8_t, kKeyBytes> bytes);
std::array<std::uint8_t, kKeyBytes> bytes_of_key(std::string_view key);

// For everybody to read. Errors (kUsage): the file exists already, or cannot be written. Nothing
// is ever overwritten: a lost key locks its node out.
Result<void> write_public_key(const std::string& path, const KeyPair& keys);

// Mode 0600, both keys. Errors as above.
Result<void> write_secret_key(const std::string& path, const KeyPair& keys);

// Reads a secret file. Errors (kUsage) name file and line, or say that other users can read it, or
// that its two keys do not belong together.
Result<KeyPair> read_secret_key(const std::string& path);

// Errors (kUsage) name file and line. A key that stands there twice is an error.
Result<std::vector<AllowedKey>> read_allow_list(const std::string& path);

}  // namespace troupe::runtime
