#include "actors/reducer.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "config/plan.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;

pipeline::ViewId view_of(const RingBucket& body) { return body.bucket.view; }
pipeline::ViewId view_of(const RingHeader& body) { return body.view; }
std::uint64_t step_of(const RingBucket& body) { return body.bucket.step; }
std::uint64_t step_of(const RingHeader& body) { return body.header.step; }

auto& worker_of(auto& body) {
  if constexpr (requires { body.bucket.worker; }) {
    return body.bucket.worker;
  } else {
    return body.worker;
  }
}

Message message_of(const RingOutcome::Sending& sending, std::uint32_t worker = kOfAll) {
  return std::visit(
      [&](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        constexpr bool has_sums =
            std::is_same_v<Body, RingBucket> || std::is_same_v<Body, BucketMessage>;
        Body own(body);
        worker_of(own) = worker;
        if constexpr (has_sums) return Message::of(std::move(own), {sending.sums});
        return Message::of(std::move(own));
      },
      sending.body);
}

bool goes_to_replicas(const RingOutcome::Sending& sending) {
  return std::holds_alternative<BucketMessage>(sending.body) ||
         std::holds_alternative<HeaderMessage>(sending.body);
}

}  // namespace

Reducer::Reducer(ReducerOptions options)
    : options_(std::move(options)), sum_(options_), sites_(options_.sites, options_.member) {}

void Reducer::start(Context& context) {
  on<RingBucket>(&Reducer::receive_ring<RingBucket>);
  on<BucketMessage>(&Reducer::receive_bucket);
  on<RingHeader>(&Reducer::receive_ring<RingHeader>);
  on<HeaderMessage>(&Reducer::receive_header);
  on<Halt>(&Reducer::receive_halt);
  on<ViewMessage>(&Reducer::receive_view);
  on<Teach>(&Reducer::receive_teach);
  on<NeighbourMet>(&Reducer::receive_neighbour_met);
  on<Lesson>(&Reducer::receive_lesson);
  samples_.start(context);
  for (std::uint32_t i = 0; i < options_.replicas; ++i) {
    replicas_.emplace_back(context.out(fmt::format("reduced.{}", options_.first_replica + i)));
  }
}

void Reducer::receive_bucket(Context& context, const BucketMessage& body, Message& message) {
  if (!is_reducing() || body.view != view_->id) return;
  if (outer_step(body.worker, body.step) >= end_of_view()) return keep_own(message);
  runtime::Buffer part = message.take_payloads().front();
  if (body.worker != kOfAll) {
    return take_for_site(context, body.worker, body.step, message.sender_name(), [&](RingSum& sum) {
      return sum.contribute(body, std::move(part), message.sender_name(), context.now());
    });
  }
  carry_out(context, sum_.contribute(body, std::move(part), message.sender_name(), context.now()));
}

void Reducer::receive_header(Context& context, const HeaderMessage& body, Message& message) {
  if (!is_reducing() || body.view != view_->id) return;
  if (outer_step(body.worker, body.header.step) >= end_of_view()) return keep_own(message);
  if (body.worker != kOfAll) {
    return take_for_site(context, body.worker, body.header.step, message.sender_name(),
                         [&](RingSum& sum) {
                           return sum.contribute(body.header, message.sender_name(), context.now());
                         });
  }
  carry_out(context, sum_.contribute(body.header, message.sender_name(), context.now()));
}

// What belongs to the View that comes is contributed anew in it.
void Reducer::keep_own(Message& message) {
  if (planned_.empty()) early_.push_back(std::move(message));
}

// A message of the ring is one of these, in this order:
// - a lesson, wanted only while this member learns;
// - of a View that comes later: kept until that is entered;
// - of a View that is over: dropped;
// - the step before the View's first, given by a member that has it; wanted only by one that lacks
//   it and is not taught it;
// - a step of this View, which waits while the step before the View is lacking, or while a planned
//   change may end the View before it.
template <class Body>
void Reducer::receive_ring(Context& context, const Body& body, Message& message) {
  const pipeline::ViewId id = view_of(body);
  if (id == kLesson) {
    if (!takes_lessons_) return;
    const bool complete = carry_out(context, sum_.take_given(body, message));
    if (complete && view_ != nullptr && !is_lagging()) enter_view(context);
    return;
  }
  if (view_ == nullptr || id > view_->id) {
    early_.push_back(std::move(message));
    return;
  }
  if (id < view_->id || (awaits_view() && !unbegun_)) return;
  const std::uint64_t step = step_of(body);
  if (const std::uint32_t worker = worker_of(body); worker != kOfAll) {
    if (is_lagging() || outer_step(worker, step) >= end_of_view()) {
      return early_.push_back(std::move(message));
    }
    return take_for_site(context, worker, step, message.sender_name(), [&](RingSum& sum) {
      return sum.take_ring(body, message, message.sender_name(), context.now());
    });
  }
  if (step + 1 == view_->first_step) {
    if (!is_lagging() || takes_lessons_) {
      return context.fail(sum_.refusal(message.sender_name(), fmt::format("step {}", step)));
    }
    if (carry_out(context, sum_.take_given(body, message))) enter_view(context);
  } else if (is_lagging() || step >= end_of_view()) {
    early_.push_back(std::move(message));
  } else {
    carry_out(context, sum_.take_ring(body, message, message.sender_name(), context.now()));
  }
}

template <class Take>
void Reducer::take_for_site(Context& context, std::uint32_t worker, std::uint64_t step,
                            std::string_view who, const Take& take) {
  SiteRings::Ring* const ring = sites_.find(*view_, sum_.next_step(), worker, step);
  if (ring == nullptr) {
    return context.fail(sum_.refusal(who, fmt::format("step {} of worker {}", step, worker)));
  }
  runtime::Result<RingOutcome> followed = take(ring->sum);
  if (!followed.ok()) return context.fail(followed.error());
  for (const RingOutcome::Sending& sending : followed->sendings) {
    if (goes_to_replicas(sending)) {
      for (const std::uint32_t replica : ring->replicas) {
        replicas_[replica].post(message_of(sending, worker));
        replicas_[replica].flush(context);
      }
    } else {
      Outbox& outbox = outbox_to(context, ring->members[sending.to]);
      outbox.post(message_of(sending, worker));
      outbox.flush(context);
    }
  }
}

std::uint64_t Reducer::outer_step(std::uint32_t worker, std::uint64_t step) const {
  return worker == kOfAll ? step : step / options_.sites.steps;
}

bool Reducer::awaits_view() const {
  if (!planned_.empty()) return halted_for_ > planned_.back()->id;
  return view_ == nullptr || halted_for_ > view_->id;
}

bool Reducer::is_reducing() const {
  return view_ != nullptr && (!awaits_view() || unbegun_) && !is_lagging();
}

std::uint64_t Reducer::end_of_view() const {
  if (!planned_.empty()) return planned_.front()->first_step;
  return awaits_view() && unbegun_ ? *unbegun_ : UINT64_MAX;
}

void Reducer::receive_halt(Context& context, const Halt& halt) {
  if (halt.change < halted_for_ || (view_ != nullptr && halt.change <= view_->id)) return;
  // A member that learns, and is in no View yet, begins none.
  const bool planned = halt.planned && view_ != nullptr;
  std::uint64_t unbegun = sum_.next_step();
  if (planned)
    unbegun = planned_.empty() ? std::max({sum_.unbegun(), sites_.unbegun(), unbegun_.value_or(0)})
                               : planned_.back()->first_step;
  if (!planned) {
    // The steps under way are contributed again, in another View. Lessons go on meanwhile. Sums
    // that another member was giving it are given again.
    sum_.forget(takes_lessons_);
    sites_.forget();
    planned_.clear();
  }
  halted_for_ = halt.change;
  unbegun_ = planned ? std::optional(unbegun) : std::nullopt;
  context.send_control("coordinator", Message::of(Halted{halted_for_, sum_.next_step(), unbegun,
                                                         kept_bytes(), view_}));
}

std::uint64_t Reducer::kept_bytes() const {
  std::uint64_t bytes = newest_ ? newest_->bytes() : 0;
  for (const auto& [member, process] : taught_) {
    const auto outbox = members_.find(member);
    if (outbox != members_.end()) bytes += static_cast<std::uint64_t>(outbox->second.bytes());
  }
  return bytes;
}

std::string Reducer::fault_of(const pipeline::View& view) const {
  if (!view.has(options_.member)) return "that it is no member of";
  // A member that learns may have been given more since it said how far it was.
  const bool may_be_further = takes_lessons_ || view.is_new(options_.member);
  if (view_ != nullptr && !may_be_further &&
      view.reached[view.position_of(options_.member)] != sum_.next_step()) {
    return fmt::format("for which it should be at another step than {}", sum_.next_step());
  }
  if (view_ == nullptr && !may_be_further && view.lags(options_.member)) {
    return "for which it should have made a step before";
  }
  if (view.gives(options_.member) && (!newest_ || newest_->step + 1 != view.first_step)) {
    return fmt::format("for which it should have the sums of step {}", view.first_step - 1);
  }
  if (!view.shares_out(options_.micro_batches * options_.sites.sites.parts, options_.replicas)) {
    return "whose micro-batches are not those of its members";
  }
  return {};
}

void Reducer::receive_view(Context& context, const ViewMessage& told) {
  const ViewPointer& view = told.view;
  const pipeline::ViewId known = view_ == nullptr ? pipeline::ViewId{} : view_->id;
  if (view->id <= known || view->id < halted_for_) return;
  if (!unbegun_ || view->id > halted_for_) {
    planned_.clear();
    return take_view(context, view);
  }
  planned_.push_back(view);
  unbegun_.reset();
  if (planned_begins()) return take_planned(context);
  const bool is_sound =
      view->has(options_.member) &&
      view->shares_out(options_.micro_batches * options_.sites.sites.parts, options_.replicas);
  if (is_sound) meet_neighbours(context, *view);
  take_early(context);
}

bool Reducer::planned_begins() const {
  return !planned_.empty() && planned_.front()->first_step == sum_.next_step();
}

void Reducer::take_planned(Context& context) {
  const ViewPointer view = planned_.front();
  planned_.pop_front();
  take_view(context, view);
}

// The new View: this member begins to reduce, unless it lacks sums itself.
void Reducer::take_view(Context& context, const ViewPointer& view) {
  if (const std::string fault = fault_of(*view); !fault.empty()) {
    context.fail({runtime::ErrorKind::kLostPeers,
                  fmt::format("coordinator told of View {}, {}", text_of(view->id), fault)});
    return;
  }
  if (view_ == nullptr && !takes_lessons_) sum_.begin_at(view->first_step);
  view_ = view;
  // Messages that wait for lost members are not meant for others that come in their place.
  std::erase_if(members_, [&](const auto& each) {
    return !view_->has(each.first) && !taught_.contains(each.first);
  });
  sum_.enter(*view_);
  sites_.forget();
  meet_neighbours(context, *view_);
  if (is_lagging()) {
    take_early(context);
  } else {
    enter_view(context);
  }
}

void Reducer::enter_view(Context& context) {
  takes_lessons_ = false;
  if (const auto next = view_->gives_to(options_.member)) send_sums(context, *next, view_->id);
  std::erase_if(taught_, [&](const auto& each) { return view_->has(each.first); });
  for (Outbox& replica : replicas_) {
    replica.post(Message::of(ViewMessage{view_}));
    replica.flush(context);
  }
  // Another change may have been planned before this View began.
  if (planned_begins()) return take_planned(context);
  take_early(context);
}

// In the order in which they came.
void Reducer::take_early(Context& context) {
  for (Message& message : std::exchange(early_, {})) receive(context, std::move(message));
}

void Reducer::receive_teach(Context& context, const Teach& teach) {
  // A process that was taught before is not any more.
  if (taught_.erase(teach.member) > 0 || teach.begins) members_.erase(teach.member);
  to_teach_.erase(teach.member);
  if (!teach.begins) return;
  const auto met = met_.find(teach.member);
  if (met != met_.end() && met->second == teach.process) {
    begin_to_teach(context, teach.member, teach.process);
  } else {
    // Messages for a node that cannot be reached would wait here, and every step with them.
    to_teach_[teach.member] = teach.process;
    meet(context, teach.member);
  }
}

void Reducer::receive_neighbour_met(Context& context, const NeighbourMet& met) {
  const auto name = config::member_process(met.node);
  if (!name) return;
  met_[name->member] = name->process;
  const auto waits = to_teach_.find(name->member);
  if (waits == to_teach_.end() || waits->second != name->process) return;
  to_teach_.erase(waits);
  begin_to_teach(context, name->member, name->process);
}

void Reducer::receive_lesson(Context& context, const Lesson& lesson, Message& message) {
  if (view_ != nullptr || takes_lessons_) {
    return context.fail(sum_.refusal(message.sender_name(), "a lesson"));
  }
  takes_lessons_ = true;
  sum_.begin_at(lesson.next_step);
}

// The replica sends the state between the sums that it was sent before ShareState and those that
// come after it, so that state and lessons fit. A member of the View that this one has halted for
// is lost, and another process learns in its place.
void Reducer::begin_to_teach(Context& context, std::uint32_t member, std::uint32_t process) {
  if (view_ == nullptr || (view_->has(member) && halted_for_ <= view_->id)) return;
  if (!taught_.emplace(member, process).second) return;
  Outbox& outbox = outbox_to(context, member);
  outbox.post(Message::of(Lesson{sum_.next_step()}));
  outbox.flush(context);
  replicas_.front().post(Message::of(ShareState{member, process}));
  replicas_.front().flush(context);
}

void Reducer::pass_on(Context& context) {
  for (const auto& [member, process] : std::map(taught_)) {
    // A member of the View, or of the next one, is never too slow, because it needs what it lacks
    // until it enters. All that waits for any other one are lessons.
    const bool may_be_member = view_->has(member) || awaits_view() || !planned_.empty();
    Outbox& outbox = outbox_to(context, member);
    if (!may_be_member && outbox.bytes() > options_.replay_bytes) {
      taught_.erase(member);
      outbox.clear();
      context.send_control("coordinator", Message::of(TooSlow{member, process}));
    } else {
      send_sums(context, member, kLesson);
    }
  }
}

void Reducer::send_sums(Context& context, std::uint32_t member, pipeline::ViewId view) {
  Outbox& outbox = outbox_to(context, member);
  for (const auto& [number, bucket] : newest_->buckets) {
    outbox.post(Message::of(newest_->body(number, true, view, options_.lossy), {bucket.sum}));
    outbox.flush(context);
  }
  outbox.post(Message::of(RingHeader{newest_->header, true, view}));
  outbox.flush(context);
}

void Reducer::meet_neighbours(Context& context, const pipeline::View& view) {
  const pipeline::BucketRoutes routes(static_cast<std::uint32_t>(view.ring.size()), view.rows);
  for (const std::uint32_t position : routes.next_of(view.position_of(options_.member))) {
    meet(context, view.ring[position]);
  }
  for (const std::uint32_t member : sites_.next_in_rings(view)) meet(context, member);
}

void Reducer::meet(Context& context, std::uint32_t member) {
  const runtime::PortId port = context.out(fmt::format("ring.{}", member));
  if (port.valid()) context.meet(port);
}

Outbox& Reducer::outbox_to(Context& context, std::uint32_t member) {
  const auto [found, added] = members_.try_emplace(member);
  if (added) found->second = Outbox(context.out(fmt::format("ring.{}", member)));
  return found->second;
}

// Sums for the replicas and what goes round the ring leave on different links, as far as each has
// credit, so that neither holds up the other.
bool Reducer::carry_out(Context& context, runtime::Result<RingOutcome> followed) {
  if (!followed.ok()) {
    context.fail(followed.error());
    return false;
  }
  RingOutcome& outcome = *followed;
  for (const RingOutcome::Sending& sending : outcome.sendings) {
    if (goes_to_replicas(sending)) {
      for (Outbox& replica : replicas_) {
        replica.post(message_of(sending));
        replica.flush(context);
      }
    } else {
      Outbox& outbox = outbox_to(context, view_->ring[sending.to]);
      outbox.post(message_of(sending));
      outbox.flush(context);
    }
  }
  if (outcome.ended && samples_.is_heard()) {
    samples_.add(context, "sum_seconds", runtime::seconds(context.now() - outcome.ended->begun_at));
    samples_.add(context, "sum_bytes", static_cast<double>(outcome.ended->bytes));
    samples_.tell(context);
  }
  if (!outcome.summed) return false;
  sites_.forget_before(sum_.next_step());
  // A member that is alone keeps nothing, because nobody could lack it.
  const bool is_alone = view_ != nullptr && view_->ring.size() == 1 && taught_.empty();
  if (!is_alone) newest_ = std::move(outcome.summed);
  pass_on(context);
  // The step before the View's own first one leads into that.
  if (planned_begins() && sum_.next_step() > view_->first_step) take_planned(context);
  return true;
}

void Reducer::credit_returned(Context& context, std::string_view) {
  for (Outbox& replica : replicas_) replica.flush(context);
  for (auto& [member, outbox] : members_) outbox.flush(context);
}

std::string Reducer::waiting_for() const {
  if (view_ == nullptr)
    return takes_lessons_ ? "a View that it is in" : "the beginning of training";
  if (awaits_view() && sum_.next_step() >= unbegun_.value_or(0)) {
    return "the View after " + text_of(view_->id);
  }
  if (is_lagging()) {
    return fmt::format("the sums of step {} from another member", sum_.next_step());
  }
  if (const std::string site = sites_.waiting_for(); !site.empty()) return site;
  const std::string round = sum_.waiting_for();
  return round.empty() ? "contributions of the next step" : round;
}

}  // namespace troupe::actors
