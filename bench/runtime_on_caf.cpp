#include <caf/all.hpp>
#include <chrono>
#include <vector>

#include "bench/runtime_cases.h"

namespace troupe::bench {
namespace {

using Moment = std::chrono::steady_clock::time_point;
using Number = caf::atom_constant<caf::atom("number")>;
using Go = caf::atom_constant<caf::atom("go")>;

// CAF has no credits: a sender sends this many and then lets others run.
constexpr std::int64_t kLot = 512;

struct Times {
  Moment first;
  Moment last;
  std::string complaint;
};

caf::behavior sender(caf::event_based_actor* self, caf::actor to, std::int32_t number,
                     std::int64_t count, Times* times) {
  auto next = std::make_shared<std::int64_t>(0);
  if (number == 0) times->first = std::chrono::steady_clock::now();
  self->send(self, Go::value);
  return {[=](Go) {
    for (std::int64_t i = 0; i < kLot && *next < count; ++i) {
      self->send(to, Number::value, number, (*next)++);
    }
    if (*next == count) {
      self->quit();
    } else {
      self->send(self, Go::value);
    }
  }};
}

caf::behavior receiver(caf::event_based_actor* self, std::int64_t count, int senders,
                       Times* times) {
  auto left = std::make_shared<std::int64_t>(count);
  auto expected = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(senders));
  return {[=](Number, std::int32_t from, std::int64_t value) {
    if ((*expected)[static_cast<std::size_t>(from)]++ != value) {
      times->complaint = "a message came out of order or with other content";
    }
    if (--*left > 0) return;
    times->last = std::chrono::steady_clock::now();
    self->quit();
  }};
}

caf::behavior pong(caf::event_based_actor* self, std::int64_t turns) {
  auto turn = std::make_shared<std::int64_t>(0);
  return {[=](Number, std::int64_t value) {
    if (++*turn == turns) self->quit();
    return caf::make_message(Number::value, value);
  }};
}

caf::behavior ping(caf::event_based_actor* self, caf::actor to, std::int64_t turns, Times* times) {
  auto turn = std::make_shared<std::int64_t>(0);
  times->first = std::chrono::steady_clock::now();
  self->send(to, Number::value, std::int64_t{0});
  return {[=](Number, std::int64_t value) {
    if (value != *turn) times->complaint = "a ball was lost";
    if (++*turn < turns) {
      self->send(to, Number::value, *turn);
      return;
    }
    times->last = std::chrono::steady_clock::now();
    self->quit();
  }};
}

}  // namespace

RuntimeRun run_on_caf(const RuntimeCase& run) {
  Times times;
  caf::actor_system_config config;
  config.set("scheduler.max-threads", static_cast<std::size_t>(run.threads));
  caf::actor_system system(config);
  if (run.pattern == RuntimeCase::Pattern::kPingPong) {
    system.spawn(ping, system.spawn(pong, run.messages), run.messages, &times);
  } else {
    const int senders = run.pattern == RuntimeCase::Pattern::kFanIn ? kFanInSenders : 1;
    const caf::actor to = system.spawn(receiver, run.messages, senders, &times);
    for (int i = 0; i < senders; ++i) {
      system.spawn(sender, to, i, run.messages / senders, &times);
    }
  }
  system.await_all_actors_done();
  return {std::chrono::duration<double>(times.last - times.first).count(), times.complaint};
}

}  // namespace troupe::bench
