#include "pipeline/data/remote_request.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "pipeline/data/checksum.h"
#include "pipeline/data/data_error.h"
#include "pipeline/data/s3_credentials.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

constexpr std::string_view kS3 = "s3://";
// A page has 1,000 keys of up to 1,024 bytes, each sign of which may need six.
constexpr std::size_t kMostListBytes = std::size_t{16} << 20;
constexpr std::size_t kMostListed = 100'000;
// S3 wants the hash of what a request carries told and signed.
std::string content_header(std::string_view content) {
  return "x-amz-content-sha256: " + sha256_of(content);
}

using Handle = std::unique_ptr<CURL, void (*)(CURL*)>;
using List = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

std::string escaped(CURL* handle, const std::string& part) {
  if (part.empty()) return "";
  const std::unique_ptr<char, void (*)(void*)> text(
      curl_easy_escape(handle, part.data(), static_cast<int>(part.size())), curl_free);
  CHECK(text != nullptr, "out of memory");
  return text.get();
}

// "/a%20b/c" for the key "a b/c": keys are any text, and slashes stay.
std::string path_of_key(CURL* handle, std::string_view key) {
  std::string path;
  for (;;) {
    const std::size_t slash = key.find('/');
    const std::string part(key.substr(0, slash));
    path += '/';
    path += escaped(handle, part);
    if (slash == std::string_view::npos) return path;
    key.remove_prefix(slash + 1);
  }
}

// The address at which libcurl finds the file.
std::string url_of(CURL* handle, const std::string& address) {
  if (!address.starts_with(kS3)) return address;
  const std::string rest = address.substr(kS3.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string bucket = rest.substr(0, slash);
  const std::string path =
      path_of_key(handle, std::string_view(rest).substr(std::min(slash + 1, rest.size())));
  const std::string endpoint = environment("AWS_ENDPOINT_URL");
  if (!endpoint.empty()) return endpoint + (endpoint.ends_with('/') ? "" : "/") + bucket + path;
  return fmt::format("https://{}.s3.{}.amazonaws.com{}", bucket, s3_region(), path);
}

// The state of one request.
struct Request {
  CURL* handle = nullptr;
  const TakeBytes* take = nullptr;
  std::uint64_t from = 0;   // asked for
  std::uint64_t first = 0;  // of the answer
  std::string etag = {}, changed = {}, range = {};
  bool misplaced = false;  // the answer is another part than that which was asked for
};

std::size_t take_header(char* text, std::size_t, std::size_t size, void* data) {
  auto& request = *static_cast<Request*>(data);
  const std::string_view line(text, size);
  // An answer that leads elsewhere, or comes before the last one, has headers as well.
  if (line.starts_with("HTTP/")) request.etag = request.changed = request.range = "";
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string value(trimmed(line.substr(colon + 1)));
  if (name == "etag") request.etag = value;
  if (name == "last-modified") request.changed = value;
  if (name == "content-range") request.range = value;
  return size;
}

long status_of(CURL* handle) {
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

// The number before the dash of "bytes 10-99/100".
std::optional<std::uint64_t> begin_in(std::string_view range) {
  constexpr std::string_view kUnit = "bytes ";
  if (!range.starts_with(kUnit)) return std::nullopt;
  range.remove_prefix(kUnit.size());
  std::uint64_t begin = 0;
  const char* const end = range.data() + range.size();
  const auto read = std::from_chars(range.data(), end, begin);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != '-') return std::nullopt;
  return begin;
}

std::size_t take_body(char* bytes, std::size_t, std::size_t size, void* data) {
  auto& request = *static_cast<Request*>(data);
  const long status = status_of(request.handle);
  if (status != 200 && status != 206) return size;  // what an error looks like to a browser
  if (request.take == nullptr) return 0;
  if (status == 200 && request.from > 0) request.first = request.from = 0;
  request.misplaced = status == 206 && begin_in(request.range) != request.from;
  if (request.misplaced) return 0;
  if (!(*request.take)(request.first, {bytes, size})) return 0;
  request.first += size;
  return size;
}

// The number behind the slash of "bytes 10-99/100".
std::optional<std::uint64_t> size_in(const std::string& range) {
  const std::size_t slash = range.find('/');
  if (slash == std::string::npos) return std::nullopt;
  std::uint64_t size = 0;
  const char* const end = range.data() + range.size();
  const auto read = std::from_chars(range.data() + slash + 1, end, size);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return size;
}

RemoteVersion version_of(const Request& request) {
  RemoteVersion version;
  // A weak tag does not promise the same bytes.
  version.tag = request.etag.starts_with("W/") ? request.changed : request.etag;
  if (version.tag.empty()) version.tag = request.changed;
  if (const auto size = size_in(request.range)) {
    version.size = *size;
    version.has_size = true;
    return version;
  }
  curl_off_t length = -1;
  curl_easy_getinfo(request.handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  version.has_size = length >= 0;
  if (version.has_size) version.size = static_cast<std::uint64_t>(length);
  return version;
}

bool is_of_certificates(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_CERTPROBLEM;
}

// Broken off by its low speed, not while it was being connected.
bool is_slow(const Request& request, CURLcode code) {
  curl_off_t connected = 0;
  curl_easy_getinfo(request.handle, CURLINFO_PRETRANSFER_TIME_T, &connected);
  return code == CURLE_OPERATION_TIMEDOUT && connected > 0;
}

RemoteAnswer answer_of(const Request& request, CURLcode code, const char* words,
                       const CopyOptions& options) {
  RemoteAnswer answer;
  const long status = status_of(request.handle);
  const bool broken = code != CURLE_OK;
  answer.slow = is_slow(request, code);
  if (answer.slow) {
    answer.again = true;
    answer.failure = fmt::format(
        "the server is too slow: fewer than {} bytes a second have moved for {} s; try again "
        "later, or with another server",
        options.least_rate, options.patience.count());
  } else if (status == 401 || status == 403) {
    answer.failure = fmt::format(
        "the server refuses it ({}): credentials are missing, or do not suffice", status);
  } else if (status == 404 || status == 410) {
    answer.missing = true;
    answer.failure = fmt::format("there is no such file on the server ({})", status);
  } else if (status == 408 || status == 429 || status >= 500) {
    answer.again = true;
    answer.failure = fmt::format("the server cannot answer now ({})", status);
  } else if (status == 416 && request.from > 0) {
    answer.beyond = true;
  } else if (status == 409) {
    answer.folderless = true;
    answer.failure = "the server has no folder for it (409)";
  } else if (status >= 400) {
    answer.failure = fmt::format("the server refuses the request ({})", status);
  } else if (request.misplaced) {
    answer.failure = "the server sends another part of the file than it was asked for";
  } else if (broken) {
    const std::string why = *words == '\0' ? curl_easy_strerror(code) : words;
    answer.again = !is_of_certificates(code) && code != CURLE_URL_MALFORMAT &&
                   code != CURLE_UNSUPPORTED_PROTOCOL;
    answer.failure =
        is_of_certificates(code) ? "the server does not prove that it is the one: " + why : why;
  } else if (status != 200 && status != 206) {
    // Also one that leads elsewhere without saying where, or without being followed.
    answer.failure = fmt::format("the server answers {}, and no file", status);
  }
  answer.version = version_of(request);
  return answer;
}

void set_common(CURL* handle, const std::string& address, const CopyOptions& options,
                Request& request, char* words) {
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  // The token of a session is a header, which would go along to another host.
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, address.starts_with(kS3) ? 0L : 1L);
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR,
                   address.starts_with("http://") ? "http,https" : "https");
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options.patience.count()));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options.least_rate));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.patience.count()));
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, words);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &request);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &request);
  const std::string bundle = environment("CURL_CA_BUNDLE");
  if (!bundle.empty()) curl_easy_setopt(handle, CURLOPT_CAINFO, bundle.c_str());
}

// The proof of who asks; appends to the headers.
void set_credentials(CURL* handle, const std::string& address, std::string_view content,
                     List& headers) {
  if (!address.starts_with(kS3)) {
    // Nothing hides a password on the way of http.
    const auto use = address.starts_with("https://") ? CURL_NETRC_OPTIONAL : CURL_NETRC_IGNORED;
    curl_easy_setopt(handle, CURLOPT_NETRC, static_cast<long>(use));
    return;
  }
  const S3Credentials found = s3_credentials();
  if (found.key.empty()) return;
  curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", s3_region()).c_str());
  curl_easy_setopt(handle, CURLOPT_USERNAME, found.key.c_str());
  curl_easy_setopt(handle, CURLOPT_PASSWORD, found.secret.c_str());
  headers.reset(curl_slist_append(headers.release(), content_header(content).c_str()));
  if (found.token.empty()) return;
  const std::string token = "x-amz-security-token: " + found.token;
  headers.reset(curl_slist_append(headers.release(), token.c_str()));
}

Handle new_handle() {
  static const CURLcode begun = curl_global_init(CURL_GLOBAL_DEFAULT);
  Handle handle(begun == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  CHECK(handle != nullptr, "out of memory, or no libcurl");
  return handle;
}

// A request on its way to being sent.
class Exchange {
 public:
  // `content`: of a request that sends some.
  Exchange(const std::string& address, const CopyOptions& options, std::string_view content = {})
      : options_(options), handle_(new_handle()) {
    request_.handle = handle_.get();
    set_common(handle_.get(), address, options, request_, words_);
    set_credentials(handle_.get(), address, content, headers_);
    url_ = url_of(handle_.get(), address);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  CURL* handle() const { return handle_.get(); }
  // `taker` outlives this.
  void take(const TakeBytes& taker, std::uint64_t from) {
    request_.take = &taker;
    request_.from = request_.first = from;
  }
  void add_header(const std::string& header) {
    headers_.reset(curl_slist_append(headers_.release(), header.c_str()));
  }
  // The parts stand in the order in which they are signed.
  void ask_list(const std::string& prefix, const std::string& next) {
    std::string query = "list-type=2&prefix=" + escaped(handle(), prefix);
    if (!next.empty()) query = "continuation-token=" + escaped(handle(), next) + "&" + query;
    url_ += "?" + query;
  }
  RemoteAnswer perform() {
    curl_easy_setopt(handle(), CURLOPT_URL, url_.c_str());
    curl_easy_setopt(handle(), CURLOPT_HTTPHEADER, headers_.get());
    const CURLcode code = curl_easy_perform(handle());
    return answer_of(request_, code, words_, options_);
  }

 private:
  const CopyOptions& options_;
  Handle handle_;
  Request request_;
  char words_[CURL_ERROR_SIZE] = "";
  List headers_{nullptr, curl_slist_free_all};
  std::string url_;
};

}  // namespace

RemoteAnswer ask_version(const std::string& address, const CopyOptions& options) {
  Exchange head(address, options);
  curl_easy_setopt(head.handle(), CURLOPT_NOBODY, 1L);
  RemoteAnswer answer = head.perform();
  const long status = status_of(head.handle());
  const bool refused = status == 400 || status == 401 || status == 403 || status == 405;
  if (address.starts_with(kS3) || !(refused || status == 501)) return answer;
  // A signature may be that of one way of asking, and some servers know one way alone.
  const TakeBytes stop = [](std::uint64_t, std::span<const char>) { return false; };
  Exchange first(address, options);
  first.take(stop, 0);
  curl_easy_setopt(first.handle(), CURLOPT_RANGE, "0-0");
  RemoteAnswer answered = first.perform();
  // It has been stopped on purpose, and a file without bytes has no first one.
  const long found = status_of(first.handle());
  if (found == 206 || found == 200) answered.failure = "";
  if (found == 416 && answered.version.has_size) answered = {.version = answered.version};
  return answered;
}

RemoteAnswer get_rest(const std::string& address, std::uint64_t from, const RemoteVersion& version,
                      const CopyOptions& options, const TakeBytes& take) {
  Exchange rest(address, options);
  rest.take(take, from);
  if (from > 0) {
    curl_easy_setopt(rest.handle(), CURLOPT_RANGE, fmt::format("{}-", from).c_str());
    rest.add_header("If-Range: " + version.tag);
  }
  return rest.perform();
}

namespace {

// Bytes on their way to a server, which may ask for them once more.
struct Sending {
  std::string_view content;
  const std::function<bool(std::uint64_t)>& goes_on;
  std::size_t sent = 0;
};

std::size_t give_bytes(char* to, std::size_t, std::size_t size, void* data) {
  auto& sending = *static_cast<Sending*>(data);
  const std::string_view part = sending.content.substr(sending.sent, size);
  std::ranges::copy(part, to);
  sending.sent += part.size();
  return part.size();
}

int begin_at(void* data, curl_off_t offset, int origin) {
  auto& sending = *static_cast<Sending*>(data);
  if (origin != SEEK_SET || std::cmp_greater(offset, sending.content.size())) {
    return CURL_SEEKFUNC_FAIL;
  }
  sending.sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int ask_to_go_on(void* data, curl_off_t, curl_off_t, curl_off_t, curl_off_t sent) {
  const auto& sending = *static_cast<const Sending*>(data);
  return sending.goes_on(static_cast<std::uint64_t>(sent)) ? 0 : 1;
}

// "https://a.org/b/" of "https://a.org/b/c?d" and of "https://a.org/b/c/"; nothing of a server's
// own.
std::string folder_of(const std::string& address) {
  std::string path = address.substr(0, address.find('?'));
  if (path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  return slash < path.find("://") + 3 ? "" : path.substr(0, slash + 1);
}

// As RFC 4918, 9.3, has it: 201, or 405 where there is one, or 409 where the one around is missing.
RemoteAnswer make_folder(const std::string& folder, const CopyOptions& options) {
  const TakeBytes skip = [](std::uint64_t, std::span<const char>) { return true; };
  for (bool first = true;; first = false) {
    Exchange making(folder, options);
    curl_easy_setopt(making.handle(), CURLOPT_CUSTOMREQUEST, "MKCOL");
    making.take(skip, 0);
    RemoteAnswer answer = making.perform();
    const long status = status_of(making.handle());
    if (status == 201 || status == 405) return {};
    const std::string around = folder_of(folder);
    if (!first || status != 409 || folder_of(around).empty()) {
      answer.failure = fmt::format("{} cannot be made there: {}", shown_address(folder),
                                   answer.failure.empty() ? "no answer to MKCOL" : answer.failure);
      return answer;
    }
    RemoteAnswer made = make_folder(around, options);
    if (!made.failure.empty()) return made;
  }
}

}  // namespace

RemoteAnswer make_folder_of(const std::string& address, const CopyOptions& options) {
  return make_folder(folder_of(address), options);
}

RemoteAnswer put_bytes(const std::string& address, std::string_view content,
                       const CopyOptions& options,
                       const std::function<bool(std::uint64_t)>& goes_on) {
  Exchange put(address, options, content);
  Sending sending{content, goes_on};
  curl_easy_setopt(put.handle(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(put.handle(), CURLOPT_XFERINFOFUNCTION, ask_to_go_on);
  curl_easy_setopt(put.handle(), CURLOPT_XFERINFODATA, &sending);
  curl_easy_setopt(put.handle(), CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(put.handle(), CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(content.size()));
  curl_easy_setopt(put.handle(), CURLOPT_READFUNCTION, give_bytes);
  curl_easy_setopt(put.handle(), CURLOPT_READDATA, &sending);
  curl_easy_setopt(put.handle(), CURLOPT_SEEKFUNCTION, begin_at);
  curl_easy_setopt(put.handle(), CURLOPT_SEEKDATA, &sending);
  // Nobody reads what a server says besides the status.
  const TakeBytes skip = [](std::uint64_t, std::span<const char>) { return true; };
  put.take(skip, 0);
  RemoteAnswer answer = put.perform();
  // 201 and 204: there was no such file before, and there was one.
  const long status = status_of(put.handle());
  if (status == 201 || status == 204) answer.failure.clear();
  // So nginx tells of a missing folder, as of much else.
  if (status == 500) answer.folderless = true;
  if (status == 404) answer.failure = "there is no such place on the server (404)";
  return answer;
}

std::optional<BucketPage> read_bucket_page(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return std::nullopt;
  const pugi::xml_node list = document.child("ListBucketResult");
  if (!list) return std::nullopt;
  BucketPage page;
  for (const pugi::xml_node each : list.children("Contents")) {
    page.keys.emplace_back(each.child_value("Key"));
  }
  if (std::string_view(list.child_value("IsTruncated")) == "true") {
    page.next = list.child_value("NextContinuationToken");
  }
  return page;
}

Result<std::vector<std::string>> list_bucket(const std::string& prefix,
                                             const CopyOptions& options) {
  const auto failed = [&](const std::string& why) {
    return data_error(fmt::format("{}: {}", shown_address(prefix), why));
  };
  if (!prefix.starts_with(kS3)) return failed("only stores of S3 list what they have");
  const std::size_t slash = prefix.find('/', kS3.size());
  const std::string bucket = prefix.substr(0, slash + 1);
  std::vector<std::string> found;
  for (std::string next;;) {
    Exchange page(bucket, options);
    page.ask_list(prefix.substr(slash + 1), next);
    std::string text;
    const TakeBytes take = [&](std::uint64_t, std::span<const char> bytes) {
      text.append(bytes.data(), bytes.size());
      return text.size() <= kMostListBytes;
    };
    page.take(take, 0);
    const RemoteAnswer answer = page.perform();
    if (answer.missing) return failed("there is no such bucket on the server");
    if (!answer.failure.empty()) return failed(answer.failure);
    const auto read = read_bucket_page(text);
    if (!read) return failed("the server answers otherwise than with a list of the bucket");
    for (const std::string& key : read->keys) found.push_back(bucket + key);
    if (found.size() > kMostListed) return failed("more files than anybody trains on begin so");
    if (read->next.empty() || read->next == next) return found;
    next = read->next;
  }
}

}  // namespace troupe::pipeline
