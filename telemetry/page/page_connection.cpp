#include <utility>  // Asio forgets it

#include "telemetry/page/page_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>

#include "telemetry/page/page_service.h"

namespace troupe::telemetry {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kPiece = 65536;  // of a text, for one call of the system
constexpr std::string_view kBegin = "retry: 2000\n\n";

}  // namespace

PageConnection::PageConnection(asio::ip::tcp::socket socket, PageService& service)
    : service_(service), stream_(std::move(socket)) {
  service_.connections.insert(this);
}

PageConnection::~PageConnection() { service_.forget(this); }

void PageConnection::close() { stream_.close(); }

void PageConnection::read() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(service_.limits.header_bytes));
  parser_->body_limit(service_.limits.body_bytes);
  stream_.expires_after(service_.limits.idle_time);
  http::async_read(stream_, arrived_, *parser_,
                   [self = shared_from_this()](const error_code& failed, std::size_t) {
                     if (!failed) return self->serve();
                     self->keep_alive_ = false;
                     self->request_ = {};
                     if (auto refused = refusal_of(failed)) self->send_answer(std::move(*refused));
                   });
}

void PageConnection::serve() {
  keep_alive_ = parser_->keep_alive();  // by all fields; the request knows only the first
  request_ = parser_->release();
  WebAnswer answer = telemetry::answer(request_, service_.site);
  const bool has_body = request_.method() != http::verb::head;
  if (answer.change) return change_run(answer);
  if (has_body && answer.question != nullptr) return ask_run(std::move(answer));
  if (has_body && !answer.followed.empty()) return follow(answer);
  send_answer(std::move(answer));
}

void PageConnection::ask_run(WebAnswer answer) {
  const RunSource::Question& question = *answer.question;
  auto waiter = [self = shared_from_this(),
                 answer = std::move(answer)](const runtime::Result<Text>& told) {
    if (!told.ok()) return self->send_answer(refusal(503, told.error().message));
    WebAnswer complete = answer;
    complete.text = *told;
    self->send_answer(std::move(complete));
  };
  service_.questions.ask(question, std::move(waiter), runtime::steady_now());
}

// What the run refuses is no failure of the run.
void PageConnection::change_run(const WebAnswer& answer) {
  auto waiter = [self = shared_from_this()](const runtime::Result<Text>& told) {
    if (told.ok()) return self->send_answer(text_answer(**told + "\n"));
    const bool is_refused = told.error().kind == runtime::ErrorKind::kUsage;
    self->send_answer(refusal(is_refused ? 409 : 503, told.error().message));
  };
  service_.questions.ask_alone(answer.change, std::move(waiter), runtime::steady_now());
}

void PageConnection::follow(const WebAnswer& answer) {
  events_.emplace(service_.start, field_of(request_, "Last-Event-ID"), answer.followed);
  wait_for_end();
  send(answer_head(answer, false), nullptr, kBegin);
}

void PageConnection::tell_news() {
  if (!events_ || sending_) return;
  turns_ = events_->runs();
  next_event();
  const bool is_silent = runtime::steady_now() - sent_at_ > service_.limits.comment_time;
  if (!sending_ && is_silent) send(std::string(EventStream::kComment), nullptr, {});
}

void PageConnection::part() {
  parts_ = true;
  if (!events_) return close();
  turns_ = events_->runs();
  if (!sending_) next_event();
}

// Events of several runs go out one after the other.
void PageConnection::next_event() {
  if (turns_ > 0) {
    --turns_;
    auto event = events_->next(service_.site.runs);
    if (event) return send(std::move(event->head), std::move(event->json), EventStream::kEnd);
  }
  if (parts_) close();
}

void PageConnection::send_answer(WebAnswer answer) {
  compress(answer, request_, service_.compressed);
  std::string head = answer_head(answer, keep_alive_);
  if (request_.method() == http::verb::head) return send(std::move(head), nullptr, {});
  send(std::move(head), std::move(answer.text), answer.fixed);
}

void PageConnection::send(std::string head, Text text, std::string_view rest) {
  head_ = std::move(head);
  text_ = std::move(text);
  const std::array<asio::const_buffer, 3> all{
      asio::buffer(head_), text_ == nullptr ? asio::const_buffer() : asio::buffer(*text_),
      asio::buffer(rest)};
  // The time begins anew with every piece that the client has taken.
  const auto take_time = [this](const error_code& failed, std::size_t) -> std::size_t {
    if (failed) return 0;
    stream_.expires_after(service_.limits.idle_time);
    return kPiece;
  };
  asio::async_write(stream_, all, take_time,
                    [self = shared_from_this()](const error_code& failed, std::size_t) {
                      if (failed) return self->close();
                      self->sent();
                    });
  sending_ = true;
}

void PageConnection::sent() {
  text_.reset();
  head_.clear();
  sending_ = false;
  sent_at_ = runtime::steady_now();
  if (events_) return next_event();
  if (keep_alive_) return read();
  // The client may still be sending. It reads the answer before it hears that nobody listens.
  error_code ignored;
  stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  stream_.expires_after(service_.limits.idle_time);
  wait_for_end();
}

// A follower may be silent for ever.
void PageConnection::wait_for_end() {
  if (events_) stream_.expires_never();
  stream_.async_read_some(asio::buffer(ignored_),
                          [self = shared_from_this()](const error_code& failed, std::size_t) {
                            if (failed) return self->close();
                            self->wait_for_end();
                          });
}

}  // namespace troupe::telemetry
