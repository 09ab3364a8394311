#pragma once

// How much memory texts take that are under way to clients; one that many get counts once.

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

namespace troupe::telemetry {

// One thread.
class TextBudget {
 public:
  using Text = std::shared_ptr<const std::string>;

  // Each take() of a text wants its release(). Null counts nothing.
  void take(const Text& text);
  void release(const Text& text);
  std::size_t bytes() const { return bytes_; }
  // What take() would add.
  std::size_t cost(const Text& text) const;

 private:
  std::unordered_map<const std::string*, std::size_t> uses_;
  std::size_t bytes_ = 0;
};

}  // namespace troupe::telemetry
