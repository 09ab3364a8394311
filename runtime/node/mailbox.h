#pragma once

// The signals and messages that wait for one actor. Any thread posts them; the thread that runs the
// actor takes them.
//
// Posting appends to an incoming queue under a lock. Taking swaps a whole incoming queue for the
// one it has read to its end, so the reader takes the lock once per lot and not once per message.
// Order: signals, then control, data, metrics; first in, first out within each.
//
// The mailbox also holds the one bit that keeps an actor from running twice at once: whether it is
// scheduled. It starts closed and idle.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <variant>
#include <vector>

#include "runtime/actor.h"
#include "runtime/message.h"

namespace troupe::runtime {

// The runtime's own messages to an actor.
struct StartSignal {};
struct StopSignal {};
struct TimerSignal {
  TimerId id;
};
struct CreditSignal {
  PortId port;
};
struct ChildSignal {
  ChildEnd end;
};
struct ReturnSignal {  // an undeliverable message
  Message message;
  Error cause;
};
using Signal =
    std::variant<StartSignal, StopSignal, TimerSignal, CreditSignal, ChildSignal, ReturnSignal>;

class Mailbox {
 public:
  enum class Posted {
    kQueued,  // the actor will come to it
    kWake,    // the actor was idle and is scheduled now: the caller must enqueue it
    kClosed,  // the mailbox takes nothing; the argument is untouched
  };

  // Everything left in a mailbox, in the order it would have been taken.
  struct Remains {
    std::vector<Signal> signals;
    std::vector<Message> messages;
  };

  // Any thread.
  Posted post(Message&& message, Lane lane);
  Posted post(Signal&& signal);
  // Any thread. Opens a closed mailbox, with a StartSignal first in it.
  Posted open();

  // The running thread. The next signal or message; nullptr when there is none. Valid until the
  // next call; the caller moves from it.
  Signal* take_signal();
  Message* take_message();
  // The lane of the message taken last.
  Lane lane() const { return lane_; }
  // The running thread. From now on posts find the mailbox closed.
  Remains close();
  // The running thread, when nothing is left to take. True: the actor is idle; the next post is
  // told kWake. False: something came meanwhile.
  bool rest();

  // Any thread. Marks an idle actor as scheduled, so that no thread runs it until rest(); false
  // when it is scheduled already.
  bool claim();
  bool scheduled() const;

 private:
  // A queue the reader has swapped in, read up to `next`.
  template <class T>
  struct Lot {
    std::vector<T> items;
    std::size_t next = 0;
    bool read() const { return next == items.size(); }
  };
  // Bits of fresh_: one per lane, then one for signals.
  static constexpr std::uint32_t kSignals = 1u << kLanes;

  Posted schedule(std::uint32_t bit);  // under the lock
  template <class T>
  bool refill(Lot<T>& lot, std::vector<T>& incoming, std::uint32_t bit);

  mutable std::mutex mutex_;
  bool open_ = false;
  bool scheduled_ = false;
  // The incoming queues that hold something, as bits; written under the lock, read without.
  std::atomic<std::uint32_t> fresh_{0};
  std::vector<Signal> incoming_signals_;
  std::array<std::vector<Message>, kLanes> incoming_;

  // For the running thread alone.
  alignas(64) Lot<Signal> signals_;
  std::array<Lot<Message>, kLanes> lots_;
  Lane lane_ = Lane::kControl;
};

}  // namespace troupe::runtime
