#include "actors/reducer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Context;
using runtime::Message;

// A later step may be contributed before an earlier one is applied, but not two of them.
constexpr std::size_t kMostRounds = 2;

}  // namespace

Reducer::Reducer(ReducerOptions options) : options_(std::move(options)) {
  arithmetic_.emplace(options_.lossy, options_.slot_floats);
}

void Reducer::start(Context& context) {
  samples_.start(context);
  for (std::uint32_t i = 0; i < options_.replicas; ++i) {
    replicas_.push_back({context.out(fmt::format("reduced.{}", options_.first_replica + i)), {}});
  }
}

void Reducer::receive(Context& context, Message message) {
  const std::string who(message.sender_name());
  if (const auto* bucket = message.as<BucketMessage>()) {
    const BucketMessage body = *bucket;
    if (!is_reducing() || body.view != view_->id) return;
    Buffer part = message.take_payloads().front();
    take_contribution(context, body, std::move(part), who);
  } else if (const auto* header = message.as<HeaderMessage>()) {
    if (!is_reducing() || header->view != view_->id) return;
    take_contribution(context, header->header, who);
  } else if (message.as<RingBucket>() != nullptr || message.as<RingHeader>() != nullptr) {
    take_ring(context, std::move(message));
  } else if (const auto* halting = message.as<Halt>()) {
    halt(context, halting->change);
  } else if (const auto* change = message.as<ViewMessage>()) {
    take_view(context, change->view, who);
  } else if (const auto* lesson = message.as<Teach>()) {
    teach(context, *lesson);
  } else if (const auto* met = message.as<FellowMet>()) {
    take_met(context, *met);
  } else if (const auto* beginning = message.as<Lesson>()) {
    if (view_ != nullptr || learns_) return refuse(context, who, "a lesson");
    learns_ = true;
    next_step_ = beginning->next_step;
  }
}

void Reducer::take_ring(Context& context, Message message) {
  const std::string who(message.sender_name());
  const auto* bucket = message.as<RingBucket>();
  const auto* header = message.as<RingHeader>();
  const pipeline::ViewId id = bucket != nullptr ? bucket->bucket.view : header->view;
  if (id == kLesson) return take_lesson(context, std::move(message), who);
  if (view_ == nullptr || id > view_->id) {
    early_.push_back(std::move(message));
    return;
  }
  if (id < view_->id || halted_for_ > view_->id) return;
  const std::uint64_t step = bucket != nullptr ? bucket->bucket.step : header->header.step;
  if (step + 1 == view_->first_step) {
    take_handed_over(context, std::move(message), who);
  } else if (is_lagging()) {
    early_.push_back(std::move(message));
  } else if (bucket != nullptr) {
    const RingBucket body = *bucket;
    take_ring(context, body, std::move(message), who);
  } else {
    take_ring(context, *header, who);
  }
}

Reducer::Round* Reducer::round_of(Context& context, std::uint64_t step, std::uint32_t attempt,
                                  std::string_view who) {
  const auto is_it = [&](const Round& round) {
    return round.step == step && round.attempt == attempt;
  };
  const auto found = std::find_if(rounds_.begin(), rounds_.end(), is_it);
  if (found != rounds_.end()) return &*found;
  if (!may_open(step, attempt)) {
    refuse(context, who, fmt::format("step {} attempt {}", step, attempt));
    return nullptr;
  }
  Round round;
  round.step = step;
  round.attempt = attempt;
  round.begun_at = context.now();
  const auto after = std::find_if(rounds_.begin(), rounds_.end(),
                                  [&](const Round& other) { return step < other.step; });
  return &*rounds_.insert(after, std::move(round));
}

// Another node's word of a step can come before this node's own of the step before: where a step
// has fewer buckets than there are members, not all have something to send at its beginning.
bool Reducer::may_open(std::uint64_t step, std::uint32_t attempt) const {
  if (rounds_.size() == kMostRounds) return false;
  return step == next_step_ ? attempt == next_attempt_ : step == next_step_ + 1 && attempt == 0;
}

pipeline::RingRole Reducer::role_of(std::uint32_t bucket) const {
  return pipeline::ring_role(bucket, view_->position_of(options_.member),
                             static_cast<std::uint32_t>(view_->ring.size()));
}

void Reducer::refuse(Context& context, std::string_view who, std::string_view what) {
  const std::string known = fmt::format("step {} attempt {}", next_step_, next_attempt_);
  context.fail({runtime::ErrorKind::kLostPeers,
                fmt::format("{} contributed {} while {} is reduced; its node does not do what the "
                            "others do",
                            who, what, known)});
}

Reducer::Bucket* Reducer::bucket_of(Context& context, Round& round, const BucketMessage& body,
                                    std::string_view who) {
  const auto [found, added] = round.buckets.try_emplace(body.bucket);
  Bucket& bucket = found->second;
  if (added && round.headers == options_.replicas) {
    refuse(context, who, fmt::format("bucket {} of {}", body.bucket, round.buckets.size() - 1));
    return nullptr;
  }
  const pipeline::Bucket range{body.begin, body.end - body.begin, body.floats};
  if (added) bucket.range = range;
  if (bucket.range == range) return &bucket;
  // What came round the ring before this node's own part is what does not belong here.
  if (bucket.part) who = bucket.part->sender_name();
  refuse(context, who, fmt::format("bucket {} cut otherwise", body.bucket));
  return nullptr;
}

void Reducer::take_contribution(Context& context, const BucketMessage& body, Buffer part,
                                std::string_view who) {
  Round* round = round_of(context, body.step, body.attempt, who);
  if (round == nullptr) return;
  Bucket* bucket = bucket_of(context, *round, body, who);
  if (bucket == nullptr) return;
  const bool twice = bucket->sent || !bucket->own.try_emplace(std::string(who), part).second;
  if (twice) {
    refuse(context, who, fmt::format("bucket {} twice", body.bucket));
    return;
  }
  advance(context, *round, body.bucket);
}

void Reducer::take_contribution(Context& context, const pipeline::StepHeader& header,
                                std::string_view who) {
  Round* round = round_of(context, header.step, header.attempt, who);
  if (round == nullptr) return;
  if (round->headers == options_.replicas) {
    refuse(context, who, "a header twice");
    return;
  }
  if (round->own && round->own->exponents.size() != header.exponents.size()) {
    refuse(context, who, fmt::format("{} tensors", header.exponents.size()));
    return;
  }
  if (round->own) {
    pipeline::combine(header, *round->own);
  } else {
    round->own = header;
  }
  ++round->headers;
  const auto is_whole = [&](const auto& entry) {
    return entry.second.sent || entry.second.own.size() == options_.replicas;
  };
  if (round->headers == options_.replicas &&
      !std::all_of(round->buckets.begin(), round->buckets.end(), is_whole)) {
    refuse(context, who, "the last header, while buckets are missing");
    return;
  }
  if (advance_header(context, *round, who)) close_if_complete(context, *round, who);
}

void Reducer::take_ring(Context& context, const RingBucket& body, Message message,
                        std::string_view who) {
  Round* round = round_of(context, body.bucket.step, body.bucket.attempt, who);
  if (round == nullptr) return;
  Bucket* bucket = bucket_of(context, *round, body.bucket, who);
  if (bucket == nullptr) return;
  const std::uint32_t number = body.bucket.bucket;
  const auto role = role_of(number);
  // The sum comes to those that are not its home, and only after they have sent their part.
  if (body.format != (bucket->range.floats ? options_.lossy : std::nullopt)) {
    refuse(context, who, fmt::format("bucket {} in another format", number));
    return;
  }
  const bool fits = body.summed ? !role.completes && bucket->sent && !bucket->reduced()
                                : !role.begins && !bucket->sent && !bucket->part;
  if (!fits) {
    refuse(context, who, fmt::format("bucket {} out of turn", number));
    return;
  }
  if (body.summed) {
    pass_sum(context, *round, number, message.payloads().front());
  } else {
    bucket->part = std::move(message);
    advance(context, *round, number);
  }
  close_if_complete(context, *round, who);
}

void Reducer::take_ring(Context& context, const RingHeader& body, std::string_view who) {
  Round* round = round_of(context, body.header.step, body.header.attempt, who);
  if (round == nullptr) return;
  const auto role = role_of(pipeline::kHeaderBucket);
  const bool fits = body.combined ? !role.completes && round->sent && !round->combined
                                  : !role.begins && !round->sent && !round->part;
  if (!fits) {
    refuse(context, who, "a header out of turn");
    return;
  }
  if (body.combined && body.header.exponents.size() != round->own->exponents.size()) {
    refuse(context, who,
           fmt::format("a header of {} tensors beside one of {}", body.header.exponents.size(),
                       round->own->exponents.size()));
    return;
  }
  if (body.combined) {
    round->combined = body.header;
    if (role.passes_sum) send_on(context, Message::of(RingHeader{body.header, true, view_->id}));
  } else {
    round->part = body.header;
    if (!advance_header(context, *round, who)) return;
  }
  close_if_complete(context, *round, who);
}

void Reducer::advance(Context& context, Round& round, std::uint32_t number) {
  Bucket& bucket = round.buckets.at(number);
  if (bucket.sent || bucket.own.size() < options_.replicas) return;
  const auto role = role_of(number);
  if (!role.begins && !bucket.part) return;
  if (role.begins && !role.completes) {
    if (!may_set_out(round, bucket)) {
      round.waiting.push_back(number);
      return;
    }
    round.under_way += bucket.range.bytes();
  }
  std::vector<Buffer> parts;
  for (auto& [replica, part] : std::exchange(bucket.own, {})) parts.push_back(std::move(part));
  const Buffer own = pipeline::BucketArithmetic::sum_of(parts, bucket.range.floats);
  bucket.sent = true;
  if (role.begins && role.completes) {
    bucket.sum = own;
    send_to_replicas(context, [&] { return bucket_message(round, number, own); });
    return;
  }
  const std::uint32_t slot = slot_of(round);
  Buffer wire = role.begins
                    ? arithmetic_->begin(slot, bucket.range, own)
                    : arithmetic_->add(slot, bucket.range, bucket.part->payloads().front(), own);
  bucket.part.reset();
  if (role.completes) {
    pass_sum(context, round, number, wire);
  } else {
    send_on(context, ring_bucket(round, number, false, wire, view_->id));
  }
}

// The sum is here: for those after in the ring, and for the replicas.
void Reducer::pass_sum(Context& context, Round& round, std::uint32_t number, const Buffer& wire) {
  const auto role = role_of(number);
  if (role.passes_sum) send_on(context, ring_bucket(round, number, true, wire, view_->id));
  share(context, round, number, wire);
  if (role.begins) came_round(context, round, round.buckets.at(number));
}

void Reducer::share(Context& context, Round& round, std::uint32_t number, const Buffer& wire) {
  Bucket& bucket = round.buckets.at(number);
  bucket.sum = wire;
  const Buffer sum = arithmetic_->sum_from(bucket.range, wire);
  send_to_replicas(context, [&] { return bucket_message(round, number, sum); });
}

bool Reducer::may_set_out(const Round& round, const Bucket& bucket) {
  return round.under_way == 0 || round.under_way + bucket.range.bytes() <= kMostUnderWay;
}

// Whatever waits can go in the end: every member contributes all of an attempt, without regard to
// what of it is summed.
void Reducer::came_round(Context& context, Round& round, const Bucket& bucket) {
  round.under_way -= bucket.range.bytes();
  while (!round.waiting.empty() && may_set_out(round, round.buckets.at(round.waiting.front()))) {
    const std::uint32_t next = round.waiting.front();
    round.waiting.pop_front();
    advance(context, round, next);
  }
}

Message Reducer::bucket_message(const Round& round, std::uint32_t number, Buffer sum) const {
  return Message::of(described(round, number, {}), {std::move(sum)});
}

Message Reducer::ring_bucket(const Round& round, std::uint32_t number, bool summed, Buffer wire,
                             pipeline::ViewId view) const {
  RingBucket body{described(round, number, view), summed, std::nullopt};
  if (body.bucket.floats) body.format = options_.lossy;
  return Message::of(body, {std::move(wire)});
}

BucketMessage Reducer::described(const Round& round, std::uint32_t number, pipeline::ViewId view) {
  const pipeline::Bucket& range = round.buckets.at(number).range;
  return {round.step, round.attempt, number, range.offset, range.end(), range.floats, view};
}

std::uint32_t Reducer::slot_of(const Round& round) const {
  return static_cast<std::uint32_t>(round.step % options_.slot_floats.size());
}

bool Reducer::advance_header(Context& context, Round& round, std::string_view who) {
  if (round.sent || round.headers < options_.replicas) return true;
  const auto role = role_of(pipeline::kHeaderBucket);
  if (!role.begins && !round.part) return true;
  if (round.part && round.part->exponents.size() != round.own->exponents.size()) {
    refuse(context, who,
           fmt::format("a header of {} tensors beside one of {}", round.part->exponents.size(),
                       round.own->exponents.size()));
    return false;
  }
  if (round.part) pipeline::combine(*round.part, *round.own);
  round.part.reset();
  round.sent = true;
  if (role.completes) round.combined = round.own;
  const bool goes_on = !role.completes || role.passes_sum;
  if (goes_on) send_on(context, Message::of(RingHeader{*round.own, role.completes, view_->id}));
  return true;
}

// The header goes to the replicas behind all buckets, and is the last of its round.
void Reducer::close_if_complete(Context& context, Round& round, std::string_view who) {
  const auto is_reduced = [](const auto& entry) { return entry.second.reduced(); };
  if (!round.combined || !std::all_of(round.buckets.begin(), round.buckets.end(), is_reduced)) {
    return;
  }
  const pipeline::StepHeader& header = *round.combined;
  if (header.micro_batches != options_.micro_batches || header.events != options_.events) {
    refuse(
        context, who,
        fmt::format("the last of {} micro-batches of {} events, where an iteration has {} of {}",
                    header.micro_batches, header.events, options_.micro_batches, options_.events));
    return;
  }
  if (&round != &rounds_.front()) {
    refuse(context, who, fmt::format("the last header of step {}", round.step));
    return;
  }
  send_to_replicas(context, [&] { return Message::of(HeaderMessage{header, {}}); });
  arithmetic_->close(slot_of(round), !header.flagged);
  tell_samples(context, round);
  next_attempt_ = header.flagged ? round.attempt + 1 : 0;
  if (!header.flagged) {
    ++next_step_;
    // Alone there is nobody who could lack it.
    if (view_->ring.size() > 1 || !taught_.empty()) newest_ = std::move(round);
    pass_on(context);
  }
  rounds_.pop_front();
}

void Reducer::tell_samples(Context& context, const Round& round) {
  if (!samples_.is_heard()) return;
  std::size_t bytes = 0;
  for (const auto& [number, bucket] : round.buckets) bytes += bucket.range.bytes();
  samples_.add(context, "sum_seconds",
               std::chrono::duration<double>(context.now() - round.begun_at).count());
  samples_.add(context, "sum_bytes", static_cast<double>(bytes));
  samples_.tell(context);
}

void Reducer::send_on(Context& context, Message message) {
  const std::size_t next = view_->position_of(options_.member) + std::size_t{1};
  post(context, members_.at(view_->ring[next % view_->ring.size()]), std::move(message));
}

void Reducer::post(Context& context, Outbox& outbox, Message message) {
  outbox.bytes += message.bytes();
  outbox.messages.push_back(std::move(message));
  flush(context, outbox);
}

void Reducer::flush(Context& context, Outbox& outbox) {
  while (!outbox.messages.empty()) {
    const std::int64_t bytes = outbox.messages.front().bytes();
    if (!context.send(outbox.port, outbox.messages.front())) return;
    outbox.bytes -= bytes;
    outbox.messages.pop_front();
  }
}

void Reducer::credit_returned(Context& context, std::string_view) {
  for (Outbox& replica : replicas_) flush(context, replica);
  for (auto& [member, outbox] : members_) flush(context, outbox);
}

void Reducer::undeliverable(Context&, Message, const runtime::Error&) {}

std::string Reducer::waiting_for() const {
  if (view_ == nullptr) return learns_ ? "a View that it is in" : "the beginning of training";
  if (halted_for_ > view_->id) return "the View after " + text_of(view_->id);
  if (is_lagging()) return fmt::format("the sums of step {} from another member", next_step_);
  if (rounds_.empty()) return "contributions of the next step";
  const Round& round = rounds_.front();
  const std::string where = fmt::format("step {} attempt {}", round.step, round.attempt);
  if (round.headers < options_.replicas) {
    return fmt::format("contributions to {}: {} of {} headers are in", where, round.headers,
                       options_.replicas);
  }
  const auto reduced = std::count_if(round.buckets.begin(), round.buckets.end(),
                                     [](const auto& entry) { return entry.second.reduced(); });
  return fmt::format("the ring at {}: {} of {} buckets are summed{}", where, reduced,
                     round.buckets.size(), round.combined ? "" : ", and the header is not");
}

}  // namespace troupe::actors
