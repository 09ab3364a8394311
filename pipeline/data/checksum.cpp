#include "pipeline/data/checksum.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

using runtime::Descriptor;
using runtime::Result;

namespace {

const EVP_MD* method_of(std::string_view checksum) {
  return checksum.starts_with("md5:") ? EVP_md5() : EVP_sha256();
}

}  // namespace

bool is_checksum(std::string_view text) {
  const auto is_digit = [](unsigned char c) {
    return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f');
  };
  const std::size_t colon = std::min(text.find(':'), text.size() - 1);
  const std::string_view digits = text.substr(colon + 1);
  const bool known = (text.starts_with("md5:") && digits.size() == 32) ||
                     (text.starts_with("sha256:") && digits.size() == 64);
  return known && std::ranges::all_of(digits, is_digit);
}

Result<std::string> checksum_of(const std::string& path, std::string_view like) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return runtime::file_error("cannot open", path, errno);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), method_of(like), nullptr) == 1);
  std::vector<std::byte> piece(1u << 20);
  for (;;) {
    const ssize_t got = ::read(file.number(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return runtime::file_error("cannot read", path, errno);
    if (got == 0) break;
    EVP_DigestUpdate(context.get(), piece.data(), static_cast<std::size_t>(got));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  return std::string(like.substr(0, like.find(':') + 1)) +
         runtime::hex_text(std::as_bytes(std::span(digest)).first(size));
}

std::string sha256_of(std::string_view content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  CHECK(EVP_Digest(content.data(), content.size(), digest.data(), &size, EVP_sha256(), nullptr) ==
        1);
  return runtime::hex_text(std::as_bytes(std::span(digest)).first(size));
}

}  // namespace troupe::pipeline
