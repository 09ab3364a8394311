#include "runtime/message.h"

namespace troupe::runtime {

std::string_view Message::sender_name() const {
  return origin_ == nullptr ? std::string_view{} : std::string_view(origin_->sender_name());
}

std::string_view Message::port() const {
  return origin_ == nullptr ? std::string_view{} : std::string_view(origin_->port());
}

void Message::release_credit() {
  if (std::exchange(holds_credit_, false)) origin_->give_back(bytes_);
}

void Message::attach(Origin& origin, bool credit, std::uint64_t number) {
  origin_ = &origin;
  holds_credit_ = credit;
  number_ = number;
}

}  // namespace troupe::runtime
