#include "telemetry/page/web_site.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "runtime/base/json_reader.h"
#include "runtime/base/json_writer.h"
#include "telemetry/open_metrics.h"

namespace troupe::telemetry {
namespace {

namespace http = boost::beast::http;

constexpr std::string_view kWithoutPage =
    "Troupe {}. This program was built without the page (it takes npm). What it tells all the "
    "same:\n"
    "\n"
    "  /api/runs                     which runs there are\n"
    "  /api/runs/0/history           all that is known, as JSON\n"
    "  /api/runs/0/stream            the same as server-sent events, as it comes\n"
    "  /api/runs/0,1/stream          those of several runs\n"
    "  /api/runs/0/showers/STEP      profiles and showers of a step\n"
    "  /api/runs/0/trace             what every actor did lately; Perfetto opens it\n"
    "  /api/runs/0/waits             who waits for whom\n"
    "  /api/runs/0/burst             other nodes of a pool: POST, with the token for changes\n"
    "  /metrics                      OpenMetrics, for Prometheus\n"
    "  /healthz                      ok\n"
    "\n"
    "troupe watch ADDRESS shows it in a terminal.\n";
constexpr std::string_view kRunsPath = "/api/runs/";
constexpr std::string_view kShowersPath = "showers/";
constexpr std::string_view kBurstPath = "burst";
constexpr std::size_t kLeastToCompress = 1024;
// A longer text takes more than a moment, which would hold up other clients.
constexpr std::size_t kMostToCompress = std::size_t{16} << 20;
constexpr std::size_t kMostAssetBytes = std::size_t{64} << 20;

bool is_live(const RunSource& run) { return run.live && run.live(); }

std::string name_of(const RunSource& run) {
  const std::string told = run.history->facts().name;
  return told.empty() ? run.name : told;
}

WebAnswer list_runs(const WebSite& site) {
  std::string json = "{";
  runtime::JsonWriter list(json);
  list.text("version", site.version, site.version.size());
  std::uint64_t id = 0;
  const bool may_change = !site.access.control.empty();
  list.list("runs", site.runs, site.runs.size(), [&](auto& item, const RunSource& run) {
    item.group("", [&](auto& fields) {
      const std::string name = name_of(run);
      fields.number("id", id++);
      fields.text("name", name, name.size());
      fields.text("folder", run.folder, run.folder.size());
      fields.flag("live", is_live(run));
      // Not where nobody may change them.
      if (may_change) fields.last("pools", run.pools);
    });
  });
  return text_answer(json + "}\n", kJson);
}

WebAnswer metrics(const WebRequest& request, const WebSite& site) {
  if (site.runs.empty()) return refusal(404, "there is no run");
  // One run is told: the first that goes on, or the first of all.
  const auto live = std::find_if(site.runs.begin(), site.runs.end(), is_live);
  const RunSource& run = live != site.runs.end() ? *live : site.runs.front();
  const MetricsFormat format = metrics_format(field_of(request, "Accept"));
  return text_answer(open_metrics(*run.history, format), std::string(content_type(format)));
}

WebAnswer showers(const RunSource& run, std::string_view step_text) {
  const auto step = whole_number(step_text);
  if (!step) return refusal(400, "a step is a number, such as /api/runs/0/showers/400");
  if (!run.showers) return refusal(404, "this run keeps no showers");
  auto json = run.showers(*step);
  if (!json.ok()) return refusal(404, json.error().message);
  return text_answer(std::move(*json), kJson);
}

WebAnswer ask(const RunSource::Question& question, std::string content_type) {
  if (!question) {
    return refusal(404, "only a run that goes on can tell that; this one is read from its folder");
  }
  WebAnswer answer;
  answer.question = &question;
  answer.content_type = std::move(content_type);
  return answer;
}

WebAnswer change(const WebRequest& request, const RunSource& run) {
  if (!run.burst) return refusal(404, "this run has no pools, or is read from its folder");
  PoolWish wish;
  if (!runtime::read_json(request.body(), wish)) {
    return refusal(400, R"(say {"pool": "hpc", "nodes": "8"}, or "+4", or "-2")");
  }
  WebAnswer answer;
  answer.change = [&run, wish](RunSource::Answer told) { run.burst(wish, std::move(told)); };
  return answer;
}

// The runs in "0" or "0,2". Empty: one of them does not exist or comes twice.
std::vector<std::size_t> runs_in(std::string_view text, const WebSite& site) {
  std::vector<std::size_t> runs;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t behind = std::min(text.find(',', at), text.size());
    const auto id = whole_number(text.substr(at, behind - at));
    if (!id || *id >= site.runs.size()) return {};
    if (std::find(runs.begin(), runs.end(), *id) != runs.end()) return {};
    runs.push_back(*id);
    at = behind + 1;
  }
  return runs;
}

// `rest` is the path after "/api/runs/".
WebAnswer answer_of_run(std::string_view rest, const WebRequest& request, const WebSite& site) {
  const std::size_t slash = rest.find('/');
  const std::vector<std::size_t> ids = runs_in(rest.substr(0, slash), site);
  if (ids.empty()) return refusal(404, "there is no such run; /api/runs lists them");
  rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  if (rest == "stream") {
    WebAnswer answer;
    answer.followed = ids;
    answer.content_type = "text/event-stream; charset=utf-8";
    return answer;
  }
  if (ids.size() > 1)
    return refusal(404, "only the stream is of several runs: /api/runs/0,1/stream");
  const RunSource& run = site.runs[ids.front()];
  if (rest == "history") {
    WebAnswer answer;
    answer.content_type = kJson;
    answer.text = run.history->whole().json;
    return answer;
  }
  if (rest == "trace") return ask(run.trace, kJson);
  if (rest == "waits") return ask(run.waits, "text/plain; charset=utf-8");
  if (rest == kBurstPath) return change(request, run);
  if (rest.starts_with(kShowersPath)) return showers(run, rest.substr(kShowersPath.size()));
  return refusal(404,
                 "there is nothing here; /api/runs/0/history, stream, showers/STEP, trace, waits "
                 "and burst are");
}

WebAnswer answer_of_asset(const PageAsset& asset, const WebRequest& request) {
  WebAnswer answer;
  answer.content_type = asset.content_type;
  // Names of the others change with their content.
  const bool changes = asset.path == "/" || asset.path == "/licences.txt";
  if (!changes) answer.cache = "public, max-age=31536000, immutable";
  answer.headers = {{"ETag", std::string(asset.etag)}, {"Vary", "Accept-Encoding"}};
  if (!asset.etag.empty() && field_of(request, "If-None-Match") == asset.etag) {
    answer.status = 304;
    return answer;
  }
  const std::string_view packed(reinterpret_cast<const char*>(asset.gzip.data()),
                                asset.gzip.size());
  if (accepts_gzip(field_of(request, "Accept-Encoding"))) {
    answer.fixed = packed;
    answer.headers.emplace_back("Content-Encoding", "gzip");
    return answer;
  }
  // The program has the compressed form only.
  auto plain = gunzip(packed, kMostAssetBytes);
  if (!plain) return refusal(500, "this file of the page is broken; build the program again");
  answer.text = std::make_shared<const std::string>(std::move(*plain));
  return answer;
}

// "/api/runs/0/burst": what changes anything.
bool is_change(std::string_view path) {
  return path.starts_with(kRunsPath) && path.substr(path.rfind('/') + 1) == kBurstPath;
}

// All else is only read.
std::optional<WebAnswer> refuse_method(const WebRequest& request) {
  const auto method = request.method();
  const bool changes = is_change(path_of(request));
  const bool reads = method == http::verb::get || method == http::verb::head;
  if (changes ? method == http::verb::post : reads) return std::nullopt;
  WebAnswer answer =
      refusal(405, changes ? "this changes the run: POST" : "this is read only: GET and HEAD");
  answer.headers.emplace_back("Allow", changes ? "POST" : "GET, HEAD");
  return answer;
}

std::optional<WebAnswer> page(const WebRequest& request, const WebSite& site) {
  const std::string_view path = path_of(request);
  if (path == "/" && site.front) {
    WebAnswer answer;
    answer.content_type = "text/html; charset=utf-8";
    answer.text = site.front();
    return answer;
  }
  const auto found = std::find_if(site.assets.begin(), site.assets.end(),
                                  [&](const PageAsset& asset) { return asset.path == path; });
  if (found != site.assets.end()) return answer_of_asset(*found, request);
  if (path == "/") {
    return text_answer(fmt::format(fmt::runtime(kWithoutPage), site.version));
  }
  return std::nullopt;
}

}  // namespace

WebAnswer answer(const WebRequest& request, const WebSite& site) {
  const std::string_view path = path_of(request);
  const bool changes = is_change(path);
  const auto refused = changes ? refuse_change(request, site.access) : refuse(request, site.access);
  if (refused) return *refused;
  if (auto other = refuse_method(request)) return *other;
  if (!changes && !request.body().empty()) return refusal_of_body();
  if (path == "/healthz") return text_answer("ok\n");
  if (path == "/metrics") return metrics(request, site);
  if (path == "/api/runs") return list_runs(site);
  if (path.starts_with(kRunsPath)) {
    return answer_of_run(path.substr(kRunsPath.size()), request, site);
  }
  if (auto found = page(request, site)) return *found;
  return refusal(404, "there is nothing here; / is the page, /api/runs lists the runs");
}

void compress(WebAnswer& answer, const WebRequest& request, GzipCache& cache) {
  if (answer.text == nullptr) return;
  const std::size_t bytes = answer.text->size();
  if (bytes <= kLeastToCompress || bytes > kMostToCompress) return;
  answer.headers.emplace_back("Vary", "Accept-Encoding");
  if (!accepts_gzip(field_of(request, "Accept-Encoding"))) return;
  auto smaller = cache.of(answer.text);
  if (smaller == nullptr) return;
  answer.text = std::move(smaller);
  answer.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace troupe::telemetry
