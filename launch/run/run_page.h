#pragma once

// The page of a run that trains here, from before it begins to its end.

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "actors/node_reports.h"
#include "launch/folder/run_folder.h"
#include "launch/run/head_run.h"
#include "runtime/base/log.h"
#include "runtime/node/node.h"
#include "telemetry/page/page_server.h"

namespace troupe::launch {

// Why a run would have no page here and now, as it would say so; nothing: it would, or none is
// wanted. Opens one and closes it again.
std::optional<std::string> try_page(const config::MonitorSection& monitor);

// Each of its failures is a line in the log; the run goes on without its page.
class RunPage {
 public:
  // Serves the run where its topology says, if it does, and says in the log where that is.
  RunPage(const HeadRunRequest& request, const RunFolder& folder, const runtime::Log& log);
  // Only after the node that it was given has ended. A run without tell_end() could not begin.
  ~RunPage();
  RunPage(const RunPage&) = delete;
  RunPage& operator=(const RunPage&) = delete;

  // Writes the token that it made for itself into the folder again, which somebody has emptied.
  runtime::Result<void> put_back(const RunFolder& folder) const;
  // From here until leave() the run can be asked for its trace and for who waits for whom, which
  // its Monitor answers, and for other nodes of its pools. The node outlives that time.
  void look_into(runtime::Node& node);
  void leave();
  // The run has ended: tells those who watch, and ends the page.
  void tell_end(const HeadRunResult& result);

 private:
  runtime::Result<void> open(const HeadRunRequest& request, const RunFolder& folder,
                             const runtime::Log& log);
  using Answer = telemetry::RunSource::Answer;
  void ask(actors::Probe::Wants wants, Answer answer);
  void burst(const telemetry::PoolWish& wish, Answer answer);
  // Puts answers into words until there come no more. A thread's.
  void write_answers();

  struct Task {
    actors::NodeAnswers answers;
    Answer answer;
  };

  const std::shared_ptr<telemetry::History> history_;
  std::string own_token_;  // "": none was made
  bool ended_ = false;     // as far as the history knows
  std::mutex mutex_;       // of these
  std::condition_variable changed_;
  runtime::Node* node_ = nullptr;
  std::deque<Task> tasks_;  // the server asks for one of a kind at a time
  bool closed_ = false;
  std::unique_ptr<telemetry::PageServer> server_;
  std::thread writer_;
};

}  // namespace troupe::launch
