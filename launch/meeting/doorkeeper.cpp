#include "launch/meeting/doorkeeper.h"

#include <set>
#include <utility>
#include <variant>

#include "runtime/base/start_thread.h"
#include "runtime/transport/packets.h"

namespace troupe::launch {

using runtime::ConnectionId;

class Doorkeeper::Visitors final : public runtime::WireEvents {
 public:
  Visitors(runtime::Wire& wire, const std::string& why) : wire_(wire), why_(why) {}

  void connected(ConnectionId connection, const runtime::ConnectionInfo&) override {
    here_.insert(connection);
  }
  void arrived(ConnectionId connection, runtime::Lane, runtime::Packet packet) override {
    const auto read = runtime::unpack(packet, types_);
    const bool may_ask_again = read.ok() && (std::holds_alternative<runtime::Enrolment>(*read) ||
                                             std::holds_alternative<runtime::HeadRequest>(*read));
    send_away(connection,
              may_ask_again
                  ? runtime::pack(runtime::NotNow{why_})
                  : runtime::pack(runtime::Refusal{{runtime::ErrorKind::kLostPeers, why_}}));
    here_.erase(connection);
  }
  void disconnected(ConnectionId connection, const runtime::Error&) override {
    here_.erase(connection);
  }

  // Their question may be under way.
  void send_all_away() {
    for (const ConnectionId connection : std::exchange(here_, {})) {
      send_away(connection, runtime::pack(runtime::NotNow{why_}));
    }
  }

 private:
  void send_away(ConnectionId connection, runtime::Packet answer) {
    wire_.send(connection, runtime::Lane::kControl, std::move(answer));
    wire_.close(connection);
  }

  runtime::Wire& wire_;
  const std::string& why_;
  const runtime::WireTypes types_;  // no actor's messages are expected
  std::set<ConnectionId> here_;
};

Doorkeeper::Doorkeeper(runtime::Wire& wire, const runtime::Clock& clock, std::string why,
                       runtime::Duration after)
    : wire_(wire),
      clock_(clock),
      why_(std::move(why)),
      after_(after),
      thread_(runtime::need_thread("what answers those that want to join", [this] { answer(); })) {}

Doorkeeper::~Doorkeeper() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  wire_.wake();
  thread_.join();
}

bool Doorkeeper::ends_within(runtime::Duration time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return ends_; });
}

// Polls the wire, which nobody else drives meanwhile. The destructor wakes it.
void Doorkeeper::answer() {
  if (ends_within(after_)) return;
  Visitors visitors(wire_, why_);
  while (!ends_within(runtime::Duration::zero())) {
    wire_.poll(visitors, clock_.now() + std::chrono::seconds(1));
  }
  visitors.send_all_away();
}

}  // namespace troupe::launch
