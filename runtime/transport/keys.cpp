#include "runtime/transport/keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <zmq.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/base/bytes.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "runtime/base/utc_time.h"

namespace troupe::runtime {
namespace {

// Many times what any of these files has.
constexpr std::size_t kMostFileBytes = std::size_t{4} << 20;

Error usage(std::string message) { return Error{ErrorKind::kUsage, std::move(message)}; }

// Between words of a line.
constexpr std::string_view kSpaces = " \t\r";

// Takes "until 2026-01-31T12:00:00Z" off the end of the name, if the word is there; false: it is
// there, and no moment follows it, or more than that.
bool take_until(AllowedKey& entry) {
  const std::string rest = std::move(entry.name);
  std::size_t begin = 0;
  std::size_t end = 0;
  const auto next_word = [&] {
    begin = std::min(rest.find_first_not_of(kSpaces, end), rest.size());
    end = std::min(rest.find_first_of(kSpaces, begin), rest.size());
    return rest.substr(begin, end - begin);
  };
  std::string word = next_word();
  while (!word.empty() && word != "until") word = next_word();
  entry.name = rest.substr(0, begin);
  entry.name.resize(entry.name.find_last_not_of(kSpaces) + 1);
  if (word.empty()) return true;
  const std::string moment = next_word();
  const auto until = read_utc(moment);
  if (!until || !next_word().empty()) return false;
  const auto second = std::chrono::floor<std::chrono::seconds>(*until);
  entry.until = second;
  return utc_text(second) == moment;
}

Result<void> write_new(const std::string& path, std::string_view text, mode_t mode) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    return usage(fmt::format(
        "the key file {} exists; keys are never overwritten, give another place", path));
  }
  const auto written = write_new_file(path, text, mode);
  return written.ok() ? written : usage(written.error().message);
}

// The text of a file. `secret`: refused when others than its owner can read it.
Result<std::string> read_key_file(const std::string& path, bool secret) {
  // Opening a pipe must not wait for its writer; it is refused below.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return usage(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return usage(fmt::format("cannot read {}: it is not a regular file", path));
  }
  if (secret && (facts.st_mode & 077) != 0) {
    return usage(fmt::format("other users can read the secret key {}: chmod 600 {}", path, path));
  }
  auto text = read_text(file, kMostFileBytes + 1);
  if (!text.ok()) return usage(fmt::format("cannot read {}: {}", path, text.error().message));
  if (text->size() > kMostFileBytes) return usage(path + " is too large");
  return text;
}

struct Line {
  std::size_t number;
  std::string first;  // word
  std::string rest;   // without spaces at its ends
};

// Lines that say something.
std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('#')) continue;
    const std::size_t begin = line.find_first_not_of(kSpaces);
    if (begin == line.npos) continue;
    line = line.substr(begin, line.find_last_not_of(kSpaces) + 1 - begin);
    const std::size_t word = std::min(line.find_first_of(kSpaces), line.size());
    std::string_view rest = line.substr(word);
    rest.remove_prefix(std::min(rest.find_first_not_of(kSpaces), rest.size()));
    lines.push_back({number, std::string(line.substr(0, word)), std::string(rest)});
  }
  return lines;
}

// Reads "public KEY" and "secret KEY" lines.
Result<KeyPair> parse_keys(const std::string& path, std::string_view text) {
  KeyPair keys;
  for (const Line& line : lines_of(text)) {
    std::string* key = nullptr;
    if (line.first == "public") key = &keys.public_key;
    if (line.first == "secret") key = &keys.secret_key;
    if (key == nullptr) {
      return usage(fmt::format("{}:{}: expected 'public KEY' or 'secret KEY'", path, line.number));
    }
    const std::string value = key_of_text(line.rest);
    if (value.empty()) {
      return usage(fmt::format("{}:{}: that is not a key: a key has {} hexadecimal digits", path,
                               line.number, kKeyDigits));
    }
    if (!key->empty()) {
      return usage(fmt::format("{}:{}: a second {} key", path, line.number, line.first));
    }
    *key = value;
  }
  if (keys.public_key.empty()) return usage(fmt::format("{}: it holds no public key", path));
  return keys;
}

}  // namespace

Result<KeyPair> make_keys() {
  std::array<char, kZ85KeyCharacters + 1> open{};
  std::array<char, kZ85KeyCharacters + 1> secret{};
  if (::zmq_curve_keypair(open.data(), secret.data()) != 0) {
    return Error{ErrorKind::kInternal,
                 fmt::format("cannot make keys: {}; libzmq must be built with CURVE",
                             ::zmq_strerror(::zmq_errno()))};
  }
  return KeyPair{key_of_text(open.data()), key_of_text(secret.data())};
}

bool is_key(std::string_view text) {
  return text.size() == kKeyDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string key_of_text(std::string_view text) {
  std::string digits(text);
  for (char& digit : digits) {
    if (digit >= 'A' && digit <= 'F') digit = static_cast<char>(digit - 'A' + 'a');
  }
  if (is_key(digits)) return digits;
  constexpr std::string_view kZ85 =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  const bool may_be = text.size() == kZ85KeyCharacters && text.find_first_not_of(kZ85) == text.npos;
  std::array<std::uint8_t, kKeyBytes> bytes{};
  // Some groups of these characters stand for no number; the library knows which.
  if (!may_be || ::zmq_z85_decode(bytes.data(), std::string(text).c_str()) == nullptr) return {};
  return key_of_bytes(bytes);
}

std::string key_of_bytes(std::span<const std::uint8_t, kKeyBytes> bytes) {
  return hex_text(std::as_bytes(bytes));
}

std::array<std::uint8_t, kKeyBytes> bytes_of_key(std::string_view key) {
  std::array<std::uint8_t, kKeyBytes> bytes{};
  const bool read = is_key(key) && read_hex(key, std::as_writable_bytes(std::span(bytes)));
  CHECK(read, "a key in digits");
  return bytes;
}

Result<void> write_public_key(const std::string& path, const KeyPair& keys) {
  return write_new(path,
                   fmt::format("# Public key of a Troupe node: goes into the others' allow-lists.\n"
                               "public {}\n",
                               keys.public_key),
                   0644);
}

Result<void> write_secret_key(const std::string& path, const KeyPair& keys) {
  return write_new(path,
                   fmt::format("# Secret key of a Troupe node: whoever reads it can pose as it.\n"
                               "public {}\nsecret {}\n",
                               keys.public_key, keys.secret_key),
                   0600);
}

Result<KeyPair> read_secret_key(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_key_file(path, true));
  ASSIGN_OR_RETURN(KeyPair keys, parse_keys(path, text));
  if (keys.secret_key.empty()) return usage(fmt::format("{}: it holds no secret key", path));
  ASSIGN_OR_RETURN(const KeyPair derived, keys_of_secret(keys.secret_key));
  if (keys.public_key != derived.public_key) {
    return usage(fmt::format("{}: its public key does not belong to its secret key", path));
  }
  return keys;
}

Result<KeyPair> keys_of_secret(std::string_view secret_key) {
  const std::string secret = key_of_text(secret_key);
  if (secret.empty()) {
    return usage(
        fmt::format("this is no key: {} hexadecimal digits are expected, as 'troupe token' "
                    "prints them",
                    kKeyDigits));
  }
  std::array<char, kZ85KeyCharacters + 1> text{};
  std::array<char, kZ85KeyCharacters + 1> derived{};
  ::zmq_z85_encode(text.data(), bytes_of_key(secret).data(), kKeyBytes);
  if (::zmq_curve_public(derived.data(), text.data()) != 0) {
    return Error{ErrorKind::kInternal,
                 "libzmq cannot derive a public key; it must be built with CURVE"};
  }
  return KeyPair{key_of_text(derived.data()), secret};
}

// One wrong line refuses the whole list: nobody knows whom it was meant to let in, or until when.
Result<std::vector<AllowedKey>> read_allow_list(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_key_file(path, false));
  std::vector<AllowedKey> allowed;
  for (Line& line : lines_of(text)) {
    const std::string key = key_of_text(line.first);
    if (key.empty()) {
      return usage(fmt::format("{}:{}: '{}' is not a key: expected KEY NAME", path, line.number,
                               line.first));
    }
    const auto same = [&](const AllowedKey& other) { return other.key == key; };
    if (std::any_of(allowed.begin(), allowed.end(), same)) {
      return usage(fmt::format("{}:{}: this key stands in the list already", path, line.number));
    }
    AllowedKey entry{key, std::move(line.rest)};
    if (!take_until(entry)) {
      return usage(
          fmt::format("{}:{}: 'until' is followed by a moment such as "
                      "2026-01-31T12:00:00Z, which ends the line",
                      path, line.number));
    }
    allowed.push_back(std::move(entry));
  }
  return allowed;
}

}  // namespace troupe::runtime
