#include "launch/membership_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "config/yaml_value.h"
#include "runtime/base/json_text.h"
#include "runtime/transport/relay_token.h"

namespace troupe::launch {
namespace {

using runtime::Descriptor;
using runtime::Error;
using runtime::ErrorKind;
using runtime::json_string;
using runtime::Result;

// Before the object of a View's line; "}" closes both.
constexpr std::string_view kViewHead = R"({"kind":"view","first":)";
constexpr std::string_view kViewBody = R"(,"view":)";
// Far more than any run has.
constexpr std::uint64_t kMostTerms = 1'000'000;

std::string field(const config::YamlValue& line, std::string_view name) {
  const config::YamlValue* value = line.find(name);
  return value != nullptr && value->is_scalar() ? value->scalar : std::string();
}

std::vector<std::string> texts(const config::YamlValue& line, std::string_view name) {
  std::vector<std::string> all;
  const config::YamlValue* value = line.find(name);
  if (value == nullptr) return all;
  for (const config::YamlValue& item : value->items) all.push_back(item.scalar);
  return all;
}

std::uint64_t number_of(const std::string& hexadecimal) {
  return std::strtoull(hexadecimal.c_str(), nullptr, 16);
}

void take_view(const config::YamlValue& line, std::string_view text, HeadHistory& history) {
  const config::YamlValue* view = line.find("view");
  if (view == nullptr) return;
  history.members = texts(*view, "members");
  if (field(line, "first") == "true") return;
  history.failures += texts(*view, "causes").size();
  const std::size_t at = text.find(kViewBody);
  if (at == std::string_view::npos) return;
  text.remove_prefix(at + kViewBody.size());
  text.remove_suffix(1);
  history.views.emplace_back(text);
}

// What cannot be understood is left out: it is not this file's, or was not finished.
void take_line(const std::string& text, const std::string& path, HeadHistory& history) {
  config::Problems problems;
  const config::YamlValue line = config::parse_yaml(text, path, problems);  // JSON is YAML
  if (!problems.empty()) return;
  const std::string kind = field(line, "kind");
  if (kind == "head") {
    const std::uint64_t term = std::strtoull(field(line, "term").c_str(), nullptr, 10);
    const std::uint64_t incarnation = number_of(field(line, "incarnation"));
    if (term == 0 || term > kMostTerms || incarnation == 0) return;
    history.term = std::max(history.term, static_cast<std::uint32_t>(term));
    history.incarnations.push_back(incarnation);
  } else if (kind == "place") {
    const std::string node = field(line, "node");
    history.places.insert(node);
    if (const auto token = runtime::read_token(field(line, "relay"))) {
      history.relay_tokens[node] = *token;
    }
  } else if (kind == "fellows") {
    const std::uint64_t number = number_of(field(line, "number"));
    if (number != 0) history.fellows[{field(line, "one"), field(line, "other")}] = number;
  } else if (kind == "view") {
    take_view(line, text, history);
  }
}

Error cannot(const char* what, const std::string& path) {
  return {ErrorKind::kData,
          fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(errno))};
}

}  // namespace

Result<MembershipFile> MembershipFile::open(const std::string& path, bool goes_on) {
  HeadHistory history;
  std::size_t whole = 0;
  if (goes_on) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', whole)) {
      take_line(text.substr(whole, end - whole), path, history);
      whole = end + 1;
    }
  }
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.is_open() || ::fchmod(file.number(), 0600) != 0) return cannot("open", path);
  if (::ftruncate(file.number(), static_cast<off_t>(whole)) != 0) return cannot("write", path);
  return MembershipFile(path, std::move(file), std::move(history));
}

Result<void> MembershipFile::add_head(std::uint32_t term, std::uint64_t incarnation) {
  return write(
      fmt::format(R"({{"kind":"head","term":{},"incarnation":"{:x}"}})", term, incarnation));
}

Result<void> MembershipFile::add_place(const std::string& member,
                                       const std::optional<runtime::RelayToken>& relay_token) {
  std::string relay;
  if (relay_token) relay = fmt::format(R"(,"relay":"{}")", runtime::token_text(*relay_token));
  return write(fmt::format(R"({{"kind":"place","node":{}{}}})", json_string(member), relay));
}

Result<void> MembershipFile::add_fellows(const std::string& one, const std::string& other,
                                         std::uint64_t number) {
  return write(fmt::format(R"({{"kind":"fellows","one":{},"other":{},"number":"{:x}"}})",
                           json_string(std::min(one, other)), json_string(std::max(one, other)),
                           number));
}

Result<void> MembershipFile::add_view(const std::string& json, bool first) {
  return write(fmt::format("{}{}{}{}}}", kViewHead, first, kViewBody, json));
}

Result<void> MembershipFile::put_back() const {
  const std::scoped_lock lock(*mutex_);
  return runtime::put_back(file_.number(), path_);
}

// What only part of could be written is taken back, or the next line would be glued to it.
Result<void> MembershipFile::write(const std::string& line) {
  const std::scoped_lock lock(*mutex_);
  const std::string text = (torn_ ? "\n" : "") + line + "\n";
  const ssize_t written = ::write(file_.number(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) {
    torn_ = false;
    return {};
  }
  const int why = written < 0 ? errno : ENOSPC;
  if (written > 0) {
    const off_t end = ::lseek(file_.number(), 0, SEEK_CUR);
    if (end < written || ::ftruncate(file_.number(), end - written) != 0) torn_ = true;
  }
  errno = why;
  return cannot("write", path_);
}

}  // namespace troupe::launch
