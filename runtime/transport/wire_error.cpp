#include "runtime/transport/wire_error.h"

#include <string_view>

namespace troupe::runtime {
namespace {

constexpr std::size_t kMostMessage = std::size_t{16} << 10;
constexpr auto kLastKind = static_cast<std::uint64_t>(ErrorKind::kDiverged);

}  // namespace

void write_error(WireWriter& out, const Error& error) {
  out.list(2);
  out.number(static_cast<std::uint64_t>(error.kind));
  out.text(std::string_view(error.message).substr(0, kMostMessage));
}

Error read_error(WireReader& in) {
  Error error;
  in.list(2);
  const std::uint64_t kind = in.number(kLastKind);
  if (kind == 0) in.fail("an error of no kind");
  error.kind = static_cast<ErrorKind>(kind);
  error.message = in.text(kMostMessage);
  return error;
}

}  // namespace troupe::runtime
