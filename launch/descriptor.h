#pragma once

// A file descriptor that closes itself.

#include <unistd.h>

#include <utility>

namespace troupe::launch {

// Movable; owned by one thread at a time.
class Descriptor {
 public:
  // Owns nothing.
  Descriptor() = default;
  // Takes over `number`; -1 is nothing.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }

  // -1 for nothing.
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  // Also of nothing. What close() says is of no use for pipes, and it is never called twice.
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

}  // namespace troupe::launch
