#include "launch/folder/membership_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include <fmt/format.h>

#include "config/plan.h"
#include "launch/folder/line_text.h"
#include "runtime/relay/relay_frames.h"
#include "telemetry/record.h"

namespace troupe::launch {
namespace {

using nlohmann::json;
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
  std::string relay;     // the token; "": there is none
  std::string launched;  // Enrolment::launched
};

template <class Archive>
void fields(Archive& archive, runtime::Like<SlotLine> auto& line) {
  archive.text("node", line.node, kAnyLength);
  archive.text("relay", line.relay, kAnyLength);
  archive.text("launched", line.launched, kAnyLength);
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

// Leaves out a line that cannot be understood: it is not this file's, or was not finished.
void take_line(std::string_view text, HeadHistory& history) {
  const json parsed = runtime::parse_json(text);
  if (HeadLine head; read_line(parsed, head)) {
    history.term = std::max(history.term, head.term);
    history.incarnations.push_back(head.incarnation);
  } else if (SlotLine slot; read_line(parsed, slot)) {
    history.slots.insert(slot.node);
    if (!slot.launched.empty()) history.launched[slot.node] = slot.launched;
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

}  // namespace

std::map<std::uint32_t, std::uint32_t> HeadHistory::processes() const {
  std::map<std::uint32_t, std::uint32_t> newest;
  for (const std::string& name : slots) {
    const auto known = config::member_process(name);
    if (!known) continue;
    std::uint32_t& process = newest[known->member];
    process = std::max(process, known->process);
  }
  return newest;
}

std::set<std::uint32_t> HeadHistory::renewed() const {
  std::set<std::uint32_t> members_since;
  const auto newest = processes();
  for (const std::string& name : members) {
    const auto known = config::member_process(name);
    const auto last = known ? newest.find(known->member) : newest.end();
    if (last != newest.end() && last->second != known->process) members_since.insert(last->first);
  }
  return members_since;
}

std::map<std::string, std::string> HeadHistory::called() const {
  std::map<std::string, std::string> names;
  for (const auto& [member, process] : processes()) {
    if (process > 1) names[config::member_name(member)] = config::member_name(member, process);
  }
  return names;
}

Result<MembershipFile> MembershipFile::open(const std::string& path, bool goes_on) {
  HeadHistory history;
  ASSIGN_OR_RETURN(LineFile file, LineFile::open(path, goes_on, [&](std::string_view line) {
                     take_line(line, history);
                   }));
  return MembershipFile(std::move(file), std::move(history));
}

Result<void> MembershipFile::add_head(std::uint32_t term, std::uint64_t incarnation) {
  return file_.add(text_of(HeadLine{term, incarnation}));
}

Result<void> MembershipFile::add_slot(const std::string& member,
                                      const std::optional<runtime::RelayToken>& relay_token,
                                      const std::string& launched) {
  if (!launched.empty()) {
    const std::scoped_lock lock(launched_->mutex);
    launched_->marks[member] = launched;
  }
  return file_.add(
      text_of(SlotLine{member, relay_token ? runtime::token_text(*relay_token) : "", launched}));
}

std::string MembershipFile::launched(const std::string& member) const {
  const std::scoped_lock lock(launched_->mutex);
  if (const auto mark = launched_->marks.find(member); mark != launched_->marks.end()) {
    return mark->second;
  }
  const auto before = history_.launched.find(member);
  return before == history_.launched.end() ? "" : before->second;
}

Result<void> MembershipFile::add_neighbours(const std::string& one, const std::string& other,
                                            std::uint64_t number) {
  return file_.add(text_of(NeighboursLine{std::min(one, other), std::max(one, other), number}));
}

Result<void> MembershipFile::add_view(const telemetry::ViewFacts& view, bool first) {
  return file_.add(text_of(ViewLine{first, view}));
}

}  // namespace troupe::launch
