#pragma once

// One client of the page: its requests one after the other, or the stream that it follows. At most
// one answer or event is under way to it, so a client that does not read costs one text, which
// others may share.

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "telemetry/page/event_stream.h"
#include "telemetry/page/run_questions.h"
#include "telemetry/page/web_answer.h"
#include "telemetry/page/web_request.h"

namespace troupe::telemetry {

struct PageService;

// The server's thread. A connection lives as long as something is under way on it; until then it is
// one of the service's connections. The service outlives it.
class PageConnection : public std::enable_shared_from_this<PageConnection> {
 public:
  PageConnection(boost::asio::ip::tcp::socket socket, PageService& service);
  ~PageConnection();
  PageConnection(const PageConnection&) = delete;
  PageConnection& operator=(const PageConnection&) = delete;

  // Reads the next request, and answers it.
  void read();
  // Sends a follower one event of each run that has news, unless it is still taking the last one.
  void tell_news();
  // Sends a follower the last news there will be, and closes the connection.
  void part();
  // Closes the connection at once, whatever is under way.
  void close();

 private:
  using Text = RunQuestions::Text;

  void serve();
  void ask_run(WebAnswer answer);
  void change_run(const WebAnswer& answer);
  void follow(const WebAnswer& answer);
  void next_event();
  void send_answer(WebAnswer answer);
  void send(std::string head, Text text, std::string_view rest);
  void sent();
  void wait_for_end();

  PageService& service_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer arrived_;
  std::optional<RequestParser> parser_;
  WebRequest request_;
  bool keep_alive_ = false;
  std::array<char, 512> ignored_;  // what a client says when it has nothing to say any more

  // What is under way, but for a constant text that follows it.
  bool sending_ = false;
  std::string head_;
  Text text_;
  runtime::TimePoint sent_at_{};

  // Only a follower has these.
  std::optional<EventStream> events_;
  std::size_t turns_ = 0;  // events that it may still be sent before the next tell_news()
  bool parts_ = false;
};

}  // namespace troupe::telemetry
