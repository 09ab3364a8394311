#include "fuzz/watching_seeds.h"

#include <string>
#include <utility>
#include <vector>

#include "fuzz/seed_folder.h"
#include "telemetry/history.h"
#include "telemetry/trace/trace_bytes.h"

namespace troupe::fuzz {
namespace {

void add_page_requests(const Folder& folder) {
  const auto get = [](const std::string& path, const std::string& fields = "") {
    return "\xff"
           "GET " +
           path + " HTTP/1.1\r\nHost: localhost:8400\r\n" + fields + "\r\n";
  };
  const std::vector<std::pair<std::string, std::string>> requests{
      {"page", get("/", "Accept-Encoding: gzip\r\n")},
      {"welcome", get("/?token=a%20secret")},
      {"asset", get("/main-AAAA.js", "If-None-Match: \"a\"\r\nAuthorization: Bearer a secret\r\n")},
      {"runs", get("/api/runs", "Cookie: x=1; troupe=a%20secret\r\n")},
      {"history", get("/api/runs/0/history", "Accept-Encoding: br, gzip;q=0.5\r\n")},
      {"stream", get("/api/runs/0/stream", "Last-Event-ID: 7-2\r\n")},
      {"showers", get("/api/runs/0/showers/88")},
      {"trace", get("/api/runs/0/trace", "Origin: http://localhost:8400\r\n")},
      {"metrics", get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n")},
      {"unidentified",
       "\xffHEAD / HTTP/1.0\r\nHost: example.org\r\nConnection: keep-alive\r\n\r\n"},
      {"pipelined", "\x03GET /1 HTTP/1.1\r\nHost: [::1]\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n"},
      {"burst",
       "\x10POST /api/runs/0/burst HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer another "
       "word\r\nContent-Length: 30\r\n\r\n{\"pool\": \"hpc\", \"nodes\": \"+4\"}"},
      {"body", "\x10POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"},
      {"chunked",
       "\x10GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
  };
  for (const auto& [name, bytes] : requests) folder.add_text(name, bytes);
}

// Lines of metrics.jsonl.
const std::vector<std::string> kLines{
    R"({"kind":"run","time":100.0,"step":0,"name":"toy","model":"gan3d_12","version":"0.1.0",)"
    R"("schedule":["d_real","g"],"losses":[["generation",3.0]],"iterations":100,)"
    R"("iterations_per_epoch":10,"node":"head","host":"a","role":"head","pid":7})",
    R"({"kind":"step","time":101.5,"step":0,"iteration":0,"slot":"d_real","events":16,)"
    R"("losses":{"generation":0.25},"seconds":{"compute":0.5,"reduce":0.25}})",
    R"({"kind":"node","time":102.0,"step":1,"node":"member.1","host":"b","role":"member",)"
    R"("state":"dead","cause":"was killed by signal 9"})",
    R"({"kind":"view","step":2,"time":102.5,"fields":{"members":["member.0","member.2"],)"
    R"("joined":["member.2"],"causes":["member.1 is gone"],"shared_anew":"by speed"}})",
    R"({"kind":"validation","step":2,"time":103.0,"fields":{"rows":[{"name":"data","events":300,)"
    R"("comparison":null},{"name":"generated","events":300,"comparison":{"longitudinal":0.25,)"
    R"("merit":{"total":0.5,"moments":0.25}}}]}})",
    R"({"kind":"checkpoint","step":2,"time":104.0,"fields":{"file":"step-2.h5","bytes":7}})",
    R"({"kind":"showers","step":2,"time":104.0,"file":"showers/step-2.json"})",
    R"({"kind":"samples","step":2,"time":104.5,"values":{"a/b":[2,1.5,1,2,2]}})",
};

// A line of no known kind would lead no target anywhere.
telemetry::Record understood(const std::string& line) {
  telemetry::Record record = telemetry::read_record(line).value();
  CHECK(!telemetry::kind_of(record).empty(), line);
  return record;
}

void add_run_files(const Folder& folder) {
  std::string lines;
  for (const std::string& line : kLines) lines += "m" + line + "\n";
  folder.add_text("metrics", lines);
  folder.add_text("nodes", R"(n[{"name":"member.1","host":"b","pid":9,"state":"running"}])");
  folder.add_text("summary", R"(s{"state_hash":"00","error":"a disk is full"})");
  folder.add_text("log", "l2025-01-31 12:34:56.789 warning loader: text\nl  more of it\n");
}

void add_page_events(const Folder& folder) {
  telemetry::History history;
  for (const std::string& line : kLines) history.take(understood(line));
  const std::uint64_t version = history.version();
  const std::string whole =
      "retry: 2000\n\nevent: history\nid: 7-1\ndata: " + *history.whole().json;
  history.take_log({105.0, "warning", "text"});
  folder.add_text("stream", "\xff" + whole + "\n\n: alive\n\nevent: update\r\ndata: " +
                                *history.since(version).json + "\r\n\r\n");
  folder.add_text("lines",
                  "\x07"
                  "data: {\ndata: }\n\nid\nevent:none\n\n");
}

void add_traces(const Folder& folder) {
  runtime::TraceRing ring(8);
  const std::uint32_t batch = ring.name("batch");
  runtime::TraceRecord span;
  span.name = batch;
  span.start = runtime::TimePoint(1000);
  span.end = runtime::TimePoint(1500);
  span.argument = 16;
  span.flow = {3, 1};
  ring.write(span);
  ring.write_sent({4, 1}, runtime::TimePoint(1200), 64);
  folder.add("two-actors", telemetry::pack_actors(
                               {{"replica.0", ring.snapshot()}, {"reducer.0", ring.snapshot()}}));
  folder.add("nothing", telemetry::pack_actors({}));
  // 2^64 - 1 actors in ten bytes.
  folder.add_text("more-actors-than-bytes", "TRT1" + std::string(9, '\xff') + "\x01");
}

}  // namespace

void add_watching_seeds(const std::filesystem::path& root) {
  add_page_requests(Folder(root / "fuzz_page_request"));
  add_page_events(Folder(root / "fuzz_page_events"));
  add_run_files(Folder(root / "fuzz_run_files"));
  add_traces(Folder(root / "fuzz_trace"));
}

}  // namespace troupe::fuzz
