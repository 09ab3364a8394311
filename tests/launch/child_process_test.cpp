#include "launch/processes/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <csignal>
#include <map>

#include "launch/processes/lost_member.h"
#include "runtime/base/descriptor.h"
#include "tests/launch/launch_support.h"
#include "tests/support/process_limits.h"

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += entry.path().empty() ? 0 : 1;
  }
  return count;
}

TEST(ChildProcess, EndsAreToldInWords) {
  EXPECT_EQ((ChildEnd{0, 0}).text(), "ended with exit code 0");
  EXPECT_EQ((ChildEnd{3, 0}).text(), "ended with exit code 3");
  EXPECT_EQ((ChildEnd{0, SIGKILL}).text(), "was killed by signal 9 (Killed)");
  EXPECT_EQ((ChildEnd{0, SIGSEGV}).text(), "was killed by signal 11 (Segmentation fault)");
  EXPECT_EQ((ChildEnd{0, SIGRTMIN}).text(), "was killed by signal 34 (unknown)");
}

TEST(ChildProcess, ItsExitCodeOrSignalIsFound) {
  for (const int code : {0, 1, 77, 255}) {
    EXPECT_EQ(Talker(shell("exit " + std::to_string(code))).wait(), (ChildEnd{code, 0}));
  }
  EXPECT_EQ(Talker(shell("kill -SEGV $$")).wait(), (ChildEnd{0, SIGSEGV}));
}

TEST(ChildProcess, ReadsWhatItWasGivenAndThenTheEnd) {
  for (const std::string& text : {std::string(), std::string(200'000, 'x')}) {
    Talker talker(shell("wc -c < /dev/stdin; wc -c"), text);
    EXPECT_EQ(talker.wait(), (ChildEnd{0, 0}));
    const std::string size = std::to_string(text.size());
    EXPECT_THAT(talker.lines, ElementsAre(size, size));
  }
}

TEST(ChildProcess, AProgramThatCannotBeStartedIsNamed) {
  const auto missing = ChildProcess::start({{"/nowhere/program", "x"}, {}, {}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, runtime::ErrorKind::kInternal);
  EXPECT_EQ(missing.error().message,
            "/nowhere/program cannot be started: not a program: No such file or directory");
  const auto folder = ChildProcess::start({{"/tmp"}, {}, {}});
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.error().message,
              HasSubstr("/tmp cannot be started: not a program: Permission"));
}

TEST(ChildProcess, WithoutDescriptorsTheirLimitIsNamedAndNotTheProgram) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer itself needs a descriptor to look at an object's type";
#endif
  const LineSink sink = [](std::string_view) {};
  int refused = 0;
  for (int more = 0; more < 20; ++more) {
    const FewDescriptors few(more);
    const auto child = ChildProcess::start({{"/bin/true"}, sink, sink});
    if (child.ok()) continue;
    ++refused;
    EXPECT_THAT(child.error().message, HasSubstr("descriptors are left for starting /bin/true"));
    EXPECT_THAT(child.error().message, HasSubstr("ulimit -n"));
  }
  EXPECT_GT(refused, 0);
}

TEST(ChildProcess, BothStreamsAreReadToTheLastByte) {
  Talker talker(shell("echo out; echo err >&2; printf last"));
  EXPECT_EQ(talker.wait(), (ChildEnd{0, 0}));
  EXPECT_THAT(talker.lines, testing::UnorderedElementsAre("out", "err", "last"));
}

TEST(ChildProcess, WhatItWroteBeforeItsEndIsThereThoughOthersHoldThePipe) {
  // The child of the child stays in its session, and keeps the pipe until it is killed with it.
  Talker talker(shell("sleep 1000 & echo sleeper $!; exit 4"));
  EXPECT_EQ(talker.wait(), (ChildEnd{4, 0}));
  const pid_t sleeper = pid_in(talker.line_with("sleeper"));
  EXPECT_TRUE(wait_for([&] { return is_gone(sleeper); }));
}

TEST(ChildProcess, LinesOfManyAreNeverTorn) {
  constexpr int kChildren = 4, kLines = 1000;
  const TemporaryFolder folder;
  const int file =
      ::open((folder / "out").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  std::vector<std::unique_ptr<ChildProcess>> children;
  const std::string script =
      "i=0; while [ $i -lt 1000 ]; do printf 'li'; printf 'ne %d of a hundred\\n' $i; "
      "i=$((i+1)); done; printf end";
  for (int i = 0; i < kChildren; ++i) {
    const LineSink sink = prefixed_lines("member." + std::to_string(i), file);
    auto child = ChildProcess::start({shell(script), sink, sink});
    ASSERT_TRUE(child.ok());
    children.push_back(std::move(child).value());
  }
  const auto all_ended = [&] {
    return std::all_of(children.begin(), children.end(), [](auto& c) { return c->end(); });
  };
  while (!all_ended()) wait_for_children(children);
  ::close(file);
  std::ifstream lines(folder / "out");
  std::map<std::string, int> next;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find(' '));
    const int number = next[name]++;
    EXPECT_EQ(line, number == kLines
                        ? name + " | end"
                        : name + " | line " + std::to_string(number) + " of a hundred");
  }
  ASSERT_EQ(next.size(), static_cast<std::size_t>(kChildren));
  for (const auto& [name, count] : next) EXPECT_EQ(count, kLines + 1) << name;
}

TEST(ChildProcess, OneThatHandlesSigtermRunsOnUntilItIsKilled) {
  Talker talker(shell("trap 'echo not yet' TERM; echo ready; while :; do sleep 0.01; done"));
  talker.line_with("ready");
  talker.child().send(SIGTERM);
  talker.line_with("not yet");
  EXPECT_FALSE(talker.child().end().has_value());
  talker.child().send(SIGKILL);
  EXPECT_EQ(talker.wait(), (ChildEnd{0, SIGKILL}));
}

TEST(ChildProcess, BlockedSignalsOfTheParentReachIt) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  Talker talker(shell("kill -TERM $$; echo blocked"));
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  EXPECT_EQ(talker.wait(), (ChildEnd{0, SIGTERM}));
}

TEST(ChildProcess, HasNoDescriptorsOfOursButTheLine) {
  const runtime::Descriptor leaky(::open("/dev/null", O_RDONLY));
  const runtime::Descriptor leaky_high(::fcntl(leaky.number(), F_DUPFD, 200));
  ASSERT_TRUE(leaky_high.is_open());
  Talker talker({"/bin/ls", "/proc/self/fd"});
  talker.wait();
  // The last is the folder that is listed.
  EXPECT_THAT(talker.lines, ElementsAre("0", "1", "2", "3", "4"));
  Talker link(shell("readlink /proc/self/fd/0; readlink /proc/$$/fd/3"));
  link.wait();
  EXPECT_THAT(link.lines, ElementsAre(HasSubstr("memfd:input"), HasSubstr("socket:")));
}

TEST(ChildProcess, IsKilledWithItsObject) {
  pid_t pid = -1;
  {
    Talker talker(shell("sleep 1000 & echo sleeper $!; wait"));
    pid = pid_in(talker.line_with("sleeper"));
  }
  EXPECT_TRUE(wait_for([&] { return is_gone(pid); }));
}

TEST(ChildProcess, ManyStartsLeaveNoDescriptorsAndNoProcesses) {
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 100; ++i) {
    Talker talker(shell("echo " + std::to_string(i)));
    const bool waits = i % 2 == 0;  // else it is killed with its object
    EXPECT_TRUE(!waits || talker.wait() == (ChildEnd{0, 0}));
    EXPECT_FALSE(ChildProcess::start({{"/nowhere"}, [](auto) {}, {}}).ok());
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was not waited for";
}

TEST(ChildProcess, WakesForTheDescriptorAndForTheTime) {
  const runtime::Descriptor wake(::eventfd(1, EFD_CLOEXEC));
  Talker talker(shell("exec sleep 1000"));
  std::vector<std::unique_ptr<ChildProcess>> none;
  wait_for_children(none, wake.number());
  wait_for_children(none, -1, std::chrono::milliseconds(1));
  wait_for_children(none);
  EXPECT_FALSE(talker.child().end().has_value());
}

TEST(ChildProcess, IsGoneSoonAfterItsParentWasKilled) {
  Talker parent({TROUPE_LAUNCH_HELPER, "children", "while :; do sleep 0.01; done",
                 "exec sleep 1000", "trap '' TERM HUP INT; exec sleep 1000"});
  std::vector<pid_t> children;
  while (children.size() < 3) {
    parent.line_with("started");
    children.push_back(pid_in(parent.lines.front()));
    parent.lines.erase(parent.lines.begin());
  }
  for (const pid_t child : children) EXPECT_FALSE(is_gone(child));
  parent.child().send(SIGKILL);
  EXPECT_EQ(parent.wait(), (ChildEnd{0, SIGKILL}));
  for (const pid_t child : children) EXPECT_TRUE(wait_for([&] { return is_gone(child); }));
}

TEST(ChildProcess, ItsLineEndsWithTheParent) {
  const TemporaryFolder folder;
  const std::string told = folder / "told";
  // The reader is the child's own child, which no signal of the kernel reaches.
  Talker parent({TROUPE_LAUNCH_HELPER, "children",
                 "(read x <&3; echo gone > " + told + ") & echo reads; wait"});
  parent.line_with("reads");
  EXPECT_FALSE(std::filesystem::exists(told));
  parent.child().send(SIGKILL);
  parent.wait();
  EXPECT_TRUE(wait_for([&] { return read_text(told) == "gone\n"; }));
}

TEST(ChildProcess, HearsTheLinesItIsTold) {
  Talker talker(shell("read a <&3; read b <&3; echo $a $b"));
  talker.child().tell("one");
  talker.child().tell("two three");
  talker.line_with("one two three");
  talker.wait();
  talker.child().tell("nobody hears this");
}

// Nobody reads it; the pipe is full before that.
TEST(ChildProcess, TellingNeverBlocksAndNeverKills) {
  Talker talker(shell("exec 3<&-; echo closed; sleep 1000"));
  talker.child().tell(std::string(1000, 'a'));
  talker.line_with("closed");
  for (int i = 0; i < 1000; ++i) talker.child().tell(std::string(1000, 'a'));
  Talker deaf(shell("sleep 1000"));
  for (int i = 0; i < 1000; ++i) deaf.child().tell(std::string(1000, 'a'));
}

class LostMembersTest : public testing::Test {
 protected:
  LostMembersTest() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~LostMembersTest() override { ::close(ends_[1]); }
  void write(const std::string& text) {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  int ends_[2];
};

TEST_F(LostMembersTest, LinesArriveWholeInWhateverPiecesTheyCome) {
  LostMembers members(ends_[0]);
  std::vector<LostMember> taken;
  const auto takes = [&](std::size_t count) {
    for (const LostMember& member : members.take()) taken.push_back(member);
    return taken.size() == count;
  };
  write("lost first 1 0\nlost sec");
  EXPECT_TRUE(wait_for([&] { return takes(1); }));
  write("ond 0 9\nanother line\nlost third 4 0\n");
  EXPECT_TRUE(wait_for([&] { return takes(3); }));
  EXPECT_EQ(taken.at(0).name, "first");
  EXPECT_EQ(taken.at(1).name, "second");
  EXPECT_EQ(taken.at(1).end, (ChildEnd{0, 9}));
  EXPECT_EQ(taken.at(2).name, "third");
}

TEST_F(LostMembersTest, StopsWhileThePipeLives) {
  LostMembers members(ends_[0]);
  EXPECT_TRUE(members.take().empty());
}

TEST_F(LostMembersTest, ADescriptorThatIsNoneEndsAtOnce) {
  { LostMembers members(::fcntl(0, F_DUPFD_CLOEXEC, 900) + 1); }
  ::close(ends_[0]);
}

TEST(LostMember, IsTheSameAfterItWasPrinted) {
  for (const ChildEnd end : {ChildEnd{4, 0}, ChildEnd{0, SIGKILL}}) {
    const auto read = parse_lost_member(print(LostMember{"member.7", end}));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->name, "member.7");
    EXPECT_EQ(read->end, end);
  }
  for (const char* other : {"", "lost", "lost member.0", "lost member.0 x 0", "found a 0 0"}) {
    EXPECT_FALSE(parse_lost_member(other).has_value()) << other;
  }
}

TEST(LostMember, ItsKindIsTheOneItEndedWith) {
  using runtime::ErrorKind;
  EXPECT_EQ((LostMember{"m", {4, 0}}).error().kind, ErrorKind::kData);
  EXPECT_EQ((LostMember{"m", {2, 0}}).error().kind, ErrorKind::kUsage);
  EXPECT_EQ((LostMember{"m", {143, 0}}).error().kind, ErrorKind::kLostPeers);
  EXPECT_EQ((LostMember{"m", {0, SIGKILL}}).error().kind, ErrorKind::kLostPeers);
  EXPECT_THAT((LostMember{"m", {0, SIGKILL}}).error().message,
              HasSubstr("m was killed by signal 9 (Killed)"));
}

}  // namespace
}  // namespace troupe::launch
