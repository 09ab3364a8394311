#include "telemetry/watch/watch_screen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "runtime/base/amount_text.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/utf8.h"
#include "telemetry/epoch_count.h"

namespace troupe::telemetry {
namespace {

using runtime::amount_text;

constexpr std::array<const char*, 8> kHeights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::size_t kNameColumns = 16;
constexpr std::size_t kMarks = 4, kLogLines = 5, kMostNodes = 12;

// Left-aligned in so many columns.
std::string cell(std::string_view text, std::size_t columns) {
  std::string fitted = fit(text, columns);
  const auto characters = static_cast<std::size_t>(
      std::count_if(fitted.begin(), fitted.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
  return fitted.append(columns - std::min(columns, characters), ' ');
}

std::string clock_text(double time) {
  if (time <= 0.0 || time > 1e11) return "--:--:--";
  return fmt::format("{:%H:%M:%S}", fmt::localtime(static_cast<std::time_t>(time)));
}

std::string bar(double fraction, std::size_t columns) {
  const double part = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  const auto full = static_cast<std::size_t>(part * static_cast<double>(columns));
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(columns - full, '-'));
}

RunFacts facts_of(const HistoryNews& run) { return run.run.value_or(RunFacts()); }
RunProgress progress_of(const HistoryNews& run) { return run.progress.value_or(RunProgress()); }

// The means; none where there is no such curve.
std::vector<double> curve_of(const HistoryNews& run, std::string_view name) {
  std::vector<double> means;
  const SeriesNews* const series = run.find(name);
  if (series == nullptr) return means;
  for (const SeriesPoint& point : series->points) means.push_back(point.mean);
  return means;
}

// Slots of the schedule, each once.
std::vector<std::string> slots_of(const RunFacts& facts) {
  std::vector<std::string> slots;
  for (const std::string& slot : facts.schedule) {
    if (std::find(slots.begin(), slots.end(), slot) == slots.end()) slots.push_back(slot);
  }
  return slots;
}

// The weighted sum of a slot's terms. They have their points at the same steps.
std::vector<double> slot_loss(const HistoryNews& run, const std::string& slot) {
  std::vector<double> sum;
  for (const auto& [term, weight] : facts_of(run).losses) {
    const std::vector<double> curve = curve_of(run, fmt::format("loss/{}/{}", slot, term));
    if (curve.empty()) continue;
    sum.resize(sum.empty() ? curve.size() : std::min(sum.size(), curve.size()));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * curve[i];
  }
  return sum;
}

void add_head(const HistoryNews& run, std::size_t columns, std::vector<std::string>& lines) {
  const RunFacts facts = facts_of(run);
  const RunProgress progress = progress_of(run);
  lines.push_back(fmt::format("{}  {}  {}", facts.name.empty() ? "a run" : facts.name, facts.model,
                              progress.state));
  const double done = facts.iterations == 0 ? 0.0
                                            : static_cast<double>(progress.iterations) /
                                                  static_cast<double>(facts.iterations);
  const std::size_t width = columns > 30 ? std::min<std::size_t>(columns - 12, 60) : 10;
  lines.push_back(fmt::format("{} {:.1f} %", bar(done, width), 100.0 * done));
  lines.push_back(watch_line(run));
  if (progress.cost > 0.0) {
    lines.push_back(fmt::format("{} node hours, {} core hours, cost {}",
                                amount_text(progress.node_hours), amount_text(progress.core_hours),
                                amount_text(progress.cost)));
  }
  if (!progress.error.empty()) lines.push_back("error: " + progress.error);
}

void add_curves(const HistoryNews& run, std::size_t columns, std::vector<std::string>& lines) {
  const std::size_t width = columns > 40 ? columns - 30 : 10;
  const auto add = [&](const std::string& name, const std::vector<double>& curve) {
    if (curve.empty()) return;
    lines.push_back(fmt::format("  {} {:>10.4g}  {}", cell(name, kNameColumns), curve.back(),
                                sparkline(curve, width)));
  };
  lines.emplace_back("losses");
  for (const std::string& slot : slots_of(facts_of(run))) add(slot, slot_loss(run, slot));
  for (const auto& [series, name] : {std::pair{"events_per_second", "events/s"},
                                     std::pair{"validation/total", "figure of merit"}}) {
    add(name, curve_of(run, series));
  }
}

// How far the generated showers are off the data, beside what the data have against themselves.
void add_errors(const HistoryNews& run, std::vector<std::string>& lines) {
  struct Error {
    const char* figure;
    const char* name;
    double scale;
    const char* unit;
  };
  constexpr std::array<Error, 6> kErrors{
      {{"sampling_fraction_error", "response", 100.0, " %"},
       {"sampling_fraction_width_error", "its width", 100.0, " %"},
       {"hits_error", "hits", 100.0, " %"},
       {"longitudinal_error", "along z", 100.0, " %"},
       {"transverse_error", "across", 100.0, " %"},
       {"layer_correlation_difference", "layers", 1.0, ""}}};
  const auto newest = [&](const std::string& series) {
    const std::vector<double> curve = curve_of(run, series);
    return curve.empty() ? std::nan("") : curve.back();
  };
  std::vector<std::string> told;
  for (const Error& error : kErrors) {
    const double value = newest(fmt::format("validation/{}", error.figure));
    const double floor = newest(fmt::format("validation/floor/{}", error.figure));
    if (!std::isfinite(value)) continue;
    std::string text = fmt::format("{} {:.3g}{}", error.name, error.scale * value, error.unit);
    if (std::isfinite(floor)) text += fmt::format(" ({:.2g})", error.scale * floor);
    told.push_back(std::move(text));
  }
  if (told.empty()) return;
  lines.emplace_back("off the data (data against data)");
  for (std::size_t i = 0; i < told.size(); i += 3) {
    const std::size_t some = std::min<std::size_t>(3, told.size() - i);
    lines.push_back(fmt::format("  {}", fmt::join(told.data() + i, told.data() + i + some, ", ")));
  }
}

// What a validation says of the figure that chooses the best state.
struct ChosenBy {
  std::string figure, title, unit;
  std::optional<double> distance = {};
};

ChosenBy chosen_by(const Validation& validation) {
  ChosenBy found;
  const nlohmann::json rows = runtime::parse_json(validation.rows);
  if (!rows.is_array() || rows.empty() || !rows.back().is_object()) return found;
  const nlohmann::json chosen = rows.back().value("chosen", nlohmann::json());
  if (!chosen.is_object()) return found;
  const auto text = [&](const char* name) {
    const auto value = chosen.find(name);
    return value != chosen.end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  found = {text("figure"), text("title"), text("unit")};
  const auto distance = chosen.find("distance");
  if (distance != chosen.end() && distance->is_number()) found.distance = distance->get<double>();
  return found;
}

// How good the best state is that is kept, by the figure that chooses it. A run that went on with
// another one has validations by both.
void add_best(const HistoryNews& run, std::vector<std::string>& lines) {
  if (run.validations.empty()) return;
  const ChosenBy last = chosen_by(run.validations.back());
  std::optional<double> best;
  for (const Validation& validation : run.validations) {
    const ChosenBy each = chosen_by(validation);
    if (each.distance && each.figure == last.figure) {
      best = std::min(best.value_or(*each.distance), *each.distance);
    }
  }
  if (!best) return;
  lines.push_back(fmt::format("best so far  {}: {:.4g}{}{} from its ideal", last.title, *best,
                              last.unit.empty() ? "" : " ", last.unit));
}

// The parts of a step's time, lately.
void add_step_time(const HistoryNews& run, std::size_t columns, std::vector<std::string>& lines) {
  constexpr std::array<const char*, 4> kParts{"load", "compute", "reduce", "apply"};
  std::array<double, 4> seconds{};
  double sum = 0.0;
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    const std::vector<double> curve = curve_of(run, fmt::format("seconds/{}", kParts[i]));
    if (curve.empty()) continue;
    seconds[i] = std::max(curve.back(), 0.0);
    sum += seconds[i];
  }
  if (!(sum > 0.0) || !std::isfinite(sum)) return;
  const double width = columns > 80 ? 40.0 : 20.0;
  std::string drawn, told;
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    const double share = seconds[i] / sum;
    // Each share is rounded by itself, so the bar may be a little longer or shorter than its width.
    drawn.append(static_cast<std::size_t>(std::lround(share * width)),
                 static_cast<char>(kParts[i][0] - 'a' + 'A'));
    told += fmt::format("{} {:.0f} %  ", kParts[i], 100.0 * share);
  }
  lines.push_back(fmt::format("step time  {}|{}|", told, drawn));
}

std::string line_of(const DeviceSample& device) {
  const auto bytes = [](std::int64_t count) { return bytes_text(static_cast<double>(count)); };
  std::string line =
      fmt::format("    {} ({})  {} of {}", device.device, device.name,
                  bytes(std::max(device.own_bytes, device.used_bytes)), bytes(device.memory_bytes));
  if (device.busy >= 0.0) line += fmt::format("  {:.0f} % busy", 100.0 * device.busy);
  if (device.watts >= 0.0) line += fmt::format("  {:.0f} W", device.watts);
  if (device.celsius >= 0.0) line += fmt::format("  {:.0f} °C", device.celsius);
  return line;
}

void add_bill(const HistoryNews& run, std::vector<std::string>& lines) {
  if (!run.bill) return;
  const BillFacts& bill = *run.bill;
  std::string total = "pools  cost " + amount_text(bill.cost);
  if (bill.cost_per_epoch) total += fmt::format(", {} an epoch", amount_text(*bill.cost_per_epoch));
  if (bill.cost_at_end) total += fmt::format(", {} at the end", amount_text(*bill.cost_at_end));
  if (bill.first_cost) total += fmt::format(" (at first {})", amount_text(*bill.first_cost));
  lines.push_back(std::move(total));
  for (const PoolBill& pool : bill.pools) {
    lines.push_back(fmt::format("  {} {} of {} nodes  {} node hours  {}  {:.0f} iterations",
                                cell(pool.name, kNameColumns), pool.running, pool.wanted,
                                amount_text(pool.node_hours), amount_text(pool.cost),
                                pool.iterations));
  }
}

void add_nodes(const HistoryNews& run, std::vector<std::string>& lines) {
  const std::vector<NodeState> nodes = run.nodes.value_or(std::vector<NodeState>());
  if (nodes.empty()) return;
  lines.emplace_back("nodes");
  for (std::size_t i = 0; i < nodes.size() && i < kMostNodes; ++i) {
    const NodeState& node = nodes[i];
    lines.push_back(fmt::format("  {} {} {:>6.2f} cores {:>9}  {} {}",
                                cell(node.name, kNameColumns), cell(node.state, 8), node.cores,
                                bytes_text(static_cast<double>(node.sample.resident_bytes)),
                                node.host, node.cause));
    for (const DeviceSample& device : node.sample.devices) lines.push_back(line_of(device));
  }
  if (nodes.size() > kMostNodes) {
    lines.push_back(fmt::format("  and {} more", nodes.size() - kMostNodes));
  }
}

void add_notes(const HistoryNews& run, std::vector<std::string>& lines) {
  if (!run.marks.empty()) lines.emplace_back("lately");
  for (std::size_t i = run.marks.size() - std::min(kMarks, run.marks.size()); i < run.marks.size();
       ++i) {
    const Mark& mark = run.marks[i];
    lines.push_back(fmt::format("  {}  step {}  {}", clock_text(mark.time), mark.step, mark.text));
  }
  if (!run.log.empty()) lines.emplace_back("log");
  for (std::size_t i = run.log.size() - std::min(kLogLines, run.log.size()); i < run.log.size();
       ++i) {
    const LogLine& line = run.log[i];
    lines.push_back(
        fmt::format("  {}  {} {}", clock_text(line.time), cell(line.level, 7), line.text));
  }
}

}  // namespace

std::string fit(std::string_view text, std::size_t columns) {
  std::string out;
  for (std::size_t used = 0; !text.empty() && used < columns; ++used) {
    const std::size_t length = runtime::utf8_length(text);
    if (length == 0 || runtime::is_hidden(text.substr(0, length))) {
      out += '?';
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string sparkline(std::span<const double> values, std::size_t columns) {
  values = values.last(std::min(values.size(), columns));
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Taken of halves, since the difference may be too large for a double. It is 0 for the smallest.
  const double spread = high / 2 - low / 2;
  std::string line;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      line += '?';
      continue;
    }
    const double height = spread > 0.0 ? (value / 2 - low / 2) / spread : 0.0;
    line += kHeights[std::min<std::size_t>(static_cast<std::size_t>(8.0 * height), 7)];
  }
  return line;
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0.0) || seconds > 1e9) return "?";
  const auto all = static_cast<std::uint64_t>(seconds + 0.5);
  if (all < 60) return fmt::format("{} s", all);
  if (all < 3600) return fmt::format("{}:{:02}", all / 60, all % 60);
  if (all < 86400) return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
  return fmt::format("{} d {} h", all / 86400, all / 3600 % 24);
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000.0 && unit + 1 < kUnits.size()) {
    bytes /= 1000.0;
    ++unit;
  }
  const int decimals = unit == 0 || bytes >= 100.0 ? 0 : 1;
  return fmt::format("{:.{}f} {}", bytes, decimals, kUnits[unit]);
}

std::string watch_line(const HistoryNews& run) {
  const RunFacts facts = facts_of(run);
  const RunProgress progress = progress_of(run);
  std::string line = fmt::format("iteration {}", progress.iterations);
  if (facts.iterations > 0) line += fmt::format("/{}", facts.iterations);
  if (progress.epoch > 0) line += ", " + epoch_text({progress.epoch, progress.all_epochs});
  for (const std::string& slot : slots_of(facts)) {
    const std::vector<double> loss = slot_loss(run, slot);
    if (!loss.empty()) line += fmt::format(", {} {:.4g}", slot, loss.back());
  }
  if (progress.events_per_second > 0.0) {
    line += fmt::format(", {:.4g} events/s", progress.events_per_second);
  }
  if (progress.seconds_left)
    line += fmt::format(", {} left", duration_text(*progress.seconds_left));
  if (progress.dropped > 0) line += fmt::format(", {} metrics dropped", progress.dropped);
  return fit(line, 500);
}

std::vector<std::string> watch_screen(const HistoryNews& run, std::size_t columns,
                                      std::size_t rows) {
  std::vector<std::string> lines;
  add_head(run, columns, lines);
  add_curves(run, columns, lines);
  add_errors(run, lines);
  add_best(run, lines);
  add_step_time(run, columns, lines);
  add_bill(run, lines);
  add_nodes(run, lines);
  add_notes(run, lines);
  if (lines.size() > rows) lines.resize(rows);
  for (std::string& line : lines) line = fit(line, columns);
  return lines;
}

}  // namespace troupe::telemetry
