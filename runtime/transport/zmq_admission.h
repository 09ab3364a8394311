#pragma once

// Who is let in: the answers to what libzmq asks about every encrypted connection that comes in
// (ZAP, ZeroMQ's RFC 27). Asked and answered within the process, by the wire's own thread.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/log.h"
#include "runtime/transport/keys.h"
#include "runtime/transport/zmq_socket.h"

namespace troupe::runtime {

struct AdmissionAnswer {
  std::vector<Buffer> frames;  // the reply
  bool admitted = false;
  std::string key;  // that asked (Z85); "" when the request cannot be understood
};

// The answer to one request, whatever it holds.
AdmissionAnswer answer_admission(std::span<const Buffer> request,
                                 std::span<const AllowedKey> allowed);

class ZmqAdmission {
 public:
  // Who may connect at this moment.
  using AllowList = std::function<std::vector<AllowedKey>()>;

  // Stands before the first listener of the context. Errors (kInternal): the context has one.
  static Result<std::unique_ptr<ZmqAdmission>> open(ZmqContext& context, AllowList allowed,
                                                    Log log);

  ZmqSocket* socket() { return &socket_; }
  // Answers what was asked. Who is refused stands in the log.
  void serve();

 private:
  ZmqAdmission(ZmqContext& context, AllowList allowed, Log log);

  ZmqSocket socket_;
  const AllowList allowed_;
  const Log log_;
};

}  // namespace troupe::runtime
