// Files that are put to the small server of remote_copy_test.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "pipeline/data/remote_copy.h"
#include "tests/pipeline/remote_fixture.h"
#include "tests/support/fails_with.h"

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;
using RemotePut = RemoteCopy;

TEST_F(RemotePut, FilesArePutWholeInPlaceOfOthersAndAgainWhereAServerIsBusy) {
  const std::string address = server();
  const WebSource web(options_);
  write_text(folder_ / "new.h5", noise_text(3'000'000));
  for (const char* const way : {"/plain/new.h5", "/busy/new.h5", "/plain/deep/new.h5"}) {
    const auto put = web.put(folder_ / "new.h5", address + way, {});
    ASSERT_TRUE(put.ok()) << put.error().message;
  }
  EXPECT_EQ(text_of(folder_ / "served/new.h5"), text_of(folder_ / "new.h5"));
  EXPECT_EQ(text_of(folder_ / "served/deep+new.h5"), text_of(folder_ / "new.h5"));
  write_text(folder_ / "new.h5", "");
  ASSERT_TRUE(web.put(folder_ / "new.h5", address + "/plain/new.h5", {}).ok());
  EXPECT_EQ(std::filesystem::file_size(folder_ / "served/new.h5"), 0u);
}

TEST_F(RemotePut, PutsThatAreRefusedSayWhatToDo) {
  const std::string address = server();
  const WebSource web(options_);
  const auto put = [&](const std::string& way) {
    return web.put(folder_ / "served/a.h5", way, {});
  };
  EXPECT_THAT(put(address + "/private/b.h5"),
              FailsWith(ErrorKind::kData, "credentials are missing, or do not suffice"));
  EXPECT_THAT(put(address + "/full/b.h5"),
              FailsWith(ErrorKind::kData, "the server cannot answer now (507)"));
  EXPECT_THAT(web.put(folder_ / "none.h5", address + "/plain/b.h5", {}),
              FailsWith(ErrorKind::kData, "none.h5"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "served/b.h5"));
}

TEST_F(RemotePut, FoldersThatAServerMissesAreMadeOnTheWay) {
  const std::string address = server();
  const WebSource web(options_);
  const auto put = [&](const std::string& way) {
    return web.put(folder_ / "served/a.h5", address + way, {});
  };
  for (const char* const name :
       {"/dav/runs/a/b.h5", "/dav/runs/a/c.h5", "/dav/runs/d.h5", "/nginx/runs/e.h5"}) {
    const auto done = put(name);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  EXPECT_EQ(text_of(folder_ / "served/runs+a+b.h5"), content_);
  EXPECT_EQ(text_of(folder_ / "served/runs+e.h5"), content_);
  EXPECT_THAT(
      put("/rigid/runs/a/b.h5"),
      FailsWith(ErrorKind::kData,
                "/rigid/runs/a/b.h5: the server has no folder for it (409), and " + address +
                    "/rigid/runs/a/ cannot be made there: the server refuses it "
                    "(403): credentials are missing, or do not suffice; make the folder on "
                    "the server"));
}

TEST_F(RemotePut, PutIsEndedByItsProgressWhileAServerIsSilent) {
  const std::string address = server() + "/silent/b.h5";
  int asked = 0;
  const auto put =
      WebSource(options_).put(folder_ / "served/a.h5", address,
                              [&](std::uint64_t, std::uint64_t all) -> runtime::Result<void> {
                                EXPECT_EQ(all, content_.size());
                                if (++asked < 5) return {};
                                return runtime::Error{ErrorKind::kData, "enough"};
                              });
  EXPECT_THAT(put, FailsWith(ErrorKind::kData, "/silent/b.h5: enough"));
}

TEST_F(RemotePut, PutsToS3AreSignedWithTheHashOfWhatTheySend) {
  environment_.set("AWS_ENDPOINT_URL", server());
  environment_.set("AWS_ACCESS_KEY_ID", "KEY");
  environment_.set("AWS_SECRET_ACCESS_KEY", "WRONG");
  const WebSource web(options_);
  const std::string address = "s3://bucket/runs/a b.h5";
  EXPECT_THAT(web.put(folder_ / "served/a.h5", address, {}),
              FailsWith(ErrorKind::kData, "the server refuses it (403)"));
  environment_.set("AWS_SECRET_ACCESS_KEY", "SECRET");
  const auto put = web.put(folder_ / "served/a.h5", address, {});
  ASSERT_TRUE(put.ok()) << put.error().message;
  EXPECT_EQ(text_of(folder_ / "served/runs+a b.h5"), content_);
}

}  // namespace
}  // namespace troupe::pipeline
