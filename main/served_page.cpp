#include "main/served_page.h"

#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "config/topology.h"
#include "main/answer.h"
#include "telemetry/page/page_asset.h"
#include "telemetry/page/page_server.h"
#include "telemetry/page/token_file.h"

namespace troupe {

std::vector<Option> page_options(const std::string& of) {
  return {{.name = "listen",
           .value = "HOST:PORT",
           .about = "of that page (default 127.0.0.1:8400, or the next free port)",
           .takes = Takes::kText},
          {.name = "token",
           .value = "FILE",
           .about = "with the token that the page asks for; " + of + " needs one beyond this host",
           .takes = Takes::kFile}};
}

runtime::Result<PageWords> page_words(const CommandLine& line) {
  PageWords words;
  line.take("listen", words.listen);
  if (!line.has("token")) return words;
  ASSIGN_OR_RETURN(words.token,
                   telemetry::read_token_file(line.get<std::string>("token"), "--token"));
  return words;
}

int serve_page(const PageWords& words, std::vector<telemetry::RunSource> runs,
               const EndingSignal& ending,
               std::function<std::shared_ptr<const std::string>()> front,
               const std::function<void()>& renew) {
  telemetry::PageServerOptions options;
  options.listen = words.listen.empty() ? config::MonitorSection{}.listen : words.listen;
  options.next_free_port = words.listen.empty();
  options.token = words.token;
  options.version = TROUPE_VERSION;
  options.assets = telemetry::page_assets();
  options.front = std::move(front);
  const auto server = telemetry::PageServer::open(options, std::move(runs));
  if (!server.ok()) return report(server.error());
  std::cout << (*server)->address() << std::endl;
  std::cerr << fmt::format("open it in a browser{}; Ctrl-C ends this\n",
                           options.token.empty() ? "" : " with ?token=TOKEN behind it");
  while (ending.pause(std::chrono::seconds(1))) {
    if (renew) renew();
  }
  return ending.code(0);
}

}  // namespace troupe
