#include "actors/monitor.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/json_text.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::json_number;
using runtime::json_string;
using runtime::Message;

constexpr auto kShowEvery = std::chrono::seconds(1);
// With steps that were told and may have been dropped on the way: so many looks at the mailbox, in
// a row, that find none.
constexpr auto kLookEvery = std::chrono::milliseconds(50);
constexpr int kMostLooks = 20;

std::string step_line(const StepMetrics& step, const MonitorOptions& options) {
  std::string losses;
  for (std::size_t i = 0; i < step.losses.size(); ++i) {
    losses += fmt::format("{}\"{}\":{}", i == 0 ? "" : ",", options.losses[i].output,
                          json_number(step.losses[i]));
  }
  return fmt::format(
      R"({{"kind":"step","step":{},"epoch":{},"iteration":{},"slot":"{}","attempts":{},"events":{},)"
      R"("event_sum":"{:016x}","losses":{{{}}},"seconds":{{"load":{},"compute":{},"reduce":{},"apply":{}}},"state_hash":"{}"}})",
      step.step, step.epoch, step.iteration, model::slot_name(options.schedule[step.slot]),
      step.attempts, step.events, step.event_sum, losses, json_number(step.load_seconds),
      json_number(step.compute_seconds), json_number(step.reduce_seconds),
      json_number(step.apply_seconds), step.state_hash.text());
}

}  // namespace

Monitor::Monitor(MonitorOptions options)
    : options_(std::move(options)), progress_(options_.progress), next_step_(options_.first_step) {}

Monitor::~Monitor() {
  if (file_ != nullptr) std::fclose(file_);
}

void Monitor::start(Context& context) {
  file_ = std::fopen(options_.metrics_path.c_str(), "ae");
  if (file_ == nullptr) {
    context.log().warning(fmt::format("cannot open {}: {}; metrics are not written",
                                      options_.metrics_path,
                                      std::generic_category().message(errno)));
  } else {
    // A killed run has the lines of all steps but the last moment's.
    std::setvbuf(file_, nullptr, _IOLBF, BUFSIZ);
  }
  context.after(kShowEvery);
}

void Monitor::timer(Context& context, runtime::TimerId id) {
  if (id == look_) return look_for_steps(context);
  progress_.show(context.now());
  context.after(kShowEvery);
}

void Monitor::receive(Context& context, Message message) {
  if (const auto* step = message.as<StepMetrics>()) {
    if (step->again) options_.told_before = false;
    if (!options_.told_before && is_to_come(*step)) take_step(context, *step);
    if (finish_ && next_step_ >= finish_->told_until) finish(context);
  } else if (const auto* event = message.as<EventMetrics>()) {
    write(context, fmt::format(R"({{"kind":"{}","step":{},"fields":{}}})", event->kind, event->step,
                               event->json));
  } else if (const auto* change = message.as<NodeChange>()) {
    take_change(context, *change);
  } else if (const auto* last = message.as<FinishMetrics>()) {
    finish_ = *last;
    if (next_step_ >= finish_->told_until) return finish(context);
    // Between nodes metrics have a way of their own, on which they may be slower.
    look_ = context.after(kLookEvery);
  }
}

void Monitor::look_for_steps(Context& context) {
  if (!finish_) return;
  if (++looks_ == kMostLooks) return finish(context);
  context.post_progress();
  look_ = context.after(kLookEvery);
}

void Monitor::finish(Context& context) {
  const auto newest = std::move(finish_->newest);
  finish_.reset();
  if (newest && is_to_come(*newest)) take_step(context, *newest);
  if (const std::uint64_t made = next_step_ - options_.first_step; made > written_) {
    context.log().warning(fmt::format(
        "{} lacks {} lines of steps that came faster than they could be written, or were lost with "
        "their node; training and checkpoints are whole",
        options_.metrics_path, made - written_));
  }
  if (file_ != nullptr) std::fflush(file_);
  progress_.finish(context.now());
  context.send_control("coordinator", Message::of(LastStateDone{}));
}

// Another node may say anything.
bool Monitor::is_to_come(const StepMetrics& step) const {
  const std::size_t slots = options_.schedule.size();
  return step.step >= next_step_ && step.slot < slots &&
         step.iteration < options_.progress.iterations &&
         step.step == step.iteration * slots + step.slot &&
         step.losses.size() == options_.losses.size();
}

void Monitor::take_step(Context& context, const StepMetrics& step) {
  write(context, step_line(step, options_));
  next_step_ = step.step + 1;
  ++written_;
  looks_ = 0;
  double total = 0.0;
  for (std::size_t i = 0; i < step.losses.size(); ++i) {
    total += options_.losses[i].weight * step.losses[i];
  }
  progress_.step(context.now(), step.iteration, options_.schedule[step.slot], total, step.events,
                 step.slot + 1 == options_.schedule.size());
}

// Tells the step training has reached, so that a run that goes on knows which lines to keep.
void Monitor::take_change(Context& context, const NodeChange& change) {
  write(context,
        fmt::format(R"({{"kind":"node","step":{},"node":{},"state":"{}","host":{},"pid":{},)"
                    R"("address":{},"cause":{}}})",
                    next_step_, json_string(change.node), change.state, json_string(change.host),
                    change.pid, json_string(change.address), json_string(change.cause)));
  if (options_.on_node) options_.on_node(change);
}

void Monitor::write(Context& context, const std::string& line) {
  if (file_ == nullptr || write_failed_) return;
  if (std::fputs((line + "\n").c_str(), file_) < 0) {
    write_failed_ = true;
    context.log().warning(fmt::format("cannot write {}: {}; further metrics are left out",
                                      options_.metrics_path,
                                      std::generic_category().message(errno)));
  }
}

}  // namespace troupe::actors
