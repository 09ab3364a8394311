#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/run/remote_files.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "main/files.h"
#include "pipeline/data/checksum.h"
#include "pipeline/data/remote_source.h"
#include "runtime/base/json_text.h"
#include "runtime/base/utf8.h"

namespace troupe {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

struct PublicFile {
  std::string_view name;
  std::string_view checksum;
};

struct PublicSet {
  std::string_view name;
  std::string_view address;  // of the folder
  std::array<PublicFile, 4> files;
};

// Addresses and checksums are those of the set's README (zalandoresearch/fashion-mnist).
constexpr std::array<PublicSet, 1> kSets{
    {{"fashion-mnist",
      "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
      {{{"train-images-idx3-ubyte.gz", "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
        {"train-labels-idx1-ubyte.gz", "md5:25c81989df183df01b3e8a0aad5dffbe"},
        {"t10k-images-idx3-ubyte.gz", "md5:bef4ecab320f06d8554ea6380940ec79"},
        {"t10k-labels-idx1-ubyte.gz", "md5:bb300cfdad3c16e7a12a480ee83cd310"}}}}}};

struct WantedFile {
  std::string address;
  std::string path;
  std::string checksum;
};

Error usage(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }

// The last part of an address, without what may be a signature behind it; keys of S3 have none.
Result<std::string> name_in(const std::string& address) {
  const std::size_t query = address.starts_with("s3://") ? std::string::npos : address.find('?');
  const std::string plain = address.substr(0, query);
  const std::string name = plain.substr(plain.rfind('/') + 1);
  if (name.empty() || name.find_first_of("?#") != std::string::npos || name == "." ||
      name == "..") {
    return usage(pipeline::shown_address(address) + ": its last part is no name for a file");
  }
  return name;
}

Result<std::vector<WantedFile>> wanted(const CommandLine& line) {
  const auto what = line.get<std::string>("what");
  const std::filesystem::path folder = line.get<std::string>("out");
  std::string checksum, mirror;
  line.take("checksum", checksum);
  line.take("mirror", mirror);
  if (!checksum.empty() && !pipeline::is_checksum(checksum)) {
    return usage(
        fmt::format("--checksum: {}; expected sha256: or md5: and as many hexadecimal "
                    "digits in lower case as that has",
                    checksum));
  }
  if (pipeline::is_readable_address(what)) {
    if (!mirror.empty()) return usage("--mirror acts only with the name of a set");
    ASSIGN_OR_RETURN(const std::string name, name_in(what));
    return std::vector<WantedFile>{{what, (folder / name).string(), checksum}};
  }
  const auto set = std::ranges::find(kSets, what, &PublicSet::name);
  if (set == kSets.end()) {
    std::vector<std::string_view> names;
    for (const PublicSet& each : kSets) names.push_back(each.name);
    return usage(fmt::format(
        "{}: neither an address (https://..., http://..., s3://..., root://...) nor the "
        "name of a set: {}",
        what, fmt::join(names, ", ")));
  }
  if (!checksum.empty()) return usage("--checksum acts only with an address; sets have their own");
  if (mirror.empty()) mirror = set->address;
  std::vector<WantedFile> all;
  for (const PublicFile& file : set->files) {
    all.push_back({fmt::format("{}/{}", mirror, file.name), (folder / file.name).string(),
                   std::string(file.checksum)});
  }
  return all;
}

// Copies one file, unless it is there already.
Result<void> fetch(const WantedFile& wanted, bool replace) {
  std::error_code ignored;
  if (std::filesystem::exists(wanted.path, ignored)) {
    if (!wanted.checksum.empty()) {
      ASSIGN_OR_RETURN(const std::string found,
                       pipeline::checksum_of(wanted.path, wanted.checksum));
      if (found == wanted.checksum) return {};
    }
  }
  RETURN_IF_ERROR(check_output_file(wanted.path, replace));
  return pipeline::copy_from(launch::source_of(wanted.address), wanted.address, wanted.path,
                             wanted.checksum);
}

int fetch_all(const CommandLine& line) {
  const auto files = wanted(line);
  if (!files.ok()) return report(files.error());
  std::string names;
  for (const WantedFile& file : *files) {
    std::cerr << fmt::format("{}\n", runtime::printable(pipeline::shown_address(file.address)));
    const Result<void> fetched = fetch(file, line.get<bool>("force"));
    if (!fetched.ok()) return report(fetched.error());
    if (!names.empty()) names += ',';
    names += runtime::json_string(file.path);
    if (!line.get<bool>("json")) std::cout << file.path << "\n";
  }
  if (line.get<bool>("json")) answer(fmt::format(R"("files":[{}])", names));
  return 0;
}

}  // namespace

Command data_fetch_verb() {
  return {.name = "data fetch",
          .summary = "data files from a server",
          .about =
              "Copies a file from an address (https, http, s3, root), or all files of a public set "
              "(fashion-mnist). A copy that was broken off goes on where it ended.",
          .example = "troupe data fetch fashion-mnist --out data",
          .places = {{.name = "what", .asked = "which address or set?", .takes = Takes::kText}},
          .options = {{.name = "out",
                       .value = "FOLDER",
                       .about = "the folder for the files",
                       .takes = Takes::kFolder,
                       .preset = "."},
                      {.name = "mirror",
                       .value = "ADDRESS",
                       .about = "of a folder that has the files of the set, instead of its own",
                       .takes = Takes::kText},
                      {.name = "checksum",
                       .value = "sha256:HEX",
                       .about = "what the file must have; md5:HEX as well",
                       .takes = Takes::kText},
                      force_option(),
                      json_option()},
          .carry_out = fetch_all};
}

}  // namespace troupe
