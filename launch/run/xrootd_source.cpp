#include "launch/run/xrootd_source.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "launch/processes/command.h"

namespace troupe::launch {

using pipeline::RemoteAnswer;
using pipeline::RemoteVersion;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::size_t kMostListBytes = std::size_t{16} << 20;
constexpr std::chrono::minutes kAskingTime{2};
// A copy may take so long, and a second more for each so many bytes.
constexpr std::chrono::minutes kCopyingTime{10};
constexpr std::uint64_t kSlowestBytesPerSecond = 1'000'000;

struct RootAddress {
  std::string server;  // "root://HOST:PORT"
  std::string path;    // "/data/a.h5"
  std::string query;   // "?..." or nothing; it may hold a token
};

RootAddress parts_of(const std::string& address) {
  const std::size_t host = address.find("://") + 3;
  const std::size_t slash = std::min(address.find('/', host), address.size());
  const std::size_t query = std::min(address.find('?', slash), address.size());
  RootAddress parts{address.substr(0, slash), address.substr(slash, query - slash),
                    address.substr(query)};
  // Two slashes begin the path of a server.
  if (parts.path.starts_with("//")) parts.path.erase(0, 1);
  return parts;
}

// A program and its words, beside what makes it give up at last, unless the user has said that.
CommandRequest request_of(std::vector<std::string> words, runtime::Duration within) {
  constexpr std::pair<const char*, const char*> kGivesUp[] = {{"XRD_CONNECTIONWINDOW", "10"},
                                                              {"XRD_CONNECTIONRETRY", "2"},
                                                              {"XRD_REQUESTTIMEOUT", "30"},
                                                              {"XRD_STREAMTIMEOUT", "30"},
                                                              {"XRD_TIMEOUTRESOLUTION", "1"}};
  CommandRequest request;
  request.words = {"env"};
  for (const auto& [name, value] : kGivesUp) {
    if (std::getenv(name) == nullptr) request.words.push_back(fmt::format("{}={}", name, value));
  }
  request.words.insert(request.words.end(), words.begin(), words.end());
  request.within = within;
  request.most_output = kMostListBytes;
  request.error_lines = 4;
  return request;
}

// The last line that is not empty: the programs end with one that is.
std::string last_line_of(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

// How a program has failed, without the address and what it hides; nothing where it has not.
RemoteAnswer answer_of(const CommandRequest& request, const std::string& program,
                       const Result<CommandEnd>& ended, const std::string& query) {
  RemoteAnswer answer;
  if (!ended.ok()) {
    answer.failure = ended.error().message;
    return answer;
  }
  if (ended->end && *ended->end == ChildEnd{0, 0}) return answer;
  if (!ended->end) {
    answer.again = true;
    answer.failure =
        fmt::format("{} has not ended within {:.0f} s", program, runtime::seconds(request.within));
    return answer;
  }
  constexpr int kNoProgram = 127;  // as env says it
  if (ended->end->exit_code == kNoProgram) {
    answer.failure = program + " is not installed (Debian: xrootd-client)";
    return answer;
  }
  std::string words = last_line_of(ended->last_error);
  if (words.empty()) words = ended->end->text();
  for (std::size_t at = 0; !query.empty() && (at = words.find(query)) != std::string::npos;) {
    words.erase(at, query.size());
  }
  const auto says = [&](std::string_view text) { return words.find(text) != std::string::npos; };
  answer.missing = says("[3011]") || says("no such file");
  answer.again = says("[FATAL]") || says("expired");
  answer.failure = answer.missing ? "there is no such file on the server"
                                  : fmt::format("{} says: {}", program, words);
  return answer;
}

Error failed(const std::string& address, const std::string& why) {
  return {ErrorKind::kData, fmt::format("{}: {}", pipeline::shown_address(address), why)};
}

}  // namespace

RemoteVersion read_xrootd_stat(const std::string& text) {
  RemoteVersion version;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    if (first == std::string::npos) continue;
    const std::string_view name = std::string_view(line).substr(0, colon);
    const std::string_view value = std::string_view(line).substr(first);
    if (name == "MTime") version.tag = value;
    if (name != "Size") continue;
    const auto read = std::from_chars(value.begin(), value.end(), version.size);
    version.has_size = read.ec == std::errc();
  }
  return version;
}

RemoteAnswer XrootdSource::version(const std::string& address) const {
  const RootAddress parts = parts_of(address);
  const CommandRequest request =
      request_of({"xrdfs", parts.server, "stat", parts.path + parts.query}, kAskingTime);
  const Result<CommandEnd> ended = run_command(request);
  RemoteAnswer answer = answer_of(request, "xrdfs", ended, parts.query);
  if (!answer.failure.empty()) return answer;
  answer.version = read_xrootd_stat(ended->output);
  if (!answer.version.has_size) answer.failure = "xrdfs tells no size of it";
  return answer;
}

Result<void> XrootdSource::copy(const std::string& address, const std::string& path,
                                const std::string& checksum, const pipeline::Progress&) const {
  const RemoteAnswer asked = version(address);
  if (!asked.failure.empty()) return failed(address, asked.failure);
  const std::uint64_t bytes = asked.version.size;
  RETURN_IF_ERROR(pipeline::check_room(address, path, bytes));
  std::error_code cause;
  const std::string part = std::filesystem::absolute(path + ".part", cause).string();
  const CommandRequest request =
      request_of({"xrdcp", "--force", "--nopbar", "--silent", "--retry", "2", address, part},
                 kCopyingTime + std::chrono::seconds(bytes / kSlowestBytesPerSecond));
  const RemoteAnswer copied =
      answer_of(request, "xrdcp", run_command(request), parts_of(address).query);
  if (!copied.failure.empty()) return failed(address, copied.failure);
  const std::uint64_t found = std::filesystem::file_size(part, cause);
  const RemoteAnswer after = version(address);
  if (cause || found != bytes || (after.failure.empty() && after.version != asked.version)) {
    return failed(address, "the file changes while it is copied");
  }
  return pipeline::put_in_place(address, path, checksum);
}

Result<void> XrootdSource::put(const std::string& path, const std::string& address,
                               const pipeline::Progress& progress) const {
  RETURN_IF_ERROR(pipeline::check_address(address));
  std::error_code cause;
  const std::uint64_t bytes = std::filesystem::file_size(path, cause);
  if (cause) return failed(address, fmt::format("{}: {}", path, cause.message()));
  if (progress) RETURN_IF_ERROR(progress(0, bytes));
  const CommandRequest request =
      request_of({"xrdcp", "--force", "--posc", "--path", "--nopbar", "--silent", "--retry", "2",
                  std::filesystem::absolute(path, cause).string(), address},
                 kCopyingTime + std::chrono::seconds(bytes / kSlowestBytesPerSecond));
  const RemoteAnswer copied =
      answer_of(request, "xrdcp", run_command(request), parts_of(address).query);
  return copied.failure.empty() ? Result<void>{} : failed(address, copied.failure);
}

Result<std::vector<std::string>> XrootdSource::list(const std::string& prefix) const {
  const RootAddress parts = parts_of(prefix);
  const std::string folder = parts.path.substr(0, parts.path.rfind('/') + 1);
  const CommandRequest request =
      request_of({"xrdfs", parts.server, "ls", folder + parts.query}, kAskingTime);
  const Result<CommandEnd> ended = run_command(request);
  const RemoteAnswer answer = answer_of(request, "xrdfs", ended, parts.query);
  if (answer.missing) return failed(prefix, "there is no such folder on the server");
  if (!answer.failure.empty()) return failed(prefix, answer.failure);
  if (ended->is_cut) return failed(prefix, "more files than anybody trains on lie there");
  // As the prefix has it: with two slashes or one.
  const std::string server =
      prefix.substr(0, parts.server.size() + (prefix[parts.server.size() + 1] == '/' ? 1 : 0));
  std::vector<std::string> found;
  std::istringstream lines(ended->output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('/')) found.push_back(server + line);
  }
  return found;
}

}  // namespace troupe::launch
