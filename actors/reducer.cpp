#include "actors/reducer.h"

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
  if (const auto* bucket = message.as<BucketMessage>()) {
    Buffer part = message.take_payloads().front();
    add_bucket(context, *bucket, std::move(part));
  } else if (const auto* header = message.as<HeaderMessage>()) {
    add_header(context, header->header);
  }
}

// A replica begins its next round only with this one's header in hand, so rounds never mix.
void Reducer::check_round(std::uint64_t step, std::uint32_t attempt) {
  if (!step_) {
    step_ = step;
    attempt_ = attempt;
  }
  CHECK(*step_ == step && attempt_ == attempt,
        fmt::format("step {} attempt {} while reducing step {} attempt {}", step, attempt, *step_,
                    attempt_));
}

void Reducer::add_bucket(Context& context, const BucketMessage& body, Buffer part) {
  check_round(body.step, body.attempt);
  if (buckets_.size() <= body.bucket) buckets_.resize(body.bucket + 1);
  Bucket& bucket = buckets_[body.bucket];
  if (bucket.replicas == 0) {
    bucket.begin = body.begin;
    bucket.end = body.end;
    bucket.sum = options_.replicas == 1 ? std::move(part) : Buffer::copy_of(part.bytes());
  } else {
    CHECK(bucket.begin == body.begin && bucket.end == body.end, "replicas cut the same buckets");
    model::add(part.as<std::int64_t>(), bucket.sum.mutable_as<std::int64_t>());
  }
  if (++bucket.replicas < options_.replicas) return;
  send_to_all(context, [&] { return Message::of(BucketMessage{body}, {bucket.sum}); });
  bucket.sum = {};
}

void Reducer::add_header(Context& context, const pipeline::StepHeader& header) {
  check_round(header.step, header.attempt);
  if (header_) {
    pipeline::combine(header, *header_);
  } else {
    header_ = header;
  }
  if (++headers_ < options_.replicas) return;
  CHECK(header_->micro_batches == options_.micro_batches, "a micro-batch is missing in the sum");
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
