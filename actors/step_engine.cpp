#include "actors/step_engine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/step_ahead.h"
#include "pipeline/steps/step_record.h"
#include "pipeline/steps/turn_update.h"

namespace troupe::actors {
namespace {

// More than there are changes of the View while it is a member.
constexpr std::uint32_t kFeedsOfAProcess = 1U << 16;

pipeline::Sites sites_of(const pipeline::TrainingOptions& options,
                         const pipeline::SpotChecks& checks) {
  if (options.parts() == 1) return {};
  return {options.micro_batches, options.parts(), checks.replicas_per_member,
          checks.short_iteration};
}

}  // namespace

using runtime::Buffer;

StepEngine::StepEngine(const StepEngineOptions& options, TrainingContext training)
    : options_(options),
      training_(training),
      team_(static_cast<int>(options_.section.threads),
            [&backend = training.backend] { backend.prepare_thread(); }),
      of_worker_(pipeline::options_of_worker(training.options)),
      told_losses_(pipeline::losses_of_steps(training.gan.description(), training.options)),
      computer_(training.gan, of_worker_, team_),
      sites_(sites_of(training.options, options_.checks)),
      feed_({options_.replica, options_.checks, training.options.events_of_part(),
             static_cast<std::size_t>(training.gan.image_shape().elements()),
             training.gan.columns(), kFeedsOfAProcess * (options_.process - 1)}),
      early_end_(training.options, options_.validator.every) {
  if (training.options.worker) {
    workers_.emplace(training.gan, training.options, of_worker_, computer_);
  }
  if (training.options.has_turns()) {
    turns_.emplace(training.gan, training.options, *workers_, options_.replica, options_.order);
  }
}

void StepEngine::begin(const pipeline::TrainingState& state) {
  state_ = state;
  // A worker's own state is placed when it begins.
  if (!workers_) computer_.place(state_);
  state_hash_ = pipeline::hash_of_state(state_);
}

bool StepEngine::is_of_site() const {
  if (view_ == nullptr || sites_.workers == 0) return false;
  return sites_.shares(*view_, state_.iteration, options_.replica) ||
         (turns_ && sites_.shares(*view_, state_.iteration + 1, options_.replica));
}

// The steps under way go on in the new View with what was computed of them.
Feed StepEngine::enter(ViewPointer view) {
  const bool was_of_site = is_of_site();
  view_ = std::move(view);
  // Parts of a worker that are still to be taken over from members of the View before begin it
  // anew.
  const bool lacks_parts = begins_anew_ && !feed_.is_whole();
  begins_anew_ = was_of_site || lacks_parts || is_of_site();
  // A turn is contributed anew from what is ready.
  if (turns_) flights_.clear();
  if (turns_ && begins_anew_) {
    turns_->begin_anew();
    feed_.begin_anew();
  }
  std::vector<IterationFeed::Share> shares;
  if (turns_) shares = turns_->shares();
  for (const Flight& flight : flights_) shares.push_back(flight.share().iteration());
  Feed feed = feed_.enter(view_, state_.iteration, std::move(shares));
  if (begins_anew_) {
    of_site_.reset();
    workers_->forget();
  }
  for (Flight& flight : flights_) restart(flight);
  computer_.forget_prepared();
  return feed;
}

// A turn first takes over micro-batches of lost members, if all of them are here. Then it works at
// the first step under way until all of it is contributed, and after that at what of the next step
// the first one cannot change.
StepEngine::Turn StepEngine::work(const Hooks& hooks) {
  Turn turn;
  if (view_ == nullptr) return turn;
  while (!feed_.is_whole()) {
    const auto share = feed_.take_over();
    if (!share.ok()) turn.error = share.error();
    if (!share.ok() || *share == nullptr) return turn;
    for (Flight& flight : flights_) {
      if (flight.share().iteration() == *share) restart(flight);
    }
  }
  if (flights_.empty()) {
    turn.finished = feed_.has_ended(state_.iteration) ||
                    pipeline::reason_to_stop(training_.options.stop, state_);
    if (turn.finished) return turn;
  }
  if (turns_) {
    turn.slot = state_.slot;
    turn.step = next_step();
    // Those that wait for this replica come first.
    if (!flights_.empty()) {
      announce(hooks);
      hooks.flush();
    }
    auto work =
        turns_->work(state_, *view_, feed_, {flights_.empty(), !of_site_.has_value()}, hooks.now);
    if (!work.ok()) {
      turn.error = work.error();
    } else if (work->contribution) {
      flights_.emplace_back(std::move(*work->contribution), options_.reducer.segment_bytes, *view_);
      contribute(flights_.front(), 0, state_.scales[state_.slot], hooks);
      turn.work = Turn::Work::kContributed;
    } else if (work->computed) {
      turn.work = Turn::Work::kComputed;
      if (sites_.workers > 0) contribute_to_site(hooks);
    }
    return turn;
  }
  if (flights_.empty() && !begin_step(next_step(), turn)) return turn;
  if (flights_.front().contributed()) {
    announce(hooks);
    hooks.flush();
    work_ahead(hooks, turn);
  } else {
    compute(flights_.front(), hooks, turn);
  }
  return turn;
}

void StepEngine::restart(Flight& flight) {
  if (begins_anew_) flight.share().begin_anew();
  flight.restart(*view_);
}

void StepEngine::work_ahead(const Hooks& hooks, Turn& turn) {
  using pipeline::StepAhead;
  const StepAhead ahead =
      pipeline::step_ahead(training_.options.schedule, flights_.front().share().slot());
  if (!options_.section.overlap || ahead == StepAhead::kNothing) return;
  if (early_end_.may_follow(state_)) return;
  if (flights_.size() == 1 && !begin_step(next_step() + 1, turn)) return;
  Flight& behind = flights_.back();
  if (ahead == StepAhead::kAll) return compute(behind, hooks, turn);
  if (!computer_.prepare(state_, behind.share())) return;
  turn.work = Turn::Work::kPrepared;
  turn.slot = behind.share().slot();
  turn.step = behind.share().step();
}

bool StepEngine::begin_step(std::uint64_t step, Turn& turn) {
  const std::size_t slots = training_.options.schedule.size();
  const auto iteration = feed_.begin(step / slots);
  if (!iteration.ok()) turn.error = iteration.error();
  if (!iteration.ok() || *iteration == nullptr) return false;
  pipeline::StepShare share(training_.gan, training_.options, *iteration,
                            static_cast<std::uint32_t>(step % slots));
  flights_.emplace_back(std::move(share), options_.reducer.segment_bytes, *view_);
  return true;
}

// One turn of a step. Buckets whose elements are complete go out at once, from the end of the
// contribution vector to its front. When all is computed the rest follows, and the header.
void StepEngine::compute(Flight& flight, const Hooks& hooks, Turn& turn) {
  if (flight.contributed() || of_site_) return;
  turn.slot = flight.share().slot();
  turn.step = flight.share().step();
  const bool last = turn.slot + 1 == training_.options.schedule.size();
  const model::FinalFrom send = [&](std::int64_t element) {
    // When no micro-batch is computed for comparison, nothing is left to compute after the first
    // element: the last buckets go with the header.
    if (element == 0 && flight.share().to_compute() == flight.share().own()) return;
    flight.begin(0, state_.scales[turn.slot], hooks.now());
    flight.add_buckets(element, hooks.post);
    hooks.flush();
  };
  const bool computed =
      workers_ ? workers_->compute(state_, flight.share())
               : computer_.compute(state_, flight.share(),
                                   options_.section.overlap ? send : model::FinalFrom{});
  turn.work = computed ? Turn::Work::kComputed : Turn::Work::kContributed;
  if (computed && sites_.workers > 0) contribute_to_site(hooks);
  // The last step of an iteration is the last one that reads its events.
  // Those of parts are kept, as another View may begin a worker anew.
  if (last && sites_.workers == 0) {
    pipeline::IterationShare& share = *flight.share().iteration();
    feed_.release_events(share, computed ? flight.share().computed() : share.held());
  }
  if (!computed) contribute(flight, 0, state_.scales[turn.slot], hooks);
}

void StepEngine::contribute_to_site(const Hooks& hooks) {
  auto shared = workers_->take_shared();
  if (!shared) return;
  const auto replicas = sites_.replicas_of(*view_, shared->iteration, shared->worker);
  Flight flight(std::move(shared->step), options_.reducer.segment_bytes,
                sites_.view_of(*view_, replicas), shared->worker);
  of_site_.emplace(OfSite{shared->worker, shared->state, std::move(flight)});
  begin_site_attempt(shared->scales, 0, hooks);
}

void StepEngine::begin_site_attempt(const std::vector<std::int16_t>& scales, std::uint32_t attempt,
                                    const Hooks& hooks) {
  Flight& flight = of_site_->flight;
  flight.begin(attempt, scales, hooks.now());
  flight.add_buckets(0, hooks.post);
  flight.add_header(of_site_->state, std::nullopt, {}, hooks.post);
  hooks.flush();
}

runtime::Result<bool> StepEngine::take_header_of_worker(const HeaderMessage& body,
                                                        const Hooks& hooks) {
  const pipeline::StepHeader& header = body.header;
  if (!of_site_ || of_site_->worker != body.worker) return false;
  Flight& flight = of_site_->flight;
  if (header.step != flight.share().step() || header.attempt != flight.attempt()) return false;
  flight.take(header);
  if (turns_) turns_->note_time(runtime::seconds(hooks.now() - flight.begun_at()));
  ASSIGN_OR_RETURN(const auto again, workers_->end_shared(flight.record()));
  if (again) {
    begin_site_attempt(*again, header.attempt + 1, hooks);
  } else {
    workers_->retire(std::move(flight.share()));
    of_site_.reset();
  }
  return true;
}

void StepEngine::contribute(Flight& flight, std::uint32_t attempt,
                            const std::vector<std::int16_t>& scales, const Hooks& hooks) {
  flight.begin(attempt, scales, hooks.now());
  flight.add_buckets(0, hooks.post);
  if (&flight == &flights_.front()) announce(hooks);
}

// The header holds the hash of the state before the step. A turn looks again where it cannot go out
// yet.
void StepEngine::announce(const Hooks& hooks) {
  Flight& flight = flights_.front();
  if (!flight.contributed() || flight.announced()) return;
  const bool leads = view_->leader() * options_.checks.replicas_per_member == options_.replica;
  const auto figure = early_end_.figure_of(state_);
  if (leads && !figure && early_end_.wants_figure(state_)) return;
  auto next = turns_ ? turns_->offers(state_, *view_) : std::vector<pipeline::TurnOffer>();
  flight.add_header(state_hash_, figure, std::move(next), hooks.post);
}

StepEngine::Waits StepEngine::waits() const {
  if (of_site_) return Waits::kForSums;
  if (flights_.empty() && turns_ && turns_->has_begun()) return Waits::kForItself;
  if (flights_.empty()) return Waits::kForBatches;
  return flights_.front().contributed() ? Waits::kForSums : Waits::kForItself;
}

bool StepEngine::take_bucket(const BucketMessage& body, const Buffer& sums) {
  if (of_site_ && of_site_->flight.take(body, sums)) return true;
  return std::any_of(flights_.begin(), flights_.end(),
                     [&](Flight& flight) { return flight.take(body, sums); });
}

bool StepEngine::expects(const pipeline::StepHeader& header) const {
  return !flights_.empty() && flights_.front().announced() && header.step == next_step() &&
         header.attempt == flights_.front().attempt() &&
         (header.flagged || pipeline::says_next_turn(header, training_.options, state_));
}

runtime::Result<bool> StepEngine::take_header(const pipeline::StepHeader& header,
                                              const Hooks& hooks) {
  Flight& flight = flights_.front();
  flight.take(header);
  const model::ContributionLayout& tensors = flight.share().layout();
  const auto is_good = pipeline::judge(header, tensors, training_.options,
                                       view_->checks(options_.checks, state_.iteration));
  if (!is_good.ok()) return is_good.error();
  if (!*is_good) {
    const std::size_t rounded = pipeline::rounded_tensors(tensors, training_.options);
    contribute(flight, header.attempt + 1,
               pipeline::scales_after(state_.scales[state_.slot], header,
                                      training_.options.micro_batches, rounded),
               hooks);
    return false;
  }
  if (auto overflown = pipeline::overflow(flight.record(), flight.share().sums(), tensors)) {
    return std::move(*overflown);
  }
  return true;
}

runtime::Result<void> StepEngine::apply(const pipeline::StepRecord& record) {
  // Weights of workers are on a device, those between them are not.
  auto applied = workers_ ? pipeline::apply(training_.gan, training_.options, record, state_)
                          : pipeline::apply(training_.gan, training_.options, record, state_,
                                            computer_.optimisers());
  state_hash_ = pipeline::hash_of_state(state_);
  if (turns_) turns_->go_on(state_);
  return applied;
}

void StepEngine::retire(const Hooks& hooks) {
  if (sites_.workers > 0 && !turns_) {
    pipeline::IterationShare& share = *flights_.front().share().iteration();
    feed_.release_events(share, share.held());
  }
  if (!workers_) computer_.retire(std::move(flights_.front().share()));
  flights_.pop_front();
  if (!flights_.empty()) announce(hooks);
}

std::string StepEngine::waiting_for() const {
  if (of_site_) {
    return fmt::format("the sum of step {} of worker {} in its site",
                       of_site_->flight.share().step(), of_site_->worker);
  }
  if (turns_ && feed_.is_whole()) {
    const auto workers = state_.turns->next.numbers();
    return fmt::format("the turn of worker{} {} in iteration {}", workers.size() > 1 ? "s" : "",
                       fmt::join(workers, ", "), state_.iteration);
  }
  if (!feed_.is_whole() || flights_.empty()) return feed_.waiting_for(state_.iteration);
  if (flights_.front().contributed() && !flights_.front().announced()) {
    return fmt::format("the validator's figure of the state before iteration {}", state_.iteration);
  }
  return fmt::format("{} iteration {} slot {}",
                     flights_.front().contributed() ? "the sum of" : "its own turn at",
                     state_.iteration, state_.slot);
}

StepMetrics StepEngine::metrics_of(const pipeline::StepRecord& record) const {
  StepMetrics metrics;
  metrics.step = record.header.step;
  metrics.epoch = state_.epoch;
  metrics.iteration = state_.iteration;
  metrics.slot = state_.slot;
  metrics.attempts = record.header.attempt + 1;
  metrics.events = record.header.events;
  metrics.event_sum = record.header.event_sum;
  metrics.state_hash = state_hash_;
  if (state_.turns) {
    metrics.turn = {state_.turns->next.numbers(),
                    pipeline::turn_behind(record.header, training_.options).numbers()};
  }
  const auto slot = training_.options.schedule[state_.slot];
  if (slot == model::SlotKind::kStatistics) return metrics;
  const auto losses = pipeline::step_losses(training_.gan.contributions(slot), record);
  for (const std::size_t i : told_losses_) metrics.losses.push_back(losses.at(i));
  return metrics;
}

}  // namespace troupe::actors
