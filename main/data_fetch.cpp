#include <algorithm>
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
#include "runtime/base/disk.h"
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
  std::string_view folder = {};  // where it lies, if not where the set does
};

struct PublicSet {
  std::string_view name;
  std::string_view folder;
  std::vector<PublicFile> files;
};

// What troupe's data.binning reads, at the commit that has these checksums.
constexpr std::string_view kBinnings =
    "https://raw.githubusercontent.com/CaloChallenge/homepage/"
    "9b41df72a03aeecb48bfbaa946f9792f255e0ba7/code";

// Addresses and checksums are those that each set's own page or record tells: zalandoresearch/
// fashion-mnist, records 8099322, 6366271 and 6366324 of Zenodo; MNIST's own page is closed, and
// its address is that of torchvision.
const std::vector<PublicSet>& public_sets() {
  static const std::vector<PublicSet> kSets{
      {"fashion-mnist",
       "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
       {{"train-images-idx3-ubyte.gz", "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
        {"train-labels-idx1-ubyte.gz", "md5:25c81989df183df01b3e8a0aad5dffbe"},
        {"t10k-images-idx3-ubyte.gz", "md5:bef4ecab320f06d8554ea6380940ec79"},
        {"t10k-labels-idx1-ubyte.gz", "md5:bb300cfdad3c16e7a12a480ee83cd310"}}},
      {"mnist",
       "https://ossci-datasets.s3.amazonaws.com/mnist",
       {{"train-images-idx3-ubyte.gz", "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"},
        {"train-labels-idx1-ubyte.gz", "md5:d53e105ee54ea40749a09fcbcd1e9432"},
        {"t10k-images-idx3-ubyte.gz", "md5:9fb629c4189551a2d022fa330f9573f3"},
        {"t10k-labels-idx1-ubyte.gz", "md5:ec29112dd5afa0611ce80d1b7f02629c"}}},
      {"calochallenge-1-photons",
       "https://zenodo.org/records/8099322/files",
       {{"dataset_1_photons_1.hdf5", "md5:005d2adeda7db034b388112661265656"},
        {"dataset_1_photons_2.hdf5", "md5:4767715ed56e99565fd9c67340661e70"},
        {"binning_dataset_1_photons.xml",
         "sha256:30786d54defff3d45dada4f4ecb2a4600a1622b3ca2004d40dae01774589a92f", kBinnings}}},
      {"calochallenge-1-pions",
       "https://zenodo.org/records/8099322/files",
       {{"dataset_1_pions_1.hdf5", "md5:6a5f52722064a1bcd8a0bc002f16515d"},
        {"dataset_1_pions_2.hdf5", "md5:fee7457b40127bc23c8ab909e2638ca0"},
        {"binning_dataset_1_pions.xml",
         "sha256:3f3c618ff2a6d2a9242d836e7b75d5a8121da71e6b5138eaa206750552f95f44", kBinnings}}},
      {"calochallenge-2",
       "https://zenodo.org/records/6366271/files",
       {{"dataset_2_1.hdf5", "md5:e590333e9a2da51b258288d74bd8357a"},
        {"dataset_2_2.hdf5", "md5:7a56fd68aa53ded37c2ac445694d9736"},
        {"binning_dataset_2.xml",
         "sha256:e4e3b6fe0d7934da3a82b716e64129b08374b0aaf5c10b77435d5d520c9b1b86", kBinnings}}},
      {"calochallenge-3",
       "https://zenodo.org/records/6366324/files",
       {{"dataset_3_1.hdf5", "md5:d33f03418aa311b0965452fcbef1ff87"},
        {"dataset_3_2.hdf5", "md5:911dec2c40aafa64a07b7450b80881bf"},
        {"dataset_3_3.hdf5", "md5:5ea62f6831a1821bb5035fafc9f030e8"},
        {"dataset_3_4.hdf5", "md5:5e8d82e6a6c28c6914a3b602a1cfa299"},
        {"binning_dataset_3.xml",
         "sha256:bf3733aeed62c95933dfe06c031510458f755eea17029da4d12bb0c6e5c9ca11", kBinnings}}}};
  return kSets;
}

std::string names_of_sets() {
  std::vector<std::string_view> names;
  for (const PublicSet& each : public_sets()) names.push_back(each.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

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
  const auto set = std::ranges::find(public_sets(), what, &PublicSet::name);
  if (set == public_sets().end()) {
    return usage(fmt::format(
        "{}: neither an address (https://..., http://..., s3://..., root://...) nor the "
        "name of a set: {}",
        what, names_of_sets()));
  }
  if (!checksum.empty()) return usage("--checksum acts only with an address; sets have their own");
  std::vector<WantedFile> all;
  for (const PublicFile& file : set->files) {
    const std::string_view own = file.folder.empty() ? set->folder : file.folder;
    all.push_back({fmt::format("{}/{}", mirror.empty() ? own : mirror, file.name),
                   (folder / file.name).string(), std::string(file.checksum)});
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
  const auto folder = runtime::FileDisk().make_folder(line.get<std::string>("out"));
  if (!folder.ok()) return report(folder.error());
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
  return {
      .name = "data fetch",
      .summary = "data files from a server",
      .about =
          "Copies a file from an address (https, http, s3, root), or all files of a public set, "
          "by name: " +
          names_of_sets() + ". A copy that was broken off goes on where it ended.",
      .example = "troupe data fetch calochallenge-2 --out data",
      .places = {{.name = "what", .asked = "which address or set?", .takes = Takes::kText}},
      .options = {{.name = "out",
                   .value = "FOLDER",
                   .about = "the folder for the files, which is made where it is missing",
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
