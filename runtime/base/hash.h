#pragma once

// XXH3-128 over a sequence of byte ranges. Not cryptographic: it tells states apart, not attackers.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace troupe::runtime {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Hash128&) const = default;
  // 32 lower-case hexadecimal digits, high word first.
  std::string text() const;
};

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  // The object's bytes as they stand; only for types without padding, on little-endian machines.
  template <class T>
  requires std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>
  void add_value(const T& value) { add(std::as_bytes(std::span<const T, 1>{&value, 1})); }
  Hash128 digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Hash128 hash_of(std::span<const std::byte> bytes);
Hash128 hash_of(std::string_view text);

}  // namespace troupe::runtime
