#include "actors/teacher.h"

#include "config/plan.h"

namespace troupe::actors {

using runtime::Context;
using runtime::Message;

std::optional<Teacher::Pupil> Teacher::told(Context& context, const Teach& teach) {
  // A process that was taught before is not any more.
  if (taught_.erase(teach.member) > 0 || teach.begins) links_.forget(teach.member);
  to_teach_.erase(teach.member);
  if (!teach.begins) return std::nullopt;
  const auto met = met_.find(teach.member);
  if (met != met_.end() && met->second == teach.process) return Pupil{teach.member, teach.process};
  to_teach_[teach.member] = teach.process;
  links_.meet(context, teach.member);
  return std::nullopt;
}

std::optional<Teacher::Pupil> Teacher::met(const NeighbourMet& met) {
  const auto name = config::member_process(met.node);
  if (!name) return std::nullopt;
  met_[name->member] = name->process;
  const auto waits = to_teach_.find(name->member);
  if (waits == to_teach_.end() || waits->second != name->process) return std::nullopt;
  to_teach_.erase(waits);
  return Pupil{name->member, name->process};
}

bool Teacher::begin(Context& context, const Pupil& pupil, std::uint64_t next_step) {
  if (!taught_.emplace(pupil.member, pupil.process).second) return false;
  links_.post(context, pupil.member, Message::of(Lesson{next_step}));
  return true;
}

void Teacher::let_in(const pipeline::View& view) {
  std::erase_if(taught_, [&](const auto& each) { return view.has(each.first); });
}

void Teacher::dismiss_all() {
  for (const auto& [member, process] : taught_) links_.forget(member);
  taught_.clear();
  to_teach_.clear();
}

std::uint64_t Teacher::kept_bytes() const {
  std::uint64_t bytes = newest_ ? newest_->bytes() : 0;
  for (const auto& [member, process] : taught_) {
    bytes += static_cast<std::uint64_t>(links_.waiting_bytes(member));
  }
  return bytes;
}

void Teacher::give(Context& context, std::uint32_t member, pipeline::ViewId view) {
  for (const auto& [number, bucket] : newest_->buckets) {
    links_.post(context, member,
                Message::of(newest_->body(number, true, view, lossy_), {bucket.sum}));
  }
  links_.post(context, member, Message::of(RingHeader{newest_->header, true, view}));
}

void Teacher::dismiss(Context& context, const Pupil& slow) {
  taught_.erase(slow.member);
  links_.forget(slow.member);
  context.send_control("coordinator", Message::of(TooSlow{slow.member, slow.process}));
}

}  // namespace troupe::actors
