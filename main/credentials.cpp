#include "main/credentials.h"

#include <string>

namespace troupe {

std::vector<Option> credential_options() {
  return {{.name = "key",
           .value = "DIR",
           .about = "folder of keys, as troupe keygen makes it",
           .takes = Takes::kFolder},
          {.name = "token",
           .value = "TOKEN",
           .about = "instead of keys: what troupe token has printed; between machines one of both "
                    "is needed",
           .takes = Takes::kText}};
}

std::optional<int> take_credentials(const CommandLine& line, launch::NodeCredentials& credentials) {
  if (line.has("key") && line.has("token")) return line.usage_error("--key or --token, not both");
  if (line.has("key")) credentials.key_folder = line.get<std::string>("key");
  if (line.has("token")) credentials.token = line.get<std::string>("token");
  return std::nullopt;
}

}  // namespace troupe
