#pragma once

// What the connections of the page's server share.

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <set>

#include "telemetry/deflate.h"
#include "telemetry/page/page_connection.h"
#include "telemetry/page/page_limits.h"
#include "telemetry/page/run_questions.h"
#include "telemetry/page/web_site.h"

namespace troupe::telemetry {

// Used by the thread that runs `io`.
struct PageService {
  PageService(WebSite what, const PageLimits& most);

  // Takes connections until stop().
  void accept();
  // Ends the work of `io` within a moment. Followers hear the last news before.
  void stop();
  // The connection is gone.
  void forget(PageConnection* connection);

  const std::shared_ptr<boost::asio::io_context> io = std::make_shared<boost::asio::io_context>(1);
  boost::asio::ip::tcp::acceptor acceptor{*io};
  boost::asio::steady_timer next_tick{*io}, next_accept{*io};
  WebSite site;
  const PageLimits limits;
  const std::uint64_t start;  // tells this server from those before it
  GzipCache compressed;
  std::set<PageConnection*> connections;
  RunQuestions questions;  // destroyed first, as it may hold connections

 private:
  void admit(boost::asio::ip::tcp::socket socket);
  void tick_later();
  void tick();

  bool ticks_ = false;
};

}  // namespace troupe::telemetry
