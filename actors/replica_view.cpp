// The part of the Replica that takes up another View, and what it learns before its first.

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "actors/replica.h"
#include "pipeline/steps/micro_batch.h"

namespace troupe::actors {
namespace {

// Steps that a leader may have told last without getting through.
constexpr std::uint64_t kToldAgain = 64;

}  // namespace

using runtime::Buffer;
using runtime::Context;
using runtime::Message;

void Replica::share_state(Context& context, std::uint32_t member) {
  const auto state = std::make_shared<const pipeline::TrainingState>(state_);
  const std::uint32_t replicas = options_.checks.replicas_per_member;
  for (std::uint32_t i = 0; i < replicas; ++i) {
    context.send_control(fmt::format("replica.{}", member * replicas + i),
                         Message::of(BeginTraining{state}));
  }
}

void Replica::tell_state(Context& context, std::string_view whom) {
  StatePointer state;
  if (phase_ == Phase::kTraining) state = std::make_shared<const pipeline::TrainingState>(state_);
  if (phase_ == Phase::kEnded) state = end_->state;
  context.send_control(whom, Message::of(OwnState{std::move(state)}));
}

void Replica::tell_learned(Context& context, bool complete) {
  context.send_control("coordinator",
                       Message::of(Learned{options_.replica, learned_steps_, complete}));
}

void Replica::learn(Context& context, const BucketMessage& body, const Buffer& sums) {
  const auto slot = training_.options.schedule[state_.slot];
  const pipeline::SumLayout layout =
      pipeline::sum_layout(training_.gan.contributions(slot), training_.options.lossy);
  const pipeline::Bucket bucket{body.begin, body.end - body.begin, body.floats};
  if (body.step != next_step() || !layout.holds(bucket) || sums.size() != bucket.bytes()) {
    return refuse(context,
                  fmt::format("elements {} to {} of step {}", body.begin, body.end, body.step));
  }
  if (!learned_) {
    learned_.emplace();
    learned_->sums = Buffer::zeroed(layout.bytes());
    learned_->floats = layout.floats;
  }
  std::memcpy(learned_->sums.mutable_data() + layout.offset(body.begin), sums.data(), sums.size());
}

// Whether its state is that of the others shows before the step is applied. With the second one it
// has shown that it applies a step as they do, and may join them.
void Replica::learn(Context& context, const pipeline::StepHeader& header) {
  if (header.step != next_step() || !learned_ || header.flagged ||
      header.micro_batches != training_.options.micro_batches) {
    return refuse(context, fmt::format("the header of step {}", header.step));
  }
  if (header.state_minimum != state_hash_ || header.state_maximum != state_hash_) {
    return context.fail(
        {runtime::ErrorKind::kDiverged,
         fmt::format("the state before step {} is {} here and {} with the members of the run; this "
                     "machine computes otherwise, or its memory is bad",
                     header.step, state_hash_.text(), header.state_minimum.text())});
  }
  pipeline::StepRecord record = *std::exchange(learned_, std::nullopt);
  record.header = header;
  record.scales = state_.scales[state_.slot];
  if (header.attempt > 0) {
    record.scales =
        pipeline::scales_for_attempt(record.scales, header, training_.options.micro_batches);
  }
  if (++learned_steps_ == kProvenSteps) tell_learned(context, false);
  commit(context, record);
}

void Replica::take_view(Context& context, ViewPointer view) {
  if (phase_ != Phase::kTraining || view->first_step != next_step()) {
    refuse(context, fmt::format("View {} from step {} on", text_of(view->id), view->first_step));
    return;
  }
  const bool led = std::exchange(
      leads_, view->leader() * options_.checks.replicas_per_member == options_.replica);
  if (!leads_) untold_.clear();
  const bool first = view_ == nullptr;
  // It and those that wrote down what the leader tells have begun anew, and ask for what they lack.
  const bool is_of_another_head = !first && view->id.term != view_->id.term;
  view_ = std::move(view);
  if (view_->is_new(options_.replica / options_.checks.replicas_per_member)) {
    tell_learned(context, true);
  }
  contributions_.messages.clear();
  pace_.restart();

  Feed feed;
  feed.replica = options_.replica;
  feed.number = ++feed_;
  feed.view = view_;
  feed.iteration = state_.iteration;
  incomplete_.clear();
  std::vector<std::shared_ptr<pipeline::IterationShare>> shares;
  for (const Flight& flight : flights_) shares.push_back(flight.share().iteration());
  if (iteration_ != nullptr && iteration_->iteration() >= state_.iteration) {
    shares.push_back(iteration_);
  }
  shares.erase(std::unique(shares.begin(), shares.end()), shares.end());
  std::size_t missing_count = 0;
  for (const auto& share : shares) {
    const std::vector<std::uint32_t> missing = missing_of(*share);
    share->take_over({});
    if (!missing.empty()) {
      incomplete_.push_back({share, missing});
      feed.missing.push_back({share->iteration(), missing});
      missing_count += missing.size();
    }
    feed.iteration = share->iteration() + 1;
  }
  for (Flight& flight : flights_) flight.restart(*view_);
  computer_->forget_prepared();
  batches_.expect(feed_, missing_count, most_own() + 1);
  if (iteration_ != nullptr) batches_.note_in_use(iteration_->with_events());
  context.send_control(options_.loader, Message::of(std::move(feed)));
  if (is_of_another_head) {
    validations_.sent = 0;
  } else if (leads_ && !led && !first) {
    lead(context);
  }
}

std::vector<std::uint32_t> Replica::own_in(std::uint64_t iteration) const {
  return pipeline::micro_batches_of(view_->owners_in(iteration), options_.replica);
}

std::size_t Replica::most_own() const {
  std::size_t most = own_in(0).size();
  for (const pipeline::View::Assignment& assignment : view_->later) {
    most = std::max(most, own_in(assignment.from).size());
  }
  return most;
}

std::vector<std::uint32_t> Replica::missing_of(const pipeline::IterationShare& share) const {
  std::vector<std::uint32_t> missing;
  for (const std::uint32_t index : own_in(share.iteration())) {
    if (!share.has(index)) missing.push_back(index);
  }
  return missing;
}

void Replica::tell_step(Context& context, StepMetrics step) {
  if (!metrics_.valid()) return;
  step.again = std::exchange(next_is_again_, false);
  const bool waits = !untold_.empty() || step.again;
  if (!waits) {
    context.send(metrics_, Message::of(std::move(step)));
    return;
  }
  untold_.push_back(std::move(step));
  if (untold_.size() > kRememberedSteps) untold_.pop_front();
  tell_untold(context);
}

void Replica::tell_again(Context& context, std::uint64_t from) {
  if (!metrics_.valid()) return;
  untold_.clear();
  for (const StepMetrics& step : last_steps_) {
    if (step.step < from) continue;
    untold_.push_back(step);
    untold_.back().again = true;
  }
  next_is_again_ = untold_.empty();
  tell_untold(context);
}

// In their order, and none is dropped for want of credit.
void Replica::tell_untold(Context& context) {
  for (; !untold_.empty(); untold_.pop_front()) {
    Message message = Message::of(StepMetrics(untold_.front()));
    if (!context.can_send(metrics_, message.bytes())) return;
    context.send(metrics_, std::move(message));
  }
}

// What the leader before may not have got through any more: the newest steps, which the Monitor
// knows by their numbers, and snapshots.
void Replica::lead(Context& context) {
  if (last_steps_.empty()) return;
  const std::uint64_t newest = last_steps_.back().step;
  // Of a head that was restarted nobody knows what the leader before has got through to it.
  const bool all = view_->id.term > 1;
  tell_again(context, all ? 0 : newest - std::min(newest, kToldAgain - 1));
  const bool epoch_ended = state_.epoch != last_steps_.back().epoch;
  snapshot_if_due(epoch_ended);
}

// False: not all that iterations under way lack is here.
bool Replica::take_over(Context& context) {
  for (; !incomplete_.empty(); incomplete_.pop_front()) {
    const auto& [share, missing] = incomplete_.front();
    auto micro_batches = fed(context, share->iteration(), missing);
    if (!micro_batches) return false;
    share->take_over(std::move(*micro_batches));
    for (Flight& flight : flights_) {
      if (flight.share().iteration() == share) flight.restart(*view_);
    }
    if (share == iteration_) batches_.note_in_use(share->with_events());
  }
  return true;
}

}  // namespace troupe::actors
