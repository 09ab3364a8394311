// What --trace leaves, read by tests/main/check_trace: a reader of the Trace Event format that has
// nothing in common with what writes it.

#include <string>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

ProcessEnd check_trace(const Words& files) {
  return Process(Words{TROUPE_SOURCE_DIR "/tests/main/check_trace"} + files).wait();
}

JsonValue contents_of(const Words& files) {
  const ProcessEnd end = check_trace(files);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return end.exit_code == 0 ? parse_json(end.out) : JsonValue();
}

const Words kShort{"--trace", "--set", "train.iterations=3"};

class Traces : public ToyRun {};

TEST_F(Traces, OfOneProcessJoinWhatIsSentWithWhatIsHandled) {
  summary_of("a", kShort);
  const std::string file = path("a/trace/local.json");
  const JsonValue contents = contents_of({file});
  EXPECT_EQ(contents["processes"].list().front().text(), "local");
  EXPECT_GT(contents["arrows"].number(), 20);
  EXPECT_EQ(contents["left_out"].number(), 0);
}

TEST_F(Traces, OfSeveralProcessesHaveTheSameMessagesAtBothEnds) {
  summary_of("a", kShort + Words{"--workers", "2"});
  const JsonValue contents = contents_of(
      {path("a/trace/head.json"), path("a/trace/member.0.json"), path("a/trace/member.1.json")});
  EXPECT_EQ(contents["processes"].list().size(), 3U);
  EXPECT_GT(contents["arrows"].number(), 20);
  // At least the buckets and the header of every step, both ways.
  EXPECT_GT(contents["joined"].number(), 2 * 2 * 4 * 3);
}

// The reader is no better than what it refuses.
TEST_F(Traces, ThatAreWrongAreRefused) {
  summary_of("a", kShort);
  const std::string text = read_text(path("a/trace/local.json"));
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string wrong = text;
    const std::size_t place = wrong.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    if (place != std::string::npos) wrong.replace(place, from.size(), to);
    write_text(path("wrong.json"), wrong);
    return check_trace({path("wrong.json")}).exit_code != 0;
  };
  EXPECT_FALSE(refused("\"ph\"", "\"ph\"")) << "as it is";
  EXPECT_TRUE(refused("\"ph\":\"s\",\"id\":1,", "\"ph\":\"s\",\"id\":100000,"));
  EXPECT_TRUE(refused("\"bp\":\"e\"", "\"bp\":\"x\""));
  EXPECT_TRUE(refused("process_name", "thread_name"));
  EXPECT_TRUE(refused("\"dur\":", "\"dur\":-"));
  EXPECT_TRUE(refused("\"ts\":", "\"ts\":9")) << "later than those behind it";
}

}  // namespace
}  // namespace troupe
