#pragma once

// Serves runs to browsers, terminals and Prometheus over HTTP/1.1, as docs/watching.md lists it, on
// one thread of its own that yields to all others. A client costs bounded memory and never holds up
// the run; see PageLimits.
//
// Beyond this host it serves only those who know a token, and changes a run only for those who know
// another one. It encrypts nothing: use ssh or a proxy.

#include <cstdint>
#include <functional>
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
  std::string listen;  // HOST:PORT; port 0: any that is free
  // Where that port is taken, listens at one of the hundred after it.
  bool next_free_port = false;
  // What clients have to know. "": everybody on this host may look, and nobody else.
  std::string token;
  // What they have to send to change something. "": nobody may.
  std::string control;
  std::string version;  // of this program
  // They live as long as the server.
  std::span<const PageAsset> assets;
  // The HTML of "/" in place of theirs, which the server's thread asks for each time; the same
  // text is compressed once. Empty: there is none.
  std::function<std::shared_ptr<const std::string>()> front{};
  PageLimits limits;
};

class PageServer {
 public:
  // The nice value of its thread, and of others that work for pages: training goes first.
  static constexpr int kNice = 10;

  // Listens, and answers from now on. kUsage: this is no address, it is taken, or it leads beyond
  // this host while there is no token. The message says what to do.
  static runtime::Result<std::unique_ptr<PageServer>> open(const PageServerOptions& options,
                                                           std::vector<RunSource> runs);
  // Ends within a moment, whatever clients do. The runs' hooks are not called after that, and their
  // late answers are ignored.
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  // "http://127.0.0.1:8400/"; with this host's name where it listens at all addresses. Any thread.
  const std::string& address() const { return address_; }
  std::uint16_t port() const { return port_; }

 private:
  PageServer();

  std::unique_ptr<PageService> service_;
  std::string address_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace troupe::telemetry
