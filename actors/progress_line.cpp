#include "actors/progress_line.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "telemetry/epoch_count.h"

namespace troupe::actors {
namespace {

using runtime::TimePoint;

constexpr int kBarWidth = 20;

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{:02}:{:02}", whole / 60, whole % 60);
}

}  // namespace

void ProgressLine::step(TimePoint now, std::uint64_t iteration, model::SlotKind slot, double loss,
                        std::uint64_t events, bool last) {
  // The first iteration includes start-up; rates are counted from its end.
  loss_[model::learner_name(slot)] = loss;
  if (!last) return;
  done_ = iteration + 1;
  if (started_) {
    events_ += events;
  } else {
    started_ = true;
    began_ = now;
  }
  show(now);
}

void ProgressLine::show(TimePoint now) {
  const auto pause = options_.terminal ? std::chrono::milliseconds(500) : std::chrono::seconds(10);
  if (options_.out == nullptr || !started_ || now - shown_ < pause) return;
  shown_ = now;
  write(text(now), options_.terminal ? "" : "\n");
}

void ProgressLine::finish(TimePoint now) {
  if (options_.out == nullptr || !started_) return;
  write(text(now), "\n");
}

// One loss, or those of both networks of a GAN.
std::string ProgressLine::loss_text() const {
  const auto of = [&](const char* learner) {
    const auto found = loss_.find(learner);
    return found == loss_.end() ? "-" : fmt::format("{:.3g}", found->second);
  };
  const bool is_gan = loss_.contains("generator") || loss_.contains("discriminator");
  if (is_gan) return fmt::format("d {} g {}", of("discriminator"), of("generator"));
  return loss_.empty() ? "-" : fmt::format("{:.3g}", loss_.begin()->second);
}

// On a terminal the line replaces the one before.
void ProgressLine::write(const std::string& line, const char* end) const {
  const std::string whole = fmt::format("{}{}{}{}", options_.terminal ? "\r" : "", line,
                                        options_.terminal ? "\x1b[K" : "", end);
  std::fputs(whole.c_str(), options_.out);
  std::fflush(options_.out);
}

std::string ProgressLine::text(TimePoint now) const {
  const double total = static_cast<double>(std::max<std::uint64_t>(options_.iterations, 1));
  const double part = static_cast<double>(done_) / total;
  const int filled = static_cast<int>(std::min(part, 1.0) * kBarWidth);
  const double elapsed = std::chrono::duration<double>(now - began_).count();
  const double rate = elapsed > 0.0 ? static_cast<double>(events_) / elapsed : 0.0;
  const std::uint64_t since = done_ - std::min(done_, options_.first_iteration + 1);
  const double left = since > 0 ? elapsed / static_cast<double>(since) *
                                      static_cast<double>(options_.iterations - done_)
                                : 0.0;
  const std::string epoch = telemetry::epoch_text(
      telemetry::count_epochs(done_, options_.iterations, options_.iterations_per_epoch));
  return fmt::format("{} [{}{}] {:.0f} %  iteration {}/{}  loss {}  {:.3g} events/s  {} left",
                     epoch, std::string(filled, '#'), std::string(kBarWidth - filled, '.'),
                     100.0 * part, done_, options_.iterations, loss_text(), rate,
                     since > 0 ? clock_text(left) : "--:--");
}

}  // namespace troupe::actors
