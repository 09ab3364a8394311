#include "main/command_line.h"

#include <iostream>
#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace troupe {

namespace po = boost::program_options;

namespace {

constexpr int kMostThreads = 1024;

// Of this process, which carries out one verb.
std::string failure;

// No option takes one, and Boost would read -1 as the largest unsigned number.
std::optional<std::string> negative_number(const po::parsed_options& parsed) {
  for (const auto& option : parsed.options) {
    for (const std::string& value : option.value) {
      if (value.size() < 2 || value[0] != '-' || value[1] < '0' || value[1] > '9') continue;
      return fmt::format("--{}: {} is below 0", option.string_key, value);
    }
  }
  return std::nullopt;
}

}  // namespace

CommandLine::CommandLine(std::string synopsis, std::string about, std::string example)
    : synopsis_(std::move(synopsis)), about_(std::move(about)), example_(std::move(example)) {
  options_.add_options()("help,h", "print this and end");
}

void CommandLine::positional(const std::string& name) {
  positional_.add(name.c_str(), 1);
  hidden_.add_options()(name.c_str(), po::value<std::string>(), "");
}

void CommandLine::positional_rest(const std::string& name) {
  positional_.add(name.c_str(), -1);
  hidden_value<std::vector<std::string>>(name);
}

void CommandLine::hidden_flag(const std::string& name) {
  hidden_.add_options()(name.c_str(), po::bool_switch(), "");
}

std::optional<int> CommandLine::parse(const Arguments& arguments) {
  po::options_description all;
  all.add(options_).add(hidden_);
  try {
    const auto parsed =
        po::command_line_parser(arguments)
            .options(all)
            .positional(positional_)
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
            .run();
    if (const auto negative = negative_number(parsed)) return usage_error(*negative);
    po::store(parsed, values_);
    po::notify(values_);
  } catch (const po::error& error) {
    return usage_error(error.what());
  }
  if (!has("help")) return std::nullopt;
  print_help();
  return 0;
}

std::optional<int> CommandLine::check_threads() const {
  const int threads = get<int>("threads");
  if (threads >= 1 && threads <= kMostThreads) return std::nullopt;
  return usage_error(fmt::format("--threads must be 1 to {}, not {}", kMostThreads, threads));
}

int CommandLine::usage_error(const std::string& what) const {
  note_failure(what);
  const std::string verb = synopsis_.substr(0, synopsis_.find(' '));
  std::cerr << fmt::format("troupe {}: {}\nusage: troupe {}\ntry: troupe {} --help\n", verb, what,
                           synopsis_, verb);
  return runtime::exit_code(runtime::ErrorKind::kUsage);
}

void CommandLine::print_help() const {
  std::ostringstream options;
  options << options_;
  std::cout << fmt::format("usage: troupe {}\n\n{}\n\nOptions:\n{}\nExample:\n  {}\n", synopsis_,
                           about_, options.str(), example_);
}

void report_threads(int asked, int given) {
  if (given == asked) return;
  std::cerr << fmt::format("troupe: the system gave {} of {} threads; going on with these\n", given,
                           asked);
}

void note_failure(const std::string& what) { failure = what; }

const std::string& noted_failure() { return failure; }

int report(const runtime::Error& error) {
  note_failure(error.message);
  std::cerr << "troupe: " << error.message << "\n";
  return runtime::exit_code(error.kind);
}

}  // namespace troupe
