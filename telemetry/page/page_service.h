#pragma once

// What the connections of the page's server share.

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "runtime/base/clock.h"
#include "telemetry/page/gzip.h"
#include "telemetry/page/page_connection.h"
#include "telemetry/page/page_limits.h"
#include "telemetry/page/run_questions.h"
#include "telemetry/page/text_budget.h"
#include "telemetry/page/web_site.h"

namespace troupe::telemetry {

// The thread that runs `io`.
struct PageService {
  using Connection = std::shared_ptr<PageConnection>;

  PageService(WebSite what, const PageLimits& most);
  static std::shared_ptr<PageService> make(WebSite what, const PageLimits& most);

  // Takes connections that come until stop().
  void accept();
  // Ends `io` within a moment, in which followers hear the last news.
  void stop();
  // Makes room for one more text under way to somebody, at the cost of who takes longest.
  void make_room(const TextBudget::Text& text, const PageConnection* for_whom);

  boost::asio::io_context io{1};
  boost::asio::ip::tcp::acceptor acceptor{io};
  const WebSite site;
  const PageLimits limits;
  const std::uint64_t start;  // of this server, unlike that of any other
  GzipCache compressed;
  std::optional<RunQuestions> questions;  // never without
  TextBudget budget;
  std::set<Connection> connections;

 private:
  void admit(boost::asio::ip::tcp::socket socket);
  void tick();
  void tick_later();
  // In a tenth of a second, when a file may be free again.
  void accept_later();
  void tick_if_needed();
  void part(int tries);

  boost::asio::steady_timer next_tick_{io}, next_accept_{io};
  // How many since when, in the tenth of a second that has begun then.
  std::size_t arrived_ = 0;
  runtime::TimePoint arrived_since_{};
  bool ticking_ = false;
};

}  // namespace troupe::telemetry
