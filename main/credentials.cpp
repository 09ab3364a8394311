#include "main/credentials.h"

#include <string>

namespace troupe {

namespace po = boost::program_options;

void add_credential_options(CommandLine& line) {
  line.add()("key", po::value<std::string>(), "folder of keys, as troupe keygen makes it")(
      "token", po::value<std::string>(),
      "instead of keys: what troupe token has printed; between machines one of both is needed");
}

std::optional<int> take_credentials(const CommandLine& line, launch::NodeCredentials& credentials) {
  if (line.has("key") && line.has("token")) return line.usage_error("--key or --token, not both");
  if (line.has("key")) credentials.key_folder = line.get<std::string>("key");
  if (line.has("token")) credentials.token = line.get<std::string>("token");
  return std::nullopt;
}

}  // namespace troupe
