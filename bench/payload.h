#pragma once

// Payloads whose content tells on arrival whether they are whole: a number of their own, and behind
// it the same bytes in all.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/buffer.h"
#include "runtime/base/random.h"

namespace troupe::bench {

// `bytes`: a multiple of 8.
inline runtime::Buffer payload_of(std::size_t bytes, std::uint64_t number) {
  runtime::Buffer buffer = runtime::Buffer::allocate(bytes);
  const auto words = buffer.mutable_as<std::uint64_t>();
  for (std::size_t i = 1; i < words.size(); ++i) words[i] = runtime::mix64(i);
  words[0] = number;
  return buffer;
}

// `whole`: looks at every byte. Timing looks at the first and the last word only.
inline bool is_payload(std::span<const std::uint64_t> words, std::uint64_t number, bool whole) {
  if (words[0] != number) return false;
  for (std::size_t i = whole ? 1 : words.size() - 1; i < words.size(); ++i) {
    if (words[i] != runtime::mix64(i)) return false;
  }
  return true;
}

}  // namespace troupe::bench
