#pragma once

// One client of the page: its requests one after the other, or the stream that it follows. At most
// one answer or event is under way to it, so one that does not read costs a text that others share.

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "telemetry/page/event_stream.h"
#include "telemetry/page/text_budget.h"
#include "telemetry/page/web_answer.h"
#include "telemetry/page/web_request.h"

namespace troupe::telemetry {

struct PageService;

// The server's thread. The service must outlive its handlers.
class PageConnection : public std::enable_shared_from_this<PageConnection> {
 public:
  using Time = runtime::TimePoint;

  PageConnection(boost::asio::ip::tcp::socket socket, PageService& service);

  void begin();
  // Now and then: sends what is new, closes what takes too long.
  void tick(Time now);
  // The last there will be: of what is new, as much as the system takes at once. False: an event is
  // still under way.
  bool say_last();
  // At once, whatever is under way; the service then knows it no longer.
  void close();

  // Until when it may be silent, as long as it owes a request or has its answer: whoever is nearest
  // makes way for others.
  std::optional<Time> makes_way() const;
  // Since when a text has been under way to it.
  std::optional<Time> sending_since() const;

 private:
  enum class State : std::uint8_t { kReading, kAsking, kAnswering, kFollowing, kDraining, kClosed };

  void read();
  void take(RequestReader::Found found);
  void serve();
  void ask_run(const WebAnswer& answer);
  void follow(const WebAnswer& answer);
  void offer();
  void send_answer(WebAnswer answer, bool keep_alive);
  void send(std::string head, TextBudget::Text text, std::string_view rest);
  void send_some();
  void sent();
  void listen_for_end();
  void drain();
  void time_out();

  boost::asio::ip::tcp::socket socket_;
  PageService& service_;
  RequestReader reader_;
  State state_ = State::kReading;
  bool keep_alive_ = false;
  bool head_only_ = false;
  std::array<char, 4096> arrived_;
  std::size_t ignored_ = 0;  // bytes of a client that should be silent
  Time deadline_{};

  // What is under way.
  bool sending_ = false;
  Time sending_since_{}, sent_at_{};
  std::string head_;
  TextBudget::Text text_;
  std::string_view rest_;  // behind the text
  std::size_t done_ = 0;   // bytes of all three

  // Of one that follows.
  std::optional<EventStream> stream_;
  std::size_t turns_ = 0;  // events that it may still be sent before the next tick
};

}  // namespace troupe::telemetry
