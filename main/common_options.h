#pragma once

// Options that several verbs have, and what they mean.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "main/command_line.h"
#include "main/files.h"
#include "pipeline/data/progress.h"
#include "runtime/base/disk.h"
#include "runtime/base/log.h"

namespace troupe::launch {
struct NodeCredentials;
}

namespace troupe {

Option setting_option();
Option workers_option(std::string about);
Option json_option();
// `about`: what the threads do.
Option threads_option(std::string about);
Option log_level_option();
// A device of this machine; `otherwise` says what computes where none is given.
Option device_option(const std::string& otherwise);
Option force_option();
// Verbs that take a checkpoint or the folder of a run have it; checkpoint_of() reads both.
Option latest_option();
// Verbs that open the checkpoint have it: Computing::raw.
Option raw_option();
Option seed_option(std::string about);
// How many showers; from `least`.
Option events_option(std::uint64_t least);
// A time in seconds, from `least` to a week.
Option seconds_option(std::string name, std::string about, std::string preset,
                      std::uint64_t least = 1);

// The value of log_level_option().
runtime::LogLevel log_level(const CommandLine& line);
// "debug", "info", "warning", "error".
std::string log_level_word(runtime::LogLevel level);
// A log of that level on standard error.
runtime::Result<runtime::Log> open_log(runtime::LogLevel level);
// The level as words for another process of the program; none when it is the preset.
std::vector<std::string> log_level_words(runtime::LogLevel level);
// The newest with --latest, else the best.
WhichCheckpoint which_checkpoint(const CommandLine& line);
// The checkpoint that the place `checkpoint` and --latest mean; errors as checkpoint_at().
runtime::Result<std::string> checkpoint_of(const CommandLine& line, runtime::Disk& disk);
// Those of setting_option(), in their order.
std::vector<std::string> settings(const CommandLine& line);

// How the verbs that talk to the head of a run prove who they are: --key, --token-file, --token or
// the environment variable TROUPE_TOKEN. The variable counts when none of these is given and the
// head has keys: members of a run on this host alone inherit it as well.
std::vector<Option> credential_options();
// For a verb with the place `address`. May read standard input. An exit code when several were
// given, or one that cannot be read (printed).
std::optional<int> take_credentials(const CommandLine& line, launch::NodeCredentials& credentials);

// Says on standard error every two seconds how far work on events is, and how fast. `check`, if
// set, is asked each time.
pipeline::Progress event_progress(std::function<runtime::Result<void>()> check = {});

// Says on standard error that the topology of this name is one that comes with the program, if it
// is.
void tell_if_shipped(const std::string& topology);

}  // namespace troupe
