#include "actors/work_book.h"

#include <algorithm>

namespace troupe::actors {
namespace {

// Over which iterations are timed.
constexpr auto kWindow = std::chrono::minutes(2);
// Iterations that a pace needs: the first with new members are slower than others.
constexpr std::uint64_t kFewestIterations = 4;
// The weight of all earlier paces of a replica beside a new one.
constexpr double kKept = 0.7;

}  // namespace

WorkBook::WorkBook(WorkBookOptions options)
    : options_(std::move(options)), iteration_(options_.first_iteration) {}

const std::string& WorkBook::pool_of(std::uint32_t replica) const {
  static const std::string kNone;
  const auto found = pools_.find(replica / options_.replicas_per_member);
  return found == pools_.end() ? kNone : found->second;
}

// Micro-batches that move within the View's first iterations are counted where they end.
void WorkBook::reach(std::uint64_t iteration) {
  if (iteration <= iteration_) return;
  const auto made = static_cast<double>(iteration - iteration_);
  if (view_ != nullptr) {
    const auto& owners = view_->owners_in(iteration);
    for (const std::uint32_t replica : owners) {
      options_.contributed[pool_of(replica)] += made / static_cast<double>(owners.size());
    }
  }
  iteration_ = iteration;
}

void WorkBook::enter(ViewPointer view, const PoolOf& pool_of) {
  reach(view->first_step / options_.steps_per_iteration);
  view_ = std::move(view);
  pools_.clear();
  for (const std::uint32_t member : view_->ring) pools_[member] = pool_of(member);
  std::erase_if(paces_, [&](const auto& of) {
    return !pools_.contains(of.first / options_.replicas_per_member);
  });
  told_.reset();
  iteration_seconds_.reset();
}

void WorkBook::note(const Pace& pace, runtime::TimePoint now) {
  const std::uint32_t member = pace.replica / options_.replicas_per_member;
  if (!pools_.contains(member) || pace.seconds <= 0.0 || pace.micro_batches == 0) return;
  reach(pace.iteration);
  Told& told = paces_[pace.replica];
  told.micro_batches = kKept * told.micro_batches + static_cast<double>(pace.micro_batches);
  told.seconds = kKept * told.seconds + pace.seconds;
  last_speeds_[pools_.at(member)] = crew(pools_.at(member)).speed;
  if (!told_) {
    told_ = {pace.replica, pace.iteration};
    told_at_ = now;
  }
  const auto& [replica, iteration] = *told_;
  if (pace.replica != replica || pace.iteration < iteration + kFewestIterations) return;
  iteration_seconds_ =
      runtime::seconds(now - told_at_) / static_cast<double>(pace.iteration - iteration);
  if (now - told_at_ < kWindow) return;
  told_ = {pace.replica, pace.iteration};
  told_at_ = now;
}

double WorkBook::iterations_left() const {
  return static_cast<double>(options_.iterations - std::min(iteration_, options_.iterations));
}

double WorkBook::epochs() const {
  return static_cast<double>(iteration_) / static_cast<double>(options_.iterations_per_epoch);
}

pipeline::Crew WorkBook::crew(const std::string& pool) const {
  pipeline::Crew crew;
  for (const auto& [member, of] : pools_) {
    if (of == pool) crew.workers += options_.replicas_per_member;
  }
  double sum = 0.0;
  int measured = 0;
  for (const auto& [replica, told] : paces_) {
    if (pool_of(replica) != pool) continue;
    sum += told.micro_batches / told.seconds;
    ++measured;
  }
  const auto last = last_speeds_.find(pool);
  if (measured > 0) {
    crew.speed = sum / measured;
  } else if (last != last_speeds_.end()) {
    crew.speed = last->second;
  }
  return crew;
}

double WorkBook::contributed(const std::string& pool) const {
  const auto found = options_.contributed.find(pool);
  return found == options_.contributed.end() ? 0.0 : found->second;
}

}  // namespace troupe::actors
