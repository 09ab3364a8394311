#pragma once

// Serves runs to browsers, terminals and Prometheus over HTTP/1.1, as docs/watching.md lists it, on
// one thread of its own that yields to all others. What clients do costs bounded memory and nobody
// else's time: PageLimits says how much.
//
// Beyond this host it serves only those who know a token; encryption is ssh's or a proxy's to add.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "telemetry/page/page_asset.h"
#include "telemetry/page/page_limits.h"
#include "telemetry/run_source.h"

namespace troupe::telemetry {

struct PageService;

struct PageServerOptions {
  std::string listen = "127.0.0.1:8400";  // port 0: any that is free
  // Where that port is taken, one of the hundred behind it.
  bool next_free_port = false;
  // "": everybody on this host may look, and nobody else.
  std::string token;
  std::string version;  // of this program
  // Have to live as long as the server.
  std::span<const PageAsset> assets;
  PageLimits limits;
};

class PageServer {
 public:
  // Of its thread, and of others that work for pages: training goes first.
  static constexpr int kNice = 10;

  // Listens, and answers from now on. kUsage: the address is none, is taken, or leads beyond this
  // host while there is no token; the message says what to do.
  static runtime::Result<std::unique_ptr<PageServer>> open(const PageServerOptions& options,
                                                           std::vector<RunSource> runs);
  // Ends within a moment, whatever clients do. Hooks of the runs are not called any more after it;
  // what they still answer is left out.
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  // "http://127.0.0.1:8400/"; with this host's name where it listens at all addresses. Any thread.
  const std::string& address() const { return address_; }
  std::uint16_t port() const { return port_; }

 private:
  PageServer() = default;

  std::shared_ptr<PageService> service_;
  std::string address_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace troupe::telemetry
