#include "actors/ring_sum.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

using pipeline::StepHeader;
using runtime::Buffer;
using runtime::Message;
using runtime::Result;
using runtime::TimePoint;

std::optional<pipeline::ReductionFormat> format_of(pipeline::SumKind kind,
                                                   std::optional<pipeline::ReductionFormat> lossy) {
  return kind == pipeline::SumKind::kFloat32 ? lossy : std::nullopt;
}

std::string beside(const StepHeader& other, const StepHeader& own) {
  return fmt::format("a header of {} tensors beside one of {}", other.exponents.size(),
                     own.exponents.size());
}

}  // namespace

std::size_t StepSums::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [number, bucket] : buckets) bytes += bucket.sum.size();
  return bytes;
}

RingBucket StepSums::body(std::uint32_t number, bool summed, pipeline::ViewId view,
                          std::optional<pipeline::ReductionFormat> lossy) const {
  const pipeline::Bucket& range = buckets.at(number).range;
  return {{step, attempt, number, range.offset, range.end(), range.kind, view},
          summed,
          format_of(range.kind, lossy)};
}

RingSum::RingSum(const RingSumOptions& options) : options_(options) {
  arithmetic_.emplace(options_.lossy, options_.slot_floats);
}

void RingSum::forget(bool keep_given) {
  attempts_.clear();
  if (!keep_given) given_.reset();
}

void RingSum::enter(const pipeline::View& view) {
  view_ = view.id;
  position_ = view.position_of(options_.member);
  ahead_ = view.rows.empty() ? 0 : 1;
  routes_ = pipeline::BucketRoutes(static_cast<std::uint32_t>(view.ring.size()), view.rows);
  attempts_.clear();
  next_attempt_ = 0;
  // The remainder of rounding belongs to sums that other members make from now on.
  arithmetic_.emplace(options_.lossy, options_.slot_floats);
}

Result<RingAttempt*> RingSum::attempt_of(std::uint64_t step, std::uint32_t attempt,
                                         std::string_view who, TimePoint now) {
  const auto is_it = [&](const RingAttempt& other) {
    return other.sums.step == step && other.sums.attempt == attempt;
  };
  const auto found = std::find_if(attempts_.begin(), attempts_.end(), is_it);
  if (found != attempts_.end()) return &*found;
  if (!may_open(step, attempt)) {
    return refusal(who, fmt::format("step {} attempt {}", step, attempt));
  }
  RingAttempt opened;
  opened.sums.step = step;
  opened.sums.attempt = attempt;
  opened.begun_at = now;
  const auto after = std::find_if(attempts_.begin(), attempts_.end(),
                                  [&](const RingAttempt& other) { return step < other.sums.step; });
  return &*attempts_.insert(after, std::move(opened));
}

// A replica may contribute the next step before the present one is applied, but never two of them.
// Another node may send something of a step before this node's replicas have contributed the step
// before it: where a step has fewer buckets than the ring has members, some of them have nothing to
// send at its beginning.
bool RingSum::may_open(std::uint64_t step, std::uint32_t attempt) const {
  if (step < next_step_ || attempts_.size() == 2 + ahead_) return false;
  if (step > next_step_) return attempt == 0 && step - next_step_ <= 1 + ahead_;
  return attempt >= next_attempt_ && attempt - next_attempt_ <= ahead_;
}

pipeline::BucketRole RingSum::role_of(std::uint32_t bucket) const {
  return routes_.role(bucket, position_);
}

std::uint32_t RingSum::slot_of(const RingAttempt& attempt) const {
  return static_cast<std::uint32_t>(attempt.sums.step % options_.slot_floats.size());
}

runtime::Error RingSum::refusal(std::string_view who, std::string_view what) const {
  return {runtime::ErrorKind::kLostPeers,
          fmt::format("{} contributed {} while step {} attempt {} is reduced; its node does not do "
                      "what the others do",
                      who, what, next_step_, next_attempt_)};
}

// All members and all replicas have to cut a step into the same buckets.
Result<RingAttempt::Parts*> RingSum::parts_of(RingAttempt& attempt, const BucketMessage& body,
                                              std::string_view who) const {
  const pipeline::Bucket range{body.begin, body.end - body.begin, body.kind};
  const auto [found, added] = attempt.sums.buckets.try_emplace(body.bucket);
  RingAttempt::Parts& parts = attempt.parts[body.bucket];
  if (added && attempt.headers == options_.replicas) {
    return refusal(who,
                   fmt::format("bucket {} of {}", body.bucket, attempt.sums.buckets.size() - 1));
  }
  if (added) found->second.range = range;
  if (found->second.range == range) return &parts;
  // When a bucket of the ring came before this node's own part, the ring's is the one in doubt.
  if (!parts.before.empty()) who = parts.before.begin()->first;
  return refusal(who, fmt::format("bucket {} cut otherwise", body.bucket));
}

Result<RingOutcome> RingSum::contribute(const BucketMessage& body, Buffer part,
                                        std::string_view who, TimePoint now) {
  RingOutcome out;
  ASSIGN_OR_RETURN(RingAttempt* const attempt, attempt_of(body.step, body.attempt, who, now));
  ASSIGN_OR_RETURN(RingAttempt::Parts* const parts, parts_of(*attempt, body, who));
  // `own` is empty again when the node's part has gone on, so only `sent` tells that a bucket comes
  // a second time.
  if (parts->sent || !parts->own.try_emplace(std::string(who), std::move(part)).second) {
    return refusal(who, fmt::format("bucket {} twice", body.bucket));
  }
  advance(*attempt, body.bucket, out);
  return out;
}

Result<RingOutcome> RingSum::contribute(const StepHeader& header, std::string_view who,
                                        TimePoint now) {
  RingOutcome out;
  ASSIGN_OR_RETURN(RingAttempt* const attempt, attempt_of(header.step, header.attempt, who, now));
  if (attempt->headers == options_.replicas) return refusal(who, "a header twice");
  if (attempt->own && attempt->own->exponents.size() != header.exponents.size()) {
    return refusal(who, fmt::format("{} tensors", header.exponents.size()));
  }
  if (attempt->own) {
    pipeline::combine(header, *attempt->own);
  } else {
    attempt->own = header;
  }
  ++attempt->headers;
  // A replica sends its header behind all its buckets, so with the last header none may be missing.
  const auto is_whole = [&](const auto& entry) {
    return entry.second.sent || entry.second.own.size() == options_.replicas;
  };
  if (attempt->headers == options_.replicas &&
      !std::all_of(attempt->parts.begin(), attempt->parts.end(), is_whole)) {
    return refusal(who, "the last header, while buckets are missing");
  }
  RETURN_IF_ERROR(advance_header(*attempt, who, out));
  RETURN_IF_ERROR(close_if_complete(*attempt, who, out));
  return out;
}

// The sum of a bucket comes only to members that are not its home, after they have sent their part.
Result<RingOutcome> RingSum::take_ring(const RingBucket& body, Message& message,
                                       std::string_view who, TimePoint now) {
  RingOutcome out;
  const std::uint32_t number = body.bucket.bucket;
  ASSIGN_OR_RETURN(RingAttempt* const attempt,
                   attempt_of(body.bucket.step, body.bucket.attempt, who, now));
  ASSIGN_OR_RETURN(RingAttempt::Parts* const parts, parts_of(*attempt, body.bucket, who));
  const StepSums::Bucket& bucket = attempt->sums.buckets.at(number);
  if (body.format != format_of(bucket.range.kind, options_.lossy)) {
    return refusal(who, fmt::format("bucket {} in another format", number));
  }
  const auto role = role_of(number);
  const bool fits = body.summed ? !role.completes() && parts->sent && bucket.sum.size() == 0
                                : !parts->sent && parts->before.size() < role.parts &&
                                      !parts->before.contains(std::string(who));
  if (!fits) return refusal(who, fmt::format("bucket {} out of its order", number));
  if (body.summed) {
    pass_sum(*attempt, number, message.payloads().front(), out);
  } else {
    parts->before.emplace(who, std::move(message));
    advance(*attempt, number, out);
  }
  RETURN_IF_ERROR(close_if_complete(*attempt, who, out));
  return out;
}

Result<RingOutcome> RingSum::take_ring(const RingHeader& body, Message&, std::string_view who,
                                       TimePoint now) {
  RingOutcome out;
  const StepHeader& header = body.header;
  ASSIGN_OR_RETURN(RingAttempt* const attempt, attempt_of(header.step, header.attempt, who, now));
  const auto role = role_of(pipeline::kHeaderBucket);
  const bool fits = body.combined ? !role.completes() && attempt->sent && !attempt->combined
                                  : !attempt->sent && attempt->before.size() < role.parts &&
                                        !attempt->before.contains(std::string(who));
  if (!fits) return refusal(who, "a header out of its order");
  // A combined header fits only after this member has sent on its own, so `own` is there to be
  // compared with.
  if (body.combined) {
    if (header.exponents.size() != attempt->own->exponents.size()) {
      return refusal(who, beside(header, *attempt->own));
    }
    attempt->combined = true;
    attempt->sums.header = header;
    for (const std::uint32_t to : role.sum_to) {
      out.sendings.push_back({RingHeader{header, true, view_}, {}, to});
    }
  } else {
    attempt->before.emplace(who, header);
    RETURN_IF_ERROR(advance_header(*attempt, who, out));
  }
  RETURN_IF_ERROR(close_if_complete(*attempt, who, out));
  return out;
}

// A part waits for those of all replicas of the node, and for those of the members before. Where
// the bucket begins it waits as well while too much is under way.
void RingSum::advance(RingAttempt& attempt, std::uint32_t number, RingOutcome& out) {
  RingAttempt::Parts& parts = attempt.parts.at(number);
  const pipeline::Bucket& range = attempt.sums.buckets.at(number).range;
  if (parts.sent || parts.own.size() < options_.replicas) return;
  const auto role = role_of(number);
  if (parts.before.size() < role.parts) return;
  if (role.begins() && !role.completes()) {
    if (!attempt.may_set_out(number, range)) {
      attempt.waiting.push_back(number);
      return;
    }
    attempt.under_way += range.bytes();
  }
  std::vector<Buffer> all;
  for (auto& [replica, part] : std::exchange(parts.own, {})) all.push_back(std::move(part));
  const Buffer own = pipeline::BucketArithmetic::sum_of(all, range.kind);
  parts.sent = true;
  if (role.begins() && role.completes()) {  // alone: nothing goes over a wire
    attempt.sums.buckets.at(number).sum = own;
    ++attempt.reduced;
    out.sendings.push_back({attempt.sums.body(number, true, {}, {}).bucket, own});
    return;
  }
  const std::uint32_t slot = slot_of(attempt);
  std::vector<Buffer> before;
  for (auto& [reducer, message] : parts.before) before.push_back(message.payloads().front());
  const Buffer wire = arithmetic_->add(slot, range, before, own);
  parts.before.clear();
  if (role.completes()) {
    pass_sum(attempt, number, wire, out);
  } else {
    out.sendings.push_back(
        {attempt.sums.body(number, false, view_, options_.lossy), wire, *role.part_to});
  }
}

void RingSum::pass_sum(RingAttempt& attempt, std::uint32_t number, const Buffer& wire,
                       RingOutcome& out) {
  const auto role = role_of(number);
  for (const std::uint32_t to : role.sum_to) {
    out.sendings.push_back({attempt.sums.body(number, true, view_, options_.lossy), wire, to});
  }
  share(attempt.sums, number, wire, out);
  ++attempt.reduced;
  if (role.begins()) set_out_waiting(attempt, number, out);
}

void RingSum::share(StepSums& sums, std::uint32_t number, const Buffer& wire, RingOutcome& out) {
  StepSums::Bucket& bucket = sums.buckets.at(number);
  bucket.sum = wire;
  out.sendings.push_back(
      {sums.body(number, true, {}, {}).bucket, arithmetic_->sum_from(bucket.range, wire)});
}

// Everything that waits sets out in the end, because every member contributes all of an attempt
// whatever of it is summed already.
void RingSum::set_out_waiting(RingAttempt& attempt, std::uint32_t came_round, RingOutcome& out) {
  const auto range_of = [&](std::uint32_t number) { return attempt.sums.buckets.at(number).range; };
  attempt.under_way -= range_of(came_round).bytes();
  while (!attempt.waiting.empty()) {
    const std::uint32_t next = attempt.waiting.front();
    if (!attempt.may_set_out(next, range_of(next))) return;
    advance(attempt, next, out);
    attempt.waiting.pop_front();
  }
}

Result<void> RingSum::advance_header(RingAttempt& attempt, std::string_view who, RingOutcome& out) {
  if (attempt.sent || attempt.headers < options_.replicas) return {};
  const auto role = role_of(pipeline::kHeaderBucket);
  if (attempt.before.size() < role.parts) return {};
  for (const auto& [reducer, part] : std::exchange(attempt.before, {})) {
    if (part.exponents.size() != attempt.own->exponents.size()) {
      return refusal(who, beside(part, *attempt.own));
    }
    pipeline::combine(part, *attempt.own);
  }
  attempt.sent = true;
  const auto send = [&](std::uint32_t to) {
    out.sendings.push_back({RingHeader{*attempt.own, role.completes(), view_}, {}, to});
  };
  if (!role.completes()) {
    send(*role.part_to);
    return {};
  }
  attempt.combined = true;
  attempt.sums.header = *attempt.own;
  std::ranges::for_each(role.sum_to, send);
  return {};
}

std::uint32_t RingSum::micro_batches_of(std::uint64_t step) const {
  const std::uint64_t slots = options_.slot_floats.size();
  if (!options_.at_a_time) {
    return options_.short_iteration.micro_batches_in(step / slots, options_.micro_batches);
  }
  const auto before = static_cast<std::uint32_t>(step % slots) * *options_.at_a_time;
  return std::min(*options_.at_a_time, options_.micro_batches - before);
}

// The header goes to the replicas behind all buckets, and ends the attempt.
Result<void> RingSum::close_if_complete(RingAttempt& attempt, std::string_view who,
                                        RingOutcome& out) {
  if (!attempt.combined || attempt.reduced < attempt.sums.buckets.size()) return {};
  const StepHeader& header = attempt.sums.header;
  const std::uint32_t micro_batches = micro_batches_of(header.step);
  const std::uint64_t events = options_.events / options_.micro_batches * micro_batches;
  if (header.micro_batches != micro_batches || header.events != events) {
    return refusal(
        who,
        fmt::format("the last of {} micro-batches of {} events, where an iteration has {} of {}",
                    header.micro_batches, header.events, micro_batches, events));
  }
  // A header tells the hash of the state before its step, so it cannot be complete before the step
  // in front of it is.
  if (&attempt != &attempts_.front()) {
    return refusal(who, fmt::format("the last header of step {}", attempt.sums.step));
  }
  out.sendings.push_back({HeaderMessage{header, {}}, {}});
  // A flagged attempt is made again, so what it left over in rounding is dropped.
  arithmetic_->close(slot_of(attempt), !header.flagged);
  std::size_t bytes = 0;
  for (const auto& [number, bucket] : attempt.sums.buckets) bytes += bucket.range.bytes();
  out.ended = {attempt.begun_at, bytes};
  next_attempt_ = header.flagged ? attempt.sums.attempt + 1 : 0;
  if (!header.flagged) {
    ++next_step_;
    out.summed = std::move(attempt.sums);
  }
  attempts_.pop_front();
  return {};
}

Result<RingOutcome> RingSum::take_given(const RingBucket& body, Message& message) {
  RingOutcome out;
  const BucketMessage& bucket = body.bucket;
  const std::string_view who = message.sender_name();
  if (bucket.step != next_step_ || !body.summed) {
    return refusal(who, fmt::format("step {} as summed", bucket.step));
  }
  if (!given_) given_.emplace();
  given_->step = bucket.step;
  given_->attempt = bucket.attempt;
  const auto [found, added] = given_->buckets.try_emplace(bucket.bucket);
  if (!added || body.format != format_of(bucket.kind, options_.lossy)) {
    return refusal(who, fmt::format("bucket {} of step {} wrongly", bucket.bucket, bucket.step));
  }
  found->second.range = {bucket.begin, bucket.end - bucket.begin, bucket.kind};
  share(*given_, bucket.bucket, message.payloads().front(), out);
  return out;
}

Result<RingOutcome> RingSum::take_given(const RingHeader& body, Message& message) {
  RingOutcome out;
  const StepHeader& header = body.header;
  if (header.step != next_step_ || !body.combined) {
    return refusal(message.sender_name(), fmt::format("step {} as summed", header.step));
  }
  if (!given_) given_.emplace();
  given_->step = header.step;
  given_->attempt = header.attempt;
  given_->header = header;
  out.sendings.push_back({HeaderMessage{header, {}}, {}});
  out.summed = std::exchange(given_, std::nullopt);
  ++next_step_;
  return out;
}

std::string RingSum::waiting_for() const {
  if (attempts_.empty()) return {};
  const RingAttempt& attempt = attempts_.front();
  const std::string where =
      fmt::format("step {} attempt {}", attempt.sums.step, attempt.sums.attempt);
  if (attempt.headers < options_.replicas) {
    return fmt::format("contributions to {}: {} of {} headers are in", where, attempt.headers,
                       options_.replicas);
  }
  return fmt::format("the ring at {}: {} of {} buckets are summed{}", where, attempt.reduced,
                     attempt.sums.buckets.size(),
                     attempt.combined ? "" : ", and the header is not");
}

}  // namespace troupe::actors
