#pragma once

// The answers to libzmq, which asks about every encrypted connection that comes in whether to let
// it in (ZAP, ZeroMQ's RFC 27). The wire's own thread answers, within the process.
//
// The other end has proven by then that it owns its key. Nobody is let in by default: as long as
// nobody answers, nobody enters.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/log.h"
#include "runtime/transport/keys.h"
#include "runtime/transport/zmq_socket.h"

namespace troupe::runtime {

enum class Admission : std::uint8_t { kRefused, kAdmitted, kExpired };

// The keys that a listener lets in, as time goes by. A token admits each process that comes while
// it is good. Once in, a node belongs to the run, and a connection that breaks later is made again.
// Nothing of it is written anywhere. One thread.
class AllowState {
 public:
  // Whether `key` may connect now. It is
  //   - kAdmitted while it stands in the list and has not expired;
  //   - kExpired after it has, in the list or cleared away from it, if it was let in before.
  //     Everybody with a token has the same key, so whoever connects so must be known otherwise.
  // A key that is taken off the list before its time is refused from then on, and what it was let
  // in for is forgotten. That it was taken off is seen when somebody connects: where nobody did
  // until it would have expired, it cannot be told from one that was cleared away.
  Admission admits(const std::string& key, std::span<const AllowedKey> listed,
                   std::chrono::sys_seconds now);

 private:
  void compare_with(std::span<const AllowedKey> listed, std::chrono::sys_seconds now);

  std::map<std::string, std::chrono::sys_seconds> let_in_;  // keys that expire, until when
};

// The reply for libzmq, and what this end has to know of it.
struct AdmissionAnswer {
  std::vector<Buffer> frames;  // the reply
  Admission admission = Admission::kRefused;
  std::string key;  // that asked; "" when the request cannot be understood
};

// The answer to one request, whatever it holds. `admits` is asked about a key that has the form of
// one, which its owner has proven by then. ZmqOrigin has what it says.
AdmissionAnswer answer_admission(std::span<const Buffer> request,
                                 const std::function<Admission(const std::string& key)>& admits);

// Lives as long as the listeners of its context: a connection that is not answered never comes
// about. The wire's thread.
class ZmqAdmission {
 public:
  // The keys that may connect at this moment; asked once for every connection, on the wire's
  // thread.
  using AllowList = std::function<std::vector<AllowedKey>()>;
  // The time of day, for keys that expire.
  using WallClock = std::function<std::chrono::sys_seconds()>;

  // Before the first listener of the context, which outlives it. Errors: as ZmqSocket::open;
  // kInternal when the context has one already.
  static Result<std::unique_ptr<ZmqAdmission>> open(ZmqContext& context, AllowList allowed,
                                                    WallClock wall_time, Log log);

  // To be waited for, as long as this lives.
  ZmqSocket* socket() { return socket_.get(); }
  // Answers all questions, and never waits. The log names each key that is refused.
  void serve();

 private:
  ZmqAdmission(std::unique_ptr<ZmqSocket> socket, AllowList allowed, WallClock wall_time, Log log);

  const std::unique_ptr<ZmqSocket> socket_;
  const AllowList allowed_;
  const WallClock wall_time_;
  const Log log_;
  AllowState state_;
};

}  // namespace troupe::runtime
