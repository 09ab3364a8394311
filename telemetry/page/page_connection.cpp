#include <utility>  // Asio forgets it

#include "telemetry/page/page_connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>

#include "runtime/base/clock.h"
#include "telemetry/page/page_service.h"

namespace troupe::telemetry {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// A client reads the answer before it hears that nobody listens to what it sends.
constexpr auto kDrainTime = std::chrono::seconds(2);
constexpr std::size_t kMostIgnored = std::size_t{256} << 10;
constexpr std::string_view kBegin = "retry: 2000\n\n";

// Of RequestReader::status().
const char* why_broken(unsigned status) {
  switch (status) {
    case 413:
      return "a request with a body: nothing here takes one, ask with GET";
    case 431:
      return "the header of the request is too long";
    case 505:
      return "only HTTP/1.0 and 1.1 are spoken here";
    default:
      return "this is no HTTP request";
  }
}

}  // namespace

PageConnection::PageConnection(asio::ip::tcp::socket socket, PageService& service)
    : socket_(std::move(socket)), service_(service), reader_(service.limits.header_bytes) {}

void PageConnection::begin() {
  state_ = State::kReading;
  deadline_ = runtime::steady_now() + service_.limits.request_time;
  read();
}

std::optional<PageConnection::Time> PageConnection::sending_since() const {
  if (!sending_ || text_ == nullptr) return std::nullopt;
  return sending_since_;
}

std::optional<PageConnection::Time> PageConnection::makes_way() const {
  if (state_ != State::kReading && state_ != State::kDraining) return std::nullopt;
  return deadline_;
}

void PageConnection::read() {
  socket_.async_read_some(asio::buffer(arrived_),
                          [self = shared_from_this()](const error_code& failed, std::size_t bytes) {
                            if (self->state_ != State::kReading) return;
                            if (failed) return self->close();
                            self->take(self->reader_.take({self->arrived_.data(), bytes}));
                          });
}

void PageConnection::take(RequestReader::Found found) {
  switch (found) {
    case RequestReader::Found::kMore:
      return read();
    case RequestReader::Found::kRequest:
      return serve();
    case RequestReader::Found::kBroken:
      head_only_ = false;
      return send_answer(refusal(reader_.status(), why_broken(reader_.status())), false);
  }
}

void PageConnection::serve() {
  const WebRequest& request = reader_.request();
  keep_alive_ = request.keep_alive;
  WebAnswer answer = telemetry::answer(request, service_.site);
  head_only_ = request.method == "HEAD";
  if (!head_only_ && answer.rest == WebAnswer::Rest::kStream) return follow(answer);
  if (!head_only_ && answer.rest != WebAnswer::Rest::kBody) return ask_run(answer);
  compress(answer, request, service_.compressed);
  send_answer(std::move(answer), keep_alive_);
}

void PageConnection::ask_run(const WebAnswer& answer) {
  state_ = State::kAsking;
  const Time now = runtime::steady_now();
  deadline_ = now + service_.limits.asking_time;
  const std::size_t which = answer.runs.front();
  const RunSource& run = service_.site.runs[which];
  const bool is_trace = answer.rest == WebAnswer::Rest::kTrace;
  const auto waiter = [weak = weak_from_this(),
                       answer](const runtime::Result<RunQuestions::Text>& told) {
    const auto self = weak.lock();
    if (self == nullptr || self->state_ != State::kAsking) return;
    if (!told.ok()) return self->send_answer(refusal(503, told.error().message), self->keep_alive_);
    WebAnswer complete = answer;
    complete.rest = WebAnswer::Rest::kBody;
    complete.text = *told;
    compress(complete, self->reader_.request(), self->service_.compressed);
    self->send_answer(std::move(complete), self->keep_alive_);
  };
  service_.questions->ask(2 * which + (is_trace ? 1 : 0), is_trace ? run.trace : run.waits, waiter,
                          now);
}

void PageConnection::follow(const WebAnswer& answer) {
  state_ = State::kFollowing;
  stream_.emplace(service_.start, reader_.request().last_event_id, answer.runs);
  send(answer_head(answer, false), nullptr, kBegin);
  listen_for_end();
}

// An event of each run that has news, one after the other.
void PageConnection::offer() {
  if (turns_ == 0) return;
  --turns_;
  auto event = stream_->next(service_.site.runs);
  if (event) send(std::move(event->head), std::move(event->json), EventStream::kEnd);
}

bool PageConnection::say_last() {
  if (state_ != State::kFollowing) return true;
  if (sending_) return false;
  error_code failed;
  socket_.non_blocking(true, failed);
  for (std::size_t i = 0; i < stream_->runs() && !failed; ++i) {
    const auto event = stream_->next(service_.site.runs);
    if (!event) return true;
    const std::array<asio::const_buffer, 3> all{
        asio::buffer(event->head), asio::buffer(*event->json), asio::buffer(EventStream::kEnd)};
    const std::size_t bytes = asio::buffer_size(all);
    // Behind a part of an event another one would be read as more of it.
    if (socket_.write_some(all, failed) < bytes) return true;
  }
  return true;
}

void PageConnection::send_answer(WebAnswer answer, bool keep_alive) {
  state_ = State::kAnswering;
  keep_alive_ = keep_alive;
  std::string head = answer_head(answer, keep_alive);
  if (head_only_) return send(std::move(head), nullptr, {});
  send(std::move(head), std::move(answer.text), answer.fixed);
}

void PageConnection::send(std::string head, TextBudget::Text text, std::string_view rest) {
  service_.make_room(text, this);
  service_.budget.take(text);
  head_ = std::move(head);
  text_ = std::move(text);
  rest_ = rest;
  done_ = 0;
  sending_ = true;
  sending_since_ = runtime::steady_now();
  send_some();
}

void PageConnection::send_some() {
  deadline_ = runtime::steady_now() + service_.limits.stalled_time;
  const std::string_view text = text_ != nullptr ? std::string_view(*text_) : std::string_view();
  std::array<asio::const_buffer, 3> left{asio::buffer(head_), asio::buffer(text),
                                         asio::buffer(rest_)};
  std::size_t skip = done_;
  for (asio::const_buffer& part : left) {
    const std::size_t here = std::min(skip, part.size());
    part += here;
    skip -= here;
  }
  socket_.async_write_some(
      left, [self = shared_from_this()](const error_code& failed, std::size_t bytes) {
        if (self->state_ == State::kClosed) return;
        if (failed) return self->close();
        self->done_ += bytes;
        const std::size_t text_bytes = self->text_ != nullptr ? self->text_->size() : 0;
        if (self->done_ < self->head_.size() + text_bytes + self->rest_.size()) {
          return self->send_some();
        }
        self->sent();
      });
}

void PageConnection::sent() {
  service_.budget.release(text_);
  text_.reset();
  head_.clear();
  sending_ = false;
  sent_at_ = runtime::steady_now();
  if (state_ == State::kFollowing) return offer();
  if (!keep_alive_) return drain();
  state_ = State::kReading;
  deadline_ = sent_at_ + service_.limits.request_time;
  take(reader_.next());
}

void PageConnection::listen_for_end() {
  socket_.async_read_some(asio::buffer(arrived_), [self = shared_from_this()](
                                                      const error_code& failed, std::size_t bytes) {
    if (self->state_ != State::kFollowing && self->state_ != State::kDraining) return;
    self->ignored_ += bytes;
    if (failed || self->ignored_ > kMostIgnored) return self->close();
    self->listen_for_end();
  });
}

void PageConnection::drain() {
  state_ = State::kDraining;
  deadline_ = runtime::steady_now() + kDrainTime;
  error_code failed;
  socket_.shutdown(asio::socket_base::shutdown_send, failed);
  if (failed) return close();
  listen_for_end();
}

void PageConnection::tick(Time now) {
  if (state_ == State::kClosed) return;
  if (state_ == State::kFollowing && !sending_) {
    turns_ = stream_->runs();
    offer();
    if (!sending_ && now - sent_at_ > service_.limits.comment_time) {
      send(std::string(EventStream::kComment), nullptr, {});
    }
    return;
  }
  if (now >= deadline_) time_out();
}

void PageConnection::time_out() {
  if (state_ == State::kAsking) {
    return send_answer(refusal(504, "the run has not answered in time"), keep_alive_);
  }
  if (state_ != State::kReading || !reader_.is_amid()) return close();
  error_code ignored;
  state_ = State::kAnswering;
  head_only_ = false;
  socket_.cancel(ignored);
  send_answer(refusal(408, "the request took too long to come"), false);
}

void PageConnection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  if (sending_) service_.budget.release(text_);
  sending_ = false;
  text_.reset();
  error_code ignored;
  socket_.close(ignored);
  service_.connections.erase(shared_from_this());
}

}  // namespace troupe::telemetry
