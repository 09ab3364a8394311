// Copies from a small server of our own on loopback, which can fail in many ways.

#include "pipeline/data/remote_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pipeline/data/checksum.h"
#include "pipeline/data/dataset_paths.h"
#include "pipeline/data/near_copy.h"
#include "pipeline/data/remote_request.h"
#include "tests/pipeline/remote_fixture.h"
#include "tests/support/fails_with.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;
using testing::HasSubstr;

TEST_F(RemoteCopy, GivesWhatIsThereAndChecksIt) {
  const std::string address = server();
  for (const char* way : {"plain", "untagged"}) {
    const auto copied = copy(address + "/" + way + "/a.h5", folder_ / "b.h5");
    ASSERT_TRUE(copied.ok()) << copied.error().message;
    EXPECT_EQ(text_of(folder_ / "b.h5"), content_);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.h5.part"));
  std::string checksum = checksum_of(folder_ / "b.h5", "sha256:").value();
  EXPECT_EQ(checksum.size(), 7 + 64u);
  EXPECT_TRUE(copy(address + "/plain/a.h5", folder_ / "c.h5", {}, checksum).ok());
  checksum.back() = checksum.back() == '0' ? '1' : '0';
  EXPECT_THAT(copy(address + "/plain/a.h5", folder_ / "d.h5", {}, checksum),
              FailsWith(ErrorKind::kData, "its checksum is sha256:"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "d.h5"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "d.h5.part"));
}

// FIPS 180-2, appendix B.1, and RFC 1321, appendix A.5.
TEST_F(RemoteCopy, ChecksumsAreTheKnownOnes) {
  write_text(folder_ / "abc", "abc");
  EXPECT_EQ(checksum_of(folder_ / "abc", "sha256:").value(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(checksum_of(folder_ / "abc", "md5:").value(), "md5:900150983cd24fb0d6963f7d28e17f72");
  EXPECT_TRUE(is_checksum("md5:900150983cd24fb0d6963f7d28e17f72"));
  for (const char* text :
       {"", "md5:", "900150983cd24fb0d6963f7d28e17f72", "sha256:900150983cd24fb0d6963f7d28e17f72",
        "md5:900150983CD24fb0d6963f7d28e17f72"}) {
    EXPECT_FALSE(is_checksum(text)) << text;
  }
}

TEST_F(RemoteCopy, GoesOnWhereAnAnswerWasCutAndAsksForNothingTwice) {
  const std::string address = server();
  const auto copied = copy(address + "/cut/a.h5", folder_ / "b.h5");
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_EQ(text_of(folder_ / "b.h5"), content_);
  EXPECT_THAT(sent(address), testing::StartsWith("200000 "));
}

TEST_F(RemoteCopy, CopyThatFailedIsGoneOnWithByTheNextOne) {
  const std::string address = server();
  const auto ended = copy(address + "/plain/a.h5", folder_ / "b.h5",
                          [](std::uint64_t done, auto) -> runtime::Result<void> {
                            if (done < 100'000) return {};
                            return runtime::Error{ErrorKind::kUsage, "enough"};
                          });
  EXPECT_THAT(ended, FailsWith(ErrorKind::kUsage, "enough"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.h5"));
  const auto before = std::filesystem::file_size(folder_ / "b.h5.part");
  EXPECT_GE(before, 100'000u);
  std::uint64_t least = UINT64_MAX;
  const auto copied = copy(address + "/plain/a.h5", folder_ / "b.h5",
                           [&](std::uint64_t done, auto) -> runtime::Result<void> {
                             least = std::min(least, done);
                             return {};
                           });
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_EQ(text_of(folder_ / "b.h5"), content_);
  EXPECT_GE(least, before);
}

TEST_F(RemoteCopy, WaitsForAServerThatIsBusyAndGivesUpOneThatStaysSo) {
  const std::string address = server();
  EXPECT_TRUE(copy(address + "/busy/a.h5", folder_ / "b.h5").ok());
  EXPECT_EQ(text_of(folder_ / "b.h5"), content_);
  write_text(folder_ / "served/b.h5", content_);
  options_.attempts = 2;
  EXPECT_THAT(copy(address + "/busy/b.h5", folder_ / "c.h5"),
              FailsWith(ErrorKind::kData, "the server cannot answer now (503), 2 times in a row"));
}

TEST_F(RemoteCopy, FileThatChangesMeanwhileIsCopiedAnew) {
  const auto copied = copy(server() + "/moving/a.h5", folder_ / "b.h5");
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_EQ(text_of(folder_ / "b.h5"), std::string(content_.rbegin(), content_.rend()));
}

TEST_F(RemoteCopy, RefusalsSayWhatToDoAndAreNotRepeated) {
  const std::string address = server();
  EXPECT_THAT(copy(address + "/plain/none.h5", folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "there is no such file on the server (404)"));
  EXPECT_THAT(copy(address + "/private/a.h5", folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "credentials are missing, or do not suffice"));
  // A password does not go over http.
  write_text(folder_ / ".netrc", "machine 127.0.0.1 login reader password secret\n");
  EXPECT_THAT(copy(address + "/private/a.h5", folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "credentials are missing, or do not suffice"));
  EXPECT_THAT(copy(address + "/nowhere/a.h5", folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "the server answers 301, and no file"));
  EXPECT_THAT(near(address + "/nowhere/a.h5"),
              FailsWith(ErrorKind::kData, "the server answers 301, and no file"));
  EXPECT_THAT(copy(address + "/shifted/a.h5", folder_ / "s.h5"),
              FailsWith(ErrorKind::kData, "another part of the file than it was asked for"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.h5"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "s.h5"));
  server_.reset();
  options_.attempts = 2;
  EXPECT_THAT(copy(address + "/plain/a.h5", folder_ / "c.h5"),
              FailsWith(ErrorKind::kData, "2 times in a row"));
}

TEST_F(RemoteCopy, AddressesWithSecretsAreRefusedOrToldWithoutThem) {
  for (const char* address : {"https://reader:secret@a.org/b.h5?key=secret",
                              "https://reader@a.org/b.h5", "s3://reader:secret@a.org/b.h5"}) {
    const auto refused = copy(address, folder_ / "b.h5");
    EXPECT_THAT(refused, FailsWith(ErrorKind::kData, "://a.org/b.h5: an address with a name"));
    EXPECT_THAT(refused.error().message, testing::Not(HasSubstr("secret")));
    EXPECT_FALSE(near(address).ok());
  }
  EXPECT_EQ(shown_address("https://a.org/b@c.h5?key=secret"), "https://a.org/b@c.h5");
  EXPECT_EQ(shown_address("data/what?.h5"), "data/what?.h5");
  const std::string none = server() + "/plain/none.h5";
  const auto missing = copy(none + "?key=secret", folder_ / "b.h5");
  EXPECT_THAT(missing, FailsWith(ErrorKind::kData, none + ": there is no such file"));
  for (const char* address : {"s3://bucket", "s3://bucket/"}) {
    EXPECT_THAT(copy(address, folder_ / "b.h5"),
                FailsWith(ErrorKind::kData, "expected s3://BUCKET/KEY"));
  }
}

TEST_F(RemoteCopy, PasswordsOfNetrcGoOverTls) {
  if (!std::filesystem::exists("/usr/bin/openssl")) GTEST_SKIP() << "openssl is not installed";
  const std::string address = server(certificate("IP:127.0.0.1"));
  environment_.set("CURL_CA_BUNDLE", folder_ / "certificate");
  EXPECT_THAT(copy(address + "/private/a.h5", folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "credentials are missing, or do not suffice"));
  write_text(folder_ / ".netrc", "machine 127.0.0.1 login reader password secret\n");
  const auto copied = copy(address + "/private/a.h5", folder_ / "b.h5");
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_EQ(text_of(folder_ / "b.h5"), content_);
}

TEST_F(RemoteCopy, CopiesToOnePathAreMadeOneAfterTheOther) {
  const std::string address = server() + "/cut/a.h5";
  const auto once = [&] { return copy(address, folder_ / "b.h5").ok() ? 0 : 1; };
  ForkedProcess one(once), two(once), three(once);
  EXPECT_EQ(one.status(), 0);
  EXPECT_EQ(two.status(), 0);
  EXPECT_EQ(three.status(), 0);
  EXPECT_EQ(text_of(folder_ / "b.h5"), content_);
  for (const char* rest : {".part", ".part.origin", ".lock"}) {
    EXPECT_FALSE(std::filesystem::exists(folder_ / "b.h5" + rest)) << rest;
  }
}

TEST_F(RemoteCopy, RequestsToS3AreSigned) {
  environment_.set("AWS_ENDPOINT_URL", server());
  environment_.set("AWS_REGION", "eu-test-1");
  const std::string address = "s3://bucket/a.h5";
  EXPECT_THAT(copy(address, folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "credentials are missing, or do not suffice"));
  environment_.set("AWS_ACCESS_KEY_ID", "KEY");
  environment_.set("AWS_SECRET_ACCESS_KEY", "WRONG");
  EXPECT_THAT(copy(address, folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "the server refuses it (403)"));
  environment_.set("AWS_SECRET_ACCESS_KEY", "SECRET");
  const auto copied = copy(address, folder_ / "b.h5");
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_EQ(text_of(folder_ / "b.h5"), content_);
  // Keys are any text.
  write_text(folder_ / "served/a b+%41?.h5", "odd");
  const auto odd = copy("s3://bucket/a b+%41?.h5", folder_ / "odd.h5");
  ASSERT_TRUE(odd.ok()) << odd.error().message;
  EXPECT_EQ(text_of(folder_ / "odd.h5"), "odd");
  // The same from the file that the tools of AWS keep.
  environment_.set("AWS_ACCESS_KEY_ID", "");
  environment_.set("AWS_PROFILE", "lab");
  environment_.set("AWS_SHARED_CREDENTIALS_FILE", folder_ / "credentials");
  write_text(folder_ / "credentials",
             "[default]\naws_access_key_id = OTHER\naws_secret_access_key = OTHER\n\n[lab]\n"
             "aws_access_key_id=KEY\naws_secret_access_key = SECRET\n");
  EXPECT_TRUE(copy(address, folder_ / "c.h5").ok());
}

TEST_F(RemoteCopy, ServersThatGiveOrTakeAFewBytesASecondAreGivenUp) {
  const std::string address = server();
  options_.patience = std::chrono::seconds(1);
  options_.least_rate = 1'000'000;  // more than libcurl's means of some seconds begin with
  options_.attempts = 1;
  const WebSource web(options_);
  EXPECT_THAT(
      copy(address + "/crawl/a.h5", folder_ / "b.h5"),
      FailsWith(ErrorKind::kData, "the server is too slow: fewer than 1000000 bytes a second"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.h5"));
  EXPECT_GT(std::filesystem::file_size(folder_ / "b.h5.part"), 0u);
  write_text(folder_ / "large", noise_text(20'000'000));
  EXPECT_THAT(
      web.put(folder_ / "large", address + "/crawl/b.h5", {}),
      FailsWith(ErrorKind::kData, "the server is too slow: fewer than 1000000 bytes a second"));
}

TEST_F(RemoteCopy, CertificateThatNobodyTrustsIsRefused) {
  if (!std::filesystem::exists("/usr/bin/openssl")) GTEST_SKIP() << "openssl is not installed";
  const std::string address = server(certificate("DNS:elsewhere"));
  EXPECT_THAT(copy(address + "/plain/a.h5", folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "the server does not prove that it is the one"));
  // Trusted, but of another name.
  environment_.set("CURL_CA_BUNDLE", folder_ / "certificate");
  EXPECT_THAT(copy(address + "/plain/a.h5", folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "the server does not prove that it is the one"));
}

TEST_F(RemoteCopy, NearCopyIsMadeOnceAndAnewWhenTheFileChanges) {
  const std::string address = server();
  const auto first = near(address + "/plain/a.h5");
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_TRUE(first->starts_with(folder_ / "near/remote/http/127.0.0.1_"));
  EXPECT_TRUE(first->ends_with("/plain/a.h5"));
  EXPECT_EQ(text_of(*first), content_);
  EXPECT_EQ(near(address + "/plain/a.h5").value(), *first);
  EXPECT_EQ(sent(address), "200000 1");
  write_text(folder_ / "served/a.h5", "another");
  ASSERT_TRUE(near(address + "/plain/a.h5").ok());
  EXPECT_EQ(text_of(*first), "another");
  // Two processes at once: one copies, the other waits.
  write_text(folder_ / "served/b.h5", content_);
  const auto once = [&] { return near(address + "/plain/b.h5").ok() ? 0 : 1; };
  ForkedProcess other(once), another(once);
  EXPECT_EQ(other.status(), 0);
  EXPECT_EQ(another.status(), 0);
  EXPECT_EQ(sent(address), "400007 3");
  EXPECT_THAT(near(address + "/../a.h5"), FailsWith(ErrorKind::kData, "an address with \"..\""));
  // A server that is gone leaves the copy good.
  server_.reset();
  EXPECT_EQ(text_of(near(address + "/plain/b.h5").value()), content_);
}

TEST_F(RemoteCopy, NearCopyOfAFileWithoutTagsIsMadeEachTime) {
  const std::string address = server() + "/untagged/a.h5";
  ASSERT_TRUE(near(address).ok());
  std::reverse(content_.begin(), content_.end());
  write_text(folder_ / "served/a.h5", content_);
  EXPECT_EQ(text_of(near(address).value()), content_);
}

TEST_F(RemoteCopy, DifferentAddressesHaveDifferentNearCopies) {
  const std::string address = server() + "/plain/";
  const std::string longest(240, 'x');
  std::vector<std::string> paths;
  for (const std::string& name :
       {std::string("a_b"), std::string("a+b"), std::string("a,b"), std::string("a_b?c"),
        std::string("a_b?d"), longest + "1", longest + "2"}) {
    write_text(folder_ / "served/" + name.substr(0, name.find('?')), name);
    const auto copied = near(address + name);
    ASSERT_TRUE(copied.ok()) << copied.error().message;
    paths.push_back(*copied);
  }
  EXPECT_TRUE(paths[0].ends_with("/plain/a_b"));
  std::sort(paths.begin(), paths.end());
  EXPECT_EQ(std::adjacent_find(paths.begin(), paths.end()), paths.end());
}

// As an address that is signed for reading alone.
TEST_F(RemoteCopy, ServerThatTellsNothingOfAFileWithoutSendingItIsAskedForItsFirstByte) {
  const std::string address = server();
  const auto copied = near(address + "/signed/a.h5");
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_EQ(text_of(*copied), content_);
  // The second time nothing more than that byte comes.
  const std::string before = sent(address);
  EXPECT_EQ(near(address + "/signed/a.h5").value(), *copied);
  const auto bytes = [](const std::string& log) { return std::stoull(log); };
  EXPECT_EQ(bytes(sent(address)), bytes(before) + 1);
  write_text(folder_ / "served/empty", "");
  EXPECT_EQ(text_of(near(address + "/signed/empty").value()), "");
  EXPECT_THAT(near(address + "/private/a.h5"),
              FailsWith(ErrorKind::kData, "credentials are missing, or do not suffice"));
}

TEST_F(RemoteCopy, PatternsOfS3MatchWhatTheBucketLists) {
  environment_.set("AWS_ENDPOINT_URL", server());
  environment_.set("AWS_ACCESS_KEY_ID", "KEY");
  environment_.set("AWS_SECRET_ACCESS_KEY", "SECRET");
  for (const char* name :
       {"ele_10.h5", "ele_2.h5", "ele_1&2.h5", "ele_3.txt", "pi_1.h5", "odd*.h5"}) {
    write_text(folder_ / "served/" + name, name);
  }
  const auto expand = [&](const std::string& address) {
    return expand_address(WebSource(options_), address);
  };
  // In three pages of two keys.
  EXPECT_EQ(expand("s3://bucket/ele_*.h5").value(),
            (Words{"s3://bucket/ele_1&2.h5", "s3://bucket/ele_10.h5", "s3://bucket/ele_2.h5"}));
  EXPECT_EQ(expand("s3://bucket/ele_[0-2].h5").value(), (Words{"s3://bucket/ele_2.h5"}));
  // A file of that name comes first.
  EXPECT_EQ(expand("s3://bucket/odd*.h5").value(), (Words{"s3://bucket/odd*.h5"}));
  EXPECT_EQ(expand("https://a.org/ele_*.h5").value(), (Words{"https://a.org/ele_*.h5"}));
  EXPECT_THAT(expand("s3://bucket/none_*.h5"),
              FailsWith(ErrorKind::kData, "s3://bucket/none_*.h5: no file on the server matches"));
  environment_.set("AWS_SECRET_ACCESS_KEY", "WRONG");
  EXPECT_EQ(expand("s3://bucket/ele_*.h5").value(), (Words{"s3://bucket/ele_*.h5"}));
  EXPECT_THAT(copy("s3://bucket/ele_*.h5", folder_ / "b.h5"),
              FailsWith(ErrorKind::kData, "credentials are missing, or do not suffice"));
}

TEST(BucketPages, ThatAreNoneAreRefused) {
  EXPECT_FALSE(read_bucket_page(""));
  EXPECT_FALSE(read_bucket_page("<html><body>Welcome</body></html>"));
  EXPECT_FALSE(read_bucket_page("<ListBucketResult><Contents><Key>a"));
  const auto page = read_bucket_page(
      "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</"
      "NextContinuationToken><Contents><Key>a&amp;b</Key></Contents></ListBucketResult>");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->keys, Words{"a&b"});
  EXPECT_EQ(page->next, "t");
}

TEST_F(RemoteCopy, CopiesUsedLongestAgoMakeRoomForOthersUnlessTheyAreInUse) {
  const std::string address = server() + "/plain/";
  for (const char* name : {"b", "c", "d"}) write_text(folder_ / "served/" + name, content_);
  bound_ = 450'000;  // two of them
  const std::string b = near(address + "b").value();
  const std::string c = near(address + "c").value();
  // Used again, so that the other one is older.
  EXPECT_EQ(near(address + "b").value(), b);
  write_text(folder_ / "near/own", content_);  // a user's own file neither counts nor goes
  const auto d = near_copy(WebSource(options_), address + "d", {folder_ / "near", bound_});
  ASSERT_TRUE(d.ok()) << d.error().message;
  EXPECT_TRUE(std::filesystem::exists(b));
  EXPECT_FALSE(std::filesystem::exists(c));
  // A copy in use stays, also for another process.
  ForkedProcess other([&] { return near(address + "c").ok() ? 0 : 1; });
  EXPECT_EQ(other.status(), 0);
  EXPECT_TRUE(std::filesystem::exists(d->path));
  EXPECT_FALSE(std::filesystem::exists(b));
  bound_ = 300'000;
  EXPECT_THAT(near(address + "b"),
              FailsWith(ErrorKind::kData, "in use and 0.20 MB to come are more than"));
  EXPECT_TRUE(std::filesystem::exists(d->path));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "near/own"));
}

// Wherever the cache is.
TEST(Origins, OfCopiesDecideTheirOrder) {
  TemporaryFolder folder;
  write_text(folder / "copy_1", "");
  write_text(folder / "copy_2", "");
  write_text(folder / "own", "");
  const std::map<std::string, std::string> origins{{folder / "copy_1", "s3://bucket/b"},
                                                   {folder / "copy_2", "https://a.org/b"}};
  const Words given{folder / "copy_1", folder / "copy_2", folder / "own"};
  EXPECT_EQ(expand_paths(given, origins).value(),
            (Words{folder / "own", folder / "copy_2", folder / "copy_1"}));
}

}  // namespace
}  // namespace troupe::pipeline
