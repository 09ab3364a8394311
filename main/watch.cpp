#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "main/command_line.h"
#include "main/common_options.h"
#include "main/ending_signal.h"
#include "main/files.h"
#include "main/served_page.h"
#include "main/watch_terminal.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/json_writer.h"
#include "runtime/base/utf8.h"
#include "telemetry/history_news.h"
#include "telemetry/watch/page_client.h"
#include "telemetry/watch/run_reader.h"

namespace troupe {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using telemetry::HistoryNews;
using telemetry::PageClient;
using telemetry::RunReader;

constexpr auto kLook = std::chrono::milliseconds(50);
constexpr auto kTryAgain = std::chrono::seconds(2);
constexpr std::uint64_t kLargeBytes = std::uint64_t{32} << 20;

// Where the terminal could not be written.
int nobody_reads() {
  if (reader_is_gone()) return kReaderGone;
  return report({ErrorKind::kInternal, "cannot write what is watched; is the disk full?"});
}

struct WatchArguments {
  std::vector<std::string> runs;  // addresses or folders
  bool web = false, json = false, waits = false;
  std::string trace;   // a file; "": none
  std::string listen;  // "": the usual one, or the next that is free
  std::string token;   // of the page that is served, or that is read
};

Result<PageClient> client_of(const std::string& address, const std::string& token,
                             PageClient::Stop stop, const telemetry::PageLimits& limits = {}) {
  ASSIGN_OR_RETURN(auto parsed, telemetry::parse_page_address(address));
  if (!token.empty()) parsed.token = token;
  return PageClient(std::move(parsed), std::move(stop), limits);
}

std::string members_without_error(const telemetry::RunProgress& progress) {
  auto object = nlohmann::json::parse(runtime::to_json(progress));
  object.erase("error");
  const std::string text = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

telemetry::RunProgress progress_of(const HistoryNews& run) {
  return run.progress.value_or(telemetry::RunProgress());
}

int end(const HistoryNews& run, const WatchArguments& arguments, WatchTerminal& terminal,
        const EndingSignal& ending) {
  terminal.say("");
  if (run.version > 0) terminal.finish(run);
  const telemetry::RunProgress progress = progress_of(run);
  if (progress.state == "failed") {
    std::cerr << fmt::format("the run failed: {}\n", runtime::printable_lines(progress.error));
  } else if (progress.state == "stopped") {
    std::cerr << "the run was stopped; troupe run --resume goes on with it\n";
  }
  if (arguments.json) {
    answer(run.version > 0 ? members_without_error(progress) : "", progress.error, ending.code(0));
  }
  return ending.code(0);
}

// The stream tells the news since the last event, and is asked for anew when it breaks off. A
// refusal ends this, and so does an address without a run; a run that was seen once may come back.
int watch_address(const WatchArguments& arguments, const EndingSignal& ending) {
  WatchTerminal terminal(arguments.json ? stderr : stdout);
  HistoryNews run;
  bool lost = false;
  auto client = client_of(arguments.runs[0], arguments.token, [&] {
    terminal.show(run);
    return ending.number() != 0 || is_over(progress_of(run)) || terminal.is_gone();
  });
  if (!client.ok()) return report(client.error());
  while (true) {
    const auto followed =
        client->follow("/api/runs/0/stream", [&](const telemetry::EventReader::Event& event) {
          HistoryNews news;
          if (!runtime::read_json(event.data, news)) return;
          run.take(std::move(news));
          if (std::exchange(lost, false)) terminal.say("");
        });
    if (terminal.is_gone()) return nobody_reads();
    if (ending.number() != 0 || is_over(progress_of(run)))
      return end(run, arguments, terminal, ending);
    const bool refused = !followed.ok() && followed.error().kind == ErrorKind::kUsage;
    if (refused || run.version == 0) {
      if (refused) return report(followed.error());
      return report({ErrorKind::kLostPeers,
                     fmt::format("no run answers at {}; has it ended? Its folder can be watched as "
                                 "well: troupe watch DIR",
                                 followed.ok() ? arguments.runs[0] : followed.error().message)});
    }
    if (!std::exchange(lost, true)) {
      terminal.say(fmt::format(
          "{} does not answer any more{}; trying again until it does (if the "
          "run is gone: troupe watch DIR)",
          arguments.runs[0], followed.ok() ? "" : " (" + followed.error().message + ")"));
    }
    terminal.show(run);
    if (!ending.pause(kTryAgain)) return end(run, arguments, terminal, ending);
  }
}

// Says how far it is where that takes its time.
Result<std::unique_ptr<RunReader>> open_folder(const std::string& folder,
                                               const EndingSignal& ending) {
  telemetry::RunReaderOptions options;
  const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  auto told = runtime::steady_now();
  options.progress = [&ending, &folder, on_terminal, told](std::uint64_t read,
                                                           std::uint64_t bytes) mutable {
    const auto now = runtime::steady_now();
    if (bytes > kLargeBytes && now - told > std::chrono::seconds(1)) {
      told = now;
      std::cerr << fmt::format("{}: read {:.0f} %{}", folder,
                               100.0 * static_cast<double>(read) / static_cast<double>(bytes),
                               on_terminal ? "\x1b[K\r" : "\n")
                << std::flush;
    }
    return ending.number() == 0;
  };
  return RunReader::open(folder, options);
}

// Tells why open_folder() has not read the folder to its end. Returns the exit code.
int report_unread(const runtime::Error& error, const std::string& folder,
                  const EndingSignal& ending) {
  if (ending.number() == 0) return report(error);
  report({ErrorKind::kInternal,
          fmt::format("ended by signal {} before {} was read", ending.number(), folder)});
  return ending.code(0);
}

void report_bad_lines(const RunReader& reader, const std::string& folder) {
  if (reader.bad_lines() == 0) return;
  std::cerr << fmt::format("{}/metrics.jsonl: {} lines could not be understood and were left out\n",
                           folder, reader.bad_lines());
}

int watch_folder(const WatchArguments& arguments, const EndingSignal& ending) {
  const auto reader = open_folder(arguments.runs[0], ending);
  if (!reader.ok()) return report_unread(reader.error(), arguments.runs[0], ending);
  WatchTerminal terminal(arguments.json ? stderr : stdout);
  HistoryNews run;
  while (true) {
    // Asked before the news are taken: a run that has ended by then has told everything.
    const bool live = (*reader)->live();
    if ((*reader)->history()->version() != run.version) {
      run.take((*reader)->history()->news(run.version));
    }
    if (!live && is_over(progress_of(run))) break;
    terminal.show(run);
    if (terminal.is_gone()) return nobody_reads();
    if (!ending.pause(kLook)) break;
  }
  report_bad_lines(**reader, arguments.runs[0]);
  return end(run, arguments, terminal, ending);
}

int serve_folders(const WatchArguments& arguments, const EndingSignal& ending) {
  // The readers outlive the server, whose sources call them.
  std::vector<std::unique_ptr<RunReader>> readers;
  std::vector<telemetry::RunSource> sources;
  for (const std::string& folder : arguments.runs) {
    auto reader = open_folder(folder, ending);
    if (!reader.ok()) return report_unread(reader.error(), folder, ending);
    report_bad_lines(**reader, folder);
    sources.push_back((*reader)->source());
    readers.push_back(std::move(*reader));
  }
  return serve_page({arguments.listen, arguments.token}, std::move(sources), ending);
}

int ask(const WatchArguments& arguments, const EndingSignal& ending) {
  if (!arguments.trace.empty()) {
    if (const auto writable = check_output_file(arguments.trace, true); !writable.ok()) {
      return report(writable.error());
    }
  }
  // The server gives the run as much time to answer as an idle connection has.
  telemetry::PageLimits limits;
  limits.idle_time *= 2;
  auto client = client_of(
      arguments.runs[0], arguments.token, [&] { return ending.number() != 0; }, limits);
  if (!client.ok()) return report(client.error());
  const auto told = client->get(arguments.waits ? "/api/runs/0/waits" : "/api/runs/0/trace");
  if (ending.number() != 0) return ending.code(0);
  if (!told.ok()) return report(told.error());
  if (arguments.waits) {
    std::cout << *told << (told->ends_with('\n') ? "" : "\n");
    return 0;
  }
  runtime::FileDisk disk;
  const auto written = disk.replace(arguments.trace, std::as_bytes(std::span(*told)));
  if (!written.ok()) return report(written.error());
  std::cerr << arguments.trace << ": open it at https://ui.perfetto.dev\n";
  return 0;
}

// "": all is well.
std::string contradiction(const WatchArguments& arguments) {
  const bool asks = arguments.waits || !arguments.trace.empty();
  const auto is_address = [](const std::string& run) { return telemetry::looks_like_address(run); };
  const bool addresses = std::any_of(arguments.runs.begin(), arguments.runs.end(), is_address);
  if (arguments.web) {
    if (addresses)
      return "--web serves folders; an address is a page already: open it in a browser";
    if (asks || arguments.json) return "--web goes with neither --json, --trace nor --waits";
    return "";
  }
  if (arguments.runs.size() > 1) return "one run at a time, or --web to compare several";
  if (!arguments.listen.empty()) return "--listen is for --web";
  if (asks && !addresses)
    return "--trace and --waits ask a run that goes on: give its address, "
           "http://HOST:PORT";
  if (asks && arguments.json) return "--json goes with neither --trace nor --waits";
  if (arguments.waits && !arguments.trace.empty()) return "--trace or --waits, not both";
  return "";
}

int watch(const WatchArguments& arguments) {
  const EndingSignal ending;
  if (arguments.web) return serve_folders(arguments, ending);
  if (arguments.waits || !arguments.trace.empty()) return ask(arguments, ending);
  if (telemetry::looks_like_address(arguments.runs[0])) return watch_address(arguments, ending);
  return watch_folder(arguments, ending);
}

int watch_run(const CommandLine& line) {
  WatchArguments parsed;
  line.take("run", parsed.runs);
  line.take("web", parsed.web);
  line.take("json", parsed.json);
  line.take("waits", parsed.waits);
  line.take("trace", parsed.trace);
  line.take("listen", parsed.listen);
  if (const std::string wrong = contradiction(parsed); !wrong.empty()) {
    return line.usage_error(wrong);
  }
  auto page = page_words(line);
  if (!page.ok()) return line.usage_error(page.error().message);
  parsed.token = std::move(page->token);
  return watch(parsed);
}

std::vector<Option> watch_options() {
  std::vector<Option> options{
      {.name = "web", .about = "serves the page for these folders until it is ended"}};
  for (Option& option : page_options("--web")) options.push_back(std::move(option));
  options.push_back({.name = "trace",
                     .value = "FILE",
                     .about = "writes there what every actor of the run did lately, for Perfetto",
                     .takes = Takes::kFile});
  options.push_back({.name = "waits", .about = "prints who waits for whom in the run"});
  options.push_back(json_option());
  return options;
}

}  // namespace

Command watch_verb() {
  return {.name = "watch",
          .summary = "show a run that goes on, or what became of it",
          .about =
              "Shows a run in the terminal until it ends: one that goes on, by the address of its "
              "page or by its folder, or what became of one. With --web as a page, several beside "
              "each other.",
          .example = "troupe watch --web runs/first runs/second",
          .forms = {"RUN [--json]", "--web RUN... [--listen HOST:PORT] [--token FILE]",
                    "ADDRESS --trace FILE", "ADDRESS --waits"},
          .places = {{.name = "run",
                      .asked = "which run? Its page's address, or its folder",
                      .takes = Takes::kRun,
                      .repeats = true}},
          .options = watch_options(),
          .carry_out = watch_run};
}

}  // namespace troupe
