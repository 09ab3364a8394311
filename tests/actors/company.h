#pragma once

// A run of scripts around a real Coordinator: members that say what a test has cued, reducers that
// halt where they are told to have come, replicas that end after 20 s.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/coordinator.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {

using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;
using runtime::PeerJoined;
using runtime::PeerLost;
using runtime::Script;
using std::chrono::milliseconds;

inline const Error kDeath{ErrorKind::kLostPeers, "its connection closed"};

inline std::string name(const char* kind, std::uint32_t number) {
  return fmt::format("{}.{}", kind, number);
}

// A Coordinator and members of one replica each, all scripts, until their replicas end at 20 s. The
// last `newcomers` are in no View at first.
class Company {
 public:
  explicit Company(std::uint32_t members, std::uint32_t newcomers = 0)
      : next_step(members, 5), kept_bytes(members, 0), members_(members), newcomers_(newcomers) {}

  // What the member's root says then.
  void cue(std::uint32_t member, milliseconds at, std::function<Message()> line) {
    cues_[member].emplace(at, std::move(line));
  }
  // As the head's gate says it.
  void lose(std::uint32_t member, milliseconds at) {
    cue((member + 1) % members_, at, [member] {
      return Message::of(PeerLost{name("member", member), kDeath});
    });
    lost_.push_back(member);
  }
  void quarrel(std::uint32_t from, std::uint32_t about, milliseconds at) {
    cue(from, at, [about] { return Message::of(NeighbourLost{name("member", about), kDeath}); });
  }

  void join(std::uint32_t member, milliseconds at) {
    cue(member, at, [this, member] { return arrival_of(member); });
  }
  // What its replica says then, and where its reducer is from then on.
  void learn(std::uint32_t member, std::chrono::seconds at, const Learned& learned,
             std::uint64_t next) {
    lessons_[member][at] = {learned, next};
  }

  // As the head's gate passes on what somebody asks for; answers as they come, "left" or why not.
  void drain(const std::string& node, milliseconds at) {
    cue(0, at, [node, drained = drained_] {
      const auto reply = std::make_shared<runtime::RequestReply>(
          [drained](const runtime::Result<std::string>& answer) {
            drained->push_back(answer.ok() ? "left" : answer.error().message);
          });
      return Message::of(
          runtime::RequestAsked{{runtime::HeadRequest::Kind::kDrain, node}, "somebody", reply});
    });
  }
  const std::vector<std::string>& drained() const { return *drained_; }

  void run(std::uint64_t seed = 1) {
    Play play;
    play.actor("coordinator", [this] { return std::make_unique<Coordinator>(options(), outcome); });
    for (std::uint32_t i = 0; i < members_; ++i) {
      play.actor(name("member", i), member(i));
      play.actor(name("reducer", i), reducer(i));
      play.actor(name("replica", i), replica(i));
    }
    play.actor("checkpointer", checkpointer()).actor("monitor", monitor());
    end = play.run(seed);
  }

  // For the actor, in order: "halt 1.2", "view 1.2 of 0 2 from 5", "release", "expelled: why",
  // "stop".
  std::map<std::string, std::vector<std::string>> heard;
  std::map<std::string, runtime::TimePoint> expelled_at, released_at;
  std::vector<std::string> changes;      // that the monitor was told
  std::vector<std::string> joining;      // members that it was told to be
  std::vector<std::uint32_t> taught;     // members that reducers are to teach
  std::vector<std::uint32_t> processes;  // and which process of each
  // The rings that newcomers were told of.
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> likely;
  std::uint32_t reused_from = UINT32_MAX;
  std::map<std::uint32_t, std::string> addresses;  // of members
  std::string own_host;
  std::vector<std::uint64_t> next_step, kept_bytes;     // that members tell when they halt
  runtime::TimePoint saving_from{0}, flushing_from{0};  // for 3 s each
  std::uint32_t absent = UINT32_MAX;                    // this member never comes
  std::uint32_t min_members = 1;
  milliseconds accused_grace{2000};
  bool shares_anew = true;
  std::uint64_t iterations = 0;
  std::vector<double>
      speeds;  // told every second, at iteration 100, by replicas that own something
  std::optional<CoordinatorOptions::Predecessor> predecessor;
  runtime::Duration handover_grace{0};
  std::optional<std::uint32_t> idle;  // the replica that tells every second that it has no work
  std::shared_ptr<RunOutcome> outcome = std::make_shared<RunOutcome>();
  runtime::NodeEnd end;

 private:
  CoordinatorOptions options() {
    CoordinatorOptions options;
    options.state = toy_.state(0);
    options.first_step = 5;
    options.validate = false;
    options.parting_grace = milliseconds(2000);
    options.accused_grace = accused_grace;
    options.handover_grace = handover_grace;
    options.membership.ring.clear();
    options.member_slots.clear();
    for (std::uint32_t i = 0; i < members_; ++i) {
      if (!is_new(i)) options.membership.ring.push_back(i);
      options.member_slots.push_back({name("member", i), name("reducer", i)});
    }
    options.membership.weights.assign(members_, 1);
    options.membership.micro_batches = 6;
    options.membership.min_members = min_members;
    options.shares_anew = shares_anew;
    options.reused_from = reused_from;
    options.own_host = own_host;
    options.iterations = iterations;
    options.predecessor = predecessor;
    if (predecessor) options.membership.term = 2;
    options.time_of_day = [told = 0]() mutable {
      return told++ == 0 ? std::string("before") : fmt::format("after View 1.{}", told - 1);
    };
    return options;
  }

  Message arrival_of(std::uint32_t member) {
    return Message::of(PeerJoined{name("member", member), "", addresses[member], 1});
  }

  bool is_new(std::uint32_t member) const { return member + newcomers_ >= members_; }

  bool owns(std::uint32_t replica) const {
    if (outcome->changes.empty()) return true;
    const auto& owners = outcome->changes.back().view.later.back().owners;
    return std::ranges::count(owners, replica) > 0;
  }

  void note(Context& context, const std::string& what) {
    heard[std::string(context.name())].push_back(what);
  }

  Script member(std::uint32_t number) {
    Script script;
    script.start = [this, number](Context& context) {
      for (const auto& [at, line] : cues_[number]) context.after(at);
      if (number == absent || is_new(number)) return;
      context.send_control("coordinator", arrival_of(number));
    };
    script.timer = [this, number](Context& context, runtime::TimerId) {
      auto& cues = cues_[number];
      context.send_control("coordinator", cues.begin()->second());
      cues.erase(cues.begin());
    };
    script.receive = [this](Context& context, const Message& message) {
      if (const auto* release = message.as<Release>()) {
        note(context, release->why.empty() ? "release" : "release: " + release->why);
        released_at.try_emplace(std::string(context.name()), context.now());
      }
      if (const auto* expelled = message.as<Expelled>()) {
        note(context, "expelled: " + expelled->error.message);
        expelled_at[std::string(context.name())] = context.now();
      }
    };
    return script;
  }

  Script reducer(std::uint32_t number) {
    Script script;
    script.receive = [this, number](Context& context, const Message& message) {
      if (const auto* halt = message.as<Halt>()) {
        note(context, "halt " + pipeline::text_of(halt->change));
        context.send_control("coordinator",
                             Message::of(Halted{halt->change, next_step[number], next_step[number],
                                                kept_bytes[number]}));
      } else if (const auto* told = message.as<ViewMessage>()) {
        const pipeline::View& view = *told->view;
        if (view.id == kLesson) {
          likely.emplace_back(number, view.ring);
          return;
        }
        note(context, fmt::format("view {} of {} from {}", text_of(view.id),
                                  fmt::join(view.ring, " "), view.first_step));
        context.send_control("coordinator", Message::of(Entered{view.id}));
      } else if (const auto* teach = message.as<Teach>()) {
        if (teach->begins) taught.push_back(teach->member);
        if (teach->begins) processes.push_back(teach->process);
      }
    };
    return script;
  }

  Script replica(std::uint32_t number) {
    Script script;
    const auto end = [this, number, ended = false](Context& context) mutable {
      if (std::ranges::count(lost_, number) > 0 || std::exchange(ended, true)) return;
      ReplicaEnd body;
      body.replica = number;
      body.state = toy_.state(number == 0 ? 2 : 3);
      context.send_control("coordinator", Message::of(std::move(body)));
    };
    const auto shared = std::make_shared<std::function<void(Context&)>>(end);
    script.start = [](Context& context) { context.after(std::chrono::seconds(1)); };
    script.timer = [this, number, shared](Context& context, runtime::TimerId) {
      if (context.now() >= std::chrono::seconds(20)) return (*shared)(context);
      const auto lesson = lessons_[number].find(context.now());
      if (lesson != lessons_[number].end()) {
        next_step[number] = lesson->second.second;
        context.send_control("coordinator", Message::of(Learned(lesson->second.first)));
      }
      if (idle == number) {
        context.send_control("coordinator", Message::of(Pace{number, 7, 0, 0.0}));
      }
      if (!speeds.empty() && owns(number)) {
        context.send_control("coordinator",
                             Message::of(Pace{number, 100, 1000, 1000 / speeds[number]}));
      }
      context.after(std::chrono::seconds(1));
    };
    script.receive = [this, shared](Context& context, const Message& message) {
      if (message.as<StopTraining>() == nullptr) return;
      note(context, "stop");
      (*shared)(context);
    };
    return script;
  }

  Script checkpointer() {
    Script script;
    script.receive = [this](Context& context, Message message) {
      if (message.as<LastState>() != nullptr) {
        saving_from = context.now();
        context.after(std::chrono::seconds(3));
      } else if (message.as<FinishMetrics>() != nullptr) {
        context.send_control("monitor", std::move(message));
      }
    };
    script.timer = [](Context& context, runtime::TimerId) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
    };
    return script;
  }

  Script monitor() {
    Script script;
    script.receive = [this](Context& context, const Message& message) {
      if (message.as<FinishMetrics>() != nullptr) {
        flushing_from = context.now();
        context.after(std::chrono::seconds(3));
      } else if (const auto* change = message.as<NodeChange>()) {
        if (change->state == "dead") changes.push_back(change->name + " dead: " + change->cause);
        if (change->state == "joining") joining.push_back(change->name);
      } else if (const auto* event = message.as<EventMetrics>()) {
        changes.push_back(telemetry::line_of(event->record));
      }
    };
    script.timer = [](Context& context, runtime::TimerId) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
    };
    return script;
  }

  Toy toy_;
  const std::uint32_t members_, newcomers_;
  std::map<std::uint32_t, std::map<runtime::TimePoint, std::pair<Learned, std::uint64_t>>> lessons_;
  std::vector<std::uint32_t> lost_;
  // Answers may come when this has gone.
  const std::shared_ptr<std::vector<std::string>> drained_ =
      std::make_shared<std::vector<std::string>>();
  std::map<std::uint32_t, std::multimap<milliseconds, std::function<Message()>>> cues_;
};

inline void expect_good_end(const Company& company) {
  EXPECT_FALSE(company.end.error) << company.end.error->message;
  EXPECT_FALSE(company.outcome->stopped);
  EXPECT_TRUE(company.outcome->saved);
}

}  // namespace troupe::actors
