#include "actors/reducer.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

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
    : options_(std::move(options)),
      sum_(options_),
      sites_(options_.sites, options_.member),
      teacher_(links_, options_.replay_bytes, options_.lossy) {}

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
  if (!begins(body.worker, body.step, body.view, message)) return;
  runtime::Buffer part = message.take_payloads().front();
  if (body.worker != kOfAll) {
    return take_for_site(context, body.worker, body.step, message.sender_name(), [&](RingSum& sum) {
      return sum.contribute(body, std::move(part), message.sender_name(), context.now());
    });
  }
  carry_out(context, sum_.contribute(body, std::move(part), message.sender_name(), context.now()));
}

void Reducer::receive_header(Context& context, const HeaderMessage& body, Message& message) {
  if (!begins(body.worker, body.header.step, body.view, message)) return;
  if (body.worker != kOfAll) {
    return take_for_site(context, body.worker, body.header.step, message.sender_name(),
                         [&](RingSum& sum) {
                           return sum.contribute(body.header, message.sender_name(), context.now());
                         });
  }
  carry_out(context, sum_.contribute(body.header, message.sender_name(), context.now()));
}

bool Reducer::begins(std::uint32_t worker, std::uint64_t step, pipeline::ViewId view,
                     Message& message) {
  if (!turns_.goes_on() || is_lagging() || view != this->view().id) return false;
  if (sites_.outer_step(worker, step) < turns_.end()) return true;
  if (!turns_.knows_next()) early_.push_back(std::move(message));
  return false;
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
    if (complete && turns_.view() != nullptr && !is_lagging()) enter_view(context);
    return;
  }
  if (turns_.view() == nullptr || id > view().id) {
    early_.push_back(std::move(message));
    return;
  }
  if (id < view().id || !turns_.goes_on()) return;
  const std::uint64_t step = step_of(body);
  const std::uint32_t worker = worker_of(body);
  const bool is_early = is_lagging() || sites_.outer_step(worker, step) >= turns_.end();
  if (worker == kOfAll && step + 1 == view().first_step) {
    if (!is_lagging() || takes_lessons_) {
      return context.fail(sum_.refusal(message.sender_name(), fmt::format("step {}", step)));
    }
    if (carry_out(context, sum_.take_given(body, message))) enter_view(context);
  } else if (is_early) {
    early_.push_back(std::move(message));
  } else if (worker == kOfAll) {
    carry_out(context, sum_.take_ring(body, message, message.sender_name(), context.now()));
  } else {
    take_for_site(context, worker, step, message.sender_name(), [&](RingSum& sum) {
      return sum.take_ring(body, message, message.sender_name(), context.now());
    });
  }
}

template <class Take>
void Reducer::take_for_site(Context& context, std::uint32_t worker, std::uint64_t step,
                            std::string_view who, const Take& take) {
  SiteRings::Ring* const ring = sites_.find(view(), sum_.next_step(), worker, step);
  if (ring == nullptr) {
    return context.fail(sum_.refusal(who, fmt::format("step {} of worker {}", step, worker)));
  }
  runtime::Result<RingOutcome> followed = take(ring->sum);
  if (!followed.ok()) return context.fail(followed.error());
  for (const RingOutcome::Sending& sending : followed->sendings) {
    if (goes_to_replicas(sending)) {
      for (const std::uint32_t replica : ring->replicas) {
        tell_replica(context, replica, message_of(sending, worker));
      }
    } else {
      links_.post(context, ring->members[sending.to], message_of(sending, worker));
    }
  }
}

void Reducer::tell_replica(Context& context, std::uint32_t replica, Message message) {
  replicas_[replica].post(std::move(message));
  replicas_[replica].flush(context);
}

void Reducer::receive_halt(Context& context, const Halt& halt) {
  if (turns_.is_past(halt)) return;
  const bool lacks_lesson = turns_.view() == nullptr && !takes_lessons_;
  if (options_.learns_first && lacks_lesson) {
    early_halt_ = halt;
    return;
  }
  // Another head does not know who learned from whom. It has others come in their places, and may
  // have them learn elsewhere.
  if (turns_.is_of_another_head(halt)) teacher_.dismiss_all();
  const auto unbegun = turns_.halt(halt, std::max(sum_.unbegun(), sites_.unbegun()));
  if (!unbegun) {
    // The steps under way are contributed again, in another View. Lessons go on meanwhile. Sums
    // that another member was giving it are given again.
    sum_.forget(takes_lessons_);
    sites_.forget();
  }
  const std::uint64_t next_step = sum_.next_step();
  context.send_control("coordinator",
                       Message::of(Halted{halt.change, next_step, unbegun.value_or(next_step),
                                          teacher_.kept_bytes(), turns_.view()}));
}

std::string Reducer::fault_of(const pipeline::View& view) const {
  if (!view.has(options_.member)) return "that it is no member of";
  const bool has_begun = turns_.view() != nullptr;
  // A member that learns may have been given more since it said how far it was.
  const bool may_be_further = takes_lessons_ || view.is_new(options_.member);
  if (has_begun && !may_be_further &&
      view.reached[view.position_of(options_.member)] != sum_.next_step()) {
    return fmt::format("for which it should be at another step than {}", sum_.next_step());
  }
  if (!has_begun && !may_be_further && view.lags(options_.member)) {
    return "for which it should have made a step before";
  }
  const bool gives = !view.lags(options_.member) && !view.gives_to(options_.member).empty();
  if (gives && !teacher_.has_step(view.first_step - 1)) {
    return fmt::format("for which it should have the sums of step {}", view.first_step - 1);
  }
  if (!shares_out(view)) return "whose micro-batches are not those of its members";
  return {};
}

bool Reducer::shares_out(const pipeline::View& view) const {
  return view.shares_out(options_.micro_batches * options_.sites.sites.parts, options_.replicas);
}

void Reducer::receive_view(Context& context, const ViewMessage& told) {
  if (told.view->id == kLesson) return meet_both_sides(context, *told.view);
  const ViewTurns::Turn turn = turns_.tell(told.view);
  if (turn == ViewTurns::Turn::kNow) return take_view(context, told.view);
  if (turn == ViewTurns::Turn::kPast) return;
  if (take_planned(context)) return;
  const bool is_sound = told.view->has(options_.member) && shares_out(*told.view);
  if (is_sound) meet_neighbours(context, *told.view);
  take_early(context);
}

// The new View: this member begins to reduce, unless it lacks sums itself.
void Reducer::take_view(Context& context, const ViewPointer& view) {
  if (const std::string fault = fault_of(*view); !fault.empty()) {
    context.fail({runtime::ErrorKind::kLostPeers,
                  fmt::format("coordinator told of View {}, {}", text_of(view->id), fault)});
    return;
  }
  if (turns_.view() == nullptr && !takes_lessons_) sum_.begin_at(view->first_step);
  turns_.enter(view);
  // Messages that wait for lost members are not meant for others that come in their place.
  links_.forget_if(
      [&](std::uint32_t member) { return !view->has(member) && !teacher_.teaches(member); });
  sum_.enter(*view);
  sites_.forget();
  meet_neighbours(context, *view);
  if (is_lagging()) {
    take_early(context);
  } else {
    enter_view(context);
  }
}

bool Reducer::take_planned(Context& context) {
  const ViewPointer next = turns_.take_planned(sum_.next_step());
  if (next == nullptr) return false;
  if (!next->has(options_.member)) {
    turns_.part();
    return true;
  }
  const std::set<std::uint32_t> staying(next->ring.begin(), next->ring.end());
  const bool all_stay = std::ranges::all_of(
      view().ring, [&](std::uint32_t member) { return staying.contains(member); });
  if (!all_stay) context.send_control("coordinator", Message::of(Entered{next->id}));
  take_view(context, next);
  return true;
}

void Reducer::enter_view(Context& context) {
  takes_lessons_ = false;
  samples_.note_members(view().ring.size());
  for (const std::uint32_t lacks : view().gives_to(options_.member)) {
    teacher_.give(context, lacks, view().id);
  }
  teacher_.let_in(view());
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    tell_replica(context, i, Message::of(ViewMessage{turns_.view()}));
  }
  // Another change may have been planned before this View began.
  if (take_planned(context)) return;
  take_early(context);
}

// In the order in which they came.
void Reducer::take_early(Context& context) {
  for (Message& message : std::exchange(early_, {})) receive(context, std::move(message));
}

void Reducer::receive_teach(Context& context, const Teach& teach) {
  if (const auto pupil = teacher_.told(context, teach)) begin_to_teach(context, *pupil);
}

void Reducer::receive_neighbour_met(Context& context, const NeighbourMet& met) {
  if (const auto pupil = teacher_.met(met)) begin_to_teach(context, *pupil);
}

void Reducer::receive_lesson(Context& context, const Lesson& lesson, Message& message) {
  if (turns_.view() != nullptr || takes_lessons_) {
    return context.fail(sum_.refusal(message.sender_name(), "a lesson"));
  }
  takes_lessons_ = true;
  sum_.begin_at(lesson.next_step);
  if (const auto halt = std::exchange(early_halt_, std::nullopt)) receive_halt(context, *halt);
}

// The replica sends the state between the sums that it was sent before ShareState and those that
// come after it, so that state and lessons fit. A member of the View that this one has halted for
// is lost, and another process learns in its place.
void Reducer::begin_to_teach(Context& context, const Teacher::Pupil& pupil) {
  if (turns_.view() == nullptr) return;
  if (view().has(pupil.member) && !turns_.has_halted_for_another()) return;
  if (!teacher_.begin(context, pupil, sum_.next_step())) return;
  tell_replica(context, 0, Message::of(ShareState{pupil.member, pupil.process}));
}

void Reducer::meet_neighbours(Context& context, const pipeline::View& view) {
  for (const std::uint32_t member : view.next_of(options_.member)) links_.meet(context, member);
  for (const std::uint32_t member : sites_.next_in_rings(view)) links_.meet(context, member);
}

// The nodes of two neighbours are connected when one of the two asks for it.
void Reducer::meet_both_sides(Context& context, const pipeline::View& view) {
  if (turns_.view() != nullptr || !view.has(options_.member)) return;
  const pipeline::BucketRoutes routes(static_cast<std::uint32_t>(view.ring.size()), view.rows);
  const std::uint32_t own = view.position_of(options_.member);
  for (std::uint32_t position = 0; position < view.ring.size(); ++position) {
    const bool sends_here = std::ranges::count(routes.next_of(position), own) > 0;
    const bool is_sent_to = std::ranges::count(routes.next_of(own), position) > 0;
    if (sends_here || is_sent_to) links_.meet(context, view.ring[position]);
  }
}

bool Reducer::carry_out(Context& context, runtime::Result<RingOutcome> followed) {
  if (!followed.ok()) {
    context.fail(followed.error());
    return false;
  }
  RingOutcome& outcome = *followed;
  for (const RingOutcome::Sending& sending : outcome.sendings) {
    if (goes_to_replicas(sending)) {
      for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
        tell_replica(context, i, message_of(sending));
      }
    } else {
      links_.post(context, view().ring[sending.to], message_of(sending));
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
  const bool has_view = turns_.view() != nullptr;
  const bool is_alone = has_view && view().ring.size() == 1 && teacher_.teaches_nobody();
  if (!is_alone) teacher_.keep(std::move(*outcome.summed));
  teacher_.pass_on(context, [&](std::uint32_t member) {
    return view().has(member) || turns_.awaits_next() || turns_.knows_next();
  });
  // The step before the View's own first one leads into that.
  if (has_view && sum_.next_step() > view().first_step) take_planned(context);
  return true;
}

void Reducer::credit_returned(Context& context, std::string_view) {
  for (Outbox& replica : replicas_) replica.flush(context);
  links_.flush(context);
}

std::string Reducer::waiting_for() const {
  if (turns_.view() == nullptr) {
    return takes_lessons_ ? "a View that it is in" : "the beginning of training";
  }
  if (turns_.has_parted()) return "its release, as the others go on without it";
  if (turns_.stands_still(sum_.next_step())) return "the View after " + text_of(view().id);
  if (is_lagging()) {
    return fmt::format("the sums of step {} from another member", sum_.next_step());
  }
  if (const std::string site = sites_.waiting_for(); !site.empty()) return site;
  const std::string round = sum_.waiting_for();
  return round.empty() ? "contributions of the next step" : round;
}

}  // namespace troupe::actors
