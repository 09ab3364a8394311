#include "runtime/node/remote_link.h"

#include <algorithm>

#include "runtime/node/remote_links.h"

namespace troupe::runtime {

void RemoteOutlet::meet() { links_.wish({PeerWish::Kind::kMeet, peer_, {}}); }

void RemoteOutlet::pass_on(Message&& message) {
  links_.post({peer_, this, {}, {}, std::move(message)});
}

void RemoteOutlet::gone_out(std::int64_t bytes) {
  ++out_.messages;
  out_.bytes += bytes;
}

bool RemoteOutlet::come_back(std::int64_t bytes) {
  if (back_.messages + heard_.messages >= out_.messages) return false;
  if (bytes > out_.bytes - back_.bytes - heard_.bytes) return false;
  ++back_.messages;
  back_.bytes += bytes;
  return true;
}

bool RemoteOutlet::heard(std::int64_t total_messages, std::int64_t total_bytes) {
  if (total_messages > out_.messages - back_.messages || total_bytes > out_.bytes - back_.bytes) {
    return false;
  }
  // Accounts overtake nothing, but one may be told again after a reconnection.
  if (total_messages <= heard_.messages) return true;
  if (total_bytes < heard_.bytes) return false;
  credit_back(total_messages - heard_.messages, total_bytes - heard_.bytes);
  heard_ = {total_messages, total_bytes};
  return true;
}

// Messages that are neither back nor heard of count as heard of, so that nothing can come back
// twice.
void RemoteOutlet::forget() {
  const std::int64_t messages = out_.messages - back_.messages - heard_.messages;
  const std::int64_t bytes = out_.bytes - back_.bytes - heard_.bytes;
  heard_.messages += messages;
  heard_.bytes += bytes;
  if (messages > 0) credit_back(messages, bytes);
}

void RemoteOutlet::begin_anew() {
  CHECK(out_.messages == back_.messages + heard_.messages, "nothing is out on a link that begins");
  out_ = back_ = heard_ = {};
  first_number_.store(0);
}

// Counts anew what the sender's end has counted, so that a sender cannot take credit that it does
// not have.
bool RemoteInlet::take_in(std::int64_t bytes) {
  const auto [given, given_bytes] = given_back();
  const std::int64_t messages_out = came_messages_.load() - given;
  const std::int64_t bytes_out = came_bytes_.load() - given_bytes;
  if (!credit_admits(bytes, messages_out, bytes_out, plan_.message_credits, plan_.byte_credits)) {
    return false;
  }
  came_messages_.fetch_add(1);
  came_bytes_.fetch_add(bytes);
  ++arrived_;
  return true;
}

void RemoteInlet::send_back(std::int64_t bytes) {
  came_messages_.fetch_sub(1);
  came_bytes_.fetch_sub(bytes);
}

// Credit that comes back first counts for the messages that came first, whichever it was: in the
// end the sums are right, and until then the sender has less credit and not more.
void RemoteInlet::begin_anew() {
  given_messages_.fetch_sub(came_messages_.exchange(0));
  given_bytes_.fetch_sub(came_bytes_.exchange(0));
  arrived_before_.store(arrived_);
}

std::pair<std::int64_t, std::int64_t> RemoteInlet::given_back() const {
  const std::int64_t messages = std::max<std::int64_t>(given_messages_.load(), 0);
  return {messages, std::max<std::int64_t>(given_bytes_.load(), 0)};
}

LinkStats RemoteInlet::stats() const {
  LinkStats stats;
  stats.plan = plan_;
  add_receiving_stats(stats);
  const auto [messages, bytes] = given_back();
  stats.sent = came_messages_.load();
  stats.in_use_messages = stats.sent - messages;
  stats.in_use_bytes = came_bytes_.load() - bytes;
  return stats;
}

void RemoteInlet::hand_over(std::int64_t messages, std::int64_t bytes) {
  given_bytes_.fetch_add(bytes);
  given_messages_.fetch_add(messages);
  links_.account_due(peer());
}

}  // namespace troupe::runtime
