// `troupe watch`: folders of runs, and the address of a page.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "runtime/base/json_reader.h"
#include "telemetry/history_news.h"
#include "telemetry/watch/page_client.h"
#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

// Holds the lock of a run's folder, as a run that goes on does.
class HeldFolder {
 public:
  explicit HeldFolder(const std::string& folder)
      : lock_(::open((folder + "/.lock").c_str(), O_RDWR | O_CLOEXEC)) {
    CHECK(lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) == 0, "no lock");
  }
  ~HeldFolder() { ::close(lock_); }
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

 private:
  int lock_;
};

// A page of folders that lasts as long as this object.
class WatchPage {
 public:
  explicit WatchPage(const Words& folders, const std::string& listen = "127.0.0.1:0")
      : process_(command(Words{"watch", "--web", "--listen", listen} + folders)) {
    process_.wait_until([&] { return process_.out().find('\n') != std::string::npos; });
    address_ = process_.out().substr(0, process_.out().find('\n'));
  }
  const std::string& address() const { return address_; }
  Process& process() { return process_; }
  std::string get(const std::string& path) const {
    auto parsed = telemetry::parse_page_address(address_);
    CHECK(parsed.ok(), parsed.error().message);
    auto told = telemetry::PageClient(*parsed).get(path);
    return told.ok() ? *told : told.error().message;
  }

 private:
  Process process_;
  std::string address_;
};

TEST_F(ToyRun, WatchOfAFinishedRunSaysWhatBecameOfIt) {
  run("a");
  const ProcessEnd end = call({"watch", path("a")});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("ended"));
  EXPECT_THAT(end.out, Not(HasSubstr("\x1b")));
  const ProcessEnd json = call({"watch", path("a"), "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(last_line(json)["state"].text(), "ended");
  EXPECT_EQ(last_line(json)["steps"].integer(), 88u);
}

TEST_F(ToyRun, WatchDrawsInPlaceOnATerminal) {
  const std::string script = "/usr/bin/script";
  if (!std::filesystem::exists(script)) GTEST_SKIP() << "no program that offers a terminal";
  run("a");
  const std::string watch = "stty cols 60 rows 12; '" TROUPE_BINARY "' watch " + path("a");
  const ProcessEnd end = Process({script, "-qec", watch, "/dev/null"}).wait();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.out, HasSubstr("\x1b[K"));
  EXPECT_THAT(end.out, HasSubstr("\x1b[?25h"));  // the cursor is back
  const auto lines = std::count(end.out.begin(), end.out.end(), '\n');
  EXPECT_GE(lines, 5);
}

TEST_F(ToyRun, WatchFollowsARunUntilItEnds) {
  Process training(command(run_words("a")));
  training.wait_until([&] { return std::filesystem::exists(path("a/metrics.jsonl")); });
  const ProcessEnd watched = call({"watch", path("a"), "--json"});
  EXPECT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_EQ(last_line(watched)["state"].text(), "ended");
  EXPECT_EQ(last_line(watched)["steps"].integer(), 88u);
  EXPECT_EQ(training.wait().exit_code, 0);
}

TEST_F(ToyRun, WatchOfAFailedRunSaysWhy) {
  run("a");
  write_text(path("a/summary.json"), R"({"state_hash":null,"error":"all is lost"})");
  const ProcessEnd end = call({"watch", path("a")});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("the run failed: all is lost"));
}

TEST(Watch, FolderWithoutARunIsADataErrorThatSaysWhatToDo) {
  const TemporaryFolder folder;
  for (const Words& more : {Words{}, Words{"--web"}}) {
    const ProcessEnd end = call(Words{"watch", folder.path()} + more);
    EXPECT_EQ(end.exit_code, 4);
    EXPECT_THAT(end.err, HasSubstr(folder.path()));
    EXPECT_THAT(end.err, HasSubstr("troupe run --out"));
  }
}

TEST(Watch, AddressThatNobodyListensAtIsAnErrorAtOnce) {
  for (const Words& more : {Words{}, Words{"--waits"}}) {
    const ProcessEnd end = call(Words{"watch", "http://127.0.0.1:1/"} + more);
    EXPECT_EQ(end.exit_code, 5);
    EXPECT_THAT(end.err, HasSubstr("127.0.0.1:1"));
  }
}

TEST_F(ToyRun, WatchServesThePageOfSeveralFolders) {
  run("a");
  run("b", {"--seed", "2"});
  WatchPage page({path("a"), path("b")});
  EXPECT_THAT(page.address(), HasSubstr("http://127.0.0.1:"));
  EXPECT_EQ(page.get("/healthz"), "ok\n");
  const JsonValue runs = parse_json(page.get("/api/runs"));
  ASSERT_EQ(runs["runs"].list().size(), 2u);
  EXPECT_EQ(runs["runs"].list()[1]["folder"].text(), path("b"));
  const JsonValue history = parse_json(page.get("/api/runs/1/history"));
  EXPECT_EQ(history["progress"]["state"].text(), "ended");
  EXPECT_THAT(page.get("/api/runs/0/trace"), HasSubstr("read from its folder"));

  // The page can be watched by its address in turn.
  const ProcessEnd end = call({"watch", page.address(), "--json"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["steps"].integer(), 88u);
  const ProcessEnd trace = call({"watch", page.address(), "--trace", path("t.json")});
  EXPECT_EQ(trace.exit_code, 2);
  EXPECT_THAT(trace.err, HasSubstr("read from its folder"));
  EXPECT_FALSE(std::filesystem::exists(path("t.json")));

  page.process().send(SIGTERM);
  EXPECT_EQ(page.process().wait().exit_code, 143);
}

// The stream of all runs of a page, by their numbers, read on a thread of its own until it is told
// to stop.
class FollowedRuns {
 public:
  FollowedRuns(const std::string& address, const std::string& path) {
    auto parsed = telemetry::parse_page_address(address);
    CHECK(parsed.ok(), parsed.error().message);
    thread_ = std::thread([this, path, page = *parsed] {
      telemetry::PageClient client(page, [this] { return stop_.load(); });
      (void)client.follow(path, [this](const auto& event) { take(event); });
    });
  }
  ~FollowedRuns() {
    stop_ = true;
    thread_.join();
  }
  FollowedRuns(const FollowedRuns&) = delete;
  FollowedRuns& operator=(const FollowedRuns&) = delete;

  // Waits until all runs are in these states; the steps of each. CHECKs that it comes to that.
  std::vector<std::uint64_t> until(const std::vector<std::string>& states) {
    std::vector<std::string> now;
    std::vector<std::uint64_t> steps;
    const bool came = wait_for([&] {
      const std::scoped_lock lock(mutex_);
      now.clear();
      steps.clear();
      for (const auto& [number, run] : runs_) {
        now.push_back(run.progress->state);
        steps.push_back(run.progress->steps);
      }
      return now == states;
    });
    CHECK(came, fmt::format("the runs are {}", fmt::join(now, ", ")));
    return steps;
  }

 private:
  void take(const telemetry::EventReader::Event& event) {
    const std::scoped_lock lock(mutex_);
    telemetry::HistoryNews news;
    CHECK(runtime::read_json(event.data, news), event.data);
    runs_[event.name.substr(event.name.find(' ') + 1)].take(std::move(news));
  }

  std::mutex mutex_;
  std::map<std::string, telemetry::HistoryNews> runs_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(ToyRun, WatchFollowsAllLiveRunsOfItsPageToTheirEndsAndWhenTheyAreResumed) {
  const Words long_one{"--set", "train.epochs=100000"};
  Process a(command(run_words("a", long_one))), b(command(run_words("b", long_one)));
  for (const char* lines : {"a/metrics.jsonl", "b/metrics.jsonl"}) {
    a.wait_until([&] { return std::filesystem::exists(path(lines)); });
  }
  const WatchPage page({path("a"), path("b")});
  FollowedRuns followed(page.address(), "/api/runs/0,1/stream");
  followed.until({"training", "training"});
  EXPECT_TRUE(parse_json(page.get("/api/runs"))["runs"].list()[1]["live"].truth());
  a.send(SIGTERM);
  EXPECT_EQ(a.wait().exit_code, 143);
  const auto before = followed.until({"stopped", "training"});
  EXPECT_GT(before[0], 0u);
  Process again(command({"run", "--resume", path("a")}));
  followed.until({"training", "training"});
  b.send(SIGTERM);
  EXPECT_EQ(b.wait().exit_code, 143);
  followed.until({"training", "stopped"});
  again.send(SIGTERM);
  EXPECT_EQ(again.wait().exit_code, 143);
  EXPECT_GE(followed.until({"stopped", "stopped"})[0], before[0]);
}

TEST_F(ToyRun, WatchSaysThatAnAddressHasGoneAndGoesOnWhenItIsBack) {
  run("a");
  const HeldFolder held(path("a"));
  std::filesystem::rename(path("a/summary.json"), path("summary"));
  auto page = std::make_unique<WatchPage>(Words{path("a")});
  Process watching(command({"watch", page->address()}));
  watching.wait_until([&] { return !watching.out().empty(); });
  const std::string address = page->address();
  page.reset();
  EXPECT_TRUE(watching.wait_until([&] {
    return watching.err().find("does not answer any more") != std::string::npos;
  })) << watching.err();
  std::filesystem::rename(path("summary"), path("a/summary.json"));
  const std::string place = address.substr(7, address.size() - 8);  // of http://PLACE/
  page = std::make_unique<WatchPage>(Words{path("a")}, place);
  EXPECT_EQ(page->address(), address);
  EXPECT_EQ(watching.wait().exit_code, 0);
  EXPECT_THAT(watching.out(), HasSubstr("ended"));
}

TEST_F(ToyRun, WatchEndsOnASignal) {
  run("a");
  const HeldFolder held(path("a"));
  std::filesystem::remove(path("a/summary.json"));
  for (const int number : {SIGINT, SIGTERM}) {
    Process watching(command({"watch", path("a"), "--json"}));
    watching.wait_until([&] { return !watching.err().empty(); });
    watching.send(number);
    const ProcessEnd end = watching.wait();
    EXPECT_EQ(end.exit_code, 128 + number);
    EXPECT_EQ(last_line(end)["state"].text(), "training");
  }
}

TEST_F(ToyRun, WatchSaysThatASignalEndedItBeforeAllWasRead) {
  run("a");
  std::filesystem::resize_file(path("a/metrics.jsonl"), std::uint64_t{1} << 38);  // takes no room
  Process watching(command({"watch", path("a"), "--json"}));
  watching.wait_until([&] { return !watching.err().empty(); });
  watching.send(SIGINT);
  const ProcessEnd end = watching.wait();
  EXPECT_EQ(end.exit_code, 130);
  const std::string why = "ended by signal 2 before " + path("a") + " was read";
  EXPECT_THAT(end.err, HasSubstr(why));
  const JsonValue object = last_line(end);
  EXPECT_EQ(object["error"].text(), why);
  EXPECT_EQ(object["exit_code"].integer(), 130u);
}

}  // namespace
}  // namespace troupe
