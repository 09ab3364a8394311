#include "telemetry/history.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/base/json_writer.h"
#include "telemetry/epoch_count.h"
#include "telemetry/history_news.h"
#include "telemetry/run_clock.h"

namespace troupe::telemetry {
namespace {

// The newest `most` things of a kind, each with the version it came with.
template <class T>
class Newest {
 public:
  explicit Newest(std::size_t most) : most_(most) {}
  void add(T thing, std::uint64_t version) {
    things_.emplace_back(std::move(thing), version);
    if (things_.size() > most_) things_.pop_front();
  }
  // Those that came after the version, oldest first.
  std::vector<T> since(std::uint64_t version) const {
    auto first = things_.end();
    while (first != things_.begin() && std::prev(first)->second > version) --first;
    std::vector<T> found;
    for (; first != things_.end(); ++first) found.push_back(first->first);
    return found;
  }

 private:
  std::size_t most_;
  std::deque<std::pair<T, std::uint64_t>> things_;
};

// The node of the series "node/NAME/cores"; "": it is another one.
std::string_view node_of_cores(std::string_view series) {
  constexpr std::string_view kNode = "node/", kCores = "/cores";
  if (!series.starts_with(kNode) || !series.ends_with(kCores)) return "";
  if (series.size() < kNode.size() + kCores.size()) return "";
  return series.substr(kNode.size(), series.size() - kNode.size() - kCores.size());
}

constexpr std::size_t kMostShowerSteps = 10'000;
constexpr std::size_t kMostTexts = 16;

// All that was told of the run, but for its log.
struct Told {
  explicit Told(const HistoryOptions& options)
      : curves(options.points, options.most_series),
        marks(options.marks),
        validations(options.marks),
        nodes(options.nodes) {
    progress.state = "starting";
  }

  RunFacts facts;
  RunProgress progress;
  RunClock clock;
  Curves curves;
  Newest<Mark> marks;
  Newest<Validation> validations;
  NodeTable nodes;
  std::vector<std::uint64_t> showers;
  std::optional<BillFacts> bill;   // the newest
  double iteration_seconds = 0.0;  // of the iteration that goes on
};

}  // namespace

struct History::Content {
  explicit Content(HistoryOptions wanted)
      : options(wanted), log(options.log_lines), told(options) {}

  const HistoryOptions options;
  std::atomic<std::uint64_t> version{1};

  // The log has a mutex of its own, so that a thread that logs never waits for a text to be made.
  // It is taken after the other.
  mutable std::mutex log_mutex;
  Newest<LogLine> log;

  mutable std::mutex mutex;   // of these
  std::uint64_t cleared = 0;  // the version that forgot all before it
  std::uint64_t run_version = 1, progress_version = 1, nodes_version = 1, showers_version = 1,
                bill_version = 1;
  Told told;

  mutable std::mutex texts_mutex;  // of these; taken before the others
  mutable std::uint64_t texts_version = 0;
  mutable std::map<std::uint64_t, Text> texts;  // of texts_version, by the version they go on from

  void begin(const RunRecord& run, double time);
  void take_body(const Record& record);
  void take_step(const StepFacts& made, const Record& record);
  void take_points(const Record& record, const std::vector<RecordPoint>& points);
  void end_nodes();
  double cost_now() const;
  RunProgress progress_now() const;
};

void History::Content::begin(const RunRecord& run, double time) {
  told.facts = run.facts;
  if (!std::isfinite(told.facts.price_per_node_hour)) told.facts.price_per_node_hour = 0.0;
  run_version = version;
  told.clock.begin(time);
  told.progress.state = "starting";
  told.progress.error.clear();
  // These are nodes of the session before. Those that are still there are told anew.
  end_nodes();
}

void History::Content::end_nodes() {
  told.nodes.end_all();
  nodes_version = version;
}

void History::Content::take_body(const Record& record) {
  const auto* const run = std::get_if<RunRecord>(&record.body);
  const auto* const node = run != nullptr ? &run->node : std::get_if<NodeFacts>(&record.body);
  if (node != nullptr) {
    told.nodes.take(*node, record.time);
    nodes_version = version;
  } else if (const auto* step = std::get_if<StepFacts>(&record.body)) {
    take_step(*step, record);
  } else if (std::holds_alternative<ShowersFacts>(record.body)) {
    if (told.showers.size() == kMostShowerSteps) told.showers.erase(told.showers.begin());
    told.showers.push_back(record.step);
    showers_version = version;
  } else if (const auto* bill = std::get_if<BillFacts>(&record.body)) {
    told.bill = *bill;
    bill_version = version;
  }
}

void History::Content::take_step(const StepFacts& made, const Record& record) {
  RunProgress& progress = told.progress;
  progress.state = "training";
  progress.steps = record.step + 1;
  for (const double part :
       {made.load_seconds, made.compute_seconds, made.reduce_seconds, made.apply_seconds}) {
    if (std::isfinite(part)) told.iteration_seconds += part;
  }
  const std::uint64_t slots = told.facts.schedule.size();
  // The last slot of the schedule completes an iteration, and what counts iterations goes on only
  // then. Without a schedule nobody knows which slot that is.
  if (slots == 0 || (record.step + 1) % slots != 0) return;
  progress.iterations = made.iteration + 1;
  if (told.facts.iterations_per_epoch > 0) {
    progress.epochs = progress.iterations / told.facts.iterations_per_epoch;
  }
  progress.events += made.events;
  told.clock.iteration(record.time, made.events);
  if (told.iteration_seconds > 0.0) {
    told.curves.add("events_per_second", record.step,
                    static_cast<double>(made.events) / told.iteration_seconds, version, false);
  }
  told.iteration_seconds = 0.0;
}

void History::Content::take_points(const Record& record, const std::vector<RecordPoint>& points) {
  const bool is_sample = std::holds_alternative<SampleFacts>(record.body);
  for (const auto& [series, value] : points) {
    told.curves.add(series, record.step, value, version, is_sample);
    if (const auto node = node_of_cores(series); !node.empty()) {
      told.nodes.set_busy_cores(node, value);
    }
  }
}

// A pool has a price of its own.
double History::Content::cost_now() const {
  double others = told.clock.node_hours(), of_pools = 0.0;
  if (told.bill) {
    of_pools = told.bill->cost;
    for (const PoolBill& pool : told.bill->pools) others -= pool.node_hours * pool.workers;
  }
  return of_pools + std::max(others, 0.0) * told.facts.price_per_node_hour;
}

RunProgress History::Content::progress_now() const {
  RunProgress now = told.progress;
  const RunFacts& facts = told.facts;
  const EpochCount count =
      count_epochs(now.iterations, facts.iterations, facts.iterations_per_epoch);
  now.epoch = count.epoch;
  now.all_epochs = count.all;
  now.began = told.clock.began();
  now.newest = told.clock.newest();
  now.events_per_second = told.clock.events_per_second();
  now.node_hours = told.clock.node_hours();
  now.core_hours = told.clock.core_hours();
  now.cost = cost_now();
  now.dropped += told.curves.left_out() + told.nodes.dropped();
  const auto seconds = told.clock.seconds_per_iteration();
  if (seconds && now.state == "training" && facts.iterations >= now.iterations) {
    now.seconds_left = *seconds * static_cast<double>(facts.iterations - now.iterations);
  }
  return now;
}

History::History(HistoryOptions options) : content_(std::make_unique<Content>(options)) {}

History::~History() = default;

void History::take(const Record& record) {
  const std::vector<RecordPoint> points = points_of(record);
  std::string mark = mark_of(record), rows = rows_of(record);
  Content& content = *content_;
  Told& told = content.told;
  const std::scoped_lock lock(content.mutex);
  content.progress_version = ++content.version;
  if (const auto* run = std::get_if<RunRecord>(&record.body)) content.begin(*run, record.time);
  // The time up to this record belongs to the nodes as they were, so it is counted before the
  // record changes them.
  told.clock.advance(record.time, told.nodes.computing(), told.nodes.busy_cores());
  content.take_body(record);
  content.take_points(record, points);
  if (!rows.empty()) {
    told.validations.add({record.step, record.time, std::move(rows)}, content.version);
  }
  if (!mark.empty()) {
    told.marks.add({std::string(kind_of(record)), record.step, record.time, std::move(mark)},
                   content.version);
  }
}

void History::take_node(const NodeFacts& facts, double since) {
  Content& content = *content_;
  Told& told = content.told;
  const std::scoped_lock lock(content.mutex);
  content.progress_version = content.nodes_version = ++content.version;
  told.clock.advance(since, told.nodes.computing(), told.nodes.busy_cores());
  told.nodes.take(facts, since);
}

bool History::take_node(const NodeSample& sample, double time, double clock_error) {
  const std::scoped_lock lock(content_->mutex);
  content_->nodes_version = ++content_->version;
  return content_->told.nodes.take(sample, time, clock_error);
}

void History::take_log(LogLine line) {
  const std::scoped_lock lock(content_->log_mutex);
  content_->log.add(std::move(line), ++content_->version);
}

void History::set_dropped(std::uint64_t dropped) {
  const std::scoped_lock lock(content_->mutex);
  if (std::exchange(content_->told.progress.dropped, dropped) == dropped) return;
  content_->progress_version = ++content_->version;
}

void History::end(std::string state, std::string error) {
  const std::scoped_lock lock(content_->mutex);
  content_->told.progress.state = std::move(state);
  content_->told.progress.error = std::move(error);
  content_->progress_version = ++content_->version;
  content_->end_nodes();
}

void History::begin_again() {
  const std::scoped_lock lock(content_->mutex);
  RunProgress& progress = content_->told.progress;
  if (!is_over(progress)) return;
  progress.state = "starting";
  progress.error.clear();
  content_->progress_version = ++content_->version;
}

void History::clear() {
  Content& content = *content_;
  const std::scoped_lock lock(content.mutex, content.log_mutex);
  content.cleared = ++content.version;
  content.run_version = content.progress_version = content.version;
  content.nodes_version = content.showers_version = content.bill_version = content.version;
  content.told = Told(content.options);
  content.log = Newest<LogLine>(content.options.log_lines);
}

RunFacts History::facts() const {
  const std::scoped_lock lock(content_->mutex);
  return content_->told.facts;
}

RunProgress History::progress() const {
  const std::scoped_lock lock(content_->mutex);
  return content_->progress_now();
}

std::vector<NodeState> History::nodes() const {
  const std::scoped_lock lock(content_->mutex);
  return content_->told.nodes.all();
}

std::optional<NodeState> History::node(std::string_view name) const {
  const std::scoped_lock lock(content_->mutex);
  return content_->told.nodes.find(name);
}

std::vector<RecordPoint> History::latest() const {
  const std::scoped_lock lock(content_->mutex);
  return content_->told.curves.latest();
}

std::uint64_t History::version() const { return content_->version; }

HistoryNews History::news(std::uint64_t since) const {
  const Content& content = *content_;
  const Told& told = content.told;
  const std::scoped_lock lock(content.mutex);
  HistoryNews news;
  {
    const std::scoped_lock log_lock(content.log_mutex);
    // Under this lock, because take_log() holds no other when it raises the version: a line that
    // the news do not have has a higher one.
    news.version = content.version;
    news.whole = since == 0 || since < content.cleared || since > news.version;
    if (news.whole) since = 0;
    news.log = content.log.since(since);
  }
  news.now = told.clock.newest();
  if (content.run_version > since) news.run = told.facts;
  if (content.progress_version > since) news.progress = content.progress_now();
  if (content.nodes_version > since) news.nodes = told.nodes.all();
  if (content.showers_version > since) news.showers = told.showers;
  if (content.bill_version > since) news.bill = told.bill;
  news.series = told.curves.since(since);
  news.marks = told.marks.since(since);
  news.validations = told.validations.since(since);
  return news;
}

History::Text History::since(std::uint64_t version) const {
  const Content& content = *content_;
  const std::scoped_lock lock(content.texts_mutex);
  if (const std::uint64_t now = this->version(); now != content.texts_version) {
    content.texts.clear();
    content.texts_version = now;
  }
  if (const auto known = content.texts.find(version); known != content.texts.end()) {
    return known->second;
  }
  const HistoryNews news = this->news(version);
  Text text{news.version, std::make_shared<const std::string>(runtime::to_json(news))};
  // Followers that keep up ask for the same few.
  if (content.texts.size() >= kMostTexts) content.texts.clear();
  // If more has come meanwhile, the next call makes another text.
  if (news.version == content.texts_version) content.texts.emplace(version, text);
  return text;
}

}  // namespace troupe::telemetry
