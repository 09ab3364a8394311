#pragma once

// Reads server-sent events from the bytes of a stream (WHATWG HTML, section 9.2).

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace troupe::telemetry {

class EventReader {
 public:
  struct Event {
    std::string name;  // "history", "update"
    std::string id;    // its own, or the last one before it
    std::string data;  // its lines, with '\n' between them
  };
  using Take = std::function<void(const Event&)>;

  // The lines of an event may have `most_bytes`.
  EventReader(Take take, std::size_t most_bytes) : take_(std::move(take)), most_(most_bytes) {}

  // The bytes come in any pieces. False: an event is too long, and nothing further is understood.
  bool read(std::string_view bytes);
  const std::string& last_id() const { return event_.id; }

 private:
  void line(std::string_view text);

  Take take_;
  std::size_t most_;
  std::string waiting_;  // a line without its end
  std::size_t looked_ = 0;
  std::size_t bytes_ = 0;  // in the event's lines so far
  bool broken_ = false;
  Event event_;
  bool has_data_ = false;
};

}  // namespace troupe::telemetry
