#include "actors/node_reports.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "telemetry/trace/trace_bytes.h"
#include "telemetry/trace/trace_json.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::TimePoint;

// An answer that comes after so many later probes says nothing about a clock any more.
constexpr std::size_t kMostSent = 64;

std::string_view text_in(const Buffer& contents) {
  return {reinterpret_cast<const char*>(contents.data()), contents.size()};
}

std::string trace_of(const NodeAnswers& answers) {
  telemetry::Trace trace;
  trace.missing = answers.missing;
  for (const NodeAnswers::Answer& answer : answers.answers) {
    auto actors = telemetry::unpack_actors(answer.contents.bytes());
    if (actors.ok()) {
      trace.nodes.push_back(
          {answer.node, answer.clock.offset, answer.clock.error, std::move(*actors)});
    } else {
      trace.missing.push_back(answer.node);
    }
  }
  return telemetry::trace_json(trace);
}

// A wait-for graph without the lines of actors that are on another node, which has lines of its own
// for them.
std::string told_here(std::string_view graph) {
  std::string kept;
  std::istringstream lines{std::string(graph)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with(": on another node")) kept += line + "\n";
  }
  return kept;
}

}  // namespace

std::string text_of(const NodeAnswers& answers) {
  if (answers.wants == Probe::Wants::kTrace) return trace_of(answers);
  std::string text;
  for (const NodeAnswers::Answer& answer : answers.answers) {
    text += answer.node + "\n";
    text += told_here(text_in(answer.contents));
  }
  for (const std::string& node : answers.missing) text += node + "\n  has not answered\n";
  return text;
}

NodeReports::NodeReports(NodeReportsOptions options) : options_(std::move(options)) {}

NodeReports::~NodeReports() {
  while (!questions_.empty()) finish(questions_.begin());
}

void NodeReports::take_change(const NodeChange& change) {
  if (change.state == "running" || change.state == "joining") {
    members_.insert(change.name);
    return;
  }
  members_.erase(change.name);
  clocks_.erase(change.name);
  for (auto each = questions_.begin(); each != questions_.end();) {
    const auto question = each++;
    if (question->second.awaited.erase(change.name) == 0) continue;
    question->second.answers.missing.push_back(change.name);
    if (question->second.awaited.empty()) finish(question);
  }
}

Probe NodeReports::probe(std::uint64_t request, Probe::Wants wants, TimePoint now) {
  sent_.push_back(now);
  if (sent_.size() > kMostSent) sent_.pop_front();
  return {request, now, wants};
}

std::vector<std::string> NodeReports::take_turn() {
  std::vector<std::string> turn;
  const std::size_t count = std::min(members_.size(), kAskedAtOnce);
  for (auto next = members_.upper_bound(asked_last_); turn.size() < count; ++next) {
    if (next == members_.end()) next = members_.begin();
    turn.push_back(*next);
  }
  if (!turn.empty()) asked_last_ = turn.back();
  return turn;
}

Probe NodeReports::beat(TimePoint now) { return probe(0, Probe::Wants::kNothing, now); }

std::optional<Probe> NodeReports::ask(Probe::Wants wants, TimePoint now, Done done) {
  if (questions_.size() >= options_.most_questions) return std::nullopt;
  const std::uint64_t request = ++last_request_;
  Question question{std::move(done), {}, members_, now + options_.patience};
  question.answers.wants = wants;
  question.answers.answers.push_back(own_answer(wants));
  const auto [added, is_new] = questions_.emplace(request, std::move(question));
  if (members_.empty()) finish(added);
  return probe(request, wants, now);
}

NodeAnswers::Answer NodeReports::own_answer(Probe::Wants wants) const {
  NodeAnswers::Answer answer{options_.node, {}, {}};
  if (wants == Probe::Wants::kTrace) {
    auto actors = options_.trace ? options_.trace() : std::vector<runtime::ActorTrace>();
    answer.contents = Buffer::copy_of(telemetry::pack_actors(std::move(actors)));
  } else if (wants == Probe::Wants::kWaits && options_.waits) {
    const std::string text = options_.waits();
    answer.contents = Buffer::copy_of(std::as_bytes(std::span(text)));
  }
  return answer;
}

void NodeReports::take(std::string_view member, const NodeReport& report,
                       std::span<const Buffer> payloads, TimePoint now) {
  const std::string name(member);
  if (!members_.contains(name)) return;
  if (std::find(sent_.begin(), sent_.end(), report.sent) != sent_.end()) {
    clocks_[name].add(report.sent, report.answered, now);
  }
  const auto found = questions_.find(report.request);
  if (found == questions_.end()) return;
  Question& question = found->second;
  if (report.wants != question.answers.wants || question.awaited.erase(name) == 0) return;
  if (payloads.empty() || payloads.front().size() > options_.most_bytes ||
      bytes_of_members() > options_.most_bytes - payloads.front().size()) {
    question.answers.missing.push_back(name);
  } else {
    // Copied, because what came over a connection stays in memory only as long as the message.
    question.answers.answers.push_back({name, {}, Buffer::copy_of(payloads.front().bytes())});
  }
  if (question.awaited.empty()) finish(found);
}

void NodeReports::tend(TimePoint now) {
  for (auto each = questions_.begin(); each != questions_.end();) {
    const auto question = each++;
    if (now >= question->second.until) finish(question);
  }
}

std::size_t NodeReports::bytes_of_members() const {
  std::size_t bytes = 0;
  for (const auto& [request, question] : questions_) {
    const auto& answers = question.answers.answers;
    // The first is this node's own.
    for (std::size_t i = 1; i < answers.size(); ++i) bytes += answers[i].contents.size();
  }
  return bytes;
}

void NodeReports::finish(std::map<std::uint64_t, Question>::iterator question) {
  Question asked = std::move(question->second);
  questions_.erase(question);
  NodeAnswers& answers = asked.answers;
  answers.missing.insert(answers.missing.end(), asked.awaited.begin(), asked.awaited.end());
  std::sort(answers.missing.begin(), answers.missing.end());
  std::sort(std::next(answers.answers.begin()), answers.answers.end(),
            [](const auto& a, const auto& b) { return a.node < b.node; });
  // Clocks are taken as they are known by now.
  for (NodeAnswers::Answer& answer : answers.answers) {
    answer.clock = clock(answer.node).value_or(telemetry::ClockOffset::Estimate{});
  }
  if (asked.done) asked.done(std::move(answers));
}

std::optional<telemetry::ClockOffset::Estimate> NodeReports::clock(std::string_view member) const {
  const auto found = clocks_.find(member);
  return found == clocks_.end() ? std::nullopt : found->second.best();
}

}  // namespace troupe::actors
