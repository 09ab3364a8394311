#include "launch/folder/membership_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "runtime/base/json_reader.h"
#include "runtime/base/json_writer.h"
#include "runtime/relay/relay_frames.h"
#include "telemetry/record.h"

namespace troupe::launch {
namespace {

using nlohmann::json;
using runtime::Descriptor;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using telemetry::kAnyLength;

// Far more than any run has.
constexpr std::uint32_t kMostTerms = 1'000'000;

struct HeadLine {
  static constexpr std::string_view kKind = "head";
  std::uint32_t term = 0;
  std::uint64_t incarnation = 0;
};

template <class Archive>
void fields(Archive& archive, runtime::Like<HeadLine> auto& line) {
  archive.number("term", line.term, kMostTerms);
  archive.bits("incarnation", line.incarnation);
}

const char* fault_of(const HeadLine& line) {
  return line.term == 0 || line.incarnation == 0 ? "a head without a number" : nullptr;
}

struct SlotLine {
  static constexpr std::string_view kKind = "slot";
  std::string node;
  std::string relay;  // the token; "": there is none
};

template <class Archive>
void fields(Archive& archive, runtime::Like<SlotLine> auto& line) {
  archive.text("node", line.node, kAnyLength);
  archive.last("relay", line.relay);
}

const char* fault_of(const SlotLine& line) {
  return line.node.empty() ? "a slot without a name" : nullptr;
}

struct NeighboursLine {
  static constexpr std::string_view kKind = "neighbours";
  std::string one, other;  // the lesser name first
  std::uint64_t number = 0;
};

template <class Archive>
void fields(Archive& archive, runtime::Like<NeighboursLine> auto& line) {
  archive.text("one", line.one, kAnyLength);
  archive.text("other", line.other, kAnyLength);
  archive.bits("number", line.number);
}

const char* fault_of(const NeighboursLine& line) {
  return line.number == 0 ? "neighbours without a number" : nullptr;
}

struct ViewLine {
  static constexpr std::string_view kKind = "view";
  bool first = false;
  telemetry::ViewFacts view;
};

template <class Archive>
void fields(Archive& archive, runtime::Like<ViewLine> auto& line) {
  archive.flag("first", line.first);
  archive.object("view", line.view);
}

const char* fault_of(const ViewLine& line) {
  return line.view.id.empty() ? "a View without a number" : nullptr;
}

template <class Line>
std::string text_of(const Line& line) {
  return fmt::format(R"({{"kind":"{}",{}}})", Line::kKind, runtime::json_members(line));
}

// Whether `text` is a sound line of that kind.
template <class Line>
bool read_line(const json& text, Line& line) {
  return text.is_object() && text.value("kind", json()) == Line::kKind &&
         runtime::read_object(text, line);
}

// Leaves out a line that cannot be understood: it is not this file's, or was not finished.
void take_line(std::string_view text, HeadHistory& history) {
  const json parsed = runtime::parse_json(text);
  if (HeadLine head; read_line(parsed, head)) {
    history.term = std::max(history.term, head.term);
    history.incarnations.push_back(head.incarnation);
  } else if (SlotLine slot; read_line(parsed, slot)) {
    history.slots.insert(slot.node);
    if (const auto token = runtime::read_token(slot.relay)) {
      history.relay_tokens[slot.node] = *token;
    }
  } else if (NeighboursLine neighbours; read_line(parsed, neighbours)) {
    history.neighbours[{neighbours.one, neighbours.other}] = neighbours.number;
  } else if (ViewLine view; read_line(parsed, view)) {
    history.members = view.view.members;
    if (view.first) return;
    history.failures += view.view.causes.size();
    history.views.push_back(std::move(view.view));
  }
}

Error cannot(const char* what, const std::string& path) {
  return {ErrorKind::kData,
          fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(errno))};
}

}  // namespace

// A last line that was not finished is cut off. The file holds secrets, so only its owner may read
// it.
Result<MembershipFile> MembershipFile::open(const std::string& path, bool goes_on) {
  HeadHistory history;
  std::size_t whole = 0;
  if (goes_on) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', whole)) {
      take_line(std::string_view(text).substr(whole, end - whole), history);
      whole = end + 1;
    }
  }
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.is_open() || ::fchmod(file.number(), 0600) != 0) return cannot("open", path);
  if (::ftruncate(file.number(), static_cast<off_t>(whole)) != 0) return cannot("write", path);
  return MembershipFile(path, std::move(file), std::move(history));
}

Result<void> MembershipFile::add_head(std::uint32_t term, std::uint64_t incarnation) {
  return write(text_of(HeadLine{term, incarnation}));
}

Result<void> MembershipFile::add_slot(const std::string& member,
                                      const std::optional<runtime::RelayToken>& relay_token) {
  return write(text_of(SlotLine{member, relay_token ? runtime::token_text(*relay_token) : ""}));
}

Result<void> MembershipFile::add_neighbours(const std::string& one, const std::string& other,
                                            std::uint64_t number) {
  return write(text_of(NeighboursLine{std::min(one, other), std::max(one, other), number}));
}

Result<void> MembershipFile::add_view(const telemetry::ViewFacts& view, bool first) {
  return write(text_of(ViewLine{first, view}));
}

Result<void> MembershipFile::put_back() const {
  const std::scoped_lock lock(*mutex_);
  return runtime::put_back(file_.number(), path_);
}

// A line that could be written in part only is taken back, or the next one would be glued to it.
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
