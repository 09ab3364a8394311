#pragma once

// A page that a verb serves until a signal ends it.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "main/command_line.h"
#include "main/ending_signal.h"
#include "runtime/base/error.h"
#include "telemetry/run_source.h"

namespace troupe {

struct PageWords {
  std::string listen;  // "": the usual address, or the next port that is free
  std::string token;   // that it asks for; "": none
};

// --listen and --token; `of`: what serves it, as the help has it.
std::vector<Option> page_options(const std::string& of);
// Their values. kUsage: the token's file cannot be read.
runtime::Result<PageWords> page_words(const CommandLine& line);

// Serves these runs, prints the address, and returns the exit code. `front`: the HTML of the first
// page, if it is no page of runs, which the server's thread asks for. `renew` is called every
// second on this one.
int serve_page(const PageWords& words, std::vector<telemetry::RunSource> runs,
               const EndingSignal& ending,
               std::function<std::shared_ptr<const std::string>()> front = nullptr,
               const std::function<void()>& renew = nullptr);

}  // namespace troupe
