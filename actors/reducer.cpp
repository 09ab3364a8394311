#include "actors/reducer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/exact_sum.h"

namespace troupe::actors {

using runtime::Buffer;
using runtime::Context;
using runtime::Message;

void Reducer::start(Context& context) {
  for (std::uint32_t replica = 0; replica < options_.replicas; ++replica) {
    ports_.push_back(context.out(fmt::format("reduced.{}", replica)));
  }
  waiting_.resize(ports_.size());
}

void Reducer::receive(Context& context, Message message) {
  const std::string who(message.sender_name());
  if (const auto* bucket = message.as<BucketMessage>()) {
    const BucketMessage body = *bucket;
    Buffer part = message.take_payloads().front();
    add_bucket(context, body, std::move(part), who);
  } else if (const auto* header = message.as<HeaderMessage>()) {
    add_header(context, header->header, who);
  }
}

// A replica begins its next round only with this one's header in hand, so rounds never mix, unless
// a node does not do what it should.
bool Reducer::check_round(Context& context, std::uint64_t step, std::uint32_t attempt,
                          std::string_view who) {
  if (!step_) {
    step_ = step;
    attempt_ = attempt;
  }
  if (*step_ == step && attempt_ == attempt) return true;
  refuse(context, who, fmt::format("step {} attempt {}", step, attempt));
  return false;
}

void Reducer::refuse(Context& context, std::string_view who, std::string_view what) {
  context.fail({runtime::ErrorKind::kLostPeers,
                fmt::format("{} contributed {} while step {} attempt {} is reduced; its node does "
                            "not do what the others do",
                            who, what, *step_, attempt_)});
}

void Reducer::add_bucket(Context& context, const BucketMessage& body, Buffer part,
                         std::string_view who) {
  if (!check_round(context, body.step, body.attempt, who)) return;
  if (body.bucket > buckets_.size()) {
    refuse(context, who, fmt::format("bucket {} before bucket {}", body.bucket, buckets_.size()));
    return;
  }
  if (body.bucket == buckets_.size()) buckets_.emplace_back();
  Bucket& bucket = buckets_[body.bucket];
  if (bucket.replicas == 0) {
    bucket.begin = body.begin;
    bucket.end = body.end;
    bucket.sum = options_.replicas == 1 ? std::move(part) : Buffer::copy_of(part.bytes());
  } else if (bucket.begin != body.begin || bucket.end != body.end ||
             bucket.replicas == options_.replicas) {
    refuse(context, who, fmt::format("bucket {} cut otherwise, or twice", body.bucket));
    return;
  } else {
    model::add(part.as<std::int64_t>(), bucket.sum.mutable_as<std::int64_t>());
  }
  if (++bucket.replicas < options_.replicas) return;
  send_to_all(context, [&] { return Message::of(BucketMessage{body}, {bucket.sum}); });
  bucket.sum = {};
}

void Reducer::add_header(Context& context, const pipeline::StepHeader& header,
                         std::string_view who) {
  if (!check_round(context, header.step, header.attempt, who)) return;
  if (header_ && header_->exponents.size() != header.exponents.size()) {
    refuse(context, who, fmt::format("{} tensors", header.exponents.size()));
    return;
  }
  if (header_) {
    pipeline::combine(header, *header_);
  } else {
    header_ = header;
  }
  if (++headers_ < options_.replicas) return;
  const auto is_whole = [&](const Bucket& bucket) { return bucket.replicas == options_.replicas; };
  if (!std::all_of(buckets_.begin(), buckets_.end(), is_whole)) {
    refuse(context, who, "the last header, while buckets are missing");
    return;
  }
  if (header_->micro_batches != options_.micro_batches) {
    refuse(context, who,
           fmt::format("the last of {} micro-batches, where an iteration has {}",
                       header_->micro_batches, options_.micro_batches));
    return;
  }
  send_to_all(context, [&] { return Message::of(HeaderMessage{*header_}); });
  buckets_.clear();
  header_.reset();
  headers_ = 0;
  step_.reset();
}

void Reducer::send_to_all(Context& context, auto make_message) {
  for (std::size_t replica = 0; replica < ports_.size(); ++replica) {
    waiting_[replica].push_back(make_message());
    flush(context, replica);
  }
}

void Reducer::flush(Context& context, std::size_t replica) {
  std::vector<Message>& queue = waiting_[replica];
  std::size_t sent = 0;
  while (sent < queue.size() && context.send(ports_[replica], queue[sent])) ++sent;
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(sent));
}

void Reducer::credit_returned(Context& context, std::string_view) {
  for (std::size_t replica = 0; replica < ports_.size(); ++replica) flush(context, replica);
}

std::string Reducer::waiting_for() const {
  if (!step_) return "contributions of the next step";
  return fmt::format("contributions to step {} attempt {}: {} of {} headers are in", *step_,
                     attempt_, headers_, options_.replicas);
}

}  // namespace troupe::actors
