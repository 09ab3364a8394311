#include "pipeline/steps/ring_schedule.h"

#include "runtime/base/error.h"

namespace troupe::pipeline {

std::uint32_t home_of(std::uint32_t bucket, std::uint32_t members) {
  CHECK(members > 0, "a ring has members");
  return bucket % members;
}

RingRole ring_role(std::uint32_t bucket, std::uint32_t position, std::uint32_t members) {
  const std::uint32_t home = home_of(bucket, members);
  CHECK(position < members, "a position in the ring");
  RingRole role;
  role.begins = position == (home + 1) % members;
  role.completes = position == home;
  role.passes_sum = (position + 1) % members != home;
  return role;
}

std::int64_t ring_messages(std::uint32_t buckets, std::uint32_t position, std::uint32_t members) {
  const auto crossing = [&](std::uint32_t bucket) -> std::int64_t {
    const RingRole role = ring_role(bucket, position, members);
    // A position sends the part, unless that became the sum here, and the sum.
    return (role.completes ? 0 : 1) + (role.passes_sum ? 1 : 0);
  };
  std::int64_t messages = crossing(kHeaderBucket);
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) messages += crossing(bucket);
  return messages;
}

}  // namespace troupe::pipeline
