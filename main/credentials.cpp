#include "main/credentials.h"

#include <cstdlib>
#include <iostream>
#include <string>

#include "telemetry/page/token_file.h"

namespace troupe {

using runtime::Result;

namespace {

constexpr const char* kVariable = "TROUPE_TOKEN";
constexpr const char* kStandardInput = "-";

// The first line of standard input, without the spaces around it.
Result<std::string> typed_token() {
  constexpr const char* kSpaces = " \t\r";
  std::string line;
  std::getline(std::cin, line);
  const std::size_t first = line.find_first_not_of(kSpaces);
  if (first == std::string::npos) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          "standard input holds no token; its first line is to be one"};
  }
  return line.substr(first, line.find_last_not_of(kSpaces) + 1 - first);
}

Result<launch::JoinToken> token_of(const CommandLine& line) {
  if (line.has("token-file")) {
    const auto file = line.get<std::string>("token-file");
    const bool typed = file == kStandardInput;
    ASSIGN_OR_RETURN(std::string token,
                     typed ? typed_token() : telemetry::read_token_file(file, "--token-file"));
    return launch::JoinToken{std::move(token), "--token-file " + file};
  }
  const auto token = line.get<std::string>("token");
  if (token == kStandardInput) {
    ASSIGN_OR_RETURN(std::string typed, typed_token());
    return launch::JoinToken{std::move(typed), "--token -"};
  }
  std::cerr << "troupe: warning: everybody on this machine can read a token on the command line; "
               "give it by --token-file FILE, by --token-file - or as "
            << kVariable << "\n";
  return launch::JoinToken{token, "--token"};
}

// Whether the address is of a head with keys, which alone has a use for a token.
bool has_key(const std::string& address) { return address.find('#') != std::string::npos; }

}  // namespace

std::vector<Option> credential_options() {
  return {{.name = "key",
           .value = "DIR",
           .about = "folder of keys, as troupe keygen makes it",
           .takes = Takes::kFolder},
          {.name = "token-file",
           .value = "FILE",
           .about = "instead of keys: file with what troupe token has printed; - reads a line of "
                    "standard input. The environment variable TROUPE_TOKEN does as well",
           .takes = Takes::kFile},
          {.name = "token",
           .value = "TOKEN",
           .about = "the token itself, which other users of this machine can then read; - as for "
                    "--token-file",
           .takes = Takes::kText}};
}

std::optional<int> take_credentials(const CommandLine& line, launch::NodeCredentials& credentials) {
  if (line.has("key") + line.has("token") + line.has("token-file") > 1) {
    return line.usage_error("one of --key, --token-file and --token, not several");
  }
  if (line.has("key")) {
    line.take("key", credentials.key_folder);
  } else if (line.has("token") || line.has("token-file")) {
    auto token = token_of(line);
    if (!token.ok()) return line.usage_error(token.error().message);
    credentials.token = std::move(*token);
  } else if (const char* token = std::getenv(kVariable);
             token != nullptr && *token != '\0' && has_key(line.get<std::string>("address"))) {
    credentials.token = {token, kVariable};
  }
  return std::nullopt;
}

}  // namespace troupe
