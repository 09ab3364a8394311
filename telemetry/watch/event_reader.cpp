#include "telemetry/watch/event_reader.h"

#include <algorithm>

namespace troupe::telemetry {

bool EventReader::read(std::string_view bytes) {
  if (broken_) return false;
  waiting_.append(bytes);
  std::size_t begin = 0, end = 0;
  while ((end = waiting_.find('\n', std::max(begin, looked_))) != std::string::npos) {
    std::string_view text = std::string_view(waiting_).substr(begin, end - begin);
    bytes_ += text.size();
    if (bytes_ > most_) break;
    if (text.ends_with('\r')) text.remove_suffix(1);
    line(text);
    begin = end + 1;
  }
  waiting_.erase(0, begin);
  looked_ = waiting_.size();
  broken_ = bytes_ + waiting_.size() > most_;
  return !broken_;
}

void EventReader::line(std::string_view text) {
  if (text.empty()) {
    if (has_data_) take_(event_);
    event_.name.clear();
    event_.data.clear();
    has_data_ = false;
    bytes_ = 0;
    return;
  }
  const std::size_t colon = text.find(':');
  const std::string_view field = text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") event_.name = value;
  if (field == "id") event_.id = value;
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
}

}  // namespace troupe::telemetry
