// The part of the Reducer that goes from one View to the next, and lets others know what they lack.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/reducer.h"
#include "config/cluster_plan.h"

namespace troupe::actors {

using runtime::Buffer;
using runtime::Context;
using runtime::Message;

bool Reducer::is_reducing() const {
  return view_ != nullptr && halted_for_ <= view_->id && !is_lagging();
}

bool Reducer::is_lagging() const { return next_step_ < view_->first_step; }

// What was under way is contributed again, in another View.
void Reducer::halt(Context& context, pipeline::ViewId change) {
  if (change < halted_for_ || (view_ != nullptr && change <= view_->id)) return;
  halted_for_ = change;
  rounds_.clear();
  // What it is taught goes on to come, and what it was handed over comes again.
  if (!learns_) given_.reset();
  context.send_control("coordinator",
                       Message::of(Halted{halted_for_, next_step_, kept_bytes(), view_}));
}

std::uint64_t Reducer::kept_bytes() const {
  std::uint64_t bytes = 0;
  if (newest_) {
    for (const auto& [number, bucket] : newest_->buckets) bytes += bucket.sum.size();
  }
  for (const std::uint32_t member : taught_) {
    const auto outbox = members_.find(member);
    if (outbox != members_.end()) bytes += static_cast<std::uint64_t>(outbox->second.bytes);
  }
  return bytes;
}

std::string Reducer::fault_of(const pipeline::View& view) const {
  if (!view.has(options_.member)) return "that it is no member of";
  // One that learns may have been given more since it told how far it was.
  const bool may_be_further = learns_ || view.is_new(options_.member);
  if (view_ != nullptr && !may_be_further &&
      view.reached[view.position_of(options_.member)] != next_step_) {
    return fmt::format("for which it should be at another step than {}", next_step_);
  }
  if (view.gives(options_.member) && (!newest_ || newest_->step + 1 != view.first_step)) {
    return fmt::format("for which it should have the sums of step {}", view.first_step - 1);
  }
  const auto is_member = [&](std::uint32_t owner) { return view.has(owner / options_.replicas); };
  const auto fits = [&](const std::vector<std::uint32_t>& owners) {
    return owners.size() == options_.micro_batches &&
           std::all_of(owners.begin(), owners.end(), is_member);
  };
  if (!fits(view.owners) || !std::all_of(view.later.begin(), view.later.end(),
                                         [&](const auto& each) { return fits(each.owners); })) {
    return "whose micro-batches are not those of its members";
  }
  return {};
}

void Reducer::take_view(Context& context, ViewPointer view, std::string_view who) {
  const pipeline::ViewId known = view_ == nullptr ? pipeline::ViewId{} : view_->id;
  if (view->id <= known || view->id < halted_for_) return;
  if (const std::string fault = fault_of(*view); !fault.empty()) {
    context.fail({runtime::ErrorKind::kLostPeers,
                  fmt::format("{} told of View {}, {}", who, text_of(view->id), fault)});
    return;
  }
  if (view_ == nullptr && !learns_) next_step_ = view->first_step;
  view_ = std::move(view);
  rounds_.clear();
  // What rounding left over belongs to sums that are made by others now.
  arithmetic_.emplace(options_.lossy, options_.slot_floats);
  for (const std::uint32_t member : view_->ring) {
    if (member != options_.member) outbox_to(context, member);
  }
  if (view_->gives(options_.member)) hand_over(context);
  if (is_lagging()) {
    take_early(context);
  } else {
    enter_view(context);
  }
}

Reducer::Outbox& Reducer::outbox_to(Context& context, std::uint32_t member) {
  const auto [found, added] = members_.try_emplace(member);
  if (added) found->second.port = context.out(fmt::format("ring.{}", member));
  return found->second;
}

void Reducer::hand_over(Context& context) {
  for (const std::uint32_t member : view_->ring) {
    if (view_->lags(member)) send_sums(context, member, view_->id);
  }
}

void Reducer::send_sums(Context& context, std::uint32_t member, pipeline::ViewId view) {
  Outbox& outbox = outbox_to(context, member);
  for (const auto& [number, bucket] : newest_->buckets) {
    post(context, outbox, ring_bucket(*newest_, number, true, bucket.sum, view));
  }
  post(context, outbox, Message::of(RingHeader{*newest_->combined, true, view}));
}

void Reducer::teach(Context& context, const Teach& body) {
  if (!body.begins) {
    taught_.erase(body.member);
    untaught_.erase(body.member);
  } else if (met_.contains(config::member_name(body.member))) {
    begin_to_teach(context, body.member);
  } else {
    untaught_.insert(body.member);
  }
}

void Reducer::take_met(Context& context, const FellowMet& body) {
  met_.insert(body.node);
  for (const std::uint32_t member : std::set<std::uint32_t>(untaught_)) {
    if (config::member_name(member) != body.node) continue;
    untaught_.erase(member);
    begin_to_teach(context, member);
  }
}

void Reducer::begin_to_teach(Context& context, std::uint32_t member) {
  if (view_ == nullptr || view_->has(member) || !taught_.insert(member).second) return;
  post(context, outbox_to(context, member), Message::of(Lesson{next_step_}));
  post(context, replicas_.front(), Message::of(ShareState{member}));
}

void Reducer::pass_on(Context& context) {
  for (const std::uint32_t member : std::set<std::uint32_t>(taught_)) {
    // Who is in the View already needs what it lacks until then.
    const bool is_member = view_->has(member);
    if (!is_member && outbox_to(context, member).bytes > options_.replay_bytes) {
      stop_teaching(context, member);
    } else {
      send_sums(context, member, kLesson);
    }
  }
}

// All that waits for it are lessons, since it is in no View.
void Reducer::stop_teaching(Context& context, std::uint32_t member) {
  taught_.erase(member);
  Outbox& outbox = outbox_to(context, member);
  outbox.messages.clear();
  outbox.bytes = 0;
  context.send_control("coordinator", Message::of(TooSlow{member}));
}

void Reducer::enter_view(Context& context) {
  next_attempt_ = 0;
  learns_ = false;
  std::erase_if(taught_, [&](std::uint32_t member) { return view_->has(member); });
  send_to_replicas(context, [&] { return Message::of(ViewMessage{view_}); });
  take_early(context);
}

// In the order in which it came.
void Reducer::take_early(Context& context) {
  for (Message& message : std::exchange(early_, {})) take_ring(context, std::move(message));
}

void Reducer::take_handed_over(Context& context, Message message, std::string_view who) {
  if (!is_lagging() || learns_) {
    refuse(context, who, fmt::format("step {}", view_->first_step - 1));
    return;
  }
  if (take_sums(context, given_, std::move(message), who)) enter_view(context);
}

// Of one that it does not learn from any more nothing is wanted.
void Reducer::take_lesson(Context& context, Message message, std::string_view who) {
  if (!learns_ || !take_sums(context, given_, std::move(message), who)) return;
  if (view_ != nullptr && !is_lagging()) enter_view(context);
}

bool Reducer::take_sums(Context& context, std::optional<Round>& round, Message message,
                        std::string_view who) {
  const auto* bucket = message.as<RingBucket>();
  const auto* header = message.as<RingHeader>();
  const std::uint64_t step = bucket != nullptr ? bucket->bucket.step : header->header.step;
  if (step != next_step_ || !(bucket != nullptr ? bucket->summed : header->combined)) {
    refuse(context, who, fmt::format("step {} as summed", step));
    return false;
  }
  if (!round) round = Round();
  round->step = step;
  if (bucket != nullptr) {
    const BucketMessage& body = bucket->bucket;
    round->attempt = body.attempt;
    const auto [found, added] = round->buckets.try_emplace(body.bucket);
    if (!added || bucket->format != (body.floats ? options_.lossy : std::nullopt)) {
      refuse(context, who, fmt::format("bucket {} of step {} wrongly", body.bucket, step));
      return false;
    }
    found->second.range = {body.begin, body.end - body.begin, body.floats};
    share(context, *round, body.bucket, message.payloads().front());
    return false;
  }
  round->attempt = header->header.attempt;
  round->combined = header->header;
  send_to_replicas(context, [&] { return Message::of(HeaderMessage{header->header, {}}); });
  newest_ = std::exchange(round, std::nullopt);
  ++next_step_;
  pass_on(context);
  return true;
}

}  // namespace troupe::actors
