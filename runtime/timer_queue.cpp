#include "runtime/timer_queue.h"

namespace troupe::runtime {

TimerQueue::Added TimerQueue::add(ActorId actor, TimePoint due) {
  const std::scoped_lock lock(mutex_);
  const Key key{due, ++last_number_};
  const auto place = timers_.emplace(key, actor).first;
  return {{TimerId{key.second}, actor, due}, place == timers_.begin()};
}

void TimerQueue::remove(TimerId id, TimePoint due) {
  const std::scoped_lock lock(mutex_);
  timers_.erase(Key{due, id.number});
}

std::vector<TimerQueue::Timer> TimerQueue::take_due(TimePoint now) {
  std::vector<Timer> due;
  const std::scoped_lock lock(mutex_);
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const auto& [key, actor] = *timers_.begin();
    due.push_back({TimerId{key.second}, actor, key.first});
    timers_.erase(timers_.begin());
  }
  return due;
}

TimePoint TimerQueue::next_due() const {
  const std::scoped_lock lock(mutex_);
  return timers_.empty() ? kNever : timers_.begin()->first.first;
}

}  // namespace troupe::runtime
