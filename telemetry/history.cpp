#include "telemetry/history.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>

#include "runtime/base/json_writer.h"
#include "telemetry/epoch_count.h"
#include "telemetry/history_news.h"
#include "telemetry/run_clock.h"

namespace troupe::telemetry {
namespace {

// The newest `most` of a kind of thing, each with the version it came with.
template <class T>
class Newest {
 public:
  explicit Newest(std::size_t most) : most_(most) {}
  void add(T thing, std::uint64_t version) {
    things_.emplace_back(std::move(thing), version);
    if (things_.size() > most_) things_.pop_front();
  }
  // Those that came behind the version, oldest first.
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

// A curve, and the version in which each of its points changed last, which only grows along it.
struct Curve {
  Series series;
  std::vector<std::uint64_t> stamps;

  void add(std::uint64_t x, double value, std::uint64_t version) {
    const std::uint64_t width = series.width(), taken = series.taken();
    series.add(x, value);
    if (series.taken() == taken) return;
    stamps.resize(series.points().size());
    stamps.back() = version;
    if (series.width() != width) std::fill(stamps.begin(), stamps.end(), version);
  }
  std::size_t first_since(std::uint64_t version) const {
    return static_cast<std::size_t>(std::upper_bound(stamps.begin(), stamps.end(), version) -
                                    stamps.begin());
  }
};

bool is_up(const NodeState& node) { return node.state == "running" || node.state == "joining"; }

// Bytes a second. Other nodes may say anything.
double rate(std::int64_t before, std::int64_t now, double seconds) {
  return (static_cast<double>(now) - static_cast<double>(before)) / seconds;
}

constexpr std::size_t kMostShowerSteps = 10'000;
constexpr std::size_t kMostTexts = 16;

}  // namespace

struct History::Content {
  explicit Content(HistoryOptions wanted)
      : options(wanted), log(options.log_lines), marks(options.marks), validations(options.marks) {}

  const HistoryOptions options;

  std::atomic<std::uint64_t> version{1};

  // Of the log alone, so that whoever has something to log never waits for a text to be made. Taken
  // behind the other.
  mutable std::mutex log_mutex;
  Newest<LogLine> log;

  mutable std::mutex mutex;   // of all of these
  std::uint64_t cleared = 0;  // what has an older version has to be told all
  std::uint64_t run_version = 1, progress_version = 1, nodes_version = 1, showers_version = 1;
  RunFacts facts;
  RunProgress progress;
  RunClock clock;
  std::map<std::string, Curve, std::less<>> curves;
  Newest<Mark> marks;
  Newest<Validation> validations;
  std::map<std::string, NodeState, std::less<>> nodes;
  std::vector<std::uint64_t> showers;
  double iteration_seconds = 0.0;
  std::uint64_t left_out = 0;  // points of series for which there was no room

  mutable std::mutex texts_mutex;  // of these; taken before the other
  mutable std::uint64_t texts_version = 0;
  mutable std::map<std::uint64_t, Text> texts;  // of texts_version, by the version they go on from

  void point(const std::string& series, std::uint64_t x, double value, bool sample = false);
  void make_step(const StepFacts& made, const Record& record);
  void begin(const RunRecord& run, double time);
  void set_node(const NodeFacts& facts, double time);
  void take_body(const Record& record);
  void end_nodes();
  void take_cores(const RecordPoint& point);
  std::uint64_t computing() const;
  RunProgress progress_now() const;
};

// Samples leave a quarter of the places to what is no sample, which comes later and matters more.
void History::Content::point(const std::string& series, std::uint64_t x, double value,
                             bool sample) {
  auto found = curves.find(series);
  if (found == curves.end()) {
    const std::size_t most = options.most_series - (sample ? options.most_series / 4 : 0);
    if (curves.size() >= most) {
      ++left_out;
      return;
    }
    found = curves.emplace(series, Curve{Series(options.points), {}}).first;
  }
  found->second.add(x, value, version);
}

void History::Content::make_step(const StepFacts& made, const Record& record) {
  progress.state = "training";
  progress.steps = record.step + 1;
  for (const double part :
       {made.load_seconds, made.compute_seconds, made.reduce_seconds, made.apply_seconds}) {
    if (std::isfinite(part)) iteration_seconds += part;
  }
  const std::uint64_t slots = facts.schedule.size();
  if (slots == 0 || (record.step + 1) % slots != 0) return;
  progress.iterations = made.iteration + 1;
  if (facts.iterations_per_epoch > 0)
    progress.epochs = progress.iterations / facts.iterations_per_epoch;
  progress.events += made.events;
  clock.iteration(record.time, made.events);
  if (iteration_seconds > 0.0) {
    point("events_per_second", record.step, static_cast<double>(made.events) / iteration_seconds);
  }
  iteration_seconds = 0.0;
}

void History::Content::set_node(const NodeFacts& told, double time) {
  if (told.name.empty()) return;
  if (!nodes.contains(told.name) && nodes.size() >= options.nodes) return;
  NodeState& node = nodes[told.name];
  if (node.state != told.state || (told.pid != 0 && node.pid != told.pid)) node.since = time;
  node.name = told.name;
  node.role = told.role;
  node.state = told.state;
  node.cause = told.cause;
  if (!told.host.empty()) node.host = told.host;
  if (told.pid != 0) node.pid = told.pid;
  if (!is_up(node)) {
    clock.set_cores(told.name, 0.0);
    node.cores = node.sent_per_second = node.received_per_second = 0.0;
  }
  nodes_version = version;
}

void History::Content::end_nodes() {
  for (auto& [name, node] : nodes) {
    if (!is_up(node)) continue;
    node.state = "ended";
    node.cores = node.sent_per_second = node.received_per_second = 0.0;
    clock.set_cores(name, 0.0);
  }
  nodes_version = version;
}

// "node/NAME/cores". What a node has told before it went may come behind that it did.
void History::Content::take_cores(const RecordPoint& point) {
  constexpr std::string_view kNode = "node/", kCores = "/cores";
  const std::string_view series = point.series;
  if (!series.starts_with(kNode) || !series.ends_with(kCores)) return;
  if (series.size() < kNode.size() + kCores.size()) return;
  const auto name = series.substr(kNode.size(), series.size() - kNode.size() - kCores.size());
  const auto node = nodes.find(name);
  if (node != nodes.end() && is_up(node->second)) clock.set_cores(std::string(name), point.value);
}

// A head of members computes nothing.
std::uint64_t History::Content::computing() const {
  return static_cast<std::uint64_t>(std::count_if(nodes.begin(), nodes.end(), [](const auto& node) {
    return is_up(node.second) && node.second.role != "head";
  }));
}

RunProgress History::Content::progress_now() const {
  RunProgress now = progress;
  const EpochCount count =
      count_epochs(now.iterations, facts.iterations, facts.iterations_per_epoch);
  now.epoch = count.epoch;
  now.all_epochs = count.all;
  now.began = clock.began();
  now.newest = clock.newest();
  now.events_per_second = clock.events_per_second();
  now.node_hours = clock.node_hours();
  now.core_hours = clock.core_hours();
  now.cost = now.node_hours * facts.price_per_node_hour;
  now.dropped += left_out;
  for (const auto& [name, node] : nodes) {
    for (const LinkSample& link : node.sample.links) {
      now.dropped += static_cast<std::uint64_t>(std::max<std::int64_t>(link.dropped, 0));
    }
  }
  const auto seconds = clock.seconds_per_iteration();
  if (seconds && now.state == "training" && facts.iterations >= now.iterations) {
    now.seconds_left = *seconds * static_cast<double>(facts.iterations - now.iterations);
  }
  return now;
}

HistoryNews History::news(std::uint64_t since) const {
  const Content& content = *content_;
  const std::scoped_lock lock(content.mutex);
  HistoryNews news;
  {
    const std::scoped_lock log_lock(content.log_mutex);
    news.version = content.version;
    news.whole = since == 0 || since < content.cleared || since > news.version;
    if (news.whole) since = 0;
    news.log = content.log.since(since);
  }
  news.now = content.clock.newest();
  if (content.run_version > since) news.run = content.facts;
  if (content.progress_version > since) news.progress = content.progress_now();
  if (content.nodes_version > since) {
    news.nodes.emplace();
    for (const auto& [name, node] : content.nodes) news.nodes->push_back(node);
  }
  if (content.showers_version > since) news.showers = content.showers;
  for (const auto& [name, curve] : content.curves) {
    const std::size_t from = curve.first_since(since);
    const auto& points = curve.series.points();
    if (from == points.size()) continue;
    news.series.emplace_back(
        name, SeriesNews{curve.series.width(),
                         from,
                         {points.begin() + static_cast<std::ptrdiff_t>(from), points.end()}});
  }
  news.marks = content.marks.since(since);
  news.validations = content.validations.since(since);
  return news;
}

History::History(HistoryOptions options) : content_(std::make_unique<Content>(options)) {
  content_->progress.state = "starting";
}

History::~History() = default;

void History::Content::begin(const RunRecord& run, double time) {
  facts = run.facts;
  if (!std::isfinite(facts.price_per_node_hour)) facts.price_per_node_hour = 0.0;
  run_version = version;
  clock.begin(time);
  progress.state = "starting";
  progress.error.clear();
  // Those of the session before; who is still there is told anew.
  end_nodes();
}

void History::Content::take_body(const Record& record) {
  if (const auto* run = std::get_if<RunRecord>(&record.body)) {
    set_node(run->node, record.time);
  } else if (const auto* node = std::get_if<NodeFacts>(&record.body)) {
    set_node(*node, record.time);
  } else if (const auto* step = std::get_if<StepFacts>(&record.body)) {
    make_step(*step, record);
  } else if (std::holds_alternative<ShowersFacts>(record.body)) {
    if (showers.size() == kMostShowerSteps) showers.erase(showers.begin());
    showers.push_back(record.step);
    showers_version = version;
  }
}

void History::take(const Record& record) {
  const std::vector<RecordPoint> points = points_of(record);
  std::string mark = mark_of(record), rows = rows_of(record);
  Content& content = *content_;
  const std::scoped_lock lock(content.mutex);
  ++content.version;
  content.progress_version = content.version;
  if (const auto* run = std::get_if<RunRecord>(&record.body)) content.begin(*run, record.time);
  content.clock.advance(record.time, content.computing());
  content.take_body(record);
  const bool samples = std::holds_alternative<SampleFacts>(record.body);
  for (const RecordPoint& point : points) {
    content.point(point.series, record.step, point.value, samples);
    content.take_cores(point);
  }
  if (!rows.empty()) {
    content.validations.add({record.step, record.time, std::move(rows)}, content.version);
  }
  if (!mark.empty()) {
    content.marks.add({std::string(kind_of(record)), record.step, record.time, std::move(mark)},
                      content.version);
  }
}

void History::take_node(const NodeFacts& facts, double since) {
  Content& content = *content_;
  const std::scoped_lock lock(content.mutex);
  ++content.version;
  content.progress_version = content.version;
  content.clock.advance(since, content.computing());
  content.set_node(facts, since);
}

bool History::take_node(const NodeSample& sample, double time, double clock_error) {
  Content& content = *content_;
  const std::scoped_lock lock(content.mutex);
  const auto found = content.nodes.find(sample.node);
  if (found == content.nodes.end() || !is_up(found->second)) return false;
  NodeState& node = found->second;
  const double passed = time - node.sampled;
  const NodeSample& before = node.sample;
  // A process that was started anew under this name begins from 0 again.
  const bool goes_on =
      node.sampled > 0.0 && passed > 0.0 && sample.cpu_seconds >= before.cpu_seconds &&
      sample.sent_bytes >= before.sent_bytes && sample.received_bytes >= before.received_bytes;
  if (goes_on) {
    node.cores = (sample.cpu_seconds - before.cpu_seconds) / passed;
    node.sent_per_second = rate(before.sent_bytes, sample.sent_bytes, passed);
    node.received_per_second = rate(before.received_bytes, sample.received_bytes, passed);
  }
  node.sample = sample;
  node.sampled = time;
  node.clock_error = clock_error;
  content.nodes_version = ++content.version;
  return goes_on;
}

void History::take_log(LogLine line) {
  const std::scoped_lock lock(content_->log_mutex);
  content_->log.add(std::move(line), ++content_->version);
}

void History::set_dropped(std::uint64_t dropped) {
  const std::scoped_lock lock(content_->mutex);
  if (content_->progress.dropped == dropped) return;
  content_->progress.dropped = dropped;
  content_->progress_version = ++content_->version;
}

void History::end(std::string state, std::string error) {
  const std::scoped_lock lock(content_->mutex);
  content_->progress.state = std::move(state);
  content_->progress.error = std::move(error);
  content_->progress_version = ++content_->version;
  content_->end_nodes();
}

void History::begin_again() {
  const std::scoped_lock lock(content_->mutex);
  RunProgress& progress = content_->progress;
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
  content.nodes_version = content.showers_version = content.version;
  content.facts = {};
  content.progress = {};
  content.progress.state = "starting";
  content.clock = {};
  content.curves.clear();
  content.marks = Newest<Mark>(content.options.marks);
  content.validations = Newest<Validation>(content.options.marks);
  content.log = Newest<LogLine>(content.options.log_lines);
  content.nodes.clear();
  content.showers.clear();
  content.iteration_seconds = 0.0;
  content.left_out = 0;
}

RunFacts History::facts() const {
  const std::scoped_lock lock(content_->mutex);
  return content_->facts;
}

RunProgress History::progress() const {
  const std::scoped_lock lock(content_->mutex);
  return content_->progress_now();
}

std::vector<NodeState> History::nodes() const {
  const std::scoped_lock lock(content_->mutex);
  std::vector<NodeState> all;
  for (const auto& [name, node] : content_->nodes) all.push_back(node);
  return all;
}

std::optional<NodeState> History::node(const std::string& name) const {
  const std::scoped_lock lock(content_->mutex);
  const auto found = content_->nodes.find(name);
  if (found == content_->nodes.end()) return std::nullopt;
  return found->second;
}

std::vector<LatestValue> History::latest() const {
  const std::scoped_lock lock(content_->mutex);
  std::vector<LatestValue> all;
  for (const auto& [name, curve] : content_->curves) {
    const auto& points = curve.series.points();
    if (points.empty()) continue;
    all.push_back({name, points.back().x, curve.series.taken(), curve.series.last()});
  }
  return all;
}

std::vector<LogLine> History::log_tail() const {
  const std::scoped_lock lock(content_->log_mutex);
  return content_->log.since(0);
}

std::uint64_t History::version() const { return content_->version; }

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
  // Followers who keep up ask for the same few.
  if (content.texts.size() >= kMostTexts) content.texts.clear();
  // What came meanwhile is for the next who asks.
  if (news.version == content.texts_version) content.texts.emplace(version, text);
  return text;
}

}  // namespace troupe::telemetry
