#include "actors/flight.h"

#include <cstring>
#include <utility>

namespace troupe::actors {

using runtime::Buffer;
using runtime::Message;

Flight::Flight(pipeline::StepShare share, std::int64_t segment_bytes, const pipeline::View& view,
               std::uint32_t worker)
    : share_(std::move(share)),
      segment_bytes_(segment_bytes),
      worker_(worker),
      layout_(share_.sums()) {
  restart(view);
}

void Flight::restart(const pipeline::View& view) {
  share_.take_over();
  view_ = view.id;
  buckets_ =
      pipeline::make_buckets(layout_, segment_bytes_, static_cast<std::uint32_t>(view.ring.size()));
  begun_ = contributed_ = announced_ = false;
  next_ = 0;
}

void Flight::begin(std::uint32_t attempt, const std::vector<std::int16_t>& scales,
                   runtime::TimePoint now) {
  if (begun_ && attempt == this->attempt()) return;
  begun_ = true;
  begun_at_ = now;
  contributed_ = announced_ = false;
  next_ = 0;
  record_ = {share_.begin_header(attempt), scales, Buffer::allocate(layout_.bytes()),
             layout_.front};
}

void Flight::add_buckets(std::int64_t from, const Post& post) {
  CHECK(begun_, "an attempt is begun");
  for (; next_ < buckets_.size() && buckets_[next_].offset >= from; ++next_) {
    const pipeline::Bucket& bucket = buckets_[next_];
    Buffer sums = share_.add_up(bucket, record_.scales, record_.header);
    BucketMessage body;
    body.step = share_.step();
    body.attempt = attempt();
    body.bucket = static_cast<std::uint32_t>(next_);
    body.begin = bucket.offset;
    body.end = bucket.end();
    body.kind = bucket.kind;
    body.view = view_;
    body.worker = worker_;
    post(Message::of(body, {std::move(sums)}));
  }
  contributed_ = next_ == buckets_.size() && share_.complete();
}

void Flight::add_header(const runtime::Hash128& state, std::optional<double> distance,
                        std::vector<pipeline::TurnOffer> next, const Post& post) {
  CHECK(contributed() && !announced_, "the header goes last, and once");
  share_.finish_header(record_.scales, record_.header);
  record_.header.state_minimum = state;
  record_.header.state_maximum = state;
  record_.header.judged = distance.has_value();
  if (distance) record_.header.distance = *distance;
  record_.header.next = std::move(next);
  post(Message::of(HeaderMessage{pipeline::StepHeader(record_.header), view_, worker_}));
  announced_ = true;
}

bool Flight::take(const BucketMessage& body, const Buffer& sums) {
  const pipeline::Bucket bucket{body.begin, body.end - body.begin, body.kind};
  if (!begun_ || body.worker != worker_ || body.step != share_.step() ||
      body.attempt != attempt() || !layout_.holds(bucket) || sums.size() != bucket.bytes()) {
    return false;
  }
  std::memcpy(record_.sums.mutable_data() + layout_.offset(body.begin), sums.data(), sums.size());
  return true;
}

}  // namespace troupe::actors
