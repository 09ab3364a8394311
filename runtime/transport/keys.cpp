#include "runtime/transport/keys.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace troupe::runtime {
namespace {

constexpr std::size_t kKeyCharacters = 40;
constexpr std::size_t kKeyBytes = 32;
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
  std::tm parts{};
  const char* after = ::strptime(moment.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (after == nullptr || *after != '\0' || !next_word().empty()) return false;
  entry.until = std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
  return true;
}

Result<void> write_new(const std::string& path, std::string_view text, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) {
    return usage(
        fmt::format("cannot write the key file {}: {}{}", path, std::strerror(errno),
                    errno == EEXIST ? "; keys are never overwritten, give another place" : ""));
  }
  std::size_t written = 0;
  int failed = 0;
  while (written < text.size() && failed == 0) {
    const ssize_t step = ::write(file, text.data() + written, text.size() - written);
    if (step > 0) {
      written += static_cast<std::size_t>(step);
    } else if (errno != EINTR) {
      failed = errno;
    }
  }
  if (failed == 0 && ::fsync(file) != 0) failed = errno;
  if (::close(file) != 0 && failed == 0) failed = errno;
  if (failed == 0) return {};
  ::unlink(path.c_str());
  return usage(fmt::format("cannot write the key file {}: {}", path, std::strerror(failed)));
}

// The text of a file. `secret`: refused when others than its owner can read it.
Result<std::string> read_text(const std::string& path, bool secret) {
  // Not blocking: a pipe by that name must not hang.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return usage(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  struct stat facts {};
  std::string problem;
  if (::fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    problem = fmt::format("cannot read {}: it is not a file", path);
  } else if (secret && (facts.st_mode & 077) != 0) {
    problem = fmt::format("other users can read the secret key {}: chmod 600 {}", path, path);
  }
  std::string text;
  std::array<char, 4096> part;
  while (problem.empty()) {
    const ssize_t count = ::read(file, part.data(), part.size());
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      problem = fmt::format("cannot read {}: {}", path, std::strerror(errno));
    } else {
      text.append(part.data(), static_cast<std::size_t>(count));
      if (text.size() > kMostFileBytes) problem = fmt::format("{} is too large", path);
    }
  }
  ::close(file);
  if (!problem.empty()) return usage(problem);
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
    if (!is_key(line.rest)) {
      return usage(fmt::format("{}:{}: that is not a key: a key has 40 characters of Z85", path,
                               line.number));
    }
    if (!key->empty()) {
      return usage(fmt::format("{}:{}: a second {} key", path, line.number, line.first));
    }
    *key = line.rest;
  }
  if (keys.public_key.empty()) return usage(fmt::format("{}: it holds no public key", path));
  return keys;
}

}  // namespace

Result<KeyPair> make_keys() {
  std::array<char, kKeyCharacters + 1> open{};
  std::array<char, kKeyCharacters + 1> secret{};
  if (::zmq_curve_keypair(open.data(), secret.data()) != 0) {
    return Error{ErrorKind::kInternal,
                 fmt::format("cannot make keys: {}; libzmq must be built with CURVE",
                             ::zmq_strerror(::zmq_errno()))};
  }
  return KeyPair{open.data(), secret.data()};
}

bool is_key(std::string_view text) {
  // Z85 also has groups of characters that stand for no number; the library knows.
  if (text.size() != kKeyCharacters) return false;
  constexpr std::string_view kAlphabet =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  if (text.find_first_not_of(kAlphabet) != text.npos) return false;
  std::array<std::uint8_t, kKeyBytes> bytes{};
  return ::zmq_z85_decode(bytes.data(), std::string(text).c_str()) != nullptr;
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

Result<std::string> read_public_key(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_text(path, false));
  ASSIGN_OR_RETURN(KeyPair keys, parse_keys(path, text));
  if (!keys.secret_key.empty()) {
    return usage(fmt::format("{}: this is a secret key; give the public one", path));
  }
  return std::move(keys.public_key);
}

Result<KeyPair> read_secret_key(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_text(path, true));
  ASSIGN_OR_RETURN(KeyPair keys, parse_keys(path, text));
  if (keys.secret_key.empty()) return usage(fmt::format("{}: it holds no secret key", path));
  std::array<char, kKeyCharacters + 1> derived{};
  if (::zmq_curve_public(derived.data(), keys.secret_key.c_str()) != 0 ||
      keys.public_key != derived.data()) {
    return usage(fmt::format("{}: its public key does not belong to its secret key", path));
  }
  return keys;
}

Result<KeyPair> keys_of_secret(const std::string& secret_key) {
  KeyPair keys{std::string(kKeyCharacters + 1, '\0'), secret_key};
  if (!is_key(secret_key) || ::zmq_curve_public(keys.public_key.data(), secret_key.c_str()) != 0) {
    return usage("this is no key: 40 characters are expected, as 'troupe token' prints them");
  }
  keys.public_key.resize(kKeyCharacters);
  return keys;
}

std::string time_text(std::chrono::sys_seconds time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

Result<std::vector<AllowedKey>> read_allow_list(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_text(path, false));
  std::vector<AllowedKey> allowed;
  for (Line& line : lines_of(text)) {
    if (!is_key(line.first)) {
      return usage(fmt::format("{}:{}: '{}' is not a key: expected KEY NAME", path, line.number,
                               line.first));
    }
    const auto same = [&](const AllowedKey& other) { return other.key == line.first; };
    if (std::any_of(allowed.begin(), allowed.end(), same)) {
      return usage(fmt::format("{}:{}: this key stands in the list already", path, line.number));
    }
    AllowedKey entry{std::move(line.first), std::move(line.rest)};
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
