#pragma once

// Files, sockets and pipes: one that closes itself, how many this process may have open, and what
// to say when there are none left.

#include <unistd.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::runtime {

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
  // Does nothing without a descriptor. The result of close() is ignored: it is of no use for pipes.
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

// Allows this process, and those that it starts, as many as the system lets it ask for. For a
// program to call once at its start.
void raise_descriptor_limit();

// True if this process could open so many more now.
bool descriptors_left(std::size_t count);

// True if `number`, the errno of a call, means that none are left.
bool is_out_of_descriptors(int number);

// An Error that none are left for `whom`, with their limit and what to do.
Error out_of_descriptors(ErrorKind kind, std::string_view whom);

}  // namespace troupe::runtime
