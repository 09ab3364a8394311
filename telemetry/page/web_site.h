#pragma once

// Decides what the page's server answers to a request, without a socket.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "telemetry/deflate.h"
#include "telemetry/page/page_asset.h"
#include "telemetry/page/web_access.h"
#include "telemetry/page/web_answer.h"
#include "telemetry/page/web_request.h"
#include "telemetry/run_source.h"

namespace troupe::telemetry {

struct WebSite {
  std::string version;                // of this program
  std::span<const PageAsset> assets;  // may be empty: built without the page
  AccessRules access;
  std::vector<RunSource> runs;
  // The HTML of "/" in place of that of the assets, asked for each time; the same text is
  // compressed once. Empty: there is none.
  std::function<std::shared_ptr<const std::string>()> front{};
};

// Any request has an answer; docs/watching.md lists the addresses. The owner of the socket
// completes one that has no body yet.
WebAnswer answer(const WebRequest& request, const WebSite& site);

// Compresses a body of more than 1 kB for a client that accepts it.
void compress(WebAnswer& answer, const WebRequest& request, GzipCache& cache);

}  // namespace troupe::telemetry
