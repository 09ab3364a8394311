#include "launch/processes/command.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/utf8.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Result<std::string> path_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = folder + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return Error{ErrorKind::kUsage, fmt::format("there is no program '{}' in PATH", program)};
}

// `at`, or where the character begins that goes on there; the end of a text that is shorter.
std::size_t before_character(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

bool can_be_read(int descriptor) {
  pollfd event{descriptor, POLLIN, 0};
  return ::poll(&event, 1, 0) > 0;
}

// A command that goes on when its time is over is killed with its ChildProcess.
Result<CommandEnd> run_command(const CommandRequest& request) {
  CommandEnd result;
  ChildOptions options;
  options.words = request.words;
  ASSIGN_OR_RETURN(options.words.front(), path_of(options.words.front()));
  options.input = request.input;
  options.leaves_others = request.leaves_others;
  options.out = [&](std::string_view line) {
    // A line that long is a piece of one.
    const bool is_piece = line.size() == LineSplitter::kLongestLine;
    result.is_cut = result.is_cut || result.output.size() + line.size() >= request.most_output;
    if (result.is_cut) return;
    result.output.append(line);
    if (!is_piece) result.output += '\n';
  };
  std::deque<std::string> errors;
  options.err = [&](std::string_view line) {
    errors.push_back(shown_line(line));
    if (errors.size() > request.error_lines) errors.pop_front();
  };
  ASSIGN_OR_RETURN(auto child, ChildProcess::start(options));
  std::array<std::unique_ptr<ChildProcess>, 1> children{std::move(child)};
  const runtime::SteadyClock clock;
  const runtime::TimePoint until = clock.now() + request.within;
  const auto is_woken = [&] {
    return request.wake_descriptor >= 0 && can_be_read(request.wake_descriptor);
  };
  while (!children[0]->end() && clock.now() < until && !is_woken()) {
    wait_for_children(children, request.wake_descriptor,
                      std::max(runtime::Duration{0}, until - clock.now()));
  }
  result.end = children[0]->end();
  result.last_error = fmt::format("{}", fmt::join(errors, "\n"));
  result.woken = !result.end && is_woken();
  return result;
}

Result<void> check_end(const CommandRequest& request, const CommandEnd& ended) {
  if (ended.end && *ended.end == ChildEnd{0, 0}) return {};
  const std::string how = ended.end ? ended.end->text()
                                    : fmt::format("is killed: it has not ended within {:.0f} s",
                                                  runtime::seconds(request.within));
  return Error{ended.end ? ErrorKind::kUsage : ErrorKind::kLostPeers,
               fmt::format("{} {}{}{}", request.words.front(), how,
                           ended.last_error.empty() ? "" : ": ", ended.last_error)};
}

Result<void> carry_out(const CommandRequest& request) {
  ASSIGN_OR_RETURN(const CommandEnd ended, run_command(request));
  return check_end(request, ended);
}

// The part that is cut off could matter: a list of nodes would lack some that are there.
Result<std::string> output_of(const CommandRequest& request) {
  ASSIGN_OR_RETURN(CommandEnd ended, run_command(request));
  RETURN_IF_ERROR(check_end(request, ended));
  if (!ended.is_cut) return std::move(ended.output);
  return Error{ErrorKind::kUsage, fmt::format("{} prints more than {} KiB", request.words.front(),
                                              request.most_output / 1024)};
}

std::string shown_line(std::string_view text, std::size_t most) {
  constexpr std::string_view kMore = "...";
  const auto is_blank = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  std::string line(text.substr(0, before_character(text, most)));
  const bool is_cut = line.size() < text.size();
  std::ranges::replace_if(line, is_blank, ' ');
  line = runtime::printable(line);
  if (!is_cut && line.size() <= most) return line;
  line.resize(before_character(line, most - kMore.size()));
  return line.append(kMore);
}

}  // namespace troupe::launch
